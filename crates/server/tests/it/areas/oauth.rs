//! See the module above.

use super::Fixture;
use crate::samples::Target;
use crate::support::{App, fresh_key};
use serde_json::{Value, json};

pub type Ids = Vec<(&'static str, String)>;

const CLIENTS: &str = "/mcp/clients";

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

pub async fn make(app: &App, _operation: &str, parameters: &[&str]) -> Ids {
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

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    match operation {
        "createHeadlessMcpClient" => Some(public_client(&fresh_key())),
        "updateHeadlessMcpClient" => Some(json!({ "name": fresh_key() })),
        _ => None,
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
        _ => None,
    }
}

pub fn varied(operation: &str, member: &str, _body: &Value) -> Option<Value> {
    if operation != "createHeadlessMcpClient" {
        return None;
    }
    let mut body = public_client(&fresh_key());
    match member {
        "redirectUris" => body[member] = json!(["https://client.example/back"]),
        "grantTypes" => body[member] = json!(["authorization_code"]),
        "tokenEndpointAuthMethod" => body[member] = json!("private_key_jwt"),
        "scopes" => body[member] = json!(["policies:read"]),
        _ => return None,
    }
    Some(body)
}

pub async fn state(app: &App) -> Value {
    app.get(&format!("{CLIENTS}?limit=100")).await.ok()["mcpClients"].clone()
}
