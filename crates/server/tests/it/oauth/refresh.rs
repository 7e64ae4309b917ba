//! Rotation of refresh tokens: reuse, a lost answer, the ends of their life.

use super::*;
use crate::support::each;

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
        // The answer was lost: within 30 s the one before is taken again, and both successors are live.
        app.advance(29);
        let again = post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await;
        let (_, sibling) = texts(&again.json);
        let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh_1)).await;
        let (access_2, refresh_2) = texts(&reply.json);
        for token in [&access_0, &access_1, &access_2] {
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
        // OC-4: two before the present one, at once.
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await,
            400,
            "invalid_grant",
        );
        for token in [&access_0, &access_1, &access_2] {
            read(&app, token).await.refused(401, "token_revoked");
        }
        for token in [&refresh_2, &sibling] {
            refused(
                &post(&app, "/oauth/token", &refreshing(&client, token)).await,
                400,
                "invalid_grant",
            );
        }
        let sessions = app.get("/mcp/sessions?status=revoked").await;
        assert_eq!(sessions.ok()["sessions"][0]["revokeReason"], "token_reuse");
    });
}

/// Proves OC-4.
#[test]
fn a_refresh_token_that_comes_again_after_the_leeway_ends_the_session() {
    each("oauth_leeway", |app| async move {
        let (client, _, first) = signed_in(&app).await;
        let (_, refresh_0) = texts(&first);
        let reply = post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await;
        let (access_1, _) = texts(&reply.json);
        app.advance(30);
        refused(
            &post(&app, "/oauth/token", &refreshing(&client, &refresh_0)).await,
            400,
            "invalid_grant",
        );
        read(&app, &access_1).await.refused(401, "token_revoked");
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
