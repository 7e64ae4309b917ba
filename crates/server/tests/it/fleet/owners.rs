//! Who sees whose machines devices are, and what people see of their own.

use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::fleet::{Machine, TOKENS, enrol, enrolment_token, laptop, new_key, send};
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
