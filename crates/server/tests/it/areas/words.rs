//! Words that are mapped to users.

use super::{Fixture, Ids, Samples, directory};
use crate::samples::Target;
use crate::support::{App, fresh_key};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    deleted: |app| Box::pin(deleted(app)),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

pub fn absent(ulid: &str) -> Ids {
    vec![("mappingId", format!("idm_{ulid}"))]
}

async fn map(app: &App, word: &str) -> String {
    let user = directory::user(app, &fresh_key()).await;
    let body = json!({ "word": word, "userId": user });
    let made = app.write("POST", "/directory/identities", body).await;
    made.ok()["mapping"]["id"].as_str().unwrap().to_owned()
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    let mut ids = Vec::new();
    if parameters.contains(&"mappingId") {
        ids.push(("mappingId", map(app, &fresh_key()).await));
    }
    if operation == "mapHeadlessDirectoryIdentity" {
        ids.push(("userId", directory::user(app, &fresh_key()).await));
    }
    ids
}

pub async fn deleted(app: &App) -> Ids {
    let id = map(app, "unmapped").await;
    app.delete(&format!("/directory/identities/{id}")).await;
    vec![("mappingId", id)]
}

pub fn body(operation: &str, target: &Target) -> Option<Value> {
    (operation == "mapHeadlessDirectoryIdentity")
        .then(|| json!({ "word": fresh_key(), "userId": target.others["userId"] }))
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    match operation {
        "mapHeadlessDirectoryIdentity" => {
            let user = directory::user(app, &format!("for {unique}")).await;
            let body = json!({ "word": unique, "userId": user });
            let event = Some("directory.identity.mapped");
            Some(Fixture::json("POST", "/directory/identities", body, event))
        }
        "unmapHeadlessDirectoryIdentity" => {
            let path = format!("/directory/identities/{}", map(app, unique).await);
            let event = Some("directory.identity.unmapped");
            Some(Fixture::json("DELETE", path, json!({}), event))
        }
        _ => None,
    }
}

pub async fn state(app: &App) -> Value {
    app.get("/directory/identities?limit=100").await.ok().clone()
}
