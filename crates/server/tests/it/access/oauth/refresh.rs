//! Rotation of refresh tokens: reuse, a lost answer, the ends of their life.

use super::dpop::{proof_of, thumbprint};
use super::*;
use crate::support::{each, fresh_key};
use aws_lc_rs::signature::Ed25519KeyPair;
use provost_kernel::expose::edge::Peer;

pub fn refreshing<'a>(client: &'a str, token: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", token),
    ]
}

fn texts(json: &Value) -> (String, String) {
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// Refreshes from an address.
async fn from(app: &App, network: [u8; 4], form: &[(&str, &str)]) -> Reply {
    let mut request = Request::post("/oauth/token")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(encoded(form)))
        .unwrap();
    request.extensions_mut().insert(Peer((network, 4711).into()));
    answer(app, request).await
}

const HOME: [u8; 4] = [192, 0, 2, 1];
const ELSEWHERE: [u8; 4] = [198, 51, 100, 1];

/// Sets how long a token that was used is answered again.
async fn set_leeway(app: &App, secs: i64) {
    let body = json!({ "oauth": { "refreshLeewaySeconds": secs } });
    app.write("PATCH", "/automation/settings", body).await.ok();
}

/// Proves OC-4.
#[test]
fn a_refresh_token_rotates_and_one_that_comes_again_ends_the_session() {
    each("oauth_rotation", |app| async move {
        let (client, _, first) = signed_in(&app).await;
        let (access_0, refresh_0) = texts(&first);
        let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        let (access_1, refresh_1) = texts(&reply.json);
        assert_ne!(refresh_0, refresh_1);
        // The answer was lost: the one before is answered again, with the same successor.
        app.advance(29);
        let again = post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await;
        let (access_again, same) = texts(&again.json);
        assert_eq!(same, refresh_1);
        let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh_1)).await;
        let (access_2, refresh_2) = texts(&reply.json);
        for token in [&access_0, &access_1, &access_again, &access_2] {
            read(&app, token).await.ok();
        }
        // Another client's hands.
        let other = register(&app, public_client("other")).await;
        refused(
            &post(&app, "/oauth/token", &refreshing(&other, &refresh_2)).await,
            400,
            "invalid_grant",
        );
        let wide = [refreshing(&client, &refresh_2), vec![("scope", "audit:read")]].concat();
        refused(&post(&app, "/oauth/token", &wide).await, 400, "invalid_scope");
        // OC-4: its successor was used, so it is too late, at once.
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await,
            400,
            "invalid_grant",
        );
        for token in [&access_0, &access_1, &access_again, &access_2] {
            read(&app, token).await.refused(401, "token_revoked");
        }
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh_2)).await,
            400,
            "invalid_grant",
        );
        let sessions = app.get("/mcp/sessions?status=revoked").await;
        assert_eq!(sessions.ok()["sessions"][0]["revokeReason"], "token_reuse");
    });
}

/// Proves OC-4.
#[test]
fn a_refresh_token_that_comes_again_after_the_leeway_ends_the_session() {
    each("oauth_leeway", |app| async move {
        // What the organization says, from where the token comes again, after how many seconds, and whether it is answered.
        for (leeway, network, secs, is_answered) in [
            (600, HOME, 599, true),
            (600, HOME, 600, false),
            (600, ELSEWHERE, 29, true),
            (600, ELSEWHERE, 30, false),
            (1_800, HOME, 1_799, true),
            (1_800, ELSEWHERE, 30, false),
            (10, HOME, 9, true),
            (10, ELSEWHERE, 10, false),
            (0, HOME, 0, false),
        ] {
            let case = format!("{leeway} {network:?} {secs}");
            set_leeway(&app, leeway).await;
            let (client, _, first) = signed_in(&app).await;
            let (_, refresh_0) = texts(&first);
            let form = refreshing(&client, &refresh_0);
            let reply = from(&app, HOME, &form).await;
            let (access_1, refresh_1) = texts(&reply.json);
            app.advance(secs);
            let again = from(&app, network, &form).await;
            if is_answered {
                assert_eq!(again.status.as_u16(), 200, "{case}: {}", again.text());
                assert_eq!(texts(&again.json).1, refresh_1, "{case}");
                read(&app, &access_1).await.ok();
            } else {
                refused(&again, 400, "invalid_grant");
                read(&app, &access_1).await.refused(401, "token_revoked");
                refused(
                    &from(&app, HOME, &refreshing(&client, &refresh_1)).await,
                    400,
                    "invalid_grant",
                );
            }
        }
    });
}

/// Proves OC-4.
#[test]
fn a_token_without_a_key_is_answered_again_five_times_and_each_time_is_audited() {
    each("oauth_repeats", |app| async move {
        let (client, _, first) = signed_in(&app).await;
        let (_, refresh_0) = texts(&first);
        let form = refreshing(&client, &refresh_0);
        let (access_1, refresh_1) = texts(&from(&app, HOME, &form).await.json);
        for turn in 1..=5 {
            app.advance(60);
            let again = from(&app, HOME, &form).await;
            assert_eq!(texts(again.ok()).1, refresh_1, "{turn}");
        }
        let page = app
            .get("/audit/events?limit=100&action=oauth.token.refresh_repeated")
            .await;
        let entries = page.ok()["events"].as_array().unwrap().clone();
        assert_eq!(entries.len(), 5);
        let entry = entries[0].to_string();
        assert!(entry.contains("/secondsAfterUse"), "{entry}");
        for secret in [&refresh_0, &refresh_1, &access_1] {
            assert!(!entry.contains(secret.as_str()));
        }
        app.advance(60);
        refused(&from(&app, HOME, &form).await, 400, "invalid_grant");
        read(&app, &access_1).await.refused(401, "token_revoked");
    });
}

/// Proves OC-4.
#[test]
fn a_token_with_a_key_is_answered_again_anywhere_and_by_its_key_alone() {
    each("oauth_keyed_repeats", |app| async move {
        let client = register(&app, public_client("keyed")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let (key, thief) = (
            Ed25519KeyPair::generate().unwrap(),
            Ed25519KeyPair::generate().unwrap(),
        );
        let send = async |form: &[(&str, &str)], key: &Ed25519KeyPair| {
            let now = app.now().as_ms() / 1000;
            let proof = proof_of("POST", key, "", now, &fresh_key(), &format!("{URL}/oauth/token"));
            post_with(&app, "/oauth/token", form, &[("dpop", &proof)]).await
        };
        let code = code(&app, &client, &ann, &["policies:read"], Some(thumbprint(&key))).await;
        let (_, refresh_0) = texts(send(&redeeming(&client, &code), &key).await.ok());
        let form = refreshing(&client, &refresh_0);
        let (access_1, refresh_1) = texts(send(&form, &key).await.ok());
        for _ in 0..7 {
            app.advance(80);
            refused(&send(&form, &thief).await, 400, "invalid_dpop_proof");
            let again = send(&form, &key).await;
            assert_eq!(texts(again.ok()).1, refresh_1);
        }
        app.advance(40);
        refused(&send(&form, &key).await, 400, "invalid_grant");
        assert_eq!(read(&app, &access_1).await.status.as_u16(), 401);
    });
}

#[test]
fn a_session_ends_when_nobody_comes_and_after_ninety_days_anyhow() {
    each("oauth_life", |app| async move {
        const DAY: u64 = 86_400;
        let (client, _, first) = signed_in(&app).await;
        let (idle_client, _, idle) = signed_in(&app).await;
        let (access, mut refresh) = texts(&first);
        let (_, idle) = texts(&idle);
        // Clocks of servers differ by a minute at most (D2.6).
        app.advance(3659);
        read(&app, &access).await.ok();
        app.advance(1);
        read(&app, &access).await.refused(401, "token_expired");
        for turn in 0..4 {
            app.advance(22 * DAY);
            let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh)).await;
            assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
            refresh = texts(&reply.json).1;
            if turn == 1 {
                let late = post(&app, "/oauth/token", &refreshing(&idle_client, &idle)).await;
                refused(&late, 400, "invalid_grant");
            }
        }
        // The last access token ends with the session.
        app.advance(2 * DAY - 3660 - 600);
        let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh)).await;
        assert_eq!(reply.ok()["expires_in"], 600);
        refresh = texts(&reply.json).1;
        app.advance(600);
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh)).await,
            400,
            "invalid_grant",
        );
    });
}

#[test]
fn a_refresh_token_calls_nothing_and_nothing_else_refreshes() {
    each("oauth_kinds", |app| async move {
        let (client, user, first) = signed_in(&app).await;
        let (access, refresh) = texts(&first);
        read(&app, &refresh).await.refused(401, "unauthenticated");
        let wrong = [access.as_str(), app.admin.as_str(), "prov_mrt_x", "x"];
        for token in wrong {
            refused(
                &post(&app, "/oauth/token", &refreshing(&client, token)).await,
                400,
                "invalid_grant",
            );
        }
        // The user may not act any more: neither may the session.
        app.write("POST", &format!("/directory/users/{user}/suspend"), json!({}))
            .await
            .ok();
        assert_eq!(read(&app, &access).await.status.as_u16(), 401);
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh)).await,
            400,
            "invalid_grant",
        );
    });
}
