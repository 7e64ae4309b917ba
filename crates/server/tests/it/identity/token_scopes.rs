//! What a token can do follows its account, except where somebody asked for less; what gives rights needs them (ADR 0043).

use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::db::testing::locations;
use provost_kernel::db::{Call, Conn, Param, Statement, migrate};
use provost_kernel::{Timestamp, params};
use provost_server::areas::ALL;
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: i64 = 86_400;

async fn rotate(app: &App, token: &str, id: &str, body: Value) -> Reply {
    let path = format!("/service-accounts/{id}/tokens");
    let call = app.request("POST", &path).token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

async fn change(app: &App, id: &str, body: Value) -> Reply {
    app.write("PATCH", &format!("/service-accounts/{id}"), body).await
}

fn secret(answer: &Value) -> String {
    answer["token"]["token"].as_str().unwrap().to_owned()
}

async fn reads_policies(app: &App, token: &str) -> u16 {
    app.request("GET", "/policies")
        .token(token)
        .send()
        .await
        .status
        .as_u16()
}

/// The life that an answer's token was given. Units: seconds.
fn life(app: &App, answer: &Value) -> i64 {
    let expires = answer["token"]["expiresAt"].as_str().unwrap();
    (Timestamp::parse(expires).unwrap().as_ms() - app.now().as_ms()) / 1000
}

/// Proves SA-7.
#[test]
fn a_scope_that_an_account_gains_reaches_its_tokens() {
    each("scopes_reach", |app: Arc<App>| async move {
        let (id, token) = app.account("deploy", "viewer", &["fleet:read"]).await;
        assert_eq!(reads_policies(&app, &token).await, 403);
        let changed = change(&app, &id, json!({ "scopes": ["fleet:read", "policies:read"] })).await;
        let tokens = &changed.ok()["serviceAccount"]["tokens"];
        assert_eq!(tokens[0]["scopes"], json!(["fleet:read", "policies:read"]));
        assert_eq!(reads_policies(&app, &token).await, 200, "the token that is there");
        let rotated = rotate(&app, &app.admin, &id, json!({})).await.ok().clone();
        assert_eq!(
            reads_policies(&app, &secret(&rotated)).await,
            200,
            "and its successor"
        );
        change(&app, &id, json!({ "allOfRole": true })).await.ok();
        let all = &app.seen(&id).await["tokens"][0]["scopes"];
        assert!(
            all.as_array()
                .unwrap()
                .contains(&json!("service_accounts:rotate_self")),
            "{all}"
        );
        // What the account loses is lost to its tokens as well.
        change(&app, &id, json!({ "scopes": ["fleet:read"] })).await.ok();
        assert_eq!(reads_policies(&app, &secret(&rotated)).await, 403);
    });
}

/// Proves SA-7.
#[test]
fn a_token_shows_the_scopes_that_it_can_use() {
    each("scopes_shown", |app: Arc<App>| async move {
        let (id, _) = app
            .account("deploy", "viewer", &["policies:write", "fleet:read"])
            .await;
        let account = app.seen(&id).await;
        assert_eq!(
            account["scopes"],
            json!(["fleet:read", "policies:write"]),
            "as it was written"
        );
        // A viewer writes no policy; the writing implies the reading, which a viewer may.
        assert_eq!(
            account["tokens"][0]["scopes"],
            json!(["fleet:read", "policies:read"])
        );
    });
}

/// Proves SA-7.
#[test]
fn a_token_that_was_narrowed_stays_narrower() {
    each("scopes_narrowed", |app: Arc<App>| async move {
        let scopes = ["fleet:read", "service_accounts:rotate_self"];
        let body = json!({
            "name": "deploy", "permissionRole": "viewer", "tokenScopes": scopes,
            "scopes": ["fleet:read", "inventory:read", "service_accounts:rotate_self"],
        });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let id = made["serviceAccount"]["id"].as_str().unwrap();
        assert_eq!(made["serviceAccount"]["tokens"][0]["scopes"], json!(scopes));
        change(&app, id, json!({ "allOfRole": true })).await.ok();
        assert_eq!(reads_policies(&app, &secret(&made)).await, 403);
        // Through a rotation by itself and by an admin.
        let by_itself = rotate(&app, &secret(&made), id, json!({})).await.ok().clone();
        assert_eq!(reads_policies(&app, &secret(&by_itself)).await, 403);
        let by_admin = rotate(&app, &app.admin, id, json!({})).await.ok().clone();
        assert_eq!(reads_policies(&app, &secret(&by_admin)).await, 403);
        // It does not widen itself, neither by all nor by a list.
        for wider in [
            json!({ "allOfAccount": true }),
            json!({ "scopes": ["policies:read"] }),
        ] {
            rotate(&app, &secret(&by_admin), id, wider)
                .await
                .refused(403, "escalation_forbidden");
        }
        let body = json!({ "scopes": ["service_accounts:rotate_self"] });
        let narrower = rotate(&app, &secret(&by_admin), id, body).await.ok().clone();
        assert_eq!(
            narrower["serviceAccount"]["tokens"][0]["scopes"],
            json!(["service_accounts:rotate_self"])
        );
        // Somebody who holds it all widens it again.
        let wide = rotate(&app, &app.admin, id, json!({ "allOfAccount": true })).await;
        assert_eq!(reads_policies(&app, &secret(wide.ok())).await, 200);
        // A list beyond the account promises nothing that would be refused later.
        rotate(&app, &app.admin, id, json!({ "scopes": ["audit:read"] }))
            .await
            .refused(422, "invalid_definition");
        rotate(
            &app,
            &app.admin,
            id,
            json!({ "scopes": ["fleet:read"], "allOfAccount": true }),
        )
        .await
        .refused(400, "invalid_request");
        let body = json!({
            "name": "other", "permissionRole": "viewer", "scopes": ["fleet:read"], "tokenScopes": ["policies:read"],
        });
        let reply = app.write("POST", "/service-accounts", body).await;
        reply.refused(422, "invalid_definition");
        assert_eq!(reply.json["errors"][0]["path"], "/tokenScopes");
    });
}

/// Proves SA-4.
#[test]
fn the_last_governor_is_not_narrowed_away() {
    each("scopes_governor", |app: Arc<App>| async move {
        let narrow = json!({ "scopes": ["audit:read"] });
        let id = app.admin_id.clone();
        rotate(&app, &app.admin, &id, narrow.clone())
            .await
            .refused(409, "conflict");
        // With a narrower token beside it in grace, the one that governs is still the last.
        let kept = rotate(&app, &app.admin, &id, json!({ "gracePeriodSeconds": 600 }))
            .await
            .ok()
            .clone();
        let token = kept["token"]["id"].as_str().unwrap().to_owned();
        let (other, _) = app.account("second", "admin", &[]).await;
        let body = json!({ "scopes": ["audit:read"], "gracePeriodSeconds": 600 });
        let admin = secret(&kept);
        rotate(&app, &admin, &id, body).await.ok();
        let second = rotate(&app, &admin, &other, json!({})).await.ok().clone();
        let path = format!("/service-accounts/{id}/tokens/{token}/revoke");
        let revoke = |by: String, path: String| {
            let call = app.request("POST", &path).token(&by);
            call.json(with_trio(json!({ "confirm": true }), &fresh_key()))
                .send()
        };
        let disable = format!("/service-accounts/{other}/disable");
        let call = app.request("POST", &disable).token(&admin);
        call.json(with_trio(json!({}), &fresh_key())).send().await.ok();
        revoke(admin.clone(), path.clone()).await.refused(409, "conflict");
        let enable = format!("/service-accounts/{other}/enable");
        let call = app.request("POST", &enable).token(&admin);
        call.json(with_trio(json!({}), &fresh_key())).send().await.ok();
        revoke(secret(&second), path).await.ok();
    });
}

#[test]
fn scopes_beyond_the_role_answer_a_warning() {
    each("scopes_warned", |app: Arc<App>| async move {
        let body = json!({ "name": "a", "permissionRole": "viewer", "scopes": ["fleet:read", "audit:read"] });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        assert_eq!(made["warnings"][0]["code"], "scopes_beyond_role");
        let message = made["warnings"][0]["message"].as_str().unwrap();
        assert!(
            message.contains("audit:read") && !message.contains("fleet:read"),
            "{message}"
        );
        let id = made["serviceAccount"]["id"].as_str().unwrap();
        let auditor = change(&app, id, json!({ "permissionRole": "auditor" }))
            .await
            .ok()
            .clone();
        // What waits for a role is said when it comes.
        assert_eq!(auditor["warnings"][0]["code"], "scopes_begin_to_act");
        assert_eq!(auditor["warnings"].as_array().unwrap().len(), 1);
        let back = change(&app, id, json!({ "permissionRole": "viewer" }))
            .await
            .ok()
            .clone();
        assert_eq!(back["warnings"].as_array().unwrap().len(), 1);
        let named = change(&app, id, json!({ "description": "x" })).await.ok().clone();
        assert_eq!(named.get("warnings"), None, "nothing of its rights changed");
    });
}

/// Proves SA-8.
#[test]
fn a_self_rotation_does_not_lengthen_a_life() {
    each("self_lifetime", |app: Arc<App>| async move {
        let body = json!({
            "name": "short", "permissionRole": "viewer", "scopes": ["service_accounts:rotate_self"],
            "expiresInSeconds": DAY,
        });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let id = made["serviceAccount"]["id"].as_str().unwrap();
        let asking = |secs: i64| json!({ "expiresInSeconds": secs });
        let refused = rotate(&app, &secret(&made), id, asking(365 * DAY)).await;
        refused.refused(403, "escalation_forbidden");
        assert!(refused.text().contains("86400 seconds"), "{}", refused.text());
        rotate(&app, &secret(&made), id, asking(DAY + 1))
            .await
            .refused(403, "escalation_forbidden");
        // As it is, and shorter; what it gave itself for less does not bind it.
        let kept = rotate(&app, &secret(&made), id, json!({})).await.ok().clone();
        assert_eq!(life(&app, &kept), DAY);
        let hour = rotate(&app, &secret(&kept), id, asking(3_600)).await.ok().clone();
        assert_eq!(life(&app, &hour), 3_600);
        rotate(&app, &secret(&hour), id, asking(DAY + 1))
            .await
            .refused(403, "escalation_forbidden");
        let day = rotate(&app, &secret(&hour), id, asking(DAY)).await.ok().clone();
        assert_eq!(life(&app, &day), DAY);
        // An admin gives more, and that is the most from then on.
        let week = rotate(&app, &app.admin, id, asking(7 * DAY)).await.ok().clone();
        rotate(&app, &secret(&week), id, asking(7 * DAY + 1))
            .await
            .refused(403, "escalation_forbidden");
        let week = rotate(&app, &secret(&week), id, asking(7 * DAY))
            .await
            .ok()
            .clone();
        // And less: the old token in grace does not undo it.
        let body = json!({ "expiresInSeconds": 3_600, "gracePeriodSeconds": 600 });
        rotate(&app, &app.admin, id, body).await.ok();
        rotate(&app, &secret(&week), id, asking(7 * DAY))
            .await
            .refused(403, "escalation_forbidden");
        // Who may rotate anybody may also lengthen its own.
        let (other, robot) = app.account("robot", "admin", &["service_accounts:rotate"]).await;
        let long = rotate(&app, &robot, &other, asking(365 * DAY)).await;
        assert_eq!(life(&app, long.ok()), 365 * DAY);
    });
}

/// Proves SA-8.
#[test]
fn a_grace_of_a_self_rotation_ends_with_the_old_tokens_own_life() {
    each("self_grace", |app: Arc<App>| async move {
        let body = json!({
            "name": "short", "permissionRole": "viewer", "scopes": ["service_accounts:rotate_self"],
            "expiresInSeconds": 3_600,
        });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let id = made["serviceAccount"]["id"].as_str().unwrap();
        let old = secret(&made);
        rotate(&app, &old, id, json!({ "gracePeriodSeconds": 7 * DAY }))
            .await
            .ok();
        app.advance(3_599);
        assert_eq!(app.used(&old).await.0, 200);
        app.advance(1);
        assert_eq!(app.used(&old).await, (401, "token_expired".into()));
    });
}

/// Proves SA-3.
#[test]
fn what_gives_or_points_elsewhere_needs_the_rights_and_what_takes_away_does_not() {
    each("account_gives", |app: Arc<App>| async move {
        let (_, narrow) = app.account("narrow", "admin", &["service_accounts:write"]).await;
        let ada = crate::areas::directory::user(&app, "ada").await;
        let (id, _) = app.account("strong", "admin", &[]).await;
        let path = format!("/service-accounts/{id}");
        let by = |method: &'static str, rest: String, mut body: Value| {
            body["confirm"] = true.into();
            let call = app.request(method, &rest).token(&narrow);
            call.json(with_trio(body, &fresh_key())).send()
        };
        for gives in [
            json!({ "allOfRole": true, "permissionRole": "auditor" }),
            json!({ "scopes": ["audit:read"] }),
            json!({ "ownerConsoleUserId": ada }),
            json!({ "name": "somebody-else" }),
        ] {
            by("PATCH", path.clone(), gives.clone())
                .await
                .refused(403, "escalation_forbidden");
        }
        by("PATCH", path.clone(), json!({ "description": "names no right" }))
            .await
            .ok();
        by(
            "PATCH",
            path.clone(),
            json!({ "scopes": ["service_accounts:read"] }),
        )
        .await
        .ok();
        change(&app, &id, json!({ "allOfRole": true })).await.ok();
        by("POST", format!("{path}/disable"), json!({})).await.ok();
        by("POST", format!("{path}/enable"), json!({}))
            .await
            .refused(403, "escalation_forbidden");
        let token = app.seen(&id).await["tokens"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        by("POST", format!("{path}/tokens/{token}/revoke"), json!({}))
            .await
            .ok();
        let call = app.request("DELETE", &path).token(&narrow);
        let call = call.header("x-reason", "a test").header("x-confirm", "true");
        call.header("idempotency-key", &fresh_key()).send().await.ok();
    });
}

/// Proves SA-9.
#[test]
fn an_owner_is_a_user_of_the_organization_and_shown_as_orphaned_without() {
    each("account_owner", |app: Arc<App>| async move {
        let ada = crate::areas::directory::user(&app, "ada").await;
        let of = |owner: &str| json!({ "name": format!("of {owner}"), "permissionRole": "viewer", "allOfRole": true, "ownerConsoleUserId": owner });
        let (globex, admin) = app.other_organization("Globex").await;
        let bob = crate::areas::directory::user(&app.view_of(globex, admin), "bob").await;
        for stranger in [
            "nobody",
            "usr_01kadh5j9v0000000000000000",
            "ada",
            &bob,
            &app.admin_id,
        ] {
            let reply = app.write("POST", "/service-accounts", of(stranger)).await;
            reply.refused(422, "invalid_definition");
            assert_eq!(reply.json["errors"][0]["path"], "/ownerConsoleUserId");
        }
        let made = app
            .write("POST", "/service-accounts", of(&ada))
            .await
            .ok()
            .clone();
        let id = made["serviceAccount"]["id"].as_str().unwrap();
        let reply = change(&app, id, json!({ "ownerConsoleUserId": "nobody" })).await;
        reply.refused(422, "invalid_definition");
        assert_eq!(app.seen(id).await.get("orphaned"), None);
        let user = format!("/directory/users/{ada}");
        app.write("POST", &format!("{user}/suspend"), json!({}))
            .await
            .ok();
        assert_eq!(app.seen(id).await["orphaned"], true);
        app.write("POST", &format!("{user}/reactivate"), json!({}))
            .await
            .ok();
        assert_eq!(app.seen(id).await.get("orphaned"), None);
        app.delete(&user).await.ok();
        let seen = app.seen(id).await;
        assert_eq!(
            (&seen["orphaned"], &seen["ownerConsoleUserId"]),
            (&json!(true), &json!(ada))
        );
        let listed = app.get("/service-accounts").await.ok().clone();
        assert_eq!(listed["serviceAccounts"][0]["orphaned"], true);
        // What was written before stays, also when something else changes; clearing ends it.
        change(&app, id, json!({ "description": "x" })).await.ok();
        let cleared = change(&app, id, json!({ "ownerConsoleUserId": null }))
            .await
            .ok()
            .clone();
        assert_eq!(cleared["serviceAccount"].get("orphaned"), None);
    });
}

mod rows {
    provost_kernel::statements! {
        ORGANIZATION = unscoped("a test") "INSERT INTO organizations (organization_id, name, created_at) VALUES ('acme', 'Acme', 1)";
        ACCOUNT = unscoped("a test") "INSERT INTO service_accounts (organization_id, id, name, name_key, permission_role, scopes, status, created_at, updated_at) VALUES ('acme', ?1, ?1, ?1, 'viewer', ?2, 'active', 1, 1)";
        TOKEN = unscoped("a test") "INSERT INTO service_account_tokens (organization_id, id, service_account_id, lookup_id, name, token_prefix, mac, pepper_id, scopes, created_at, updated_at, expires_at, self_rotated, replay_pending) VALUES ('acme', ?1, ?1, ?1, 'default', 'p', ?3, 'k', ?2, 1, 1, 2, ?4, ?4)";
        SCOPES = unscoped("a test") "SELECT id, scopes FROM service_account_tokens ORDER BY id";
    }
}

fn write(conn: &mut Conn, statement: &'static Statement, params: Vec<Param<'_>>) {
    conn.begin(&[]).unwrap();
    conn.commit(&[Call { statement, params }]).unwrap();
}

/// Proves SA-7.
#[test]
fn an_upgrade_frees_the_tokens_whose_list_is_their_accounts_and_no_other() {
    for store in locations("scopes_migration") {
        let mut conn = store.open();
        let before = ALL
            .migrations()
            .iter()
            .position(|m| m.name == "0018_token_scopes")
            .unwrap();
        migrate(&mut conn, &ALL.migrations()[..before], crate::support::START).unwrap();
        write(&mut conn, &rows::ORGANIZATION, params![].to_vec());
        for (id, account, token) in [
            ("all", None, None),
            ("narrower", Some("audit:read fleet:read"), Some("audit:read")),
            ("narrower-of-all", None, Some("audit:read")),
            (
                "same",
                Some("audit:read fleet:read"),
                Some("audit:read fleet:read"),
            ),
            ("wider", Some("audit:read"), Some("audit:read fleet:read")),
        ] {
            write(&mut conn, &rows::ACCOUNT, vec![id.into(), account.into()]);
            let mac = [0_u8; 32];
            write(
                &mut conn,
                &rows::TOKEN,
                vec![id.into(), token.into(), mac.into(), false.into()],
            );
        }
        migrate(&mut conn, ALL.migrations(), crate::support::START).unwrap();
        let found = conn.read(|tx| {
            tx.query(&rows::SCOPES, params![], |row| {
                Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?))
            })
        });
        let found = found.unwrap();
        let expected = [
            ("all", None),
            ("narrower", Some("audit:read")),
            ("narrower-of-all", Some("audit:read")),
            ("same", None),
            ("wider", Some("audit:read fleet:read")),
        ];
        let expected = expected.map(|(id, scopes)| (id.to_owned(), scopes.map(str::to_owned)));
        assert_eq!(found, expected);
    }
}
