//! Who may write a trust, and what is no trust at all.

use super::*;
use crate::support::each;

/// Proves WO-2.
#[test]
fn nobody_trusts_a_workload_with_an_account_that_they_could_not_mint_a_token_of() {
    each("workload_writers", |app| async move {
        let (boss, _) = app.account(&fresh_key(), "admin", &[]).await;
        let (reader, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
        let view = async |scopes: &[&str], role: &str| {
            let (id, token) = app.account(&fresh_key(), role, scopes).await;
            (id, app.view_of(app.organization.clone(), token))
        };
        let both = ["workload_trusts:write", "service_accounts:rotate"];
        let body = |account: &str| Platform::Github.trust(account);
        // One of the two scopes is not enough.
        for scopes in [&both[..1], &both[1..]] {
            let (_, caller) = view(&[scopes, &["policies:read"]].concat(), "admin").await;
            let reply = caller.write("POST", TRUSTS, body(&reader)).await;
            reply.refused(403, "insufficient_scope");
        }
        for role in ["operator", "auditor", "viewer"] {
            let (_, caller) = view(&[&both[..], &["policies:read"]].concat(), role).await;
            let reply = caller.write("POST", TRUSTS, body(&reader)).await;
            reply.refused(403, "role_forbidden");
        }
        let (me, caller) = view(&[&both[..], &["policies:read"]].concat(), "admin").await;
        caller.write("POST", TRUSTS, body(&reader)).await.ok();
        // Neither what could do more, however narrow the trust is, nor whoever could before.
        let mut narrow = body(&boss);
        narrow["scopes"] = json!(["policies:read"]);
        for body in [body(&boss), narrow] {
            let reply = caller.write("POST", TRUSTS, body).await;
            reply.refused(403, "escalation_forbidden");
        }
        let (former, _) = app
            .account(&fresh_key(), "operator", &["policies:read", "audit:read"])
            .await;
        let (_, taker) = view(&["service_accounts:write", "policies:read"], "admin").await;
        let path = format!("/service-accounts/{former}");
        let less = json!({ "scopes": ["policies:read"] });
        taker.write("PATCH", &path, less).await.ok();
        let reply = caller.write("POST", TRUSTS, body(&former)).await;
        reply.refused(403, "escalation_forbidden");
        // A trust of another is not re-pointed, re-keyed or let in again.
        let trust = trusted(&app, body(&boss)).await;
        let path = format!("{TRUSTS}/{trust}");
        for change in [
            json!({ "claims": [{ "claim": "repository", "value": "mallory/own" }] }),
            json!({ "audience": "https://mallory.example" }),
            json!({ "jwks": workshop(&app).key_set() }),
            json!({ "lifetimeSeconds": 900, "maxTokenAgeSeconds": 86_400 }),
        ] {
            let reply = caller.write("PATCH", &path, change).await;
            reply.refused(403, "escalation_forbidden");
        }
        // Whoever takes away need not hold it.
        caller
            .write("PATCH", &path, json!({ "suspended": true }))
            .await
            .ok();
        let reply = caller.write("PATCH", &path, json!({ "suspended": false })).await;
        reply.refused(403, "escalation_forbidden");
        // Of oneself it is what one's own token can.
        let own = caller.write("POST", TRUSTS, body(&me)).await;
        assert_eq!(
            own.ok()["workloadTrust"]["scopes"],
            json!(["policies:read", "workload_trusts:read"])
        );
    });
}

#[test]
fn what_names_no_workload_is_no_trust() {
    each("workload_rules", |app| async move {
        let (account, _) = app.account(&fresh_key(), "operator", &["policies:read"]).await;
        let with = |change: Value| {
            let mut body = Platform::Github.trust(&account);
            for (name, value) in change.as_object().unwrap() {
                body[name] = value.clone();
            }
            body
        };
        let rule = |claim: &str, value: &str| json!([{ "claim": claim, "value": value }]);
        for (change, part) in [
            (json!({ "claims": [] }), "name one repository"),
            (
                json!({ "claims": rule("ref", "refs/heads/main") }),
                "name one repository",
            ),
            (
                json!({ "claims": rule("repository_owner", "octo-org") }),
                "every repository of the owner",
            ),
            (json!({ "claims": rule("repository", "octo-org/*") }), "star"),
            (json!({ "claims": rule("aud", "x") }), "judged"),
            (json!({ "wholeOwner": true }), "for rules that name no repository"),
            (json!({ "kind": "kubernetes" }), "account of the cluster"),
            (json!({ "issuer": "http://issuer.example" }), "https"),
            (json!({ "issuer": "https://issuer.example?a=b" }), "query"),
            (json!({ "issuer": "https://user@issuer.example" }), "issuer"),
            (json!({ "issuer": URL }), "own tokens"),
            (json!({ "issuer": format!("{URL}/") }), "own tokens"),
            (json!({ "audience": "*" }), "star"),
            (json!({ "jwks": { "keys": [] } }), "JWK Set"),
            (
                json!({ "scopes": ["policies:read", "service_accounts:rotate"] }),
                "outlive",
            ),
            (json!({ "scopes": ["audit:read"] }), "cannot do"),
        ] {
            let reply = app.write("POST", TRUSTS, with(change.clone())).await;
            assert_eq!(reply.status.as_u16(), 422, "{change}: {}", reply.text());
            assert!(reply.text().contains(part), "{change}: {}", reply.text());
        }
        for change in [
            json!({ "lifetimeSeconds": 901 }),
            json!({ "lifetimeSeconds": 59 }),
            json!({ "maxTokenAgeSeconds": 86_401 }),
            json!({ "claims": [{ "claim": "sub", "value": "x", "matches": "regex" }] }),
        ] {
            let reply = app.write("POST", TRUSTS, with(change)).await;
            reply.refused(400, "invalid_request");
        }
        let nobody = with(json!({ "serviceAccountId": "sa_01kadh5j9v0000000000000000" }));
        app.write("POST", TRUSTS, nobody).await.refused(404, "not_found");
        // Said in so many words, all of an owner is meant.
        let whole = json!({ "claims": rule("repository_owner_id", "65"), "wholeOwner": true });
        let made = app.write("POST", TRUSTS, with(whole)).await;
        assert_eq!(made.ok()["workloadTrust"]["wholeOwner"], true);
        let codes: Vec<&str> = made.json["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, ["any_ref", "whole_owner"]);
        let id = made.json["workloadTrust"]["id"].as_str().unwrap();
        // Rules that come later say it again.
        let other = json!({ "claims": rule("repository_owner_id", "66") });
        let path = format!("{TRUSTS}/{id}");
        let reply = app.write("PATCH", &path, other.clone()).await;
        assert_eq!(reply.status.as_u16(), 422, "{}", reply.text());
        let mut said = other;
        said["wholeOwner"] = true.into();
        app.write("PATCH", &path, said).await.ok();
        app.write("PATCH", &path, json!({ "wholeOwner": false }))
            .await
            .refused(422, "invalid_definition");
    });
}
