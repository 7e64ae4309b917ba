//! Figures, dates and sentences as people read them, for the table and the page alike.

use super::view::{Change, Results, RunView};
use provost_words::time::Timestamp;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Between groups of three digits, and before a unit: narrow, and no line breaks there.
const THIN_SPACE: char = '\u{202f}';

/// Characters of an action's word or an instant.
const MAX_WORD: usize = 32;
/// A sentence with more clauses is none; the table has them all.
const MAX_CLAUSES: usize = 4;

/// Returns `1 164`.
pub fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(THIN_SPACE);
        }
        text.push(digit);
    }
    text
}

/// Returns `3.2 %`; what is neither nothing nor all never reads as if it were.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let tenths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    let text = match tenths {
        _ if part == 0 => "0".to_owned(),
        _ if part == whole => "100".to_owned(),
        0 => "<0.1".to_owned(),
        1000.. if part < whole => ">99.9".to_owned(),
        tenths => format!("{}.{}", tenths / 10, tenths % 10),
    };
    format!("{text}{THIN_SPACE}%")
}

/// Returns `20 Nov 2026` of RFC 3339 text, or the beginning of the text.
pub fn date(text: &str) -> String {
    let parts = || {
        let day: u32 = text.get(8..10)?.parse().ok()?;
        let month: usize = text.get(5..7)?.parse().ok()?;
        let year: u32 = text.get(..4)?.parse().ok()?;
        Some(format!("{day} {} {year}", MONTHS.get(month.checked_sub(1)?)?))
    };
    parts().unwrap_or_else(|| text.chars().take(MAX_WORD).collect())
}

/// Returns `20 Nov 2026, 03:15 UTC` of an instant on the wire, or the beginning of the text.
pub fn instant(text: &str) -> String {
    match Timestamp::parse(text) {
        Some(at) => {
            let at = at.to_rfc3339();
            format!("{}, {} UTC", date(&at), at.get(11..16).unwrap_or_default())
        }
        None => text.chars().take(MAX_WORD).collect(),
    }
}

/// Returns an action's word as it stands in a sentence; one that is not known here is cut where no action's
/// word is as long.
pub fn action(word: &str) -> String {
    word.chars().take(MAX_WORD).collect::<String>().replace('_', " ")
}

/// Returns when in its life an event was judged.
pub fn occasion(word: &str) -> String {
    match word {
        "pre_tool" => "before the call".to_owned(),
        "post_tool" => "after the call".to_owned(),
        other => action(other),
    }
}

/// Returns the figures of a run in a sentence; `None` while there are none.
pub fn headline(run: &RunView) -> Option<String> {
    let results = run.results.as_ref().filter(|results| !results.is_withheld)?;
    let evaluated = results.events_evaluated;
    let what = match (results.is_all_tools(), evaluated) {
        (true, 1) => "tool call",
        (true, _) => "tool calls",
        (false, 1) => "event",
        (false, _) => "events",
    };
    let between = between(run, results);
    if evaluated == 0 {
        return Some(format!("No {what} {between} could be evaluated."));
    }
    if results.changed == 0 {
        return Some(format!(
            "None of {} {what} {between} would have been decided differently.",
            number(evaluated)
        ));
    }
    let clauses = clauses(&results.changes());
    let clauses = if clauses.is_empty() {
        String::new()
    } else {
        format!(": {}", clauses.join(", "))
    };
    Some(format!(
        "Of {} {what} {between}, {} ({}) would have been decided differently{clauses}.",
        number(evaluated),
        number(results.changed),
        percent(results.changed, evaluated),
    ))
}

/// Returns how many approvals a day there would be more or fewer, and how many that are in all; `None` where approvals are what
/// they were.
pub fn approvals(results: &Results) -> Option<(String, String)> {
    const WORD: &str = "require_approval";
    let changes = results.changes();
    let of = |is_it: fn(&Change) -> bool| -> u64 {
        let those = changes.iter().filter(|change| is_it(change));
        those.fold(0, |sum, change| sum.saturating_add(change.count))
    };
    let (more, fewer) = (of(|change| change.to == WORD), of(|change| change.from == WORD));
    let (from, to) = (
        results.oldest_event_at.as_deref()?,
        results.newest_event_at.as_deref()?,
    );
    let span = Timestamp::parse(to)?.as_ms() - Timestamp::parse(from)?.as_ms();
    // A part of a day is a day: nobody should believe in a hundred a day because of one busy hour.
    let days = u64::try_from(span).ok()?.div_ceil(86_400_000).max(1);
    if more == 0 && fewer == 0 {
        return None;
    }
    let (sign, count) = if more >= fewer {
        ("+", more - fewer)
    } else {
        ("−", fewer - more)
    };
    let tenths = u128::from(count) * 10 / u128::from(days);
    let a_day = match (count, tenths) {
        (0, _) => "0".to_owned(),
        (_, 0) => format!("{sign}<0.1"),
        (_, tenths) => format!("{sign}{}.{}", tenths / 10, tenths % 10),
    };
    let all: Vec<String> = [(more, "more"), (fewer, "fewer")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", number(*count)))
        .collect();
    let in_days = if days == 1 {
        "a day".to_owned()
    } else {
        format!("{} days", number(days))
    };
    Some((a_day, format!("{} in {in_days}", all.join(", "))))
}

/// What was evaluated, which may be less than the window that was asked for.
fn between(run: &RunView, results: &Results) -> String {
    let from = results.oldest_event_at.as_deref().unwrap_or(&run.window.from);
    let to = results.newest_event_at.as_deref().unwrap_or(&run.window.to);
    let (from, to) = (date(from), date(to));
    if from == to {
        return format!("on {from}");
    }
    format!("between {from} and {to}")
}

/// Returns what would have become of the changed decisions, the most frequent first.
fn clauses(changes: &[Change]) -> Vec<String> {
    let mut by_end: Vec<(&str, u64, Option<&str>)> = Vec::new();
    for change in changes {
        match by_end.iter_mut().find(|(to, ..)| *to == change.to) {
            Some((_, count, from)) => {
                *count += change.count;
                *from = from.filter(|from| *from == change.from);
            }
            None => by_end.push((&change.to, change.count, Some(&change.from))),
        }
    }
    by_end.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    if let [(to, count, from)] = by_end.as_slice() {
        let all = if *count == 1 { "it" } else { "all" };
        let before = from.and_then(was).map(|was| format!(" {was} and"));
        return vec![format!("{all}{} {}", before.unwrap_or_default(), would(to))];
    }
    let clause = |(to, count, from): &(&str, u64, Option<&str>)| {
        // That a request passed before goes without saying.
        let before = from
            .and_then(was)
            .map(|was| format!(" that {was}"))
            .unwrap_or_default();
        format!("{}{before} {}", number(*count), would(to))
    };
    let mut clauses: Vec<String> = by_end.iter().take(MAX_CLAUSES).map(clause).collect();
    let others: u64 = by_end.iter().skip(MAX_CLAUSES).map(|(_, count, _)| count).sum();
    if others > 0 {
        clauses.push(format!("{} something else", number(others)));
    }
    clauses
}

fn would(to: &str) -> String {
    let words = match to {
        "allow" => "would have passed",
        "flag_for_review" => "would have been flagged for review",
        "nudge" => "would have come with a nudge",
        "redact" => "would have been redacted",
        "filter" => "would have been filtered",
        "require_approval" => "would have needed approval",
        "block" => "would have been blocked",
        other => return format!("would have become “{}”", action(other)),
    };
    words.to_owned()
}

fn was(from: &str) -> Option<&'static str> {
    match from {
        "flag_for_review" => Some("had been flagged"),
        "nudge" => Some("had come with a nudge"),
        "redact" => Some("had been redacted"),
        "filter" => Some("had been filtered"),
        "require_approval" => Some("had needed approval"),
        "block" => Some("had been blocked"),
        _ => None,
    }
}

/// Returns what a reader must know before they believe the figures.
pub fn caveats(run: &RunView) -> Vec<String> {
    let mut all = Vec::new();
    let empty = Results::default();
    let results = run.results.as_ref().unwrap_or(&empty);
    let evaluated = results.events_evaluated;
    match run.status.as_str() {
        "queued" => all.push("The backtest has not begun yet.".to_owned()),
        "running" => {
            let total = run.progress.events_total.filter(|total| *total > 0);
            let far = total.zip(run.progress.events_processed);
            let far = far.map(|(total, processed)| percent(processed.min(total), total));
            let far = far.map(|far| format!(" ({far} done)")).unwrap_or_default();
            all.push(format!(
                "The backtest is still running{far}: the figures will change."
            ));
        }
        "canceled" => {
            let why = run
                .cancel_reason
                .as_deref()
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            all.push(format!("The backtest was canceled before its end{why}."));
        }
        "failed" => {
            let why = run
                .failure
                .as_ref()
                .map(|failure| format!(": {}", failure.message));
            all.push(format!("The backtest failed{}.", why.unwrap_or_default()));
        }
        _ => {}
    }
    if results.is_withheld {
        all.push(
            "The figures are not shown: the backtest reads content, one of them is small, and only who has the scope \
             policies:inspect sees small ones."
                .to_owned(),
        );
    } else if results.restricted {
        all.push(
            "Only totals are shown: the backtest reads content, and the rest is for who has the scope policies:inspect."
                .to_owned(),
        );
    }
    // Where it was read to its end, what is missing is what could not be read, and that is said below.
    let is_read = run.status == "succeeded"
        || run
            .failure
            .as_ref()
            .is_some_and(|failure| failure.code == "unreadable_history");
    if run.partial && run.is_final() && !results.is_withheld && !is_read {
        all.push("The figures cover only the events that were evaluated before it ended.".to_owned());
    }
    if run.truncated {
        let why = match run.truncated_by.as_deref() {
            Some("events") => match run.limits.max_events {
                Some(max) => format!("the run might read {} events", number(max)),
                None => "the run reached its limit of events".to_owned(),
            },
            Some("duration") => match run.limits.max_duration_seconds {
                Some(max) => format!("the run might take {max} seconds"),
                None => "the run reached its limit of time".to_owned(),
            },
            _ => "the run reached a limit".to_owned(),
        };
        all.push(format!("Only the newest part of the window was read: {why}."));
    }
    if results.unknown > 0 {
        all.push(format!(
            "{} ({}) cannot be said: a policy could not be evaluated for them, for example because the event was \
             recorded without an attribute that the policy reads. They count neither as changed nor as unchanged{}.",
            events(results.unknown),
            percent(results.unknown, evaluated),
            if results.by_failure.is_empty() {
                ""
            } else {
                "; the causes are listed by policy"
            }
        ));
    }
    if results.errors > 0 {
        all.push(unreadable(results, evaluated));
    }
    let sampled = results
        .samples
        .iter()
        .fold(0_u64, |sum, sample| sum.saturating_add(sample.count.unwrap_or(1)));
    if !results.samples.is_empty() && sampled < results.changed {
        all.push(format!(
            "The examples stand for {} of the {} changed decisions: there are more behaviours than examples.",
            number(sampled),
            number(results.changed)
        ));
    }
    all
}

/// How many names of what could not be read are said; the run has more.
const NAMES: usize = 5;

fn unreadable(results: &Results, evaluated: u64) -> String {
    let mut text = format!(
        "{} ({}) could not be read, and the figures lack {}",
        events(results.errors),
        percent(results.errors, evaluated),
        if results.errors == 1 { "it" } else { "them" }
    );
    let listed = results.unreadable.iter().take(NAMES);
    let mut names: Vec<String> = listed
        .map(|lost| format!("{} in {}", number(lost.events), lost.name))
        .collect();
    let more = results.unreadable.len().saturating_sub(NAMES);
    if more > 0 {
        names.push(format!("{} more places", number(more as u64)));
    }
    if !names.is_empty() {
        text.push_str(": ");
        text.push_str(&names.join(", "));
    }
    text.push('.');
    text
}

pub fn events(count: u64) -> String {
    format!(
        "{} {}",
        number(count),
        if count == 1 { "event" } else { "events" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn run(results: &Value) -> RunView {
        let window = json!({ "from": "2026-08-22T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" });
        RunView::read(&json!({ "id": "btr_1", "status": "succeeded", "window": window, "results": results }))
            .unwrap()
    }

    fn plain(text: &str) -> String {
        text.replace(THIN_SPACE, " ")
    }

    #[test]
    fn a_sentence_says_what_would_have_happened() {
        let sentence = headline(&run(&json!({
            "eventsEvaluated": 1164, "changed": 37, "unchanged": 1127,
            "byChange": { "allow_to_require_approval": 34, "block_to_require_approval": 1, "block_to_allow": 2 },
            "byTool": [{ "tool": "a", "evaluated": 1164, "changed": 37 }],
        })));
        assert_eq!(
            plain(&sentence.unwrap()),
            "Of 1 164 tool calls between 22 Aug 2026 and 20 Nov 2026, 37 (3.2 %) would have been decided \
             differently: 35 would have needed approval, 2 that had been blocked would have passed."
        );
    }

    #[test]
    fn one_direction_is_not_counted_twice() {
        let said = |changes: Value, changed: u64| {
            let sentence = headline(&run(
                &json!({ "eventsEvaluated": 10, "changed": changed, "byChange": changes }),
            ));
            plain(&sentence.unwrap())
                .split_once("differently: ")
                .unwrap()
                .1
                .to_owned()
        };
        assert_eq!(
            said(json!({ "allow_to_block": 5 }), 5),
            "all would have been blocked."
        );
        assert_eq!(
            said(json!({ "allow_to_block": 1 }), 1),
            "it would have been blocked."
        );
        assert_eq!(
            said(json!({ "require_approval_to_block": 5 }), 5),
            "all had needed approval and would have been blocked."
        );
    }

    #[test]
    fn approvals_are_counted_a_day_more_and_fewer() {
        let said = |changes: Value, to: &str| {
            let run = run(&json!({ "changed": 9, "byChange": changes,
                "oldestEventAt": "2026-11-01T00:00:00.000Z", "newestEventAt": to }));
            approvals(run.results.as_ref().unwrap()).map(|(a_day, words)| (a_day, plain(&words)))
        };
        let month = "2026-11-30T12:00:00.000Z";
        let both = json!({ "allow_to_require_approval": 1_290, "require_approval_to_block": 30 });
        assert_eq!(
            said(both, month),
            Some(("+42.0".into(), "1 290 more, 30 fewer in 30 days".into()))
        );
        let fewer = said(json!({ "require_approval_to_allow": 45 }), month);
        assert_eq!(fewer, Some(("−1.5".into(), "45 fewer in 30 days".into())));
        let few = said(json!({ "allow_to_require_approval": 1 }), month);
        assert_eq!(few, Some(("+<0.1".into(), "1 more in 30 days".into())));
        let hour = said(
            json!({ "allow_to_require_approval": 5 }),
            "2026-11-01T01:00:00.000Z",
        );
        assert_eq!(hour, Some(("+5.0".into(), "5 more in a day".into())));
        assert_eq!(said(json!({ "allow_to_block": 5 }), month), None);
    }

    #[test]
    fn nothing_changed_and_nothing_evaluated_are_said_too() {
        let none = headline(&run(&json!({ "eventsEvaluated": 2, "unchanged": 2,
            "oldestEventAt": "2026-11-20T01:00:00.000Z", "newestEventAt": "2026-11-20T02:00:00.000Z" })));
        assert_eq!(
            none.unwrap(),
            "None of 2 events on 20 Nov 2026 would have been decided differently."
        );
        let nothing = headline(&run(&json!({})));
        assert_eq!(
            nothing.unwrap(),
            "No events between 22 Aug 2026 and 20 Nov 2026 could be evaluated."
        );
        let queued = RunView::read(&json!({ "id": "btr_1", "status": "queued" })).unwrap();
        assert_eq!(headline(&queued), None);
    }

    #[test]
    fn figures_that_are_not_shown_never_read_as_nothing() {
        let withheld = run(&json!({ "restricted": true }));
        assert_eq!(headline(&withheld), None);
        let said = caveats(&withheld).join("\n");
        assert!(
            said.contains("not shown") && said.contains("policies:inspect"),
            "{said}"
        );
        let totals = run(&json!({ "restricted": true, "eventsEvaluated": 9, "unchanged": 9 }));
        assert!(headline(&totals).unwrap().starts_with("None of 9 events"));
        let said = caveats(&totals).join("\n");
        assert!(
            said.contains("Only totals") && said.contains("policies:inspect"),
            "{said}"
        );
    }

    #[test]
    fn a_part_never_reads_as_nothing_or_all() {
        let said = |part, whole| plain(&percent(part, whole));
        assert_eq!(
            [
                said(0, 9),
                said(1, 100_000),
                said(1, 3),
                said(99_999, 100_000),
                said(9, 9),
                said(1, 0)
            ],
            ["0 %", "<0.1 %", "33.3 %", ">99.9 %", "100 %", "–"]
        );
        assert_eq!(said(u64::MAX - 1, u64::MAX), ">99.9 %");
    }

    #[test]
    fn figures_and_dates_read_as_people_write_them() {
        assert_eq!(plain(&number(1_234_567)), "1 234 567");
        assert_eq!(number(999), "999");
        assert_eq!(instant("2026-03-04T05:06:07.000Z"), "4 Mar 2026, 05:06 UTC");
        assert_eq!(instant("yesterday"), "yesterday");
        assert_eq!(date("2026-13-01"), "2026-13-01");
    }

    #[test]
    fn what_limits_the_figures_is_said() {
        let mut run = run(
            &json!({ "eventsEvaluated": 10, "unknown": 1, "errors": 2, "changed": 3,
                "unreadable": [{ "name": "segment-a.parquet", "events": 2 }], "samples": [{ "count": 2 }] }),
        );
        run.status = "canceled".into();
        run.partial = true;
        run.truncated = true;
        run.truncated_by = Some("events".into());
        run.limits.max_events = Some(10);
        let said = caveats(&run).join("\n");
        for words in [
            "canceled",
            "before it ended",
            "might read 10 events",
            "1 event (10.0",
            "2 events (20.0",
            "2 in segment-a.parquet.",
            "stand for 2 of the 3",
        ] {
            assert!(said.contains(words), "{words} in {said}");
        }
    }
}
