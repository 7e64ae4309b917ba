//! See the module above.

use super::{Ids, Samples};
use crate::support::{App, fresh_key};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, &meta.path_parameters()).await }),
    content,
    query,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

pub const NDJSON: &str = "application/x-ndjson";

pub fn absent(ulid: &str) -> Ids {
    vec![("eventId", format!("hev_{ulid}"))]
}

pub async fn make(app: &App, parameters: &[&str]) -> Ids {
    if !parameters.contains(&"eventId") {
        return Vec::new();
    }
    let at = app.now().to_rfc3339();
    let line = json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": fresh_key() } });
    let call = app.request(
        "POST",
        &format!("/policies/history/import?source={}", fresh_key()),
    );
    call.content(NDJSON, line.to_string().into_bytes())
        .send()
        .await
        .ok();
    let newest = app.get("/policies/history?limit=1").await;
    vec![(
        "eventId",
        newest.ok()["events"][0]["eventId"].as_str().unwrap().to_owned(),
    )]
}

pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    let line = r#"{"at":"2026-11-20T03:00:00Z","occasion":"pre_tool","attributes":{"tool.id":"a"}}"#;
    (operation == "importHeadlessPolicyHistory").then(|| (NDJSON, line.as_bytes().to_vec()))
}

pub fn query(operation: &str) -> Option<&'static str> {
    (operation == "importHeadlessPolicyHistory").then_some("source=a-test")
}

pub async fn state(app: &App) -> Value {
    app.get("/policies/history/status").await.ok().clone()
}
