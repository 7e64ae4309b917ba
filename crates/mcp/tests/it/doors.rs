//! Who comes in: hosts, origins, tokens, sessions, sizes, methods.

use crate::area::FLEETING;
use crate::support::{App, by, each, each_with};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use provost_kernel::kernel::Settings;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn initialize(client: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": client, "version": "2.0" },
    });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Proves ME-5.
#[test]
fn a_foreign_host_or_origin_is_refused_before_the_token_is_looked_at() {
    each("mcp_hosts", |app: Arc<App>| async move {
        for (name, value) in [
            ("host", "evil.test"),
            ("origin", "https://evil.test"),
            ("origin", "null"),
        ] {
            for token in ["Bearer nonsense", ""] {
                let mut request = app.request(PING);
                request.headers_mut().insert(name, value.parse().unwrap());
                request
                    .headers_mut()
                    .insert("authorization", token.parse().unwrap());
                assert_eq!(
                    app.send(request).await.status,
                    StatusCode::FORBIDDEN,
                    "{name}: {value}"
                );
            }
        }
        for (name, value) in [("host", "provost.test:8443"), ("origin", "https://console.test")] {
            let mut request = app.request(PING);
            request.headers_mut().insert(name, value.parse().unwrap());
            assert_eq!(app.send(request).await.status, StatusCode::OK, "{name}: {value}");
        }
    });
}

/// Proves ME-1.
#[test]
fn nobody_is_told_anything_without_a_token_not_even_at_initialize() {
    each("mcp_401", |app: Arc<App>| async move {
        for body in [initialize("x"), PING.to_owned(), "{".to_owned()] {
            for token in [None, Some("Bearer prov_sat_x"), Some("Basic abc")] {
                let mut request = app.request(body.clone());
                request.headers_mut().remove("authorization");
                if let Some(token) = token {
                    request
                        .headers_mut()
                        .insert("authorization", token.parse().unwrap());
                }
                let answer = app.send(request).await;
                assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", body.len());
                let challenge = answer.headers["www-authenticate"].to_str().unwrap();
                assert!(
                    challenge.contains("/.well-known/oauth-protected-resource/mcp\""),
                    "{challenge}"
                );
                assert!(!answer.headers.contains_key("mcp-session-id"));
            }
        }
        // What a head declares too large is refused before the token is looked at, and before any of it is there.
        for token in [
            "",
            "Authorization: Bearer prov_sat_x\r\n",
            "Authorization: Basic abc\r\n",
        ] {
            let mut stream = TcpStream::connect(app.address).await.unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{token}Content-Length: {}\r\n\r\n",
                app.address,
                2 << 20
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        }
        for method in [Method::GET, Method::DELETE, Method::PUT] {
            let mut request = app.request("");
            *request.method_mut() = method.clone();
            let answer = app.send(request).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
            assert_eq!(answer.headers["allow"], "POST");
            let mut request = app.request("");
            *request.method_mut() = method;
            request.headers_mut().remove("authorization");
            assert_eq!(app.send(request).await.status, StatusCode::UNAUTHORIZED);
        }
    });
}

/// Proves ME-1.
#[test]
fn a_revoked_token_is_refused_from_the_next_request_on() {
    each("mcp_revoked", |app: Arc<App>| async move {
        let token = app.token("acme", "leaver", "admin", &["policies:read"]).await;
        let opened = app.send(by(&token, app.request(initialize("leaver")))).await;
        let session = opened.headers["mcp-session-id"].clone();
        assert_eq!(
            app.names(&token, "/mcp").await,
            ["listThings", "getThing", "fetchThing"]
        );
        app.revoke("acme", "leaver").await;
        let mut calls = vec![
            app.modern("tools/call", json!({ "name": "listThings" })),
            app.modern("tools/list", json!({})),
            app.request(PING),
            app.request(initialize("leaver")),
        ];
        calls[2].headers_mut().insert("mcp-session-id", session);
        for call in calls {
            let answer = app.send(by(&token, call)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{answer:?}");
            assert!(
                answer.headers["www-authenticate"]
                    .to_str()
                    .unwrap()
                    .contains("invalid_token")
            );
            assert_eq!(answer.json()["code"], "token_revoked");
        }
    });
}

/// A call of the client that is let in once.
fn fleeting(app: &App, id: &str) -> Request<Full<Bytes>> {
    let message =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"listThings"}}}}"#);
    let mut request = app.request(message);
    request
        .headers_mut()
        .insert("user-agent", FLEETING.parse().unwrap());
    request
}

/// Proves ME-1.
#[test]
fn who_is_cut_off_between_authentication_and_call_is_refused_by_http() {
    each("mcp_fleeting", |app: Arc<App>| async move {
        // Not the usual form of an id: the library judges the message, between the two.
        let answer = app.send(fleeting(&app, "4294967296")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{answer:?}");
        assert_eq!(answer.json()["code"], "token_revoked");
        assert!(answer.headers.contains_key("www-authenticate"));
    });
}

#[test]
fn a_call_in_the_usual_form_is_answered_in_the_snapshot_that_finds_its_caller() {
    each("mcp_at_once", |app: Arc<App>| async move {
        let answer = app.send(fleeting(&app, "1")).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let answer = app.send(fleeting(&app, "2")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{answer:?}");
        assert_eq!(answer.json()["code"], "token_revoked");
    });
}

/// Proves ME-4.
#[test]
fn a_session_names_the_client_and_is_its_openers() {
    each("mcp_session", |app: Arc<App>| async move {
        let opened = app.send(app.request(initialize("Claude Code"))).await;
        assert_eq!(opened.status, StatusCode::OK, "{opened:?}");
        assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
        let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let with = |session: &str| {
            let mut request = app.request(PING);
            request
                .headers_mut()
                .insert("mcp-session-id", session.parse().unwrap());
            request
                .headers_mut()
                .insert("user-agent", "curl/8".parse().unwrap());
            request
        };
        assert_eq!(app.send(with(&session)).await.status, StatusCode::OK);
        let claude = ("Claude-Code".to_owned(), Some("Claude Code 2.0".to_owned()));
        assert_eq!(app.clients("root").await, [claude]);

        let other = app.token("acme", "other", "admin", &["policies:read"]).await;
        let answer = app.send(by(&other, with(&session))).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        let foreign = app.token("elsewhere", "root", "admin", &["policies:read"]).await;
        assert_eq!(
            app.send(by(&foreign, with(&session))).await.status,
            StatusCode::NOT_FOUND
        );

        let mut forged = session.clone().into_bytes();
        forged[3] = if forged[3] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        for session in [forged.as_str(), "x", ".", "a.b", &"x".repeat(4000)] {
            assert_eq!(
                app.send(with(session)).await.status,
                StatusCode::NOT_FOUND,
                "{session}"
            );
        }
        let mut twice = with(&session);
        twice
            .headers_mut()
            .append("mcp-session-id", session.parse().unwrap());
        assert_eq!(app.send(twice).await.status, StatusCode::NOT_FOUND);
        // Another restart of the same installation, and any other server of it, reads the same sessions: no state.
        let again = app.send(app.request(initialize("Claude Code"))).await;
        assert_ne!(again.headers["mcp-session-id"], session.as_str());
    });
}

/// Proves ME-4.
#[test]
fn a_session_changes_no_answer() {
    each("mcp_session_grants", |app: Arc<App>| async move {
        let opened = app.send(app.request(initialize("x"))).await;
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let mut with = app.request(list);
        with.headers_mut()
            .insert("mcp-session-id", opened.headers["mcp-session-id"].clone());
        let (with, without) = (app.send(with).await, app.send(app.request(list)).await);
        assert_eq!(with.bytes, without.bytes);
        let mut stranger = app.request(list);
        stranger
            .headers_mut()
            .insert("mcp-session-id", opened.headers["mcp-session-id"].clone());
        stranger.headers_mut().remove("authorization");
        assert_eq!(app.send(stranger).await.status, StatusCode::UNAUTHORIZED);
    });
}

#[test]
fn the_client_is_named_by_the_message_else_by_the_program() {
    each("mcp_names", |app: Arc<App>| async move {
        app.send(app.modern("tools/list", json!({}))).await;
        let mut request = app.request(PING);
        request
            .headers_mut()
            .insert("user-agent", "codex/3.1 (linux)".parse().unwrap());
        app.send(request).await;
        app.send(app.request(PING)).await;
        let names: Vec<String> = app
            .clients("root")
            .await
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["codex", "raw", "unknown"]);
    });
}

#[test]
fn a_message_has_a_mebibyte_at_most() {
    each("mcp_size", |app: Arc<App>| async move {
        let padded = |size: usize| {
            let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            format!("{message}{}", " ".repeat(size - message.len()))
        };
        assert_eq!(
            app.send(app.request(padded(1 << 20))).await.status,
            StatusCode::OK
        );
        let answer = app.send(app.request(padded((1 << 20) + 1))).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.json()["code"], "payload_too_large");
    });
}

#[test]
fn requests_that_call_nothing_are_limited_too() {
    each_with("mcp_rate", 0, &Settings::default(), |app: Arc<App>| async move {
        let mut refused: Option<Value> = None;
        // The clock stands still: the bucket of reads holds 300.
        for _ in 0..=300 {
            let answer = app.send(app.request(PING)).await;
            if answer.status == StatusCode::TOO_MANY_REQUESTS {
                assert!(answer.headers.contains_key("retry-after"));
                refused = Some(answer.json());
                break;
            }
            assert_eq!(answer.status, StatusCode::OK);
        }
        assert_eq!(refused.unwrap()["code"], "rate_limited");
    });
}
