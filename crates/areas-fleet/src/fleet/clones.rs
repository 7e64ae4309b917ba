//! What heartbeats say against each other, where two machines have one key.

use provost_kernel::{Timestamp, word};
use schemars::JsonSchema;
use serde::Serialize;

word! {
    /// What says that there are two machines with one key, or with a device's former key.
    pub enum TamperReason {
        /// The counter of heartbeats went back.
        CounterBack = "counter_back",
        /// The counter of heartbeats leapt further than any machine counts.
        CounterLeapt = "counter_leapt",
        /// A run of the system came back that another had followed.
        BootReturned = "boot_returned",
        /// A token was renewed or used whose successor had been used before.
        TokenForked = "token_forked",
        /// Somebody called with a key that the device had given up for another one.
        FormerKey = "former_key",
    }
}

word! {
    /// Whether a device may be two.
    pub enum TamperState {
        /// Nothing says so.
        None = "none",
        /// Its heartbeats contradict each other.
        Suspected = "suspected",
    }
}

/// Whether a device may be two machines that have one key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Tamper {
    state: TamperState,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<TamperReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

impl Tamper {
    /// Returns what is shown of a suspicion.
    pub fn of(suspicion: Option<(TamperReason, Timestamp)>) -> Self {
        Self {
            state: match suspicion {
                None => TamperState::None,
                Some(_) => TamperState::Suspected,
            },
            reason: suspicion.map(|(reason, _)| reason),
            since: suspicion.map(|(_, since)| since),
        }
    }
}

/// LIMIT: how far a count may be ahead of the one before it. Ours: what a machine counts that calls every half a minute for hours while
/// nobody answers.
const MOST_AHEAD: i64 = 1000;
/// How far a count may be ahead of the present in seconds, with which an agent goes on that lost its file. Units: seconds.
const MOST_AHEAD_OF_NOW: i64 = 86_400;

/// What a device said last.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// When, by the server's clock.
    pub at: Timestamp,
    /// The version of its agent.
    pub agent_version: String,
    /// The version of its system.
    pub os_version: String,
    /// How often it called; the highest that was said.
    pub counter: i64,
    /// The run of its system.
    pub boot_id: String,
    /// The run before that.
    pub earlier_boot_id: Option<String>,
}

impl Heartbeat {
    /// Returns what a later heartbeat says against this one: whoever is one machine counts upwards, and never runs again what
    /// another run of its system followed. A restart alone says nothing.
    pub fn contradicted_by(&self, later: &Self) -> Option<TamperReason> {
        if later.counter <= self.counter {
            return Some(TamperReason::CounterBack);
        }
        if later.leaps_beyond(self.counter) {
            return Some(TamperReason::CounterLeapt);
        }
        let returns = later.boot_id != self.boot_id && self.earlier_boot_id.as_ref() == Some(&later.boot_id);
        returns.then_some(TamperReason::BootReturned)
    }

    /// Returns the count that is kept of this heartbeat behind an earlier one: a leap is said and not kept, so that nobody who has the
    /// key takes away by one call what the machine itself may do while it counts upwards.
    ///
    /// Keeps FL-5.
    pub fn kept_counter(&self, before: Option<&Self>) -> i64 {
        let before = before.map_or(0, |before| before.counter);
        if self.leaps_beyond(before) {
            before
        } else {
            self.counter
        }
    }

    fn leaps_beyond(&self, before: i64) -> bool {
        let by_clock = self.at.as_ms() / 1000 + MOST_AHEAD_OF_NOW;
        self.counter > by_clock.max(before.saturating_add(MOST_AHEAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves FL-5.
    #[test]
    fn one_machine_counts_upwards_and_never_runs_again_what_another_run_followed() {
        let beat = |counter, boot: &str, earlier: Option<&str>| Heartbeat {
            at: Timestamp::EPOCH,
            agent_version: "1".into(),
            os_version: "1".into(),
            counter,
            boot_id: boot.into(),
            earlier_boot_id: earlier.map(str::to_owned),
        };
        let last = beat(7, "b", Some("a"));
        let against = |counter, boot| last.contradicted_by(&beat(counter, boot, None));
        assert_eq!(against(8, "b"), None);
        assert_eq!(against(8, "c"), None, "it was started again");
        assert_eq!(against(8, "a"), Some(TamperReason::BootReturned));
        assert_eq!(against(7, "b"), Some(TamperReason::CounterBack));
        assert_eq!(against(6, "c"), Some(TamperReason::CounterBack));
        let first = beat(1, "b", None);
        assert_eq!(first.contradicted_by(&beat(2, "c", None)), None);
        // No machine counts so far at once; one that lost its file goes on with the present in seconds.
        let most = MOST_AHEAD_OF_NOW;
        assert_eq!(against(most, "b"), None);
        assert_eq!(against(most + 1, "b"), Some(TamperReason::CounterLeapt));
        let far = beat(most, "b", None);
        assert_eq!(far.contradicted_by(&beat(most + MOST_AHEAD, "b", None)), None);
        let leap = beat(9_007_199_254_740_991, "b", None);
        assert_eq!(far.contradicted_by(&leap), Some(TamperReason::CounterLeapt));
        assert_eq!(
            (leap.kept_counter(Some(&far)), leap.kept_counter(None)),
            (most, 0)
        );
        assert_eq!(far.kept_counter(Some(&last)), most);
    }
}
