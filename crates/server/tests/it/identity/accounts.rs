//! Scenarios across the operations of service accounts.

use crate::support::{App, each, fresh_key, with_trio};
use serde_json::json;
use std::sync::Arc;

/// Proves SA-5.
#[test]
fn an_account_lives_its_whole_life() {
    each("life", |app: Arc<App>| async move {
        let (id, token) = app.account("deploy", "auditor", &["service_accounts:read"]).await;
        let path = format!("/service-accounts/{id}");
        let seen = app.request("GET", "/service-accounts").token(&token).send().await;
        assert_eq!(seen.ok()["total"], 2);
        assert_eq!(seen.json["serviceAccounts"][0]["name"], "deploy");

        let patched = app
            .write(
                "PATCH",
                &path,
                json!({ "description": "ships", "name": "Deploy" }),
            )
            .await;
        assert_eq!(patched.ok()["serviceAccount"]["description"], "ships");

        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        app.request("GET", "/service-accounts")
            .token(&token)
            .send()
            .await
            .refused(401, "unauthenticated");
        app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
        app.request("GET", "/service-accounts")
            .token(&token)
            .send()
            .await
            .ok();

        let rotated = app.write("POST", &format!("{path}/tokens"), json!({})).await;
        let next = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        let refused = app.request("GET", "/service-accounts").token(&token).send().await;
        refused.refused(401, "token_revoked");
        // Its holder learns when, and nobody's name.
        assert!(refused.json["revokedAt"].is_string(), "{}", refused.json);
        for member in ["revokedBy", "actor", "reason", "revokeReason"] {
            assert!(refused.json.get(member).is_none(), "{}", refused.json);
        }
        app.request("GET", "/service-accounts")
            .token(&next)
            .send()
            .await
            .ok();

        let deleted = app
            .request("DELETE", &path)
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "gone")
            .header("x-confirm", "true")
            .send()
            .await;
        assert_eq!(deleted.status.as_u16(), 204);
        app.get(&path).await.refused(404, "not_found");
        app.request("GET", "/service-accounts")
            .token(&next)
            .send()
            .await
            .refused(401, "unauthenticated");
    });
}

/// Proves ID-1, ID-2.
#[test]
fn a_replay_is_byte_identical_until_the_token_is_used() {
    each("replay", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["service_accounts:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let body = with_trio(json!({}), "one-key-for-one-rotation");
        let first = app.request("POST", &path).json(body.clone()).send().await;
        let again = app.request("POST", &path).json(body.clone()).send().await;
        assert_eq!(first.bytes, again.bytes);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(first.header("idempotent-replayed"), "");
        let token = first.ok()["token"]["token"].as_str().unwrap().to_owned();
        app.request("GET", "/service-accounts")
            .token(&token)
            .send()
            .await
            .ok();
        let late = app.request("POST", &path).json(body).send().await;
        late.refused(409, "secret_no_longer_retrievable");
        assert_eq!(late.json["tokenId"], first.json["token"]["id"]);
    });
}
