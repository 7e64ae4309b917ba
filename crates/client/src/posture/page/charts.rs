//! Decisions by day and action: two rows of bars over the same days, each with a scale of its own, because what was stopped is a
//! few of a hundred.

use super::super::view::Decisions;
use super::DAY_MS;
use crate::backtests::page::days::rule;
use crate::backtests::words::{action, date, number, percent};
use provost_words::html::{Html, scaled, share};
use provost_words::time::Timestamp;
use std::collections::BTreeMap;

/// Actions that are drawn, the strictest first, and the class of their part of a bar. All others are `other`.
const DRAWN: [(&str, &str); 2] = [("block", "act-block"), ("require_approval", "act-approval")];
const OTHER: &str = "act-other";
const MIN_SLOTS: u64 = 14;
/// LIMIT: bars that a telephone can show apart; of a longer time the newest are drawn.
const MAX_BARS: i64 = 100;

/// Adds charts and tables.
pub fn by_day(html: &mut Html, found: &Decisions) {
    let days = days(found);
    if !days.is_empty() {
        html.element("figure", &[], |html| {
            html.words("h3", "", "Other than allowed, per day");
            chart(html, &days, 150, stopped);
            ends(html, &days);
            html.words("h3", "", "All decisions, per day");
            chart(html, &days, 70, |counts| {
                vec![(counts.values().sum(), "bar-evaluated")]
            });
            ends(html, &days);
            key(html);
        });
    }
    by_action(html, found);
    day_table(html, &days);
}

/// One day: its number and what was decided on it.
type Day = (i64, BTreeMap<String, u64>);

/// Returns every day from the first to the last, those without a decision too.
fn days(found: &Decisions) -> Vec<Day> {
    let (Some((first, _)), Some((last, _))) = (found.by_day.first_key_value(), found.by_day.last_key_value())
    else {
        return Vec::new();
    };
    let first = (*first).max(last - MAX_BARS + 1);
    (first..=*last)
        .map(|day| (day, found.by_day.get(&day).cloned().unwrap_or_default()))
        .collect()
}

/// Returns the parts of a bar from below: what let pass something with a word, what waited, what was blocked.
fn stopped(counts: &BTreeMap<String, u64>) -> Vec<(u64, &'static str)> {
    let of = |word: &str| counts.get(word).copied().unwrap_or(0);
    let drawn = DRAWN.iter().map(|(word, class)| (of(word), *class));
    let is_other = |word: &str| word != "allow" && DRAWN.iter().all(|(known, _)| *known != word);
    let other = counts
        .iter()
        .filter(|(word, _)| is_other(word))
        .map(|(_, count)| count)
        .sum();
    drawn.chain([(other, OTHER)]).collect()
}

fn chart(
    html: &mut Html,
    days: &[Day],
    height: u64,
    parts: impl Fn(&BTreeMap<String, u64>) -> Vec<(u64, &'static str)>,
) {
    let total = |counts: &BTreeMap<String, u64>| parts(counts).iter().map(|(count, _)| count).sum::<u64>();
    let top = days
        .iter()
        .map(|(_, counts)| total(counts))
        .max()
        .unwrap_or(0)
        .max(1);
    let slots = (days.len() as u64).max(MIN_SLOTS);
    let plot = height - 20;
    let tall = height.to_string();
    // The tables below say the same.
    let svg = [
        ("width", "100%"),
        ("height", tall.as_str()),
        ("aria-hidden", "true"),
        ("focusable", "false"),
    ];
    html.element("svg", &svg, |html| {
        rule(html, &(height - plot).to_string(), "grid");
        for (place, (day, counts)) in (0_u64..).zip(days) {
            let mut below = 0;
            for (count, class) in parts(counts) {
                let high = scaled(count, top, plot, 1);
                if high == 0 {
                    continue;
                }
                below = (below + high).min(height);
                let (x, wide) = (share(place * 10 + 1, slots * 10), share(8, slots * 10));
                let (y, high) = ((height - below).to_string(), high.to_string());
                let at = [
                    ("x", x.as_str()),
                    ("y", &y),
                    ("width", &wide),
                    ("height", &high),
                    ("class", class),
                ];
                html.element("rect", &at, |html| {
                    let words = format!("{}: {}", day_text(*day), in_words(counts));
                    html.words("title", "", &words);
                });
            }
        }
        rule(html, &tall, "axis");
        html.element("text", &[("x", "0"), ("y", "14")], |html| html.text(&number(top)));
    });
}

fn ends(html: &mut Html, days: &[Day]) {
    let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) else {
        return;
    };
    let slots = (days.len() as u64).max(MIN_SLOTS);
    let room = format!("width:max(15rem,{})", share(days.len() as u64, slots));
    html.element("p", &[("class", "ends"), ("style", &room)], |html| {
        html.words("span", "", &day_text(*first));
        if first != last {
            html.words("span", "", &day_text(*last));
        }
    });
}

fn key(html: &mut Html) {
    html.element("p", &[("class", "key")], |html| {
        for (class, words) in [
            ("block", "blocked"),
            ("approval", "needed approval"),
            ("noted", "flagged, nudged, redacted or filtered"),
        ] {
            html.element("span", &[], |html| {
                html.element("i", &[("class", class)], |_| {});
                html.text(words);
            });
        }
    });
}

fn day_text(day: i64) -> String {
    date(&Timestamp::from_ms(day * DAY_MS).to_rfc3339())
}

fn in_words(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{} {}", number(*count), action(word)))
        .collect();
    if all.is_empty() {
        "nothing".to_owned()
    } else {
        all.join(", ")
    }
}

fn by_action(html: &mut Html, found: &Decisions) {
    let mut rows: Vec<(&String, &u64)> = found.by_action.iter().collect();
    rows.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), *word));
    html.element("table", &[("class", "directions")], |html| {
        html.words("caption", "", "Decisions by action");
        html.raw("<thead><tr><th scope=\"col\">Action</th><th scope=\"col\" class=\"count\">Decisions</th><th scope=\"col\" class=\"count\">Share</th></tr></thead>\n");
        html.element("tbody", &[], |html| {
            for (word, count) in rows.into_iter().take(super::MAX_ROWS) {
                html.element("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], |html| html.text(&action(word)));
                    html.words("td", "count", &number(*count));
                    html.words("td", "count", &percent(*count, found.all));
                });
            }
        });
    });
}

fn day_table(html: &mut Html, days: &[Day]) {
    html.element("details", &[("class", "figures-of-chart")], |html| {
        html.words("summary", "", "Day by day as a table");
        html.element("table", &[], |html| {
            html.words("caption", "", "Decisions by day");
            html.raw(
                "<thead><tr><th scope=\"col\">Day (UTC)</th><th scope=\"col\">Decisions</th></tr></thead>\n",
            );
            html.element("tbody", &[], |html| {
                for (day, counts) in days.iter().filter(|(_, counts)| !counts.is_empty()) {
                    html.element("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], |html| html.text(&day_text(*day)));
                        html.words("td", "", &in_words(counts));
                    });
                }
            });
        });
    });
}
