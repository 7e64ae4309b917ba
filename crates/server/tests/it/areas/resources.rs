//! Resources, gateways, credentials and their checks.

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
    content,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

pub fn absent(ulid: &str) -> Ids {
    vec![
        ("resourceId", format!("res_{ulid}")),
        ("resourceGatewayId", format!("rgw_{ulid}")),
        ("credentialId", format!("cred_{ulid}")),
        ("checkId", format!("chk_{ulid}")),
    ]
}

pub fn resource_body(name: &str) -> Value {
    json!({
        "name": name, "protocol": "http", "upstreamHost": "api.internal", "upstreamPort": 443, "upstreamTls": true,
        "enabled": true, "transparentRouting": false,
    })
}

fn gateway_body(name: &str) -> Value {
    json!({ "name": name, "hostname": "gateway.internal", "enabled": true })
}

pub fn credential_body() -> Value {
    json!({ "name": "one", "kind": "bearer_token", "secret": "a secret of a test" })
}

async fn made(app: &App, path: &str, body: Value) -> String {
    let reply = app.write("POST", path, body).await;
    reply.ok()["id"].as_str().unwrap().to_owned()
}

/// Makes a resource of this name; returns it.
pub async fn resource(app: &App, name: &str) -> Value {
    app.write("POST", "/resources", resource_body(name))
        .await
        .ok()
        .clone()
}

pub async fn make_resource(app: &App) -> String {
    made(app, "/resources", resource_body(&fresh_key())).await
}

pub async fn make_credential(app: &App, resource: &str) -> String {
    made(
        app,
        &format!("/resources/{resource}/credentials"),
        credential_body(),
    )
    .await
}

async fn make_gateway(app: &App) -> String {
    made(app, "/resource-gateways", gateway_body(&fresh_key())).await
}

pub async fn make_check(app: &App, resource: &str, credential: &str) -> String {
    let path = format!("/resources/{resource}/credentials/{credential}/verify");
    let begun = app.write("POST", &path, json!({})).await;
    begun.ok()["checkId"].as_str().unwrap().to_owned()
}

pub async fn make(app: &App, _operation: &str, parameters: &[&str]) -> Ids {
    let mut ids = vec![];
    if parameters.contains(&"resourceGatewayId") {
        ids.push(("resourceGatewayId", make_gateway(app).await));
    }
    if !parameters.contains(&"resourceId") {
        return ids;
    }
    let resource = make_resource(app).await;
    if parameters.contains(&"credentialId") {
        let credential = make_credential(app, &resource).await;
        if parameters.contains(&"checkId") {
            ids.push(("checkId", make_check(app, &resource, &credential).await));
        }
        ids.push(("credentialId", credential));
    }
    ids.push(("resourceId", resource));
    ids
}

pub async fn deleted(app: &App) -> Ids {
    let (resource, gateway) = (make_resource(app).await, make_gateway(app).await);
    let credential = make_credential(app, &resource).await;
    let check = make_check(app, &resource, &credential).await;
    for path in [
        format!("/resources/{resource}/credentials/{credential}"),
        format!("/resources/{resource}"),
        format!("/resource-gateways/{gateway}"),
    ] {
        assert_eq!(app.delete(&path).await.status.as_u16(), 204);
    }
    vec![
        ("resourceId", resource),
        ("resourceGatewayId", gateway),
        ("credentialId", credential),
        ("checkId", check),
    ]
}

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    match operation {
        "createHeadlessResource" | "updateHeadlessResource" => Some(resource_body(&fresh_key())),
        "createHeadlessResourceGateway" | "updateHeadlessResourceGateway" => Some(gateway_body(&fresh_key())),
        "createHeadlessResourceCredential" | "updateHeadlessResourceCredential" => Some(credential_body()),
        _ => None,
    }
}

pub fn content(_operation: &str) -> Option<(&'static str, Vec<u8>)> {
    None
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let fixture = match operation {
        "createHeadlessResource" => Fixture::json("POST", "/resources", resource_body(unique), None),
        "updateHeadlessResource" => {
            let path = format!("/resources/{}", make_resource(app).await);
            Fixture::json("PUT", path, resource_body(unique), None)
        }
        "deleteHeadlessResource" => {
            let path = format!("/resources/{}", make_resource(app).await);
            Fixture::json("DELETE", path, json!({}), None)
        }
        "createHeadlessResourceGateway" => {
            Fixture::json("POST", "/resource-gateways", gateway_body(unique), None)
        }
        "updateHeadlessResourceGateway" => {
            let path = format!("/resource-gateways/{}", make_gateway(app).await);
            Fixture::json("PUT", path, gateway_body(unique), None)
        }
        "deleteHeadlessResourceGateway" => {
            let path = format!("/resource-gateways/{}", make_gateway(app).await);
            Fixture::json("DELETE", path, json!({}), None)
        }
        "createHeadlessResourceCredential" => {
            let path = format!("/resources/{}/credentials", make_resource(app).await);
            Fixture::json("POST", path, credential_body(), None)
        }
        "updateHeadlessResourceCredential"
        | "deleteHeadlessResourceCredential"
        | "verifyHeadlessResourceCredential" => {
            let resource = make_resource(app).await;
            let credential = make_credential(app, &resource).await;
            let path = format!("/resources/{resource}/credentials/{credential}");
            match operation {
                "updateHeadlessResourceCredential" => {
                    Fixture::json("PUT", path, credential_body(), Some("credential.rotated"))
                }
                "deleteHeadlessResourceCredential" => Fixture::json("DELETE", path, json!({}), None),
                _ => Fixture::json("POST", format!("{path}/verify"), json!({}), None),
            }
        }
        _ => return None,
    };
    Some(fixture)
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    if !operation.contains("HeadlessResource") {
        return None;
    }
    let mut body = body.clone();
    body[member] = match (member, &body[member]) {
        ("protocol", _) => json!("mysql"),
        ("kind", _) => json!("header"),
        (_, Value::Bool(value)) => json!(!value),
        (_, Value::Number(_)) => json!(8443),
        _ => json!("another"),
    };
    Some(body)
}

async fn all(app: &App, path: &str, plural: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = app.get(&format!("{path}?limit=100{cursor}")).await;
        found.extend(page.ok()[plural].as_array().unwrap().iter().cloned());
        match page.json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

pub async fn state(app: &App) -> Value {
    let resources = all(app, "/resources", "resources").await;
    let mut credentials = Vec::new();
    for resource in &resources {
        let path = format!("/resources/{}/credentials", resource["id"].as_str().unwrap());
        credentials.push(app.get(&path).await.ok()["items"].clone());
    }
    let gateways = all(app, "/resource-gateways", "resourceGateways").await;
    json!({ "resources": resources, "credentials": credentials, "gateways": gateways })
}
