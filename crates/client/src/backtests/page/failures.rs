//! Why events could not be judged: by which policy, and what was lacking.

use super::super::view::FailureRow;
use super::super::words::number;
use super::rules::Anchors;
use super::section;
use provost_words::html::Html;

/// LIMIT: causes of a run.
const MAX_ROWS: usize = 20;

/// Adds the section, where something could not be judged.
pub fn add(html: &mut Html, failures: &[FailureRow], anchors: &Anchors<'_>) {
    if failures.is_empty() {
        return;
    }
    let hint = "An event that several policies could not judge, or that lacks several attributes, stands in several rows.";
    section(html, "What could not be judged", hint, |html| {
        html.element("table", &[("class", "ranking")], |html| {
            html.words("caption", "", "Events that a policy could not judge, by cause");
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    for (head, class) in [
                        ("Policy", ""),
                        ("Because", ""),
                        ("Baseline", "count"),
                        ("Candidate", "count"),
                    ] {
                        html.element("th", &[("scope", "col"), ("class", class)], |html| {
                            html.text(head);
                        });
                    }
                });
            });
            html.element("tbody", &[], |html| {
                for failure in failures {
                    row(html, failure, anchors);
                }
            });
        });
        if failures.len() >= MAX_ROWS {
            html.words("p", "hint", "A run lists at most 20 causes; there may be more.");
        }
    });
}

fn row(html: &mut Html, failure: &FailureRow, anchors: &Anchors<'_>) {
    html.element("tr", &[], |html| {
        html.element("th", &[("scope", "row")], |html| {
            anchors.name(html, &failure.policy_id);
            html.raw(" ");
            html.element("span", &[("class", "kind")], |html| {
                html.name(&failure.family.replace('_', " "));
            });
        });
        html.element("td", &[], |html| html.name(&failure.why()));
        html.words("td", "count", &number(failure.baseline));
        html.words("td", "count", &number(failure.candidate));
    });
}
