//! A run as a person reads it on a terminal: the sentence, then who and what it would have met.

use super::view::{Direction, Results, RunView};
use super::words::{action, caveats, headline, number, occasion, percent};
use crate::cli::plain_table;

/// Rows of a list; the page has them all.
const SHOWN: usize = 10;
const SAMPLES: usize = 8;

/// Returns the text.
pub fn table(run: &RunView, width: Option<u16>) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    match headline(run) {
        Some(sentence) => line(&sentence),
        None => line(&format!("{} is {}", run.id, run.status)),
    }
    for caveat in caveats(run) {
        line(&format!("! {caveat}"));
    }
    if let Some(results) = &run.results {
        for (heads, rows) in lists(results) {
            if !rows.is_empty() {
                line("");
                line(plain_table(&heads, &rows, width).trim_end());
            }
        }
    }
    line("");
    line(&format!("run {}", run.id));
    if let Some(digest) = &run.result_digest {
        line(&format!("result {digest}"));
    }
    text
}

/// The heads and the rows of a list.
pub type List = (Vec<&'static str>, Vec<Vec<String>>);

/// Returns the lists of a run's results, each with its heads.
pub fn lists(results: &Results) -> Vec<List> {
    let directions = results.changes().into_iter().map(|change| {
        let direction = match change.direction() {
            Direction::Stricter => "stricter",
            Direction::Looser => "more lenient",
            Direction::Other => "",
        };
        let share = percent(change.count, results.changed);
        vec![
            action(&change.from),
            action(&change.to),
            number(change.count),
            share,
            direction.to_owned(),
        ]
    });
    let row = |name: &str, kind: &str, changed: u64, whole: u64| {
        vec![
            name.to_owned(),
            kind.replace('_', " "),
            number(changed),
            number(whole),
            percent(changed, whole),
        ]
    };
    let policies = results.policies().into_iter().take(SHOWN);
    let policies = policies.map(|p| row(&p.policy_id, &p.family, p.changed, p.matched));
    let subjects = results
        .subjects()
        .into_iter()
        .filter(|s| s.changed > 0)
        .take(SHOWN);
    let subjects = subjects.map(|s| row(&s.subject_id, &s.kind, s.changed, s.evaluated));
    let tools = results.tools().into_iter().filter(|t| t.changed > 0).take(SHOWN);
    let tools = tools.map(|t| {
        vec![
            t.tool.clone(),
            number(t.changed),
            number(t.evaluated),
            percent(t.changed, t.evaluated),
        ]
    });
    let failures = results.by_failure.iter().map(|failure| {
        vec![
            failure.policy_id.clone(),
            failure.family.replace('_', " "),
            failure.why(),
            number(failure.baseline),
            number(failure.candidate),
        ]
    });
    let samples = results.samples.iter().take(SAMPLES).map(|sample| {
        let what = sample
            .tool
            .clone()
            .or_else(|| sample.action.as_deref().map(occasion));
        let decided = format!(
            "{} → {}",
            action(&sample.baseline.decision),
            action(&sample.candidate.decision)
        );
        let by = sample.candidate.policy_ids.join(", ");
        vec![
            sample.at.clone(),
            sample.subject_id.clone().unwrap_or_default(),
            what.unwrap_or_default(),
            decided,
            by,
            number(sample.count.unwrap_or(1)),
        ]
    });
    vec![
        (vec!["FROM", "TO", "DECISIONS", "SHARE", ""], directions.collect()),
        (
            vec!["POLICY", "FAMILY", "CHANGED", "MATCHED", "SHARE"],
            policies.collect(),
        ),
        (
            vec!["NOT JUDGED BY", "FAMILY", "BECAUSE", "BASELINE", "CANDIDATE"],
            failures.collect(),
        ),
        (
            vec!["SUBJECT", "KIND", "CHANGED", "EVALUATED", "SHARE"],
            subjects.collect(),
        ),
        (vec!["TOOL", "CHANGED", "EVALUATED", "SHARE"], tools.collect()),
        (
            vec!["SAMPLE", "SUBJECT", "TOOL", "DECISION", "BY", "TIMES"],
            samples.collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_sentence_comes_first_and_lists_without_rows_are_left_out() {
        let run = RunView::read(&json!({
            "id": "btr_1", "status": "succeeded", "resultDigest": "sha256:ab",
            "window": { "from": "2026-08-22T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" },
            "results": {
                "eventsEvaluated": 10, "changed": 1, "unchanged": 9, "byChange": { "allow_to_block": 1 },
                "byFailure": [{ "policyId": "shells", "family": "content", "cause": "missing_attribute",
                    "attribute": "tool.input.command", "baseline": 0, "candidate": 3 }],
                "byTool": [{ "tool": "buy", "changed": 1, "evaluated": 5 }, { "tool": "look", "evaluated": 5 }],
                "samples": [{ "eventId": "hev_1", "at": "2026-11-01T00:00:00.000Z", "tool": "buy", "count": 1,
                    "baseline": { "decision": "allow" }, "candidate": { "decision": "block", "policyIds": ["p\u{1b}[2J"] } }],
            },
        }))
        .unwrap();
        let text = table(&run, None);
        assert!(
            text.starts_with("Of 10 tool calls between 22 Aug 2026 and 20 Nov 2026, 1 (10.0"),
            "{text}"
        );
        for words in [
            "allow  block",
            "stricter",
            "buy",
            "allow → block",
            "p\\u001b[2J",
            "run btr_1",
            "result sha256:ab",
            "tool.input.command is missing",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(
            !text.contains("look") && !text.contains("SUBJECT  KIND"),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_results_says_its_state() {
        let run = RunView::read(&json!({ "id": "btr_1", "status": "queued" })).unwrap();
        assert_eq!(
            table(&run, None),
            "btr_1 is queued\n! The backtest has not begun yet.\n\nrun btr_1\n"
        );
    }
}
