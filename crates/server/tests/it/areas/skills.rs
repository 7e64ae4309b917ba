//! See the module above.

#![expect(clippy::unused_async, reason = "the area's first operation awaits")]

use super::Fixture;
use crate::samples::Target;
use crate::support::App;
use serde_json::{Value, json};

pub type Ids = Vec<(&'static str, String)>;

pub fn absent(_ulid: &str) -> Ids {
    vec![]
}

pub async fn make(_app: &App, _operation: &str, _parameters: &[&str]) -> Ids {
    vec![]
}

pub async fn deleted(_app: &App) -> Ids {
    vec![]
}

pub fn body(_operation: &str, _target: &Target) -> Option<Value> {
    None
}

pub fn content(_operation: &str) -> Option<(&'static str, Vec<u8>)> {
    None
}

pub async fn fixture(_app: &App, _operation: &str, _unique: &str) -> Option<Fixture> {
    None
}

pub fn varied(_operation: &str, _member: &str, _body: &Value) -> Option<Value> {
    None
}

pub async fn state(_app: &App) -> Value {
    json!({})
}
