//! Rights of accounts that do not grow by a detour: lists that wait for a role, sessions, tokens in grace, what was taken
//! away and is given back (SA-10 to SA-12, OC-16).

use crate::access::oauth::granted::{Confidential, access};
use crate::access::oauth::{read, trusting, workshop};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

async fn send(app: &App, token: &str, method: &str, path: &str, body: Value) -> Reply {
    let call = app.request(method, path).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is a text"))
        .to_owned()
}

/// Proves SA-11.
#[test]
fn nobody_lists_a_scope_that_they_could_not_hand_out() {
    each("account_lists", |app: Arc<App>| async move {
        let scopes = ["service_accounts:write", "policies:read"];
        let (_, writer) = app.account("writer", "admin", &scopes).await;
        let account_of = |role: &str, scopes: &[&str]| json!({ "name": fresh_key(), "permissionRole": role, "scopes": scopes });
        // Each alone: of another role, by name alone, beyond everybody who is not an admin.
        for scope in [
            "directory:read",
            "managed_config:pull",
            "policies:inspect",
            "service_accounts:rotate_any",
        ] {
            let body = account_of("viewer", &["policies:read", scope]);
            let refused = send(&app, &writer, "POST", "/service-accounts", body).await;
            refused.refused(403, "escalation_forbidden");
        }
        let made = send(
            &app,
            &writer,
            "POST",
            "/service-accounts",
            account_of("viewer", &["policies:read"]),
        )
        .await;
        let account = format!("/service-accounts/{}", text(&made.ok()["serviceAccount"]["id"]));
        let wider = json!({ "scopes": ["policies:read", "directory:read"] });
        let refused = send(&app, &writer, "PATCH", &account, wider.clone()).await;
        refused.refused(403, "escalation_forbidden");
        // Who holds it may, and is told; whoever holds less keeps what is there.
        let warned = app.write("PATCH", &account, wider).await;
        assert_eq!(warned.ok()["warnings"][0]["code"], "scopes_beyond_role");
        let kept = json!({ "scopes": ["directory:read"] });
        send(&app, &writer, "PATCH", &account, kept).await.ok();
        // A role that makes them act says so.
        let promoted = app
            .write("PATCH", &account, json!({ "permissionRole": "operator" }))
            .await;
        let warnings = promoted.ok()["warnings"].as_array().unwrap().clone();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0]["code"], "scopes_begin_to_act");
        assert!(
            warnings[0]["message"]
                .as_str()
                .unwrap()
                .contains("directory:read")
        );
    });
}

/// Proves SA-12.
#[test]
fn a_session_of_an_account_does_not_rotate_it() {
    each("account_session_rotates", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let scopes = ["policies:read", "directory:read", "service_accounts:rotate_self"];
        let (id, token) = app.account("robot", "operator", &scopes).await;
        let client = Confidential::register(&app, &["client_credentials"], Some(&id)).await;
        let path = format!("/mcp/clients/{}", client.id);
        app.write("PATCH", &path, json!({ "scopes": scopes })).await.ok();
        let form = [
            ("grant_type", "client_credentials"),
            ("scope", "policies:read service_accounts:rotate_self"),
        ];
        let session = access(&client.ask(&app, &form).await);
        read(&app, &session).await.ok();
        let rotate = format!("/service-accounts/{id}/tokens");
        for body in [
            json!({}),
            json!({ "scopes": ["policies:read"] }),
            json!({ "allOfAccount": true }),
        ] {
            send(&app, &session, "POST", &rotate, body)
                .await
                .refused(403, "role_forbidden");
        }
        // The account's own token does, and none was taken from it.
        send(&app, &token, "POST", &rotate, json!({})).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves SA-12.
#[test]
fn a_token_in_grace_undoes_no_narrowing() {
    each("account_grace", |app: Arc<App>| async move {
        let scopes = ["policies:read", "fleet:read", "service_accounts:rotate_self"];
        let (id, first) = app.account("robot", "viewer", &scopes).await;
        let path = format!("/service-accounts/{id}/tokens");
        let narrow = json!({ "scopes": ["policies:read", "service_accounts:rotate_self"], "gracePeriodSeconds": 3600 });
        let second = text(&app.write("POST", &path, narrow).await.ok()["token"]["token"]);
        for body in [
            json!({ "allOfAccount": true }),
            json!({ "scopes": ["fleet:read"] }),
            json!({ "scopes": ["policies:read", "fleet:read"] }),
        ] {
            for token in [&first, &second] {
                let refused = send(&app, token, "POST", &path, body.clone()).await;
                refused.refused(403, "escalation_forbidden");
            }
        }
        // Without a word it gives what both have, and no more.
        let third = send(&app, &first, "POST", &path, json!({})).await;
        let third = third.ok()["serviceAccount"]["tokens"].as_array().unwrap().clone();
        assert_eq!(
            third[0]["scopes"],
            json!(["policies:read", "service_accounts:rotate_self"])
        );
    });
}

/// Proves SA-10.
#[test]
fn who_could_not_hand_out_an_account_does_not_become_it() {
    each("account_becomes", |app: Arc<App>| async move {
        let (owner, _) = app.account("owner", "admin", &[]).await;
        let scopes = ["service_accounts:rotate", "policies:write", "mcp:write"];
        let (_, other) = app.account("other", "admin", &scopes).await;
        let rotate = format!("/service-accounts/{owner}/tokens");
        for body in [
            json!({}),
            json!({ "scopes": ["policies:write"], "gracePeriodSeconds": 3600 }),
        ] {
            let refused = send(&app, &other, "POST", &rotate, body).await;
            refused.refused(403, "escalation_forbidden");
        }
        let client = json!({
            "name": "key", "grantTypes": ["client_credentials"], "tokenEndpointAuthMethod": "private_key_jwt",
            "jwksUri": "https://keys.example/jwks.json", "scopes": ["policies:write"], "serviceAccountId": owner,
        });
        let refused = send(&app, &other, "POST", "/mcp/clients", client).await;
        refused.refused(403, "escalation_forbidden");
        // An account that it could hand out it rotates.
        let (small, _) = app.account("small", "viewer", &["policies:read"]).await;
        let rotate = format!("/service-accounts/{small}/tokens");
        send(&app, &other, "POST", &rotate, json!({})).await.ok();
    });
}

/// Proves SA-10.
#[test]
fn what_was_taken_from_an_account_guards_it_until_it_is_given_back() {
    each("account_former", |app: Arc<App>| async move {
        let scopes = [
            "service_accounts:write",
            "service_accounts:rotate",
            "policies:read",
            "mcp:write",
        ];
        let (_, writer) = app.account("writer", "admin", &scopes).await;
        let (id, _) = app.account("chief", "admin", &[]).await;
        let account = format!("/service-accounts/{id}");
        let rotate = format!("{account}/tokens");
        let narrow = json!({ "permissionRole": "viewer", "scopes": ["policies:read"] });
        send(&app, &writer, "PATCH", &account, narrow).await.ok();
        // By a token, a name, an owner, a client, or after a second narrowing: what it could do counts.
        let client = json!({
            "name": "key", "grantTypes": ["client_credentials"], "tokenEndpointAuthMethod": "private_key_jwt",
            "jwksUri": "https://keys.example/jwks.json", "scopes": ["policies:read"], "serviceAccountId": id,
        });
        for _ in 0..2 {
            for (method, path, body) in [
                ("POST", &rotate, json!({})),
                ("POST", &rotate, json!({ "scopes": ["policies:read"] })),
                ("PATCH", &account, json!({ "name": "mine" })),
                ("POST", &"/mcp/clients".to_owned(), client.clone()),
            ] {
                send(&app, &writer, method, path, body)
                    .await
                    .refused(403, "escalation_forbidden");
            }
            let again = json!({ "permissionRole": "operator" });
            send(&app, &writer, "PATCH", &account, again).await.ok();
        }
        send(&app, &writer, "POST", &format!("{account}/disable"), json!({}))
            .await
            .ok();
        let refused = send(&app, &writer, "POST", &format!("{account}/enable"), json!({})).await;
        refused.refused(403, "escalation_forbidden");
        // Who holds it all decides anew, and then it is what it is.
        app.write("POST", &format!("{account}/enable"), json!({}))
            .await
            .ok();
        app.write("PATCH", &account, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        send(&app, &writer, "POST", &rotate, json!({})).await.ok();
    });
}

/// Proves OC-16.
#[test]
fn what_was_taken_from_a_client_guards_its_keys_until_it_is_given_back() {
    each("client_former", |app: Arc<App>| async move {
        let (_, writer) = app
            .account("writer", "admin", &["mcp:write", "policies:read"])
            .await;
        let client = json!({
            "name": "broker", "grantTypes": ["authorization_code"], "redirectUris": ["https://app.example/back"],
            "tokenEndpointAuthMethod": "none",
            "scopes": ["policies:read", "service_accounts:write"],
        });
        let made = app.write("POST", "/mcp/clients", client).await;
        let path = format!("/mcp/clients/{}", text(&made.ok()["id"]));
        let narrow = json!({ "scopes": ["policies:read"] });
        let narrowed = send(&app, &writer, "PATCH", &path, narrow.clone()).await;
        assert_eq!(narrowed.ok()["scopes"], json!(["policies:read"]));
        let target = json!({ "redirectUris": ["https://app.example/back", "https://evil.example/back"] });
        for body in [
            target.clone(),
            json!({ "scopes": ["mcp:read"] }),
            json!({ "scopes": ["policies:read", "mcp:read"] }),
        ] {
            let refused = send(&app, &writer, "PATCH", &path, body).await;
            refused.refused(403, "escalation_forbidden");
        }
        // Who holds it narrows it for good.
        app.write(
            "PATCH",
            &path,
            json!({ "scopes": ["policies:read", "service_accounts:write"] }),
        )
        .await
        .ok();
        app.write("PATCH", &path, narrow).await.ok();
        send(&app, &writer, "PATCH", &path, target).await.ok();
    });
}

/// Proves SA-10.
#[test]
fn the_token_of_an_account_that_can_do_more_now_is_shown_to_nobody_again() {
    each("account_replay", |app: Arc<App>| async move {
        let (_, writer) = app
            .account("writer", "admin", &["service_accounts:write", "policies:read"])
            .await;
        let body = json!({ "name": "robot", "permissionRole": "viewer", "scopes": ["policies:read"] });
        let body = with_trio(body, &fresh_key());
        let ask = async || {
            app.request("POST", "/service-accounts")
                .token(&writer)
                .json(body.clone())
                .send()
                .await
        };
        let made = ask().await;
        let id = text(&made.ok()["serviceAccount"]["id"]);
        assert_eq!(
            ask().await.ok()["token"],
            made.json["token"],
            "an answer that was lost"
        );
        let wider = json!({ "permissionRole": "admin", "allOfRole": true });
        app.write("PATCH", &format!("/service-accounts/{id}"), wider)
            .await
            .ok();
        let again = ask().await;
        again.refused(403, "escalation_forbidden");
        assert!(!again.text().contains("prov_sat_"));
    });
}

/// Proves SA-12.
#[test]
fn a_token_that_was_cut_off_gives_itself_no_successor() {
    each("account_cut", |app: Arc<App>| async move {
        let scopes = ["policies:read", "service_accounts:rotate_self"];
        let (id, token) = app.account("robot", "viewer", &scopes).await;
        let rotate = format!("/service-accounts/{id}/tokens");
        let hello = async |token: &str| {
            let call = json!({
                "jsonrpc": "2.0", "id": 1, "method": "initialize",
                "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } },
            });
            let request = http::Request::post("/mcp")
                .header("host", "127.0.0.1")
                .header("authorization", format!("Bearer {token}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            let request = request.body(call.to_string().into()).unwrap();
            crate::access::oauth::answer(&app, request).await.status.as_u16()
        };
        assert_eq!(hello(&token).await, 200);
        let sessions = app.get("/mcp/sessions").await;
        let session = text(&sessions.ok()["sessions"][0]["id"]);
        let revoke = format!("/mcp/sessions/{session}/revoke");
        app.write("POST", &revoke, json!({})).await.ok();
        assert_eq!(hello(&token).await, 401);
        send(&app, &token, "POST", &rotate, json!({}))
            .await
            .refused(403, "escalation_forbidden");
        // The rest of the API it may use, and an admin lets it in again.
        app.request("GET", "/policies").token(&token).send().await.ok();
        let next = text(&app.write("POST", &rotate, json!({})).await.ok()["token"]["token"]);
        assert_eq!(hello(&next).await, 200);
    });
}
