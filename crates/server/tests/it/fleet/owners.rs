//! Who sees whose machines devices are, and what people see of their own.

use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::fleet::{Machine, TOKENS, enrol, enrolment_token, laptop, let_people_enrol, new_key, send};
use crate::support::{App, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const ANN: &str = "ann@acme.example";

#[test]
fn owners_are_seen_by_those_who_read_the_directory_and_by_themselves() {
    each("fleet_own", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, Some("viewer")).await;
        let (hers, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let body = json!({ "ownerUserId": ann });
        let named = app.write("PATCH", &format!("/devices/{}", hers.id), body).await;
        assert_eq!(named.ok()["device"]["ownerUserId"], json!(ann));
        let person = token(&workshop, |claims| claims["scope"] = "fleet:read".into());
        let viewer = app.account("viewer", "viewer", &[]).await.1;
        let operator = app.account("operator", "operator", &[]).await.1;
        let scopes = ["fleet:read"];
        let narrow = app.account("narrow", "auditor", &scopes).await.1;
        let get = async |token: &str, path: &str| app.request("GET", path).token(token).send().await;
        let filtered = format!("/devices?ownerUserId={ann}");
        for (token, sees) in [
            (&operator, true),
            (&app.admin, true),
            (&viewer, false),
            (&person, false),
        ] {
            let list = get(token, "/devices").await.ok()["devices"].clone();
            let owners: Vec<&Value> = list
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|device| device.get("ownerUserId"))
                .collect();
            assert_eq!(owners.len(), usize::from(sees));
            let one = get(token, &format!("/devices/{}", hers.id)).await.ok()["device"].clone();
            assert_eq!(one.get("ownerUserId").is_some(), sees);
            let found = get(token, &filtered).await;
            if sees {
                assert_eq!(found.ok()["devices"].as_array().map(Vec::len), Some(1));
            } else {
                found.refused(403, "role_forbidden");
            }
        }
        let blind = get(&narrow, "/devices").await.ok()["devices"].clone();
        assert!(
            blind
                .as_array()
                .unwrap()
                .iter()
                .all(|device| device.get("ownerUserId").is_none())
        );
        get(&narrow, &filtered).await.refused(403, "insufficient_scope");
        let own = get(&person, "/devices/own").await.ok()["devices"].clone();
        assert_eq!(own.as_array().map(Vec::len), Some(1));
        assert_eq!(
            (&own[0]["id"], &own[0]["ownerUserId"]),
            (&json!(hers.id), &json!(ann))
        );
        assert_eq!(get(&app.admin, "/devices/own").await.ok()["devices"], json!([]));
        let other = format!("/devices/{}", other.id);
        app.write("PATCH", &other, json!({ "ownerUserId": ann }))
            .await
            .ok();
        let first = get(&person, "/devices/own?limit=1").await.ok().clone();
        let cursor = first["nextCursor"].as_str().unwrap();
        let rest = get(&person, &format!("/devices/own?limit=1&cursor={cursor}")).await;
        assert_eq!(rest.ok()["devices"][0]["id"], json!(hers.id));
        app.kernel.stop().await;
    });
}

/// What a user made by which machines enrol ends with a lesser role, as it does of an account.
#[test]
fn the_enrolment_tokens_of_a_user_end_with_a_lesser_role() {
    each("fleet_narrowed", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, Some("admin")).await;
        let (_, others) = enrolment_token(&app, json!({})).await;
        let give = async |role: Value| {
            let body = json!({ "permissionRole": role });
            app.write("PATCH", &format!("/directory/users/{ann}"), body)
                .await
                .ok();
        };
        for lesser in [json!("operator"), json!("viewer"), Value::Null] {
            give(json!("admin")).await;
            let delegated = token(&workshop, |claims| {
                claims["scope"] = "fleet:enrol".into();
                claims["jti"] = fresh_key().into();
            });
            let call = app.request("POST", TOKENS).token(&delegated);
            let body = with_trio(json!({ "name": "hers" }), &fresh_key());
            let made = call.json(body).send().await.ok().clone();
            let secret = made["token"].as_str().unwrap().to_owned();
            // Another name is no lesser role.
            let body = json!({ "displayName": fresh_key() });
            app.write("PATCH", &format!("/directory/users/{ann}"), body)
                .await
                .ok();
            give(json!("admin")).await;
            let before = app.events(0).await.len();
            give(lesser).await;
            let told = app.events(0).await;
            assert!(
                told[before..]
                    .iter()
                    .any(|(kind, _)| kind == "fleet.enrolment_token.revoked")
            );
            let reply = send(&app, &new_key(), &secret, "/devices/enrol", laptop("hers")).await;
            reply.refused(401, "token_revoked");
        }
        enrol(&app, &others).await;
        app.kernel.stop().await;
    });
}

/// Proves FL-10.
#[test]
fn an_enrolment_token_ends_with_the_session_by_which_it_was_made() {
    each("fleet_sessions", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, ANN, Some("admin")).await;
        let delegated = token(&workshop, |claims| claims["scope"] = "fleet:enrol".into());
        let call = app.request("POST", TOKENS).token(&delegated);
        let body = with_trio(json!({ "name": "hers" }), &fresh_key());
        let made = call.json(body).send().await.ok().clone();
        let secret = made["token"].as_str().unwrap().to_owned();
        let sessions = app.get("/mcp/sessions").await.ok()["sessions"].clone();
        let id = sessions[0]["id"].as_str().unwrap();
        let path = format!("/mcp/sessions/{id}/revoke");
        app.write("POST", &path, json!({})).await.ok();
        let reply = send(&app, &new_key(), &secret, "/devices/enrol", laptop("hers")).await;
        reply.refused(401, "token_revoked");
        let id = made["enrolmentToken"]["id"].as_str().unwrap();
        let all = app.get(TOKENS).await.ok()["enrolmentTokens"].clone();
        let one = all
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == id)
            .unwrap();
        assert_eq!(one["revokeReason"], "origin_ended");
        app.kernel.stop().await;
    });
}

/// Proves FL-7.
#[test]
fn who_signs_in_enrols_a_machine_that_is_theirs_where_the_settings_say_so() {
    each("fleet_self", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, ANN, None).await;
        let members = json!({ "directory": { "defaultRole": "member" } });
        app.write("PATCH", "/automation/settings", members).await.ok();
        let hers = token(&workshop, |claims| claims["scope"] = "fleet:enrol_self".into());
        let ask = async |token: &str| {
            let path = "/devices/own/enrolment-tokens";
            let body = with_trio(json!({ "name": "laptop" }), &fresh_key());
            app.request("POST", path).token(token).json(body).send().await
        };
        ask(&hers).await.refused(409, "conflict");
        let_people_enrol(&app).await;
        let made = ask(&hers).await.ok().clone();
        assert_eq!(
            (
                &made["enrolmentToken"]["maxUses"],
                &made["enrolmentToken"]["mode"]
            ),
            (&json!(1), &json!("user"))
        );
        let machine = enrol(&app, made["token"].as_str().unwrap()).await;
        machine.beat(&app).await.ok();
        let own = app.request("GET", "/devices/own").token(&hers).send().await;
        let own = own.ok()["devices"].clone();
        assert_eq!(own.as_array().map(Vec::len), Some(1));
        assert_eq!(
            (&own[0]["ownerUserId"], &own[0]["status"]),
            (&json!(ann), &json!("active"))
        );
        let identity = format!("/devices/{}/gateway-identity", machine.id);
        assert_eq!(app.get(&identity).await.ok()["subjectId"], json!(ann));
        // It is taken for her as far as her session goes, and not for what she is given later.
        let path = format!("/directory/users/{ann}");
        app.write("PATCH", &path, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        app.get(&identity).await.refused(404, "not_found");
        app.write("PATCH", &path, json!({ "permissionRole": null }))
            .await
            .ok();
        // What she made ends with her, and so does a token after its minutes.
        let made = ask(&hers).await.ok().clone();
        let late = made["token"].as_str().unwrap().to_owned();
        app.advance(900);
        let reply = send(&app, &new_key(), &late, "/devices/enrol", laptop("hers")).await;
        reply.refused(401, "token_expired");
        // An account owns nothing: an admin looks at what it enrols.
        let (_, robot) = app.account("robot", "viewer", &["fleet:enrol_self"]).await;
        let made = ask(&robot).await.ok().clone();
        let machine = enrol(&app, made["token"].as_str().unwrap()).await;
        machine.beat(&app).await.ok();
        let seen = app.get(&format!("/devices/{}", machine.id)).await.ok()["device"].clone();
        assert_eq!(
            (&seen["status"], seen.get("ownerUserId")),
            (&json!("pending"), None)
        );
        // Nobody fills the organization with machines: used ones count as well, and an hour later it goes on.
        for _ in 1..32 {
            ask(&robot).await.ok();
        }
        ask(&robot).await.refused(409, "conflict");
        app.advance(3600);
        ask(&robot).await.ok();
        // And nobody by taking time: what lives counts, until an admin retires some of it.
        app.advance(3600);
        for _ in 1..32 {
            let made = ask(&robot).await.ok().clone();
            enrol(&app, made["token"].as_str().unwrap()).await;
        }
        app.advance(3600);
        ask(&robot).await.refused(409, "conflict");
        let (_, other) = app.account("another", "viewer", &["fleet:enrol_self"]).await;
        ask(&other).await.ok();
        let path = format!("/devices/{}/retire", machine.id);
        app.write("POST", &path, json!({ "confirm": true })).await.ok();
        ask(&robot).await.ok();
        // The one that is on its way is the last.
        ask(&robot).await.refused(409, "conflict");
        app.kernel.stop().await;
    });
}
