//! Well-formed requests that accounts refuse: rights, state, names.

use super::{ACCOUNTS, effects};
use crate::samples::{self, Target};
use crate::support::{App, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn nobody_reaches_beyond_their_own_rights() {
    each("rights", |app: Arc<App>| async move {
        let scopes = [
            "service_accounts:write",
            "service_accounts:rotate",
            "service_accounts:rotate_self",
        ];
        let (narrow_id, narrow) = app.account("narrow", "admin", &scopes).await;
        let (strong_id, _) = app.account("strong", "admin", &[]).await;
        let (asleep_id, _) = app.account("asleep", "auditor", &["audit:read"]).await;
        app.write("POST", &format!("{ACCOUNTS}/{asleep_id}/disable"), json!({}))
            .await
            .ok();
        let own = format!("{ACCOUNTS}/{narrow_id}");
        let before = effects(&app).await;
        let acts: Vec<(&str, String, Value, u16, &str)> = vec![
            (
                "PATCH",
                own.clone(),
                json!({ "allOfRole": true }),
                403,
                "escalation_forbidden",
            ),
            (
                "PATCH",
                own.clone(),
                json!({ "scopes": ["service_accounts:rotate_any"] }),
                403,
                "escalation_forbidden",
            ),
            (
                "PATCH",
                own.clone(),
                json!({ "scopes": ["service_accounts:write", "audit:read"] }),
                403,
                "escalation_forbidden",
            ),
            (
                "PATCH",
                own.clone(),
                json!({ "scopes": ["service_accounts:read"] }),
                409,
                "conflict",
            ),
            (
                "PATCH",
                own.clone(),
                json!({ "permissionRole": "viewer" }),
                409,
                "conflict",
            ),
            ("POST", format!("{own}/disable"), json!({}), 409, "conflict"),
            (
                "PATCH",
                format!("{ACCOUNTS}/{strong_id}"),
                json!({ "permissionRole": "auditor" }),
                403,
                "escalation_forbidden",
            ),
            (
                "PATCH",
                format!("{ACCOUNTS}/{strong_id}"),
                json!({ "scopes": ["audit:read"] }),
                403,
                "escalation_forbidden",
            ),
            (
                "POST",
                format!("{ACCOUNTS}/{strong_id}/tokens"),
                json!({}),
                403,
                "escalation_forbidden",
            ),
            (
                "POST",
                format!("{ACCOUNTS}/{asleep_id}/enable"),
                json!({}),
                403,
                "escalation_forbidden",
            ),
            (
                "POST",
                ACCOUNTS.into(),
                json!({ "name": "x", "permissionRole": "admin", "allOfRole": true }),
                403,
                "escalation_forbidden",
            ),
            (
                "POST",
                ACCOUNTS.into(),
                json!({ "name": "x", "permissionRole": "viewer", "allOfRole": true }),
                403,
                "escalation_forbidden",
            ),
            (
                "POST",
                ACCOUNTS.into(),
                json!({ "name": "x", "permissionRole": "auditor", "scopes": ["audit:read"] }),
                403,
                "escalation_forbidden",
            ),
        ];
        for (method, path, body, status, code) in acts {
            let call = app
                .request(method, &path)
                .token(&narrow)
                .json(with_trio(body.clone(), &fresh_key()));
            let reply = call.send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (status, code),
                "{method} {path} {body}: {}",
                reply.text()
            );
        }
        assert_eq!(effects(&app).await, before);
        // What it holds it may hand out.
        let body = json!({ "name": "heir", "permissionRole": "admin", "scopes": ["service_accounts:read"] });
        app.request("POST", ACCOUNTS)
            .token(&narrow)
            .json(with_trio(body, &fresh_key()))
            .send()
            .await
            .ok();
        let (_, robot) = app
            .account(
                "robot",
                "admin",
                &["service_accounts:rotate", "service_accounts:rotate_any"],
            )
            .await;
        let path = format!("{ACCOUNTS}/{strong_id}/tokens");
        app.request("POST", &path)
            .token(&robot)
            .json(with_trio(json!({}), &fresh_key()))
            .send()
            .await
            .ok();
    });
}

#[test]
fn a_rotation_needs_a_living_account() {
    each("rotations", |app: Arc<App>| async move {
        let target = samples::fresh_target(&app).await;
        let path = format!("{ACCOUNTS}/{}", target.account);
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        let before = effects(&app).await;
        app.write("POST", &format!("{path}/tokens"), json!({}))
            .await
            .refused(409, "disabled");
        for nobody in [Target::absent(), Target::malformed()] {
            let path = format!("{ACCOUNTS}/{}/tokens", nobody.account);
            app.write("POST", &path, json!({}))
                .await
                .refused(404, "not_found");
        }
        for bad in [
            json!({ "gracePeriodSeconds": -1 }),
            json!({ "gracePeriodSeconds": 604_801 }),
            json!({ "gracePeriodSeconds": "1" }),
            json!({ "expiresInSeconds": 1 }),
            json!({ "token": "x" }),
            json!({ "scopes": ["audit:everything"] }),
            json!({ "scopes": ["audit:read"], "allOfAccount": true }),
        ] {
            app.write("POST", &format!("{path}/tokens"), bad)
                .await
                .refused(400, "invalid_request");
        }
        let wider = json!({ "scopes": ["audit:read"] });
        app.write("POST", &format!("{path}/tokens"), wider)
            .await
            .refused(422, "invalid_definition");
        assert_eq!(effects(&app).await, before);
    });
}

#[test]
fn the_last_usable_admin_stays() {
    each("last_admin", |app: Arc<App>| async move {
        let own = format!("{ACCOUNTS}/{}", app.admin_id);
        let shown = app.get(&own).await;
        let token = shown.ok()["serviceAccount"]["tokens"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let revoke = format!("{own}/tokens/{token}/revoke");
        // None of these can repair the organization: too few scopes, disabled, expired.
        app.account("narrow", "admin", &["service_accounts:read"]).await;
        let (asleep, _) = app.account("asleep", "admin", &[]).await;
        app.write("POST", &format!("{ACCOUNTS}/{asleep}/disable"), json!({}))
            .await
            .ok();
        let body = json!({ "name": "short", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 3600 });
        app.write("POST", ACCOUNTS, body).await.ok();
        app.advance(3600);
        let before = effects(&app).await;
        for (method, path, body) in [
            ("PATCH", own.as_str(), json!({ "permissionRole": "viewer" })),
            ("PATCH", &own, json!({ "scopes": ["service_accounts:read"] })),
            ("POST", &format!("{own}/disable"), json!({})),
            ("POST", &revoke, json!({ "confirm": true })),
        ] {
            app.write(method, path, body).await.refused(409, "conflict");
        }
        let delete = app
            .request("DELETE", &own)
            .header("x-reason", "x")
            .header("x-confirm", "true");
        delete
            .header("idempotency-key", &fresh_key())
            .send()
            .await
            .refused(409, "conflict");
        assert_eq!(effects(&app).await, before);
        // With somebody who can, the credential can go.
        let (_, other) = app.account("other", "admin", &[]).await;
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        app.get(ACCOUNTS).await.refused(401, "token_revoked");
        app.request("GET", ACCOUNTS).token(&other).send().await.ok();
    });
}

/// Proves SA-6.
#[test]
fn names_collide_by_what_people_read() {
    each("names", |app: Arc<App>| async move {
        for (name, alike) in [
            ("Deploy", vec!["deploy", "DEPLOY", "dEPLOY"]),
            ("Straße", vec!["STRASSE", "strasse"]),
            ("Ångström", vec!["A\u{30a}ngstro\u{308}m", "\u{212b}NGSTRÖM"]),
            ("\u{fb01}n", vec!["FIN", "fin"]),
            ("ΣΊΣΥΦΟΣ", vec!["σίσυφος", "Σίσυφοσ"]),
        ] {
            let (id, _) = app.account(name, "viewer", &[]).await;
            let other = samples::fresh_target(&app).await.account;
            let before = effects(&app).await;
            for alike in &alike {
                let body = json!({ "name": alike, "permissionRole": "viewer", "allOfRole": true });
                app.write("POST", ACCOUNTS, body)
                    .await
                    .refused(409, "already_exists");
                let path = format!("{ACCOUNTS}/{other}");
                app.write("PATCH", &path, json!({ "name": alike }))
                    .await
                    .refused(409, "already_exists");
            }
            assert_eq!(effects(&app).await, before);
            let path = format!("{ACCOUNTS}/{id}");
            app.write("PATCH", &path, json!({ "name": alike[0] })).await.ok();
            let delete = app
                .request("DELETE", &path)
                .header("x-reason", "x")
                .header("x-confirm", "true");
            delete.header("idempotency-key", &fresh_key()).send().await.ok();
            app.account(name, "viewer", &[]).await;
        }
    });
}
