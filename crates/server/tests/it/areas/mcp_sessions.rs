//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key};
use provost_areas_access::mcp_sessions::{self, NewSession, SessionActor};
use provost_kernel::auth::{OrganizationId, ScopeSet};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

const SESSIONS: &str = "/mcp/sessions";

pub fn absent(ulid: &str) -> Ids {
    vec![("sessionId", format!("mcps_{ulid}"))]
}

/// A session of a user that lasts an hour.
pub fn new_session(app: &App, client: &str) -> NewSession {
    NewSession {
        grant_key: fresh_key(),
        actor: SessionActor::ConsoleUser {
            id: "usr_01kadh5j9v0000000000000000".into(),
            display: "Ann".into(),
        },
        client_id: Some(client.to_owned()),
        client_display: None,
        scopes: ScopeSet::of(&["policies:read"]),
        token_id: None,
        expires_at: app.now().plus_secs(3600),
    }
}

/// Opens sessions in one unit of work and returns their ids.
pub async fn open(app: &App, sessions: Vec<NewSession>) -> Vec<String> {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let sink = ids.clone();
    let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        let mut opened = Vec::new();
        for session in &sessions {
            opened.push(mcp_sessions::open(ctx, session.clone())?.as_str().to_owned());
        }
        *sink.lock().unwrap() = opened;
        Ok(())
    };
    let organization = OrganizationId::parse(&app.organization).unwrap();
    app.kernel
        .system(organization, Some("test.opened"), run)
        .await
        .unwrap();
    let mut ids = ids.lock().unwrap();
    std::mem::take(&mut *ids)
}

async fn one(app: &App) -> String {
    open(app, vec![new_session(app, "client of the nets")])
        .await
        .remove(0)
}

pub async fn make(app: &App, _operation: &str, parameters: &[&str]) -> Ids {
    if parameters.contains(&"sessionId") {
        return vec![("sessionId", one(app).await)];
    }
    vec![]
}

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    (operation == "revokeHeadlessMcpSessions").then(|| json!({ "clientId": "client of the nets" }))
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let event = Some("mcp.session.revoked");
    match operation {
        "revokeHeadlessMcpSession" => {
            let path = format!("{SESSIONS}/{}/revoke", one(app).await);
            Some(Fixture::json("POST", path, json!({}), event))
        }
        "revokeHeadlessMcpSessions" => {
            let client = format!("client of {unique}");
            open(app, vec![new_session(app, &client)]).await;
            let body = json!({ "clientId": client, "confirm": true });
            Some(Fixture::json("POST", format!("{SESSIONS}/revoke"), body, event))
        }
        _ => None,
    }
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    if operation != "revokeHeadlessMcpSessions" || member != "clientId" {
        return None;
    }
    let mut body = body.clone();
    body[member] = "another client".into();
    Some(body)
}

pub async fn state(app: &App) -> Value {
    let mut state = Vec::new();
    loop {
        let page = app
            .get(&format!("{SESSIONS}?limit=100&offset={}", state.len()))
            .await;
        let found = page.ok()["sessions"].as_array().unwrap().clone();
        if found.is_empty() {
            return state.into();
        }
        state.extend(found);
    }
}
