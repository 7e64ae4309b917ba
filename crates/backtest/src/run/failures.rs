//! Why policies could not judge events, in the form of the wire.

use super::Engine;
use super::totals::Totals;
use provost_policy::{FailureCause, Family};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// LIMIT: causes that are listed.
const CAUSES: usize = 20;

/// Why events could not be judged by a policy: of one that lacks several attributes there are as many causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByFailure {
    /// The policy.
    pub policy_id: String,
    /// Its family.
    pub family: String,
    /// What went wrong.
    pub cause: FailureWord,
    /// The attribute whose value nobody can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// Events that the baseline's policy could not judge for it.
    pub baseline: u64,
    /// Events that the candidate's policy could not judge for it.
    pub candidate: u64,
}

/// Why a policy could not be evaluated, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureWord {
    /// An attribute that it reads is missing.
    MissingAttribute,
    /// Its module ended without an answer.
    ModuleFailed,
    /// A name means several records, or what happened before is not known.
    Undecided,
}

/// Returns the causes with the most events; what agrees in that stays in the order of policies.
pub(super) fn causes(engine: &Engine<'_>, totals: &Totals) -> Vec<ByFailure> {
    let mut lines: BTreeMap<(Family, &str, FailureCause), [u64; 2]> = BTreeMap::new();
    for ((which, at, cause), events) in &totals.failures {
        let set = if *which == 0 {
            engine.baseline
        } else {
            engine.candidate
        };
        if let Some(policy) = set.policies().get(*at as usize) {
            let counts = lines.entry((policy.family(), policy.id(), *cause)).or_default();
            counts[usize::from(*which != 0)] += events;
        }
    }
    let mut lines: Vec<ByFailure> = lines
        .into_iter()
        .map(|((family, id, cause), [baseline, candidate])| {
            let (cause, attribute) = match cause {
                FailureCause::Missing(field) => {
                    (FailureWord::MissingAttribute, Some(field.name().to_owned()))
                }
                FailureCause::Module => (FailureWord::ModuleFailed, None),
                FailureCause::Undecided => (FailureWord::Undecided, None),
            };
            ByFailure {
                policy_id: id.to_owned(),
                family: family.word().to_owned(),
                cause,
                attribute,
                baseline,
                candidate,
            }
        })
        .collect();
    lines.sort_by_key(|line| Reverse(line.baseline.max(line.candidate)));
    lines.truncate(CAUSES);
    lines
}
