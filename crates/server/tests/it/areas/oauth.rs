//! See the module above.

use super::{Fixture, Ids, Samples};
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
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

const CLIENTS: &str = "/mcp/clients";
const LINKS: &str = "/directory/identity-links";
const ISSUER: &str = "https://issuer.example";

pub fn absent(ulid: &str) -> Ids {
    vec![("mcpClientId", format!("ocl_{ulid}"))]
}

/// A public client of people, under a name of its own.
pub fn public_client(name: &str) -> Value {
    json!({
        "name": name, "redirectUris": ["http://127.0.0.1/callback"],
        "grantTypes": ["authorization_code", "refresh_token"], "tokenEndpointAuthMethod": "none",
        "scopes": ["policies:read", "mcp:write"],
    })
}

/// Registers a client and returns its id.
pub async fn register(app: &App, body: Value) -> String {
    let reply = app.write("POST", CLIENTS, body).await;
    reply.ok()["id"].as_str().unwrap().to_owned()
}

async fn one(app: &App) -> String {
    register(app, public_client(&fresh_key())).await
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if ["createHeadlessIdentityLink", "allowHeadlessIdentityRelinking"].contains(&operation) {
        let user = super::directory::user(app, &format!("linked {}", fresh_key())).await;
        return vec![("userId", user)];
    }
    if parameters.contains(&"mcpClientId") {
        return vec![("mcpClientId", one(app).await)];
    }
    vec![]
}

pub async fn deleted(app: &App) -> Ids {
    let id = one(app).await;
    let path = format!("{CLIENTS}/{id}");
    app.delete(&path).await.ok();
    vec![("mcpClientId", id)]
}

pub fn body(operation: &str, target: &Target) -> Option<Value> {
    match operation {
        "createHeadlessMcpClient" => {
            let mut body = public_client(&fresh_key());
            // What whoever registers a client holds in any case: nobody gives it more.
            body["scopes"] = json!(["mcp:read", "mcp:write"]);
            Some(body)
        }
        "updateHeadlessMcpClient" => Some(json!({ "name": fresh_key() })),
        "createHeadlessIdentityLink" => Some(json!({
            "issuer": ISSUER, "subject": fresh_key(), "userId": target.others["userId"],
        })),
        // For everybody it takes an admin who may do everything.
        "allowHeadlessIdentityRelinking" => Some(json!({
            "issuer": ISSUER, "userIds": [target.others["userId"]], "expiresInSeconds": 3600,
        })),
        _ => link_body(operation, &fresh_key()),
    }
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    match operation {
        "createHeadlessMcpClient" => Some(Fixture::json(
            "POST",
            CLIENTS,
            public_client(&format!("client {unique}")),
            Some("mcp.client.created"),
        )),
        "updateHeadlessMcpClient" => Some(Fixture::json(
            "PATCH",
            format!("{CLIENTS}/{}", one(app).await),
            json!({ "name": format!("client {unique}") }),
            Some("mcp.client.updated"),
        )),
        "deleteHeadlessMcpClient" => Some(Fixture::json(
            "DELETE",
            format!("{CLIENTS}/{}", one(app).await),
            json!({}),
            Some("mcp.client.deleted"),
        )),
        "createHeadlessIdentityLink" => {
            let id = super::directory::user(app, &format!("linked {unique}")).await;
            let body = json!({ "issuer": ISSUER, "subject": unique, "userId": id });
            Some(Fixture::json("POST", LINKS, body, Some("oauth.identity.linked")))
        }
        "removeHeadlessIdentityLinks" => {
            let id = super::directory::user(app, &format!("linked {unique}")).await;
            let body = json!({ "issuer": ISSUER, "subject": unique, "userId": id });
            app.write("POST", LINKS, body).await.ok();
            let body = json!({ "issuer": ISSUER, "subject": unique, "confirm": true });
            let path = format!("{LINKS}/remove");
            Some(Fixture::json("POST", path, body, Some("oauth.identity.unlinked")))
        }
        "allowHeadlessIdentityRelinking" => {
            let body = link_body(operation, unique)?;
            let path = format!("{LINKS}/allow");
            Some(Fixture::json(
                "POST",
                path,
                body,
                Some("oauth.identity.relinking_allowed"),
            ))
        }
        _ => None,
    }
}

fn link_body(operation: &str, unique: &str) -> Option<Value> {
    let issuer = format!("{ISSUER}/{unique}");
    match operation {
        "allowHeadlessIdentityRelinking" => {
            Some(json!({ "issuer": issuer, "all": true, "expiresInSeconds": 3600 }))
        }
        "removeHeadlessIdentityLinks" => Some(json!({ "issuer": issuer, "all": true })),
        _ => None,
    }
}

pub fn varied(operation: &str, member: &str, _body: &Value) -> Option<Value> {
    if (operation, member) == ("allowHeadlessIdentityRelinking", "expiresInSeconds") {
        return Some(json!({ "issuer": ISSUER, "all": true, "expiresInSeconds": 7200 }));
    }
    if (operation, member) == ("allowHeadlessIdentityRelinking", "all") {
        let user = "usr_01kadh5j9v0000000000000000";
        return Some(json!({ "issuer": ISSUER, "userIds": [user], "expiresInSeconds": 3600 }));
    }
    if (operation, member) == ("createHeadlessIdentityLink", "userId") {
        let user = "usr_01kadh5j9v0000000000000000";
        return Some(json!({ "issuer": ISSUER, "subject": "another", "userId": user }));
    }
    if operation != "createHeadlessMcpClient" {
        return None;
    }
    let mut body = public_client(&fresh_key());
    match member {
        "redirectUris" => body[member] = json!(["https://client.example/back"]),
        "grantTypes" => body[member] = json!(["authorization_code"]),
        "tokenEndpointAuthMethod" => body[member] = json!("private_key_jwt"),
        "scopes" => body[member] = json!(["mcp:read"]),
        _ => return None,
    }
    Some(body)
}

pub async fn state(app: &App) -> Value {
    let clients = app.get(&format!("{CLIENTS}?limit=100")).await.ok()["mcpClients"].clone();
    let links = app.get(&format!("{LINKS}?limit=100")).await.ok()["identityLinks"].clone();
    json!([clients, links])
}
