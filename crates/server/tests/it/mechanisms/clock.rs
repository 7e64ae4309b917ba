//! Time: limits hold to the millisecond, and a clock that is set back brings nothing back (R21).

use crate::support::{App, each, fresh_key, with_trio};
use provost_kernel::Timestamp;
use provost_kernel::time::Clock;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const HOUR_MS: i64 = 3_600_000;

fn instant(view: &Value) -> i64 {
    Timestamp::parse(view.as_str().unwrap()).unwrap().as_ms()
}

fn token_of(reply: &crate::support::Reply) -> String {
    reply.ok()["token"]["token"].as_str().unwrap().to_owned()
}

/// Sets the clock to an instant; the monotonic clock stays.
fn set(app: &App, at: Timestamp) {
    app.clock.step_ms(at.as_ms() - app.now().as_ms());
}

#[test]
fn a_token_ends_at_its_millisecond() {
    each("expiry", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let rotated = app
            .write("POST", &path, json!({ "expiresInSeconds": 3600 }))
            .await;
        let token = token_of(&rotated);
        let ends = instant(&rotated.json["token"]["expiresAt"]);
        assert_eq!(ends, app.now().as_ms() + HOUR_MS);
        app.clock.advance(Duration::from_millis(3_600_000 - 1));
        assert_eq!(app.used(&token).await.0, 200);
        app.clock.advance(Duration::from_millis(1));
        assert_eq!(app.used(&token).await, (401, "token_expired".into()));
        assert_eq!(app.now().as_ms(), ends);
    });
}

/// Proves CR-1.
#[test]
fn a_clock_set_back_revives_nothing() {
    each("set_back", |app: Arc<App>| async move {
        let (id, first) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}");
        let second = token_of(&app.write("POST", &format!("{path}/tokens"), json!({})).await);
        assert_eq!(app.used(&first).await, (401, "token_revoked".into()));
        let before = app.seen(&id).await;
        app.clock.step_ms(-HOUR_MS);
        assert_eq!(
            app.used(&first).await,
            (401, "token_revoked".into()),
            "revoked stays revoked"
        );
        // What was minted a moment ago by a clock that ran ahead still ends at once.
        let third = token_of(&app.write("POST", &format!("{path}/tokens"), json!({})).await);
        assert_eq!(app.used(&second).await, (401, "token_revoked".into()));
        let revoked = app.seen(&id).await;
        let ids: Vec<_> = revoked["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["id"].clone())
            .collect();
        assert_eq!(ids.len(), 3);
        for token in revoked["tokens"].as_array().unwrap() {
            assert!(instant(&token["updatedAt"]) >= instant(&token["createdAt"]));
            assert!(instant(&token["expiresAt"]) > instant(&token["createdAt"]));
            if let Some(at) = token.get("revokedAt") {
                assert!(instant(at) >= instant(&token["createdAt"]));
            }
        }
        let current = revoked["tokens"][0]["id"].as_str().unwrap().to_owned();
        let revoke = format!("{path}/tokens/{current}/revoke");
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        assert_eq!(app.used(&third).await, (401, "token_revoked".into()));
        // Every change moves updatedAt on.
        let mut last = instant(&before["updatedAt"]);
        for description in ["a", "b", "c"] {
            let reply = app
                .write("PATCH", &path, json!({ "description": description }))
                .await;
            let now = instant(&reply.ok()["serviceAccount"]["updatedAt"]);
            assert!(now > last, "{now} after {last}");
            last = now;
        }
        let disabled = app.write("POST", &format!("{path}/disable"), json!({})).await;
        let account = &disabled.ok()["serviceAccount"];
        assert!(instant(&account["disabledAt"]) >= instant(&account["createdAt"]));
        assert!(instant(&account["updatedAt"]) > last);
    });
}

#[test]
fn the_current_token_gives_its_lifetime_on_whatever_the_clock_said() {
    each("lifetime_kept", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}");
        let first = app.seen(&id).await["tokens"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let revoke = format!("{path}/tokens/{first}/revoke");
        app.write("POST", &revoke, json!({ "confirm": true })).await.ok();
        app.clock.step_ms(-HOUR_MS);
        let tokens = format!("{path}/tokens");
        app.write("POST", &tokens, json!({ "expiresInSeconds": 7200 }))
            .await
            .ok();
        let next = app.write("POST", &tokens, json!({})).await;
        assert_eq!(
            instant(&next.ok()["token"]["expiresAt"]),
            app.now().as_ms() + 2 * HOUR_MS
        );
    });
}

/// Proves SA-1.
#[test]
fn rotations_around_a_clock_set_back_leave_one_current_token() {
    each("hidden", |app: Arc<App>| async move {
        let (id, _) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let mut tokens = Vec::new();
        for _ in 0..30 {
            tokens.push(token_of(&app.write("POST", &path, json!({})).await));
            app.clock.advance(Duration::from_millis(1));
        }
        app.clock.step_ms(-HOUR_MS);
        for _ in 0..3 {
            tokens.push(token_of(&app.write("POST", &path, json!({})).await));
        }
        let last = tokens.pop().unwrap();
        for token in &tokens {
            assert_eq!(app.used(token).await.0, 401, "every earlier token is dead");
        }
        assert_eq!(app.used(&last).await.0, 200);
        let seen = app.seen(&id).await;
        let listed = seen["tokens"].as_array().unwrap();
        assert!(
            listed[0].get("revokedAt").is_none(),
            "the current one is listed, and first"
        );
        assert_eq!(listed.len(), 21);
    });
}

#[test]
fn grace_and_replay_end_at_their_millisecond_across_a_step() {
    each("steps", |app: Arc<App>| async move {
        let (id, first) = app.account("deploy", "auditor", &["audit:read"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let body = with_trio(json!({ "gracePeriodSeconds": 10 }), &fresh_key());
        let send = || app.request("POST", &path).json(body.clone()).send();
        let issued = send().await;
        issued.ok();
        app.clock.step_ms(9_999);
        assert_eq!(app.used(&first).await.0, 200);
        app.clock.step_ms(1);
        assert_eq!(app.used(&first).await, (401, "token_expired".into()));
        app.clock.step_ms(86_400_000 - 10_001);
        assert_eq!(send().await.bytes, issued.bytes);
        app.clock.step_ms(1);
        send().await.refused(409, "secret_no_longer_retrievable");
    });
}

#[test]
fn dates_beyond_2038_and_leap_days_are_dates() {
    each("far", |app: Arc<App>| async move {
        // Tokens live a year at most: each date is reached with a token of its own time.
        let dates = [
            "2028-02-28T23:59:59.999Z",
            "2028-02-29T00:00:00.000Z",
            "2038-01-19T03:14:07.999Z",
            "2038-01-19T03:14:08.000Z",
            "2100-02-28T23:59:59.999Z",
        ];
        for date in dates {
            let at = Timestamp::parse(date).unwrap();
            let made = async {
                set(&app, at);
                provost_server::app::bootstrap(&app.kernel, date, None)
                    .await
                    .unwrap()
            }
            .await;
            let organization = made.organization_id.as_str();
            let token = made.token.expose();
            let path = format!("/api/headless/v1/organizations/{organization}/service-accounts");
            let body = json!({ "name": "x", "permissionRole": "viewer", "allOfRole": true, "expiresInSeconds": 86_400 });
            let call = app.request("POST", "").at(&path).token(token);
            let created = call.json(with_trio(body, &fresh_key())).send().await;
            assert_eq!(created.ok()["serviceAccount"]["createdAt"], date);
            assert_eq!(
                instant(&created.json["token"]["expiresAt"]),
                at.as_ms() + 86_400_000
            );
            if date.starts_with("2028-02-28") {
                assert_eq!(created.json["token"]["expiresAt"], "2028-02-29T23:59:59.999Z");
            }
            if date.starts_with("2100") {
                assert_eq!(created.json["token"]["expiresAt"], "2100-03-01T23:59:59.999Z");
            }
            let capabilities = format!("/api/headless/v1/organizations/{organization}/capabilities");
            let issued = token_of(&created);
            let call = || app.request("GET", "").at(&capabilities).token(&issued).send();
            app.clock.step_ms(86_399_999);
            call().await.ok();
            app.clock.step_ms(1);
            call().await.refused(401, "token_expired");
        }
        assert!(
            app.clock.monotonic() < Duration::from_secs(1),
            "steps are not time that went by"
        );
    });
}
