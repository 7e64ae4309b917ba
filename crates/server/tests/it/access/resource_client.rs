//! What the family's published client sends, byte for byte, over a socket (client contract §1.2, §4).

use crate::support::{App, each};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One connection that is kept, as the client keeps it.
pub struct Client {
    stream: TcpStream,
    host: String,
    base: String,
    pub token: String,
    pub instance: &'static str,
    calls: u32,
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    #[track_caller]
    pub fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }
}

impl Client {
    pub async fn of(app: &App, address: SocketAddr, token: &str) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            host: address.to_string(),
            base: app.path(""),
            token: token.to_owned(),
            instance: "production",
            calls: 0,
        }
    }

    pub fn key(&mut self) -> String {
        self.calls += 1;
        format!("tf-{:032x}", u128::from(self.calls) << 64 | 0xfeed)
    }

    /// Reads have no key, reason or confirmation; the two labels go with everything.
    pub async fn read(&mut self, path: &str) -> Answer {
        self.send("GET", path, "", None).await
    }

    pub async fn write(&mut self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let key = self.key();
        self.write_as(&key, method, path, body).await
    }

    pub async fn write_as(&mut self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let trio = format!(
            "Idempotency-Key: {key}\r\nX-Forge-Confirm: true\r\nX-Forge-Reason: terraform reconciliation\r\n"
        );
        self.send(method, path, &trio, body).await
    }

    async fn send(&mut self, method: &str, path: &str, trio: &str, body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string);
        let length = body
            .as_ref()
            .map_or(String::new(), |b| format!("Content-Length: {}\r\n", b.len()));
        let (host, base, token, instance) = (&self.host, &self.base, &self.token, self.instance);
        let request = format!(
            "{method} {base}{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: terraform-provider-forge/0.9.0\r\n{length}\
             Accept: application/json\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{trio}\
             X-Forge-Terraform-Instance: {instance}\r\nX-Forge-Terraform-Manager: platform-team\r\n\
             Accept-Encoding: gzip\r\n\r\n{}",
            body.unwrap_or_default()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.answer().await
    }

    async fn answer(&mut self) -> Answer {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(
                self.stream.read_buf(&mut bytes).await.unwrap() > 0,
                "the connection was kept"
            );
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        let length: usize = length.map_or(0, |text| text.parse().unwrap());
        while bytes.len() < end + length {
            assert!(self.stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        assert!(!head.contains("content-encoding"), "{head}");
        Answer {
            status: head[9..12].parse().unwrap(),
            body: bytes[end..].to_vec(),
            head,
        }
    }
}

fn with(base: &Value, change: &Value) -> Value {
    let mut body = base.clone();
    for (member, value) in change.as_object().unwrap() {
        body[member] = value.clone();
    }
    body
}

/// Everything of `wanted` stands in `found` with the same value.
#[track_caller]
fn echoes(found: &Value, wanted: &Value) {
    for (member, value) in wanted.as_object().unwrap() {
        if value.is_null() || member == "secret" || *value == json!("") {
            assert!(found.get(member).is_none(), "{member} in {found}");
        } else {
            assert_eq!(&found[member], value, "{member} in {found}");
        }
    }
    assert_eq!(found["managementMode"], "terraform");
    assert_eq!(found["managerId"], "platform-team");
    assert_eq!(found["managerInstance"], "production");
}

/// Proves RS-1, RS-2, RS-3.
#[test]
fn the_familys_client_works_unchanged() {
    each("family_client", |app: Arc<App>| async move {
        let scopes = ["resources:write", "resource_credentials:write"];
        let (_, token) = app.account("terraform", "admin", &scopes).await;
        let served = app.serve().await;
        let mut client = Client::of(&app, served.address, &token).await;
        let gateway = gateways(&mut client).await;
        let resource = resources(&mut client, &gateway).await;
        credentials(&mut client, &resource).await;
        owned(&app, &mut client, &resource).await;
        // The client deletes what depends first, and takes 404 for done.
        for path in [
            format!("/resources/{resource}"),
            format!("/resource-gateways/{gateway}"),
        ] {
            assert_eq!(client.write("DELETE", &path, None).await.status, 204);
            client.read(&path).await.is(404);
            client.write("DELETE", &path, None).await.is(404);
        }
        served.stop().await;
    });
}

async fn gateways(client: &mut Client) -> String {
    let body = json!({ "name": "edge", "hostname": "gw.corp.example", "enabled": true });
    let made = client
        .write("POST", "/resource-gateways", Some(&body))
        .await
        .is(201);
    echoes(&made, &body);
    let id = made["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("rgw_"));
    let path = format!("/resource-gateways/{id}");
    assert_eq!(client.read(&path).await.is(200), made);
    let body = with(&body, &json!({ "enabled": false, "name": "edge 2" }));
    echoes(&client.write("PUT", &path, Some(&body)).await.is(200), &body);
    id
}

async fn resources(client: &mut Client, gateway: &str) -> String {
    let body = json!({
        "name": "orders", "protocol": "http", "upstreamHost": "orders.internal", "upstreamPort": 8443, "upstreamTls": true,
        "upstreamCaPem": "", "enabled": true, "transparentRouting": false, "gatewayId": null,
    });
    let key = client.key();
    let made = client.write_as(&key, "POST", "/resources", Some(&body)).await;
    assert_eq!(made.status, 201);
    echoes(&made.json(), &body);
    // The retry of a lost answer: the same key and bytes, the same answer.
    let again = client.write_as(&key, "POST", "/resources", Some(&body)).await;
    assert_eq!((again.status, &again.body), (201, &made.body));
    assert!(again.head.contains("idempotent-replayed: true"));
    let other = with(&body, &json!({ "upstreamPort": 8444 }));
    client.write("POST", "/resources", Some(&other)).await.is(409);
    let made = made.json();
    let id = made["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("res_") && made["accessName"].as_str().unwrap().starts_with("orders-"));
    let path = format!("/resources/{id}");
    assert_eq!(client.read(&path).await.is(200), made);
    let body = with(
        &body,
        &json!({ "gatewayId": gateway, "transparentRouting": true, "name": "orders api" }),
    );
    let changed = client.write("PUT", &path, Some(&body)).await.is(200);
    echoes(&changed, &body);
    assert_eq!(changed["accessName"], made["accessName"], "stable");
    // Put all: what is left out has its default again.
    let body = json!({ "name": "orders", "protocol": "http", "upstreamHost": "orders.internal", "upstreamPort": 443 });
    let changed = client.write("PUT", &path, Some(&body)).await.is(200);
    assert_eq!(
        (
            &changed["upstreamTls"],
            &changed["transparentRouting"],
            changed.get("gatewayId")
        ),
        (&json!(true), &json!(false), None)
    );
    let refused = client
        .write(
            "PUT",
            &path,
            Some(&with(&body, &json!({ "transparentRouting": true }))),
        )
        .await;
    let refused = refused.is(422);
    assert_eq!(refused["code"], "invalid_definition");
    assert_eq!(refused["errors"][0]["path"], "/gatewayId");
    id
}

async fn credentials(client: &mut Client, resource: &str) {
    let base = format!("/resources/{resource}/credentials");
    let empty = json!({ "users": [], "groups": [], "serviceAccounts": [] });
    let body = json!({
        "name": "orders token", "kind": "bearer_token", "default": true, "assignedTo": empty, "secret": "first-secret",
    });
    let key = client.key();
    let made = client.write_as(&key, "POST", &base, Some(&body)).await;
    echoes(&made.is(201), &body);
    let again = client.write_as(&key, "POST", &base, Some(&body)).await;
    assert_eq!((again.status, &again.body), (201, &made.body));
    let other = with(&body, &json!({ "secret": "another" }));
    client.write_as(&key, "POST", &base, Some(&other)).await.is(422);
    let made = made.json();
    let path = format!("{base}/{}", made["id"].as_str().unwrap());
    assert_eq!(client.read(&path).await.is(200), made);
    assert!(made.get("rotatedAt").is_none());
    // Without a secret only the metadata changes; with one it is rotated.
    let mut renamed = with(&body, &json!({ "name": "orders" }));
    renamed.as_object_mut().unwrap().remove("secret");
    let changed = client.write("PUT", &path, Some(&renamed)).await.is(200);
    echoes(&changed, &renamed);
    assert!(changed.get("rotatedAt").is_none());
    let rotated = with(&renamed, &json!({ "secret": "second-secret" }));
    let changed = client.write("PUT", &path, Some(&rotated)).await.is(200);
    assert_eq!(changed["rotatedAt"], changed["updatedAt"]);
    // The kind may change; its secret does not follow.
    let mut kind = with(
        &renamed,
        &json!({ "kind": "oauth2_client_credentials", "authentication": {
        "tokenEndpoint": "https://login.example.com/token", "clientId": "orders", "scopes": ["b", "a"], "audience": "api" } }),
    );
    let refused = client.write("PUT", &path, Some(&kind)).await.is(422);
    assert_eq!(refused["errors"][0]["path"], "/secret");
    kind["secret"] = "client-secret".into();
    echoes(&client.write("PUT", &path, Some(&kind)).await.is(200), &kind);
    let exchange = with(
        &renamed,
        &json!({ "kind": "oauth2_token_exchange", "authentication": {
        "tokenEndpoint": "https://login.example.com/token", "clientId": "" } }),
    );
    let changed = client.write("PUT", &path, Some(&exchange)).await.is(200);
    assert_eq!(
        changed["authentication"],
        json!({ "tokenEndpoint": "https://login.example.com/token" })
    );
    let text = client.read(&base).await.is(200).to_string();
    for secret in [
        "first-secret",
        "second-secret",
        "client-secret",
        "secretId",
        "secretRef",
    ] {
        assert!(!text.contains(secret), "{text}");
    }
    client
        .write("DELETE", &format!("/resources/{resource}"), None)
        .await
        .is(409);
    assert_eq!(client.write("DELETE", &path, None).await.status, 204);
    client.read(&path).await.is(404);
    client.write("PUT", &path, Some(&renamed)).await.is(404);
}

/// Labels coordinate, the principal is the boundary (client contract §3.12).
async fn owned(app: &App, client: &mut Client, resource: &str) {
    let path = format!("/resources/{resource}");
    let body =
        json!({ "name": "orders", "protocol": "http", "upstreamHost": "evil.example", "upstreamPort": 443 });
    client.instance = "staging";
    client.write("PUT", &path, Some(&body)).await.is(409);
    client.write("DELETE", &path, None).await.is(409);
    client.instance = "production";
    // The same labels with another credential, and no labels with whichever.
    let owner = std::mem::replace(&mut client.token, app.admin.clone());
    client.write("PUT", &path, Some(&body)).await.is(409);
    client.token = owner;
    app.write("PUT", &path, body.clone())
        .await
        .refused(409, "conflict");
    app.delete(&path).await.refused(409, "conflict");
    let seen = client.read(&path).await.is(200);
    assert_eq!(seen["upstreamHost"], "orders.internal");
    // What the service manages is not taken over.
    let ours = app
        .write(
            "POST",
            "/resource-gateways",
            json!({ "name": "ours", "hostname": "gw.example" }),
        )
        .await;
    assert_eq!(ours.ok()["managementMode"], "service");
    assert!(ours.json.get("managerId").is_none());
    let path = format!("/resource-gateways/{}", ours.json["id"].as_str().unwrap());
    let body = json!({ "name": "theirs", "hostname": "gw.example", "enabled": true });
    client.write("PUT", &path, Some(&body)).await.is(409);
    client.write("DELETE", &path, None).await.is(409);
}
