//! What the nets over every operation must know of notes.

use crate::areas::{Fixture, Ids, Samples};
use crate::rights_graph::tables::{OPERATIONS, Table, things};
use crate::support::{App, fresh_key};
use serde_json::json;

pub const RIGHTS: &[Table] = &[things("notes", &["id"], OPERATIONS, "gives nobody anything")];

pub const SAMPLES: Samples = Samples {
    absent: |ulid| vec![("noteId", format!("nte_{ulid}"))],
    make: |app, meta| Box::pin(make(app, meta.path.contains("{noteId}"))),
    deleted: |app| {
        Box::pin(async move {
            let ids = make(app, true).await;
            app.delete(&format!("/notes/{}", ids[0].1)).await;
            ids
        })
    },
    body: |operation, _| (operation.ends_with("HeadlessNote")).then(|| json!({ "text": fresh_key() })),
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    state: |app| Box::pin(async { app.get("/notes?limit=100").await.ok().clone() }),
    ..Samples::NONE
};

async fn make(app: &App, is_named: bool) -> Ids {
    if !is_named {
        return Ids::new();
    }
    let made = app.write("POST", "/notes", json!({ "text": fresh_key() })).await;
    vec![("noteId", made.ok()["id"].as_str().unwrap().to_owned())]
}

async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let (method, body) = match operation {
        "createHeadlessNote" => ("POST", json!({ "text": unique })),
        "updateHeadlessNote" => ("PUT", json!({ "text": unique })),
        "deleteHeadlessNote" => ("DELETE", json!({})),
        _ => return None,
    };
    let made = make(app, method != "POST").await;
    let id = made.first().map(|(_, id)| format!("/{id}")).unwrap_or_default();
    Some(Fixture::json(method, format!("/notes{id}"), body, None))
}
