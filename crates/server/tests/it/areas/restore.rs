//! Whom a restore holds back: nobody here, so that releasing everybody succeeds and changes nothing.

use super::{Fixture, Samples};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    body: |operation, _| body(operation),
    fixture: |_, operation, _| Box::pin(std::future::ready(fixture(operation))),
    varied: |operation, member, _| varied(operation, member),
    ..Samples::NONE
};

const RELEASE: &str = "releaseHeadlessRestoreHeld";

pub fn body(operation: &str) -> Option<Value> {
    (operation == RELEASE).then(|| json!({ "all": true }))
}

pub fn fixture(operation: &str) -> Option<Fixture> {
    let body = json!({ "all": true, "confirm": true });
    (operation == RELEASE).then(|| Fixture::json("POST", "/restore/release", body, Some("restore.released")))
}

pub fn varied(operation: &str, member: &str) -> Option<Value> {
    let ids = json!({ "ids": ["sa_01kadh5j9v0000000000000000"], "confirm": true });
    ((operation, member) == (RELEASE, "all")).then_some(ids)
}
