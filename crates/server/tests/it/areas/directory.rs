//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, Reply, fresh_key};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    deleted: |app| Box::pin(deleted(app)),
    body,
    content,
    query,
    missed: |app, operation| Box::pin(missed(app, operation)),
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

pub const NDJSON: &str = "application/x-ndjson";

pub fn absent(ulid: &str) -> Ids {
    vec![
        ("userId", format!("usr_{ulid}")),
        ("groupId", format!("grp_{ulid}")),
        ("importId", format!("imp_{ulid}")),
        ("heldChangeId", format!("dhc_{ulid}")),
    ]
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    let mut made = Vec::new();
    if parameters.contains(&"userId") {
        made.push(("userId", user(app, &format!("{}@acme.test", fresh_key())).await));
    }
    if parameters.contains(&"groupId") {
        made.push(("groupId", group(app, &fresh_key()).await));
    }
    if parameters.contains(&"importId") {
        made.push((
            "importId",
            import(app, json!({ "format": "jsonl", "mode": "merge" })).await,
        ));
    }
    if operation == "openHeadlessDirectoryImport" {
        finish_imports(app).await;
    }
    if operation == "settleHeadlessDirectoryHeldChanges" {
        made.push(("heldChangeId", held(app, &fresh_key()).await));
    }
    made
}

pub async fn deleted(app: &App) -> Ids {
    let user = user(app, "gone@acme.test").await;
    let group = group(app, "gone").await;
    for path in [
        format!("/directory/users/{user}"),
        format!("/directory/groups/{group}"),
    ] {
        app.delete(&path).await.ok();
    }
    vec![("userId", user), ("groupId", group)]
}

pub fn body(operation: &str, target: &Target) -> Option<Value> {
    Some(match operation {
        "createHeadlessDirectoryUser" => json!({ "loginName": fresh_key() }),
        "updateHeadlessDirectoryUser" => json!({ "displayName": fresh_key() }),
        "createHeadlessDirectoryGroup" => json!({ "name": fresh_key() }),
        "updateHeadlessDirectoryGroup" => json!({ "description": fresh_key() }),
        "openHeadlessDirectoryImport" => json!({ "format": "jsonl", "mode": "merge" }),
        "settleHeadlessDirectoryHeldChanges" => json!({ "drop": [target.others["heldChangeId"]] }),
        "resolveHeadlessLlmGatewaySubjects" => json!({ "subjects": [{ "name": "first-admin" }] }),
        _ => return None,
    })
}

/// Returns the query without which an operation refuses every call.
pub fn query(operation: &str) -> Option<&'static str> {
    match operation {
        "sendHeadlessDirectoryImportChunk" => Some("sequence=1"),
        "resolveHeadlessPolicyReference" => Some("kind=service_account&selector=first-admin"),
        _ => None,
    }
}

/// Calls an operation whose path names no record so that it answers 404 nevertheless.
pub async fn missed(app: &App, operation: &str) -> Option<Reply> {
    match operation {
        "resolveHeadlessLlmGatewaySubjects" => {
            switch_gateway(app, false).await;
            let path = "/llm-gateway/subjects/resolve";
            let body = json!({ "subjects": [{ "name": "first-admin" }] });
            let reply = app.request("POST", path).json(body).send().await;
            switch_gateway(app, true).await;
            Some(reply)
        }
        "resolveHeadlessPolicyReference" => Some(
            app.get("/policy-references/resolve?kind=user&selector=nobody")
                .await,
        ),
        _ => None,
    }
}

async fn switch_gateway(app: &App, enabled: bool) {
    let body = json!({ "llmGateway": { "enabled": enabled } });
    app.write("PATCH", "/automation/settings", body).await.ok();
}

pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    let line = r#"{"type":"group","name":"Engineering"}"#;
    (operation == "sendHeadlessDirectoryImportChunk").then(|| (NDJSON, line.into()))
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    if let Some(path) = operation.contains("DirectoryUser").then_some("/directory/users") {
        let id = user(app, &format!("for {unique}")).await;
        let one = format!("{path}/{id}");
        return Some(match operation {
            "createHeadlessDirectoryUser" => {
                let body = json!({ "loginName": unique, "permissionRole": "viewer" });
                Fixture::json("POST", path, body, Some("directory.user.created"))
            }
            "updateHeadlessDirectoryUser" => {
                let body = json!({ "displayName": unique });
                Fixture::json("PATCH", one, body, Some("directory.user.updated"))
            }
            "deleteHeadlessDirectoryUser" => {
                Fixture::json("DELETE", one, json!({}), Some("directory.user.deleted"))
            }
            "suspendHeadlessDirectoryUser" => {
                let path = format!("{one}/suspend");
                Fixture::json("POST", path, json!({}), Some("directory.user.suspended"))
            }
            "reactivateHeadlessDirectoryUser" => {
                app.write("POST", &format!("{one}/suspend"), json!({})).await.ok();
                let path = format!("{one}/reactivate");
                Fixture::json("POST", path, json!({}), Some("directory.user.reactivated"))
            }
            _ => return None,
        });
    }
    if let Some(path) = operation
        .contains("DirectoryGroup")
        .then_some("/directory/groups")
    {
        let id = group(app, &format!("for {unique}")).await;
        let member = user(app, &format!("for {unique}")).await;
        let one = format!("{path}/{id}");
        let membership = format!("{one}/members/{member}");
        return Some(match operation {
            "createHeadlessDirectoryGroup" => {
                let body = json!({ "name": unique });
                Fixture::json("POST", path, body, Some("directory.group.created"))
            }
            "updateHeadlessDirectoryGroup" => {
                let body = json!({ "description": unique });
                Fixture::json("PATCH", one, body, Some("directory.group.updated"))
            }
            "deleteHeadlessDirectoryGroup" => {
                Fixture::json("DELETE", one, json!({}), Some("directory.group.deleted"))
            }
            "addHeadlessDirectoryGroupMember" => {
                Fixture::json("PUT", membership, json!({}), Some("directory.group.member_added"))
            }
            "removeHeadlessDirectoryGroupMember" => {
                app.write("PUT", &membership, json!({})).await.ok();
                let event = Some("directory.group.member_removed");
                Fixture::json("DELETE", membership, json!({}), event)
            }
            _ => return None,
        });
    }
    if operation == "settleHeadlessDirectoryHeldChanges" {
        let id = held(app, unique).await;
        let path = "/directory/held-changes/settle";
        return Some(Fixture::json("POST", path, json!({ "drop": [id] }), None));
    }
    if operation == "openHeadlessDirectoryImport" {
        finish_imports(app).await;
        let body = json!({ "format": "jsonl", "mode": "merge" });
        return Some(Fixture::json("POST", "/directory/imports", body, None));
    }
    if operation.contains("DirectoryImport") {
        let id = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
        let path = format!("/directory/imports/{id}");
        return Some(match operation {
            "sendHeadlessDirectoryImportChunk" => Fixture {
                content: content(operation),
                ..Fixture::json("POST", format!("{path}/chunks?sequence=1"), Value::Null, None)
            },
            "applyHeadlessDirectoryImport" => {
                let line = json!({ "type": "user", "loginName": unique }).to_string();
                chunk(app, &id, 1, &line).await.ok();
                let body = json!({ "confirm": true });
                let event = Some("directory.import.applied");
                Fixture::json("POST", format!("{path}/apply"), body, event)
            }
            "abortHeadlessDirectoryImport" => Fixture::json("POST", format!("{path}/abort"), json!({}), None),
            _ => return None,
        });
    }
    None
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    if operation == "settleHeadlessDirectoryHeldChanges" {
        let mut other = body.clone();
        other[member] = json!(["dhc_01m7w5ws2557r5efywan1hf0t3"]);
        return Some(other);
    }
    if operation != "openHeadlessDirectoryImport" {
        return None;
    }
    let mut other = body.clone();
    other[member] = match member {
        "format" => "csv".into(),
        "mode" => "replace".into(),
        _ => return None,
    };
    Some(other)
}

pub async fn state(app: &App) -> Value {
    let mut state = Vec::new();
    for kind in ["users", "groups"] {
        let mut cursor = String::new();
        loop {
            let page = app
                .get(&format!("/directory/{kind}?limit=100{cursor}"))
                .await
                .ok()
                .clone();
            state.extend(page[kind].as_array().unwrap().clone());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
    }
    state.into()
}

/// Makes a user; returns its id.
pub async fn user(app: &App, login_name: &str) -> String {
    let body = json!({ "loginName": login_name });
    let made = app.write("POST", "/directory/users", body).await;
    made.ok()["user"]["id"].as_str().unwrap().to_owned()
}

/// Makes a group; returns its id.
pub async fn group(app: &App, name: &str) -> String {
    let made = app
        .write("POST", "/directory/groups", json!({ "name": name }))
        .await;
    made.ok()["group"]["id"].as_str().unwrap().to_owned()
}

/// Lets an account that may write the directory and nothing else import a new address of an admin; returns the id of the
/// held change.
pub async fn held(app: &App, unique: &str) -> String {
    let body = json!({ "loginName": unique, "permissionRole": "admin" });
    app.write("POST", "/directory/users", body).await.ok();
    let narrow = narrow(app).await;
    let id = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    let line =
        json!({ "type": "user", "loginName": unique, "email": format!("{}@elsewhere.test", fresh_key()) });
    chunk(&narrow, &id, 1, &line.to_string()).await.ok();
    end(&narrow, &id, "apply").await.ok();
    let page = app.get("/directory/held-changes?limit=100").await;
    let held = page.ok()["heldChanges"].as_array().unwrap().last().cloned();
    held.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Returns the application as an account sees it that may write the directory and nothing else.
pub async fn narrow(app: &App) -> App {
    let scopes = ["directory:read", "directory:write"];
    let (_, token) = app.account(&fresh_key(), "admin", &scopes).await;
    app.view_of(app.organization.clone(), token)
}

/// Opens an import, after the one that is open, if any, was aborted; returns its id.
pub async fn import(app: &App, body: Value) -> String {
    finish_imports(app).await;
    let made = app.write("POST", "/directory/imports", body).await;
    made.ok()["import"]["id"].as_str().unwrap().to_owned()
}

/// Sends a chunk of a JSONL import.
pub async fn chunk(app: &App, import: &str, sequence: usize, lines: &str) -> Reply {
    content_chunk(app, import, sequence, NDJSON, lines.as_bytes()).await
}

/// Sends a chunk.
pub async fn content_chunk(
    app: &App,
    import: &str,
    sequence: usize,
    media_type: &'static str,
    content: &[u8],
) -> Reply {
    app.request(
        "POST",
        &format!("/directory/imports/{import}/chunks?sequence={sequence}"),
    )
    .header("idempotency-key", &fresh_key())
    .header("x-reason", "a test")
    .content(media_type, content.to_vec())
    .send()
    .await
}

/// Applies or aborts an import.
pub async fn end(app: &App, import: &str, how: &str) -> Reply {
    let body = if how == "apply" {
        json!({ "confirm": true })
    } else {
        json!({})
    };
    app.write("POST", &format!("/directory/imports/{import}/{how}"), body)
        .await
}

/// Aborts the import that is open, if one is, and lets every job run.
pub async fn finish_imports(app: &App) {
    let probe = json!({ "format": "jsonl", "mode": "merge" });
    let answer = app.write("POST", "/directory/imports", probe).await;
    let open = match answer.json["importId"].as_str() {
        Some(other) => other.to_owned(),
        None => answer.ok()["import"]["id"].as_str().unwrap().to_owned(),
    };
    end(app, &open, "abort").await.ok();
    run_jobs(app).await;
}

/// Runs jobs until none is due.
pub async fn run_jobs(app: &App) {
    let handlers = std::sync::Arc::new(app.kernel.areas().jobs());
    while provost_kernel::jobs::run_due(&app.kernel, &handlers)
        .await
        .unwrap()
        > 0
    {}
}
