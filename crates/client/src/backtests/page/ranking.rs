//! Who and what is affected most: tables whose rows have a bar each.

use super::super::view::Results;
use super::super::words::{number, percent};
use super::rules::Anchors;
use super::section;
use provost_words::html::{Html, share};

/// Rows that everybody sees; the others unfold.
const SHOWN: usize = 10;
/// Rows that everybody sees where nothing changes.
const SHOWN_UNCHANGED: usize = 5;
/// LIMIT: rows of a list (D9.4).
const MAX_ROWS: usize = 50;

struct Row<'a> {
    name: &'a str,
    /// A word about the name: what kind it is.
    kind: String,
    changed: u64,
    whole: u64,
}

struct Ranking<'a> {
    heading: &'static str,
    caption: &'static str,
    /// The heads of the columns: name, whole.
    name: &'static str,
    whole: &'static str,
    rows: Vec<Row<'a>>,
}

/// Adds who is affected.
pub fn subjects(html: &mut Html, results: &Results) {
    let rows = results.subjects().into_iter().map(|row| Row {
        name: &row.subject_id,
        kind: row.kind.replace('_', " "),
        changed: row.changed,
        whole: row.evaluated,
    });
    add(
        html,
        &Ranking {
            heading: "Who is affected most",
            caption: "People, service accounts and devices by decisions that would have changed for them",
            name: "Who",
            whole: "Evaluated",
            rows: rows.collect(),
        },
        &Anchors::of(None),
    );
}

/// Adds the tools and the policies, beside each other where there is room.
pub fn tools_and_policies(html: &mut Html, results: &Results, anchors: &Anchors<'_>) {
    let tools = results.tools().into_iter().map(|row| Row {
        name: &row.tool,
        kind: String::new(),
        changed: row.changed,
        whole: row.evaluated,
    });
    let tools = Ranking {
        heading: "By tool",
        caption: "Tools by decisions that would have changed",
        name: "Tool",
        whole: "Evaluated",
        rows: tools.collect(),
    };
    let policies = results.policies().into_iter().map(|row| Row {
        name: &row.policy_id,
        kind: row.family.replace('_', " "),
        changed: row.changed,
        whole: row.matched,
    });
    let policies = Ranking {
        heading: "By policy",
        caption: "Policies by matched events, and matched events whose decision would have changed",
        name: "Policy",
        whole: "Matched",
        rows: policies.collect(),
    };
    html.element("div", &[("class", "pair")], |html| {
        add(html, &tools, &Anchors::of(None));
        add(html, &policies, anchors);
    });
}

fn add(html: &mut Html, ranking: &Ranking<'_>, anchors: &Anchors<'_>) {
    if ranking.rows.is_empty() {
        return;
    }
    section(html, ranking.heading, "", |html| {
        // The most affected come first, so that those whom nothing changes for are the last.
        let affected = ranking.rows.iter().filter(|row| row.changed > 0).count();
        let shown = if affected == 0 { SHOWN_UNCHANGED } else { affected };
        let (first, rest) = ranking.rows.split_at(shown.min(SHOWN).min(ranking.rows.len()));
        table(html, ranking, ranking.caption, first, anchors);
        if !rest.is_empty() {
            let unchanged = if affected <= first.len() {
                " without a change"
            } else {
                ""
            };
            html.element("details", &[], |html| {
                html.words("summary", "", &format!("{} more{unchanged}", rest.len()));
                table(html, ranking, "The others", rest, anchors);
            });
        }
        if ranking.rows.len() >= MAX_ROWS {
            html.words("p", "hint", "A run lists at most 50; there may be more.");
        }
    });
}

fn table(html: &mut Html, ranking: &Ranking<'_>, caption: &str, rows: &[Row<'_>], anchors: &Anchors<'_>) {
    let greatest = ranking.rows.iter().map(|row| row.changed).max().unwrap_or(0);
    html.element("table", &[("class", "ranking")], |html| {
        html.words("caption", "", caption);
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| {
                html.element("th", &[("scope", "col")], |html| html.text(ranking.name));
                for (head, class) in [
                    ("Changed", "count"),
                    (ranking.whole, "count"),
                    ("Share", "count share"),
                ] {
                    html.element("th", &[("scope", "col"), ("class", class)], |html| {
                        html.text(head);
                    });
                }
            });
        });
        html.element("tbody", &[], |html| {
            for row in rows {
                html.element("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], |html| {
                        anchors.name(html, row.name);
                        if !row.kind.is_empty() {
                            html.raw(" ");
                            html.element("span", &[("class", "kind")], |html| html.name(&row.kind));
                        }
                        bar(html, row.changed, greatest);
                    });
                    html.words("td", "count", &number(row.changed));
                    html.words("td", "count", &number(row.whole));
                    html.words("td", "count share", &percent(row.changed, row.whole));
                });
            }
        });
    });
}

/// The figure stands beside it.
fn bar(html: &mut Html, part: u64, whole: u64) {
    if part == 0 {
        return;
    }
    let svg = [
        ("width", "100%"),
        ("height", "6"),
        ("aria-hidden", "true"),
        ("focusable", "false"),
    ];
    html.element("svg", &svg, |html| {
        let wide = share(part, whole);
        let at = [
            ("width", wide.as_str()),
            ("height", "6"),
            ("rx", "1"),
            ("class", "bar-changed"),
        ];
        html.element("rect", &at, |_| {});
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backtests::view::{SubjectRow, ToolRow};

    #[test]
    fn the_most_affected_come_first_and_the_others_unfold() {
        let row = |place: u64| SubjectRow {
            subject_id: format!("usr_{place:02}"),
            kind: "service_account".into(),
            changed: place,
            evaluated: 100,
        };
        let results = Results {
            by_subject: (0..50).map(row).collect(),
            ..Results::default()
        };
        let mut html = Html::default();
        subjects(&mut html, &results);
        let html = html.into_string();
        assert!(html.find("usr_49") < html.find("usr_48") && html.contains("service account"));
        assert!(html.contains("<summary>40 more</summary>") && html.contains("at most 50"));
    }

    #[test]
    fn a_list_without_rows_is_no_section() {
        let mut html = Html::default();
        let tool = ToolRow {
            tool: "search".into(),
            changed: 0,
            evaluated: 5,
        };
        tools_and_policies(
            &mut html,
            &Results {
                by_tool: vec![tool],
                ..Results::default()
            },
            &Anchors::of(None),
        );
        let html = html.into_string();
        assert!(html.contains("By tool") && !html.contains("By policy"));
        assert!(!html.contains("<svg"), "{html}");
    }
}
