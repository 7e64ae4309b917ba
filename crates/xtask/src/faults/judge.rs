//! What must be true after a point, whatever happened in it.

use std::time::Duration;

use serde_json::Value;

use super::fault::Point;
use super::state;
use super::strace::Call;
use crate::http::Answer;
use crate::traffic::catalogue::{Effect, Operation};

/// One sentence about what must not be.
pub type Violation = String;

/// What was seen before the fault, after it, and after the restart.
pub struct Observations {
    pub before: Value,
    /// What the server showed while it lived with the fault.
    pub live: Option<Value>,
    /// How it answered another mutation then.
    pub probe: Option<u16>,
    pub probe_name: String,
    /// The answer, or the status line when that much arrived.
    pub answer: Result<Answer, Option<u16>>,
    /// When. Units: time since the Unix epoch.
    pub answered: Duration,
    /// After the restart, before the retry: audit entries with an effect, and of repetitions.
    pub entries_before: (usize, usize),
    pub after: Value,
    pub again: Answer,
    pub once_more: Answer,
    pub end: Value,
    pub entries: (usize, usize),
    /// For operations that record: how often the history shows it, before and after the retry.
    pub recorded_before: usize,
    pub recorded: usize,
}

pub struct Verdict {
    /// Whether the fault happened.
    pub hit: bool,
    pub violations: Vec<Violation>,
}

impl Observations {
    fn shows_probe(&self) -> bool {
        self.end.to_string().contains(&self.probe_name)
    }

    /// Whether its object came to its end by itself before the retries, which are refused with this code.
    fn is_overtaken(&self, code: &str) -> bool {
        let is_refused = |retry: &Answer| retry.status == 409 && retry.code() == code;
        !self.acknowledged()
            && self.entries_before.0 == 0
            && is_refused(&self.again)
            && is_refused(&self.once_more)
    }

    fn acknowledged(&self) -> bool {
        match &self.answer {
            Ok(answer) => answer.is_success(),
            Err(status) => status.is_some_and(|status| (200..300).contains(&status)),
        }
    }
}

pub fn judge(
    operation: &Operation,
    point: Option<&Point>,
    calls: &[Call],
    seen: &Observations,
    is_ours: impl Fn(&Call) -> bool,
) -> Verdict {
    let injected = calls.iter().any(|call| call.injected && is_ours(call));
    let in_time = is_in_time(calls, seen.answered, &is_ours);
    let killed = point.is_some_and(|point| point.fault == super::fault::Fault::Kill) && seen.answer.is_err();
    let mut violations = Vec::new();
    if let Some(point) = point.filter(|point| injected && point.loses()) {
        violations.extend(after_a_loss(point, in_time, seen));
    }
    violations.extend(answers(seen));
    if operation.overtaken.is_some_and(|code| seen.is_overtaken(code)) {
        violations.extend(overtaken(seen));
    } else {
        violations.extend(retries(seen));
        violations.extend(match operation.effect {
            Effect::Keyed => keyed(seen),
            Effect::Records(events) => recorded(seen, events),
        });
    }
    Verdict {
        hit: injected || killed,
        violations,
    }
}

/// Whether the fault came before the answer: not behind it, in the mutation that follows, and not behind the moment in which
/// the writer, its commit made durable, woke whoever sends the answer, in a unit of the product's own.
fn is_in_time(calls: &[Call], answered: Duration, is_ours: impl Fn(&Call) -> bool) -> bool {
    let is_sync = |call: &Call| !call.injected && is_ours(call) && call.name.ends_with("sync");
    let synced = calls.iter().position(is_sync).unwrap_or(calls.len());
    let is_wake = |call: &&Call| call.name == "write" && call.place.ends_with("[eventfd]");
    let until_told = synced + calls[synced..].iter().take_while(|call| !is_wake(call)).count();
    calls[..until_told]
        .iter()
        .any(|call| call.injected && is_ours(call) && call.at <= answered)
}

/// INVARIANT WK-2: after a failed write or sync nothing is acknowledged until a restart.
fn after_a_loss(point: &Point, in_time: bool, seen: &Observations) -> Vec<Violation> {
    let mut violations = Vec::new();
    if in_time && seen.acknowledged() {
        violations.push(format!(
            "it was acknowledged although its {} failed",
            point.call.name
        ));
    }
    if let Some(status) = seen.probe.filter(|status| *status != 503) {
        violations.push(format!("the next mutation was answered {status} instead of 503"));
    }
    // Refused before it began, when an earlier call had failed; else it met the fault itself, and its outcome is open.
    if in_time && seen.shows_probe() {
        violations.push("the next mutation had an effect".to_owned());
    }
    violations
}

fn answers(seen: &Observations) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Ok(answer) = &seen.answer
        && !answer.is_success()
        && ![500, 503].contains(&answer.status)
    {
        violations.push(format!("it was answered {}", answer.summary()));
    }
    if let Some(live) = &seen.live
        && live != &seen.before
        && live != &seen.end
        // Another mutation may have been acknowledged in between, and is in all later states.
        && seen.probe == Some(503)
        && !seen.shows_probe()
    {
        violations.push(format!(
            "a read beside the fault was wrong: {}",
            state::difference(live, &seen.before)
        ));
    }
    violations
}

fn retries(seen: &Observations) -> Vec<Violation> {
    let failed = [&seen.again, &seen.once_more]
        .into_iter()
        .filter(|retry| !retry.is_success());
    failed
        .map(|retry| format!("its retry after the restart was answered {}", retry.summary()))
        .collect()
}

/// Nothing was acknowledged, nothing had happened before the retries, and they are refused: nothing may be told of.
fn overtaken(seen: &Observations) -> Vec<Violation> {
    let told = (seen.entries.0 > 0).then(|| {
        format!(
            "{} audit entries tell of an effect that was refused",
            seen.entries.0
        )
    });
    told.into_iter().collect()
}

fn keyed(seen: &Observations) -> Vec<Violation> {
    let mut violations = Vec::new();
    let is_there = seen.entries_before.0 > 0;
    if seen.acknowledged() && !is_there {
        violations.push("it was acknowledged and is gone".to_owned());
    }
    if let Ok(answer) = &seen.answer
        && answer.is_success()
        && (answer.status, &answer.body) != (seen.again.status, &seen.again.body)
    {
        violations.push(format!(
            "the retry was answered {} instead of {}",
            seen.again.summary(),
            answer.summary()
        ));
    }
    if is_there != seen.again.replayed || !seen.once_more.replayed {
        violations.push(format!(
            "the retries say {} and {} of being repetitions, and the effect {} there before them",
            seen.again.replayed,
            seen.once_more.replayed,
            if is_there { "was" } else { "was not" }
        ));
    }
    if (seen.again.status, &seen.again.body) != (seen.once_more.status, &seen.once_more.body) {
        violations.push("two retries have two answers".to_owned());
    }
    if seen.entries.0 != 1 {
        violations.push(format!("{} audit entries tell of the effect", seen.entries.0));
    }
    let (expected, word) = if is_there {
        (&seen.end, "after")
    } else {
        (&seen.before, "before")
    };
    // What the probe did is there as well, when it was allowed to.
    if &seen.after != expected && seen.probe.is_none_or(|status| status == 503) {
        violations.push(format!(
            "after the restart the state was not as {word} it: {}",
            state::difference(&seen.after, expected)
        ));
    }
    violations
}

fn recorded(seen: &Observations, events: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    let before = seen.recorded_before;
    if seen.acknowledged() && before == 0 {
        violations.push("it was acknowledged and is not recorded".to_owned());
    }
    if before != 0 && before != events {
        violations.push(format!("it left {before} events instead of {events}"));
    }
    if seen.recorded < events {
        violations.push("its retry was acknowledged and is not recorded".to_owned());
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_behind_the_answer_is_none_of_the_operation() {
        let call = |(name, place, injected): &(&str, &str, bool)| Call {
            thread: 0,
            name: (*name).into(),
            number: 1,
            place: (*place).into(),
            injected: *injected,
            at: Duration::from_secs(1),
        };
        let (log, wake) = ("/d/provost.db-wal", "anon_inode:[eventfd]");
        let in_time = |calls: &[(&str, &str, bool)], answered| {
            let calls: Vec<Call> = calls.iter().map(call).collect();
            is_in_time(&calls, Duration::from_secs(answered), |call| {
                call.place.starts_with("/d/")
            })
        };
        assert!(in_time(&[("pwrite64", log, true)], 2));
        assert!(!in_time(&[("pwrite64", log, true)], 0));
        assert!(in_time(&[("fsync", log, true), ("write", wake, false)], 2));
        let committed = [
            ("write", wake, false),
            ("fsync", log, false),
            ("fsync", log, true),
            ("write", wake, false),
        ];
        assert!(in_time(&committed, 2));
        let told = [
            ("fsync", log, false),
            ("write", wake, false),
            ("fsync", log, true),
        ];
        assert!(!in_time(&told, 2));
    }
}
