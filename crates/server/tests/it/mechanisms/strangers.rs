//! What is done for a request before it is known who sends it: nothing that waits for its body, and nothing that reads it.

use crate::support::{App, TestServer, each};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Less than a body may take, so that an answer within it did not wait for one.
const SOON: Duration = Duration::from_secs(8);

/// A request whose body does not come before it is sent.
struct UnfinishedRequest(TcpStream);

impl UnfinishedRequest {
    async fn send(served: &TestServer, path: &str, headers: &[String], length: usize) -> Self {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let headers = headers
            .iter()
            .fold(String::new(), |all, line| all + line + "\r\n");
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}content-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        Self(stream)
    }

    /// Returns the status and the body of the answer.
    async fn answer(&mut self) -> (u16, Value) {
        let mut bytes = Vec::new();
        let read = async {
            loop {
                let text = String::from_utf8_lossy(&bytes).to_lowercase();
                let length = text
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.lines().next());
                if let (Some(at), Some(length)) = (text.find("\r\n\r\n"), length)
                    && bytes.len() >= at + 4 + length.parse::<usize>().unwrap()
                {
                    break at + 4;
                }
                assert_ne!(self.0.read_buf(&mut bytes).await.unwrap(), 0, "{text}");
            }
        };
        let start = tokio::time::timeout(SOON, read).await;
        assert!(start.is_ok(), "it waits for the body");
        let start = start.unwrap();
        let status = String::from_utf8_lossy(&bytes[9..12]).parse().unwrap();
        (
            status,
            serde_json::from_slice(&bytes[start..]).unwrap_or(Value::Null),
        )
    }
}

fn by(token: &str) -> Vec<String> {
    vec![
        format!("authorization: Bearer {token}"),
        "content-type: application/json".to_owned(),
        "accept: application/json, text/event-stream".to_owned(),
    ]
}

/// A token whose checksum is right and that nobody was given.
fn forged(token: &str) -> String {
    let mut rng = provost_kernel::entropy::UnitRng::new([9; 32]);
    let forged = provost_kernel::token::mint(provost_areas_identity::service_accounts::FORM, &mut rng);
    assert_ne!(forged.token.expose(), token);
    forged.token.expose().clone()
}

/// Proves ED-1.
#[test]
fn nobody_unknown_is_waited_for() {
    each("strangers_bodies", |app: Arc<App>| async move {
        let served = app.serve().await;
        let (_, viewer) = app.account("reader", "viewer", &[]).await;
        let forged = forged(&app.admin);
        let create = app.path("/service-accounts");
        let foreign = create.replace(&app.organization, "somebody-else");
        let import = app.path("/policies/history/import");
        for path in [&*create, &*foreign, &*import, "/mcp"] {
            for headers in [
                vec![],
                vec!["authorization: Basic abc".to_owned()],
                by("nonsense"),
                by("prov_sat_nonsense"),
                by(&forged),
            ] {
                let mut request = UnfinishedRequest::send(&served, path, &headers, 1000).await;
                let (status, body) = request.answer().await;
                assert_eq!(
                    (status, &body["code"]),
                    (401, &json!("unauthenticated")),
                    "{path} {headers:?}"
                );
            }
        }
        // Who is known and may not call is told so without a body as well.
        for (path, token, code) in [
            (&create, &viewer, "role_forbidden"),
            (&foreign, &app.admin, "organization_forbidden"),
        ] {
            let mut request = UnfinishedRequest::send(&served, path, &by(token), 1000).await;
            let (status, body) = request.answer().await;
            assert_eq!((status, &body["code"]), (403, &json!(code)), "{path}");
        }
        served.stop().await;
    });
}

/// Proves ED-1.
#[test]
fn a_length_above_the_limit_is_refused_before_the_token_is_looked_at() {
    each("strangers_declared", |app: Arc<App>| async move {
        let served = app.serve().await;
        let create = app.path("/service-accounts");
        for (path, length) in [(&*create, 262_145), ("/mcp", (1 << 20) + 1)] {
            for headers in [vec![], by("nonsense"), by(&app.admin)] {
                let mut request = UnfinishedRequest::send(&served, path, &headers, length).await;
                let (status, body) = request.answer().await;
                assert_eq!(
                    (status, &body["code"]),
                    (413, &json!("payload_too_large")),
                    "{path}"
                );
            }
        }
        served.stop().await;
    });
}

#[test]
fn a_body_that_comes_late_is_read_of_whoever_is_known() {
    each("strangers_late", |app: Arc<App>| async move {
        let served = app.serve().await;
        // For the first time, and for a token that was valid a moment ago.
        for name in ["one", "two", "three"] {
            let body = json!({
                "name": name, "permissionRole": "viewer", "allOfRole": true,
                "reason": "a test", "idempotencyKey": format!("a-key-of-some-length-{name}"),
            })
            .to_string();
            let path = app.path("/service-accounts");
            let mut request = UnfinishedRequest::send(&served, &path, &by(&app.admin), body.len()).await;
            request.0.write_all(&body.as_bytes()[..10]).await.unwrap();
            // Longer than a body of somebody known may take before its sender is looked at.
            tokio::time::sleep(2 * provost_kernel::expose::http::AT_ONCE).await;
            request.0.write_all(&body.as_bytes()[10..]).await.unwrap();
            let (status, answer) = request.answer().await;
            assert_eq!(status, 201, "{answer}");
        }
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for _ in 0..2 {
            let mut request = UnfinishedRequest::send(&served, "/mcp", &by(&app.admin), ping.len()).await;
            tokio::time::sleep(2 * provost_kernel::expose::http::AT_ONCE).await;
            request.0.write_all(ping.as_bytes()).await.unwrap();
            assert_eq!(request.answer().await.0, 200);
        }
        served.stop().await;
    });
}

/// Proves ED-1.
#[test]
fn who_was_known_and_is_no_more_is_not_waited_for() {
    each("strangers_disabled", |app: Arc<App>| async move {
        let served = app.serve().await;
        let (id, token) = app.account("leaver", "admin", &[]).await;
        for path in [&*app.path("/service-accounts"), "/mcp"] {
            assert_eq!(app.used(&token).await.0, 200, "{path}");
            app.write("POST", &format!("/service-accounts/{id}/disable"), json!({}))
                .await
                .ok();
            for _ in 0..2 {
                let mut request = UnfinishedRequest::send(&served, path, &by(&token), 1000).await;
                assert_eq!(request.answer().await.0, 401, "{path}");
            }
            app.write("POST", &format!("/service-accounts/{id}/enable"), json!({}))
                .await
                .ok();
        }
        served.stop().await;
    });
}

#[test]
fn a_form_has_sixteen_kibibytes_and_three_seconds() {
    each("strangers_forms", |app: Arc<App>| async move {
        let served = app.serve().await;
        let form = ["content-type: application/x-www-form-urlencoded".to_owned()];
        for path in ["/oauth/token", "/oauth/revoke"] {
            let mut request = UnfinishedRequest::send(&served, path, &form, 16 * 1024 + 1).await;
            let (status, body) = request.answer().await;
            assert_eq!((status, &body["error"]), (400, &json!("invalid_request")));
            assert_eq!(body["error_description"], "the body is larger than 16384 bytes");
            let mut request = UnfinishedRequest::send(&served, path, &form, 16 * 1024).await;
            let (status, body) = request.answer().await;
            assert_eq!((status, &body["error"]), (400, &json!("invalid_request")));
            assert_eq!(body["error_description"], "the request was not complete in time");
        }
        served.stop().await;
    });
}
