//! A run as one page for people who decide: no script, no network, nothing but this text.
//!
//! ```text
//! RunView ──► headline · figures · caveats ──► what was tried ──► days ──► before and after ──► subjects, tools, policies, failures
//!                                                          ──► samples ──► facts
//! ```
//!
//! The same run is always the same page: nothing here reads a clock. Charts are SVG whose lengths are shares of
//! the page's width, so that their text keeps its size on a telephone.
//!
//! Keeps PG-1: nothing of a run can be markup ([`provost_words::html`]).
//! INVARIANT PG-2: the page of a run asks for nothing and runs nothing; a browser is told so before the first
//! content. Proof: `cargo xtask page`.
//!
//! Absent on purpose: what the events held (the samples have ids and decisions only, D9.4), any link that leads away.

pub(crate) mod days;
mod facts;
mod failures;
mod flow;
mod ranking;
mod rules;
mod samples;

use super::view::{Direction, Results, RunView};
use super::words::{approvals, caveats, headline, number, percent};
use provost_words::html::Html;
use rules::Anchors;

/// How every page of this program begins: a browser is told that it asks for nothing before there is anything to ask for.
pub(crate) const BEFORE_TITLE: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"referrer\" content=\"no-referrer\">
<meta name=\"robots\" content=\"noindex\">
<meta name=\"generator\" content=\"Provost\">
";

pub(crate) const STYLE: &str = include_str!("style.css");

/// Returns the page of a run.
pub fn page(run: &RunView) -> String {
    let mut html = Html::default();
    html.raw(BEFORE_TITLE);
    html.words("title", "", &format!("{}: policy backtest", title(run)));
    html.raw("<style>\n");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n");
    html.element("main", &[], |html| {
        top(html, run);
        rules::add(html, run.tried.as_ref());
        if let Some(results) = &run.results {
            body(html, results, &Anchors::of(run.tried.as_ref()));
        }
        facts::add(html, run);
    });
    html.raw("</body>\n</html>\n");
    html.into_string()
}

fn title(run: &RunView) -> String {
    let name = run.name.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| match run.policy_set.candidate.policy_ids.as_slice() {
        [only] => only.clone(),
        _ => run.id.clone(),
    })
}

fn top(html: &mut Html, run: &RunView) {
    html.element("header", &[], |html| {
        html.element("p", &[("class", "kicker")], |html| {
            html.text("Policy backtest");
            if !run.organization_id.is_empty() {
                html.text(" · ");
                html.name(&run.organization_id);
            }
        });
        html.element("h1", &[], |html| {
            html.name(&title(run));
            if run.status != "succeeded" {
                html.raw(" ");
                html.words("span", "status", &run.status);
            }
        });
        if let Some(sentence) = headline(run) {
            html.words("p", "headline", &sentence);
        }
        if let Some(results) = run.results.as_ref().filter(|results| !results.is_withheld) {
            figures(html, results);
        }
        let caveats = caveats(run);
        if !caveats.is_empty() {
            html.element("div", &[("class", "caveats"), ("role", "note")], |html| {
                html.words("h2", "", "Before you rely on these figures");
                html.element("ul", &[], |html| {
                    for caveat in &caveats {
                        html.words("li", "", caveat);
                    }
                });
            });
        }
    });
}

fn figures(html: &mut Html, results: &Results) {
    let all = results.events_evaluated;
    let (stricter, looser) = (
        results.toward(Direction::Stricter),
        results.toward(Direction::Looser),
    );
    let open = results.unknown.saturating_add(results.errors);
    let mut figures = vec![
        (
            "Events evaluated",
            "",
            number(all),
            "recorded requests".to_owned(),
        ),
        (
            "Changed",
            "",
            number(results.changed),
            percent(results.changed, all),
        ),
        (
            "Stricter",
            if stricter > 0 { "strict" } else { "" },
            number(stricter),
            "more is stopped".to_owned(),
        ),
        (
            "More lenient",
            if looser > 0 { "loose" } else { "" },
            number(looser),
            "more passes".to_owned(),
        ),
    ];
    if let Some((a_day, in_words)) = approvals(results) {
        figures.push(("Approvals a day", "", a_day, in_words));
    }
    if open > 0 {
        figures.push(("Not decidable", "", number(open), percent(open, all)));
    }
    html.element("dl", &[("class", "figures")], |html| {
        for (name, class, count, note) in figures {
            html.element("div", &[], |html| {
                html.words("dt", "", name);
                html.element("dd", &[("class", class)], |html| {
                    html.text(&count);
                    html.words("small", "", &note);
                });
            });
        }
    });
}

fn body(html: &mut Html, results: &Results, anchors: &Anchors<'_>) {
    days::add(html, &results.by_day);
    flow::add(html, &results.changes(), results.changed);
    ranking::subjects(html, results);
    ranking::tools_and_policies(html, results, anchors);
    failures::add(html, &results.by_failure, anchors);
    samples::add(html, &results.samples, anchors);
}

/// Adds a part of the page with its heading and a line that says what it shows.
pub(crate) fn section(html: &mut Html, heading: &str, hint: &str, inner: impl FnOnce(&mut Html)) {
    html.element("section", &[], |html| {
        html.words("h2", "", heading);
        if !hint.is_empty() {
            html.words("p", "hint", hint);
        }
        inner(html);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const RUN: &str = r#"{
        "id": "X", "organizationId": "X", "name": "X", "status": "X", "reason": "X", "createdAt": "X",
        "createdBy": { "type": "X", "id": "X" }, "startedAt": "X", "finishedAt": "X", "canceledAt": "X",
        "cancelReason": "X", "failure": { "code": "X", "message": "X" },
        "policySet": { "baseline": { "kind": "X", "versionId": "X", "policyIds": ["X"], "digest": "X" },
            "candidate": { "kind": "X", "policyIds": ["X", "X"], "digest": "X" } },
        "window": { "from": "X", "to": "X" },
        "filters": { "subjectIds": ["X"], "tools": ["X"], "resourceIds": ["X"] },
        "tried": { "changes": [{ "family": "X", "policyId": "X" }, { "family": "X", "policyId": "X", "definition": {
            "id": "X", "name": "X", "action": "block", "evaluateOn": ["prompt"], "message": "X", "appliesTo": { "users": ["X"] },
            "conditions": { "field": "X", "op": "eq", "value": "X" },
            "exceptions": [{ "id": "X", "reason": "X", "conditions": { "field": "X", "op": "in", "value": ["X"] } }] } }] },
        "engineVersion": "X", "datasetDigest": "X", "resultDigest": "X", "expiresAt": "X",
        "truncated": true, "truncatedBy": "X", "partial": true,
        "results": {
            "eventsEvaluated": 9, "changed": 5, "unknown": 1, "errors": 1, "byChange": { "X_to_X": 5 },
            "oldestEventAt": "X", "newestEventAt": "X",
            "byPolicy": [{ "policyId": "X", "family": "X", "matched": 5, "changed": 5 }],
            "byFailure": [{ "policyId": "X", "family": "X", "cause": "X", "attribute": "X", "baseline": 1, "candidate": 5 },
                { "policyId": "X", "family": "X", "cause": "missing_attribute", "attribute": "X", "candidate": 5 }],
            "bySubject": [{ "subjectId": "X", "kind": "X", "changed": 5, "evaluated": 9 }],
            "byTool": [{ "tool": "X", "changed": 5, "evaluated": 9 }],
            "byDay": [{ "day": "X", "changed": 5, "evaluated": 9 },
                { "day": "2026-11-20", "changed": 5, "evaluated": 9 }],
            "samples": [{ "eventId": "X", "at": "X", "subjectId": "X", "tool": "X", "action": "X", "count": 5,
                "baseline": { "decision": "X", "policyIds": ["X"] },
                "candidate": { "decision": "X", "policyIds": ["X"] } }]
        }
    }"#;

    /// A run in which every text is `evil`.
    fn run_of(evil: &str) -> Value {
        let quoted = Value::from(evil).to_string();
        let inner = &quoted[1..quoted.len() - 1];
        let text = RUN
            .replace("\"X\"", &quoted)
            .replace("X_to_X", &format!("{inner}_to_{inner}"));
        serde_json::from_str(&text).unwrap()
    }

    fn page_of(evil: &str) -> String {
        page(&RunView::read(&run_of(evil)).unwrap())
    }

    /// The markup without text and without the values of attributes.
    fn markup(page: &str) -> String {
        let (mut markup, mut in_tag, mut in_value) = (String::new(), false, false);
        for c in page.chars() {
            match c {
                '"' if in_tag => in_value = !in_value,
                '<' if !in_value => in_tag = true,
                '>' if !in_value => in_tag = false,
                c if in_tag && !in_value => markup.push(c),
                _ => {}
            }
        }
        markup
    }

    /// Proves PG-1.
    #[test]
    fn whatever_a_run_says_its_markup_is_that_of_a_harmless_one() {
        // Words of one letter, so that a name is neither folded nor counted in another way.
        let harmless = markup(&page_of("x"));
        for evil in [
            "<script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "'-->",
            "</title></style>",
            "&lt;",
            "\u{202e}\u{200f}<b>",
            "<!--",
            "]]><svg onload=x>",
            "\u{0}\u{1b}[2J",
            "javascript:x",
        ] {
            let page = page_of(evil);
            assert_eq!(markup(&page), harmless, "{evil:?}");
            assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'), "{evil:?}");
        }
        let long = page_of(&"<".repeat(4096));
        assert!(!long.contains("<<"));
    }

    /// Proves PG-2.
    #[test]
    fn the_page_asks_for_nothing_and_runs_nothing() {
        let page = page_of("x");
        for word in [
            "<script", "<link", "<img", "<iframe", "<form", "url(", "@import", "http:", "https:",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(!markup(&page).contains(" on"), "an element acts");
        let links = page.matches("href=").count();
        assert!(
            links > 0 && links == page.matches("href=\"#rule-").count(),
            "a link leads away"
        );
        let policy = page.find("Content-Security-Policy").unwrap();
        assert!(policy < page.find("<style").unwrap() && policy < page.find("<title").unwrap());
    }

    #[test]
    fn a_run_without_results_says_how_far_it_is() {
        let run = json!({ "id": "btr_1", "status": "running",
            "progress": { "eventsProcessed": 1, "eventsTotal": 4 } });
        let page = page(&RunView::read(&run).unwrap());
        assert!(page.contains("still running (25.0\u{202f}% done)") && !page.contains("<h2>Over time"));
    }

    #[test]
    fn a_page_of_totals_has_no_lists_and_one_without_figures_has_no_zeros() {
        let of = |results| {
            let set = json!({ "kind": "live", "policyIds": [] });
            let run = json!({ "id": "btr_1", "status": "succeeded", "results": results,
                "policySet": { "baseline": set, "candidate": set } });
            page(&RunView::read(&run).unwrap())
        };
        let totals = of(
            json!({ "restricted": true, "eventsEvaluated": 20, "unchanged": 10, "changed": 10,
            "byChange": { "allow_to_block": 10 } }),
        );
        assert!(totals.contains("Events evaluated") && totals.contains("Before and after"));
        assert!(totals.contains("Only totals are shown") && !totals.contains("Over time"));
        let withheld = of(json!({ "restricted": true }));
        assert!(withheld.contains("The figures are not shown"));
        assert!(!withheld.contains("Events evaluated") && !withheld.contains("<code></code>"));
    }

    #[test]
    fn every_table_has_a_caption_and_headings_skip_no_level() {
        let page = page_of("x");
        assert_eq!(page.matches("<table").count(), page.matches("<caption").count());
        let headings = page
            .match_indices("<h")
            .filter_map(|(at, _)| page.as_bytes().get(at + 2)?.checked_sub(b'0'));
        let mut last = 0;
        for level in headings.filter(|level| (1..=6).contains(level)) {
            assert!(level <= last + 1, "h{level} behind h{last}");
            last = level;
        }
        assert_eq!(page.matches("<h1>").count(), 1);
    }
}
