//! See the module above.

use super::Samples;
use crate::samples::Target;
use provost_bundle::{CHAIN_START, entry_hash};
use serde_json::{Value, json};

/// What the nets must know of the area. Its devices are the fleet's.
pub const SAMPLES: Samples = Samples {
    body,
    ..Samples::NONE
};

fn body(operation: &str, _: &Target) -> Option<Value> {
    let entry = json!({ "kind": "dropped", "events": 1, "why": "queue_full" });
    (operation == "reportHeadlessDeviceDecisions").then(|| report(1, CHAIN_START, &[entry]))
}

/// Returns what a device tells: entries from a number on, behind a hash.
pub fn report(from: usize, previous: &str, entries: &[Value]) -> Value {
    let texts: Vec<String> = entries.iter().map(Value::to_string).collect();
    let head = texts
        .iter()
        .fold(previous.to_owned(), |previous, text| entry_hash(&previous, text));
    json!({ "from": from, "previous": previous, "head": head, "entries": texts })
}
