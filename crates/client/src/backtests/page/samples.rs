//! Examples: one event for each behaviour that would have changed. On a narrow page each becomes a block.

use super::super::view::{Sample, SetDecision};
use super::super::words::{self, action, instant, number};
use super::rules::Anchors;
use super::section;
use provost_words::html::Html;

/// Samples that everybody sees; the others unfold.
const SHOWN: usize = 12;

/// Adds the section; nothing where there are none.
pub fn add(html: &mut Html, samples: &[Sample], anchors: &Anchors<'_>) {
    if samples.is_empty() {
        return;
    }
    let hint =
        "One recorded event for each behaviour that would have changed, the most frequent behaviour first.";
    section(html, "Examples", hint, |html| {
        let (first, rest) = samples.split_at(samples.len().min(SHOWN));
        table(html, "Events whose decision would have changed", first, anchors);
        if !rest.is_empty() {
            html.element("details", &[], |html| {
                html.words("summary", "", &format!("{} more", rest.len()));
                table(
                    html,
                    "More events whose decision would have changed",
                    rest,
                    anchors,
                );
            });
        }
    });
}

fn table(html: &mut Html, caption: &str, samples: &[Sample], anchors: &Anchors<'_>) {
    // Blocks are no table to a browser; the roles keep it one for whoever listens.
    html.element("table", &[("class", "samples"), ("role", "table")], |html| {
        html.words("caption", "", caption);
        html.raw("<thead role=\"rowgroup\"><tr role=\"row\"><th scope=\"col\" role=\"columnheader\" class=\"when\">When</th><th scope=\"col\" role=\"columnheader\">Who</th><th scope=\"col\" role=\"columnheader\">What</th><th scope=\"col\" role=\"columnheader\" class=\"change\">Before → after</th><th scope=\"col\" role=\"columnheader\">Decided by</th><th scope=\"col\" role=\"columnheader\" class=\"count\">Times</th></tr></thead>\n");
        html.element("tbody", &[("role", "rowgroup")], |html| {
            for sample in samples {
                row(html, sample, anchors);
            }
        });
    });
}

fn row(html: &mut Html, sample: &Sample, anchors: &Anchors<'_>) {
    html.element("tr", &[("role", "row")], |html| {
        let head = [("scope", "row"), ("role", "rowheader"), ("class", "when")];
        html.element("th", &head, |html| {
            html.element("span", &[("title", &sample.event_id)], |html| {
                html.text(&instant(&sample.at));
            });
        });
        cell(html, "Who", "", |html| match &sample.subject_id {
            Some(subject) => html.name(subject),
            None => html.text("–"),
        });
        cell(html, "What", "", |html| {
            html.name(sample.tool.as_deref().unwrap_or("–"));
            if let Some(occasion) = &sample.action {
                html.raw(" ");
                html.words("span", "kind", &words::occasion(occasion));
            }
        });
        cell(html, "Before → after", "change", |html| {
            html.text(&action(&sample.baseline.decision));
            html.raw(" <span class=\"arrow\">→</span> ");
            html.words("strong", "", &action(&sample.candidate.decision));
        });
        cell(html, "Decided by", "", |html| {
            deciders(html, &sample.baseline, &sample.candidate, anchors);
        });
        cell(html, "Times", "count", |html| {
            html.text(&number(sample.count.unwrap_or(1)));
        });
    });
}

fn cell(html: &mut Html, label: &str, class: &str, inner: impl FnOnce(&mut Html)) {
    html.element(
        "td",
        &[("role", "cell"), ("data-label", label), ("class", class)],
        inner,
    );
}

/// Names the policies that decide after the change; where none does any more, those that did.
fn deciders(html: &mut Html, baseline: &SetDecision, candidate: &SetDecision, anchors: &Anchors<'_>) {
    let (ids, before) = if candidate.policy_ids.is_empty() {
        (&baseline.policy_ids, !baseline.policy_ids.is_empty())
    } else {
        (&candidate.policy_ids, false)
    };
    if ids.is_empty() {
        html.text("no policy");
    }
    for (place, id) in ids.iter().enumerate() {
        html.raw(if place > 0 { ", " } else { "" });
        anchors.name(html, id);
    }
    if before {
        html.raw(" ");
        html.words("span", "kind", "before only");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(decision: &str, ids: &[&str]) -> SetDecision {
        SetDecision {
            decision: decision.into(),
            policy_ids: ids.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_sample_says_who_what_and_by_which_policy() {
        let sample = Sample {
            at: "2026-11-20T03:15:00.000Z".into(),
            subject_id: Some("usr_<1>".into()),
            count: Some(1200),
            baseline: judged("block", &["old"]),
            candidate: judged("require_approval", &[]),
            ..Sample::default()
        };
        let mut html = Html::default();
        add(&mut html, &[sample], &Anchors::of(None));
        let html = html.into_string();
        for words in [
            "20 Nov 2026, 03:15 UTC",
            "usr_&lt;1&gt;",
            "<strong>require approval</strong>",
            "before only",
            "1\u{202f}200",
        ] {
            assert!(html.contains(words), "{words} in {html}");
        }
    }

    #[test]
    fn more_than_a_screen_unfolds() {
        let samples: Vec<Sample> = (0..100).map(|_| Sample::default()).collect();
        let mut html = Html::default();
        add(&mut html, &samples, &Anchors::of(None));
        assert!(html.into_string().contains("<summary>88 more</summary>"));
    }
}
