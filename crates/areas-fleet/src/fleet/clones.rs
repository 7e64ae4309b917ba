//! What heartbeats say against each other, where two machines have one key.

use provost_kernel::{Timestamp, word};
use schemars::JsonSchema;
use serde::Serialize;

word! {
    /// What says that there are two machines with one key, or with a device's former key.
    pub enum TamperReason {
        /// The counter of heartbeats went back.
        CounterBack = "counter_back",
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
        let returns = later.boot_id != self.boot_id && self.earlier_boot_id.as_ref() == Some(&later.boot_id);
        returns.then_some(TamperReason::BootReturned)
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
    }
}
