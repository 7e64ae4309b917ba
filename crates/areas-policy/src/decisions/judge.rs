//! Judging the events of one request, in their order, within a limit of time.

use super::event_windows::Pasts;
use crate::modules::Runs;
use crate::policies::Live;
use provost_kernel::Kernel;
use provost_kernel::error::{Error, Result};
use provost_policy::{Event, Outcome, Symbols};
use std::time::Duration;

/// LIMIT: time for all events of one request. Ours: a hook waits for the answer.
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
    /// Keeps DJ-5: where devices tell of the past, each event is judged without and with it, and each policy has the part that it has in one
    /// of the two. What modules say is asked once.
    ///
    /// INVARIANT DE-5: a module whose turn comes after the limit is not asked, and its policy counts as matched.
    ///
    /// Errors: `Unavailable` when the native policies alone take longer than that: no half of an answer is given out.
    pub fn judge(&self, pasts: &mut Pasts, kernel: &Kernel) -> Result<Vec<Outcome>> {
        let clock = &*kernel.clock;
        let set = &self.live.set;
        let seconds = metrics::histogram!("provost_decision_judge_seconds");
        let start = clock.monotonic();
        let has_time = || clock.monotonic().saturating_sub(start) < TIME_LIMIT;
        let modules = Runs::live(kernel);
        let ahead = if set.has_rego() {
            set.ask_ahead(&self.events, &self.symbols, &modules, &has_time)
        } else {
            Vec::new()
        };
        // What modules take is theirs.
        let native = clock.monotonic();
        let mut outcomes = Vec::with_capacity(self.events.len());
        let mut before = start;
        for (at, event) in self.events.iter().enumerate() {
            if clock.monotonic().saturating_sub(native) >= TIME_LIMIT {
                return Err(Error::unavailable(
                    "the policies and events of the request take longer than two seconds; send fewer events at once",
                ));
            }
            let ahead = ahead.get(at);
            let mut outcome = set.judge_within(event, &self.symbols, &pasts.seen, &modules, &has_time, ahead);
            if let Some(told) = &pasts.told {
                outcome.join(set.judge_within(event, &self.symbols, told, &modules, &has_time, ahead));
            }
            outcomes.push(outcome);
            let after = clock.monotonic();
            seconds.record(after.saturating_sub(before).as_secs_f64());
            before = after;
            if set.has_history() && at + 1 < self.events.len() {
                pasts.seen.observe(set, event, &self.symbols);
                if let Some(told) = &mut pasts.told {
                    told.observe(set, event, &self.symbols);
                }
                before = clock.monotonic();
            }
        }
        Ok(outcomes)
    }
}
