//! Judging the events of one request, in their order, within a limit of time.

use crate::areas::policies::Live;
use provost_kernel::time::Clock;
use provost_policy::{Chronicle, Event, Outcome, Symbols};
use std::time::Duration;

/// LIMIT: time for the modules of all events of one request. Ours: a hook waits for the answer.
pub const TIME_LIMIT: Duration = Duration::from_secs(2);
/// More native policies times events than this are not judged on a thread that others wait for; some milliseconds.
const LIGHT: usize = 20_000;

/// The events of one request.
#[derive(Debug)]
pub struct Questions {
    pub live: Live,
    pub events: Vec<Event>,
    pub symbols: Symbols,
}

impl Questions {
    /// Returns whether judging takes so long that it needs a thread of its own.
    pub fn are_heavy(&self) -> bool {
        let set = &self.live.set;
        set.has_rego() || self.events.len().saturating_mul(set.policies().len()) > LIGHT
    }

    /// Returns the outcome of each event; each sees those before it.
    ///
    /// INVARIANT DE-5: a module whose turn comes after the limit is not asked, and its policy counts as matched.
    pub fn judge(&self, chronicle: &mut Chronicle, clock: &dyn Clock) -> Vec<Outcome> {
        let set = &self.live.set;
        let seconds = metrics::histogram!("provost_decision_judge_seconds");
        let start = clock.monotonic();
        let has_time = || clock.monotonic().saturating_sub(start) < TIME_LIMIT;
        let mut outcomes = Vec::with_capacity(self.events.len());
        let mut before = start;
        for (at, event) in self.events.iter().enumerate() {
            outcomes.push(set.judge_within(event, &self.symbols, chronicle, &has_time));
            let after = clock.monotonic();
            seconds.record(after.saturating_sub(before).as_secs_f64());
            before = after;
            if set.has_history() && at + 1 < self.events.len() {
                chronicle.observe(set, event, &self.symbols);
                before = clock.monotonic();
            }
        }
        outcomes
    }
}
