//! One realistic call of every operation that changes anything.
//!
//! `openapi/headless-v1.json` says which operations there are; one that is not here ends the run, so that a new
//! operation cannot be forgotten.

mod access;
mod approvals;
mod configuration;
mod directory;
mod fleet;
mod inventory;
mod policies;
mod resources;
mod skills;

pub use resources::SECRET;
use serde_json::Value;
pub use skills::CHECKPOINT;

use super::maker::{Maker, Ready};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// Makes the fixture of an operation and returns its call.
pub type Prepare = fn(&mut Maker<'_>) -> Outcome<Ready>;

/// An operation and how it is called.
#[derive(Clone, Copy)]
pub struct Operation {
    pub id: &'static str,
    pub prepare: Prepare,
    pub effect: Effect,
    /// Threads of the server that stand still meanwhile.
    pub holds: Option<&'static str>,
    /// The code of the conflict when what the call is about came to its end by itself between a lost call and its retry.
    pub overtaken: Option<&'static str>,
}

/// What a call leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A repetition under the same key has no second effect and the same answer.
    Keyed,
    /// So many recorded events, again with every repetition.
    Records(usize),
}

const fn keyed(id: &'static str, prepare: Prepare) -> Operation {
    Operation {
        id,
        prepare,
        effect: Effect::Keyed,
        holds: None,
        overtaken: None,
    }
}

/// POST operations that read.
const READS: [&str; 5] = [
    "previewHeadlessApprovalRoute",
    "resolveHeadlessLlmGatewaySubjects",
    "validateHeadlessPolicyRego",
    "validateHeadlessPolicyPlan",
    "testHeadlessPolicies",
];

/// What machines say again and again, and what is said once: a repetition is no effect, and only what changes with it is in the audit log.
const HEARTBEATS: [&str; 8] = [
    // Another one a minute later says the same, and the first one's effect is the activation, which `approve` shows.
    "heartbeatHeadlessDevice",
    // A token has to be fifteen days old.
    "renewHeadlessDeviceToken",
    // The same again by the earlier key is the same rotation, with another token each time.
    "rotateHeadlessDeviceKey",
    // The second one says the same; what the first one made known is what `setHeadlessInventoryMcpServerStanding` is about.
    "reportHeadlessDeviceScan",
    // It has no key: the same words of one decision again are answered as the first time.
    "createHeadlessPolicyViolationFeedback",
    // The second one says the same.
    "reportHeadlessDeviceProfile",
    // The same entries again are answered as taken, and nothing is kept twice.
    "reportHeadlessDeviceDecisions",
    // The second one says the same; a drop alone is in the audit log, which needs another word before it.
    "reportHeadlessDeviceCoverage",
];

/// What people alone do who signed in, and what is there once one has; nobody signs in here, and tests of the area call it.
const OF_PEOPLE: [&str; 3] = [
    "revokeHeadlessApproval",
    "createHeadlessApprovalDelegation",
    "deleteHeadlessApprovalDelegation",
];

/// Every operation, in the order of its area.
pub fn all() -> Vec<Operation> {
    [
        access::OPERATIONS,
        directory::OPERATIONS,
        configuration::OPERATIONS,
        resources::OPERATIONS,
        policies::OPERATIONS,
        approvals::OPERATIONS,
        skills::OPERATIONS,
        fleet::OPERATIONS,
        inventory::OPERATIONS,
    ]
    .concat()
}

/// Fails when the document names a mutation that is not here, or the other way round.
pub fn check_complete() -> Outcome {
    let file = process::root().join("openapi/headless-v1.json");
    let text = std::fs::read_to_string(&file).context(format_args!("cannot read {}", file.display()))?;
    let document: Value = serde_json::from_str(&text).context("the OpenAPI document is not JSON")?;
    let mut declared = Vec::new();
    let paths = document["paths"]
        .as_object()
        .context("the OpenAPI document has no paths")?;
    for methods in paths.values().filter_map(Value::as_object) {
        let changes = methods
            .iter()
            .filter(|(method, _)| ["post", "put", "patch", "delete"].contains(&method.as_str()));
        declared.extend(changes.filter_map(|(_, operation)| operation["operationId"].as_str()));
    }
    let here: Vec<&str> = all().iter().map(|operation| operation.id).collect();
    let missing: Vec<_> = declared
        .iter()
        .filter(|id| {
            ![READS.as_slice(), &HEARTBEATS, &OF_PEOPLE, &here]
                .iter()
                .any(|known| known.contains(id))
        })
        .collect();
    let unknown: Vec<_> = here.iter().filter(|id| !declared.contains(id)).collect();
    if missing.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "traffic/catalogue.rs must say how these operations are called: {missing:?}; and these do not exist: {unknown:?}"
    )))
}
