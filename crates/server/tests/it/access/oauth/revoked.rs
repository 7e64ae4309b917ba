//! Tokens that were given back or whose session was ended: never accepted again, at no server.

use super::*;
use crate::support::{each, workload};

#[test]
fn what_was_revoked_is_refused_at_the_next_request() {
    each("oauth_revocations", |app| async move {
        let other = app.restarted(Extras::default()).unwrap();
        let client = register(&app, public_client("client")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let mut accepted = 0;
        for turn in 0..workload("PROVOST_TEST_REVOCATIONS", 40, 200) {
            // As many sessions of one user as may begin within a day (MS-7).
            app.advance(50);
            let code = code(&app, &client, &ann, &["policies:read"], None).await;
            let reply = post(&app, "/oauth/token", &redeeming(&client, &code)).await;
            let access = reply.json["access_token"].as_str().unwrap().to_owned();
            let refresh = reply.json["refresh_token"].as_str().unwrap().to_owned();
            read(&app, &access).await.ok();
            read(&other, &access).await.ok();
            let given = if turn % 2 == 0 { &access } else { &refresh };
            let back = post(&app, "/oauth/revoke", &[("client_id", &client), ("token", given)]).await;
            assert_eq!(back.status.as_u16(), 200, "{}", back.text());
            for server in [&*app, &other] {
                accepted += usize::from(read(server, &access).await.status.as_u16() != 401);
            }
        }
        assert_eq!(accepted, 0);
        other.kernel.stop().await;
    });
}

#[test]
fn only_the_client_of_a_token_gives_it_back_and_nobody_learns_what_is_known() {
    each("oauth_give_back", |app| async move {
        let (client, _, first) = signed_in(&app).await;
        let other = register(&app, public_client("other")).await;
        let access = first["access_token"].as_str().unwrap();
        let refresh = first["refresh_token"].as_str().unwrap();
        for token in [access, refresh, "unknown", "prov_mrt_x"] {
            let reply = post(&app, "/oauth/revoke", &[("client_id", &other), ("token", token)]).await;
            assert_eq!((reply.status.as_u16(), reply.text()), (200, "{}".to_owned()));
        }
        read(&app, access).await.ok();
        refused(
            &post(&app, "/oauth/revoke", &[("token", access)]).await,
            401,
            "invalid_client",
        );
        refused(
            &post(&app, "/oauth/revoke", &[("client_id", &client)]).await,
            400,
            "invalid_request",
        );
        let reply = post(
            &app,
            "/oauth/revoke",
            &[("client_id", &client), ("token", refresh)],
        )
        .await;
        assert_eq!(reply.status.as_u16(), 200);
        read(&app, access).await.refused(401, "token_revoked");
        let sessions = app.get("/mcp/sessions?status=revoked").await;
        assert_eq!(sessions.ok()["sessions"][0]["revokeReason"], "user_revoked");
    });
}

/// Proves OC-6.
#[test]
fn a_blocked_and_a_deleted_client_lose_their_sessions() {
    each("oauth_clients", |app| async move {
        let (client, _, first) = signed_in(&app).await;
        let access = first["access_token"].as_str().unwrap();
        let path = format!("/mcp/clients/{client}");
        app.write("PATCH", &path, json!({ "blocked": true })).await.ok();
        read(&app, access).await.refused(401, "token_revoked");
        app.write("PATCH", &path, json!({ "blocked": false })).await.ok();
        read(&app, access).await.refused(401, "token_revoked");
        let (client, _, first) = signed_in(&app).await;
        let access = first["access_token"].as_str().unwrap();
        app.delete(&format!("/mcp/clients/{client}")).await.ok();
        read(&app, access).await.refused(401, "token_revoked");
        // No secret stands in the audit log.
        let log = app.get("/audit/events?limit=100").await.text();
        for secret in [access, first["refresh_token"].as_str().unwrap()] {
            assert!(!log.contains(secret));
        }
    });
}
