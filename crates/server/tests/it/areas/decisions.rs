//! See the module above.

use super::Samples;
use crate::samples::Target;
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    body,
    ..Samples::NONE
};

pub fn body(operation: &str, target: &Target) -> Option<Value> {
    match operation {
        // About a skill: what a gateway token may ask, too.
        "createHeadlessPolicyDecisions" => Some(
            json!({ "events": [{ "occasion": "skill", "attributes": { "skill.id": target.others["itemRef"] } }] }),
        ),
        // About nobody: whoever may read policies may ask.
        "testHeadlessPolicies" => Some(
            json!({ "cases": [{ "event": { "occasion": "pre_tool", "attributes": { "tool.id": "Bash" } } }] }),
        ),
        _ => None,
    }
}
