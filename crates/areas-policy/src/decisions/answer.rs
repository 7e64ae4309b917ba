//! What a decision looks like to who asked for it.

use crate::approvals::{Answer, BoundPolicy};
use provost_bundle::Verdict;
use provost_kernel::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The answer to a request.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicyDecisions")]
pub struct Decisions {
    pub policy_set_version: Version,
    /// `enforce` or `monitor`, as asked for.
    pub mode: &'static str,
    /// Whether the decisions were on the disk when this was answered.
    pub recorded: bool,
    /// One for each event, in their order.
    #[expect(clippy::struct_field_names, reason = "the names on the wire")]
    pub decisions: Vec<Decision>,
}

/// The version of the policy set that decided.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Version {
    /// Its id.
    pub id: String,
    /// The digest of its policies: 64 hexadecimal digits.
    pub digest: String,
}

/// What was decided on one event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Decision {
    /// The id under which the history keeps the event.
    event_id: String,
    #[serde(flatten)]
    verdict: Verdict,
}

impl Decision {
    /// Returns the decision under the id of its event.
    pub fn of(event_id: String, verdict: Verdict) -> Self {
        Self { event_id, verdict }
    }

    /// Says by which approval the call passes, or under which request it waits.
    pub fn approve(&mut self, answer: &Answer, policies: &[BoundPolicy], now: Timestamp) {
        let verdict = &mut self.verdict;
        match answer {
            Answer::Granted { id, grant_id } => {
                let policies = policies.iter().map(|policy| policy.policy_id.clone()).collect();
                verdict.grant(grant_id.as_str(), id.as_str(), policies);
            }
            Answer::Waiting {
                id,
                is_approved,
                until,
            } => {
                let state = if *is_approved { "approved" } else { "pending" };
                let seconds = (until.as_ms() - now.as_ms()).max(0) / 1000;
                verdict.wait(id.as_str(), state, seconds);
            }
            Answer::Unbound(why) => verdict.refuse(why.as_str()),
        }
    }
}
