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
    // About a skill: what a gateway token may ask, too.
    (operation == "createHeadlessPolicyDecisions").then(|| {
        json!({ "events": [{ "occasion": "skill", "attributes": { "skill.id": target.others["itemRef"] } }] })
    })
}
