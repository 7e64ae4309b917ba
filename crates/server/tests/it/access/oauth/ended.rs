//! What ended stays ended, by every way to a token.

use super::granted::{Confidential, EXCHANGE, ID_TOKEN, JWT_BEARER, access, form_of};
use super::identity::{former, of, revoke, sessions};
use super::*;
use crate::areas::mcp_sessions::open;
use crate::support::{each, fresh_key};
use provost_areas_access::mcp_sessions;
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::keys::Keys;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

fn exchange(token: &str) -> [(&str, &str); 4] {
    [
        ("grant_type", EXCHANGE),
        ("subject_token", token),
        ("subject_token_type", ACCESS_TOKEN),
        ("scope", "policies:read"),
    ]
}

/// Proves OC-12.
#[test]
fn a_token_whose_session_ended_is_exchanged_for_nothing() {
    each("oauth_exchange_ended", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let alice = user(&app, "alice@acme.example", Some("viewer")).await;
        let client = Confidential::register(&app, &[EXCHANGE], None).await;
        let used = of(&workshop, "alice", "client-1", "s");
        read(&app, &used).await.ok();
        let given = access(&client.ask(&app, &exchange(&used)).await);
        read(&app, &given).await.ok();
        let session = sessions(&app, "?clientId=client-1").await[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        revoke(&app, &session).await;
        read(&app, &used).await.refused(401, "token_revoked");
        refused(&client.ask(&app, &exchange(&used)).await, 400, "invalid_grant");
        // What was given for it has ended with it, and is listed so.
        read(&app, &given).await.refused(401, "token_revoked");
        assert_eq!(sessions(&app, "?status=active").await.len(), 0);
        // Another token of the same session, and the session under the key of earlier programs.
        let again = of(&workshop, "alice", "client-1", "s");
        refused(&client.ask(&app, &exchange(&again)).await, 400, "invalid_grant");
        let row = open(&app, vec![former(&app, "old", &alice, "client-1")])
            .await
            .remove(0);
        let old = of(&workshop, "alice", "client-1", "old");
        let given = access(&client.ask(&app, &exchange(&old)).await);
        read(&app, &given).await.ok();
        revoke(&app, &row).await;
        read(&app, &given).await.refused(401, "token_revoked");
        refused(&client.ask(&app, &exchange(&old)).await, 400, "invalid_grant");
        // Another session is not touched.
        let other = of(&workshop, "alice", "client-1", "t");
        access(&client.ask(&app, &exchange(&other)).await);
        // All sessions of the client that the token is for, and nobody else's.
        read(&app, &other).await.ok();
        let given = access(&client.ask(&app, &exchange(&other)).await);
        let all = json!({ "clientId": "client-1", "confirm": true });
        app.write("POST", "/mcp/sessions/revoke", all).await.ok();
        read(&app, &given).await.refused(401, "token_revoked");
        // Forgotten is ended as well.
        app.advance_ms(91 * 86_400 * 1000);
        mcp_sessions::sweep(&app.kernel).await.unwrap();
        mcp_sessions::retain(&app.kernel).await.unwrap();
        let late = self::workshop(&app);
        let again = trusting(&app, &late);
        let buried = of(&late, "alice", "client-1", "s");
        refused(
            &client.ask(&again, &exchange(&buried)).await,
            400,
            "invalid_grant",
        );
        again.kernel.stop().await;
        app.kernel.stop().await;
    });
}

/// Proves OC-13.
#[test]
fn all_exchanges_of_a_token_by_a_client_end_together_and_are_ten_at_most() {
    each("oauth_exchange_once", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "alice@acme.example", Some("viewer")).await;
        let client = Confidential::register(&app, &[EXCHANGE], None).await;
        let other = Confidential::register(&app, &[EXCHANGE], None).await;
        let subject = of(&workshop, "alice", "client-1", "s");
        let form = exchange(&subject);
        // The answer was lost, and is asked for again.
        let given = [
            access(&client.ask(&app, &form).await),
            access(&client.ask(&app, &form).await),
        ];
        let others = access(&other.ask(&app, &form).await);
        for token in given.iter().chain([&others]) {
            read(&app, token).await.ok();
        }
        let own = sessions(&app, &format!("?clientId={}", client.id)).await;
        assert_eq!(own.len(), 1);
        // A wider request of the same session is listed.
        let mut wide = form.to_vec();
        wide[3].1 = "policies:read directory:read";
        let refused_scope = client.ask(&app, &wide).await;
        assert_eq!(refused_scope.json["scope"], "policies:read", "a viewer");
        revoke(&app, own[0]["id"].as_str().unwrap()).await;
        for token in &given {
            read(&app, token).await.refused(401, "token_revoked");
        }
        refused(&client.ask(&app, &form).await, 400, "invalid_grant");
        read(&app, &others).await.ok();
        // Four were given of this token; six more are.
        for _ in 0..6 {
            access(&other.ask(&app, &form).await);
        }
        refused(&other.ask(&app, &form).await, 400, "invalid_grant");
        let fresh = of(&workshop, "alice", "client-1", "s");
        access(&other.ask(&app, &exchange(&fresh)).await);
        // For one actor: another one is not hidden in the session.
        let mut acting = exchange(&fresh).to_vec();
        let agent = of(&workshop, "alice", "client-1", "agent");
        acting.extend([
            ("actor_token", agent.as_str()),
            ("actor_token_type", ACCESS_TOKEN),
        ]);
        refused(&other.ask(&app, &acting).await, 400, "invalid_grant");
        app.kernel.stop().await;
    });
}

#[test]
fn an_identity_token_without_an_id_is_counted_by_what_was_signed() {
    each("oauth_exchange_identity", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        let client = Confidential::register(&app, &[EXCHANGE], None).await;
        let mut claims = workshop.claims();
        claims["aud"] = "provost-at-the-issuer".into();
        claims["email"] = "ann@acme.example".into();
        claims["email_verified"] = true.into();
        claims.as_object_mut().unwrap().remove("jti");
        let token = workshop.signed(&json!({ "alg": "EdDSA", "typ": "JWT", "kid": "ed" }), &claims);
        let mut form = exchange(&token);
        form[2].1 = ID_TOKEN;
        for _ in 0..10 {
            access(&client.ask(&app, &form).await);
        }
        refused(&client.ask(&app, &form).await, 400, "invalid_grant");
        assert_eq!(sessions(&app, "").await.len(), 1);
        app.kernel.stop().await;
    });
}

#[test]
fn a_client_that_proves_nothing_exchanges_only_tokens_that_name_it() {
    each("oauth_exchange_public", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "alice@acme.example", Some("viewer")).await;
        let body = json!({
            "name": fresh_key(), "grantTypes": [EXCHANGE], "tokenEndpointAuthMethod": "none",
            "scopes": ["policies:read"],
        });
        let id = register(&app, body).await;
        let ask = async |token: &str| {
            let mut form = exchange(token).to_vec();
            form.push(("client_id", &id));
            post(&app, "/oauth/token", &form).await
        };
        let strange = of(&workshop, "alice", "client-1", "s");
        refused(&ask(&strange).await, 400, "invalid_grant");
        let own = of(&workshop, "alice", &id, "t");
        read(&app, &access(&ask(&own).await)).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves OC-17.
#[test]
fn a_client_that_proves_nothing_gets_no_resource_that_its_token_is_not_for() {
    each("oauth_exchange_resource", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "alice@acme.example", Some("viewer")).await;
        let body = |method: &str| {
            json!({
                "name": fresh_key(), "grantTypes": [EXCHANGE], "tokenEndpointAuthMethod": method,
                "scopes": ["policies:read"],
            })
        };
        let id = register(&app, body("none")).await;
        let proved = Confidential::register(&app, &[EXCHANGE], None).await;
        let mcp = format!("{URL}/mcp");
        let for_mcp = |client: &str| {
            token(&workshop, |claims| {
                claims["sub"] = "alice".into();
                claims["email"] = "alice@acme.example".into();
                claims["email_verified"] = true.into();
                claims["client_id"] = client.into();
                claims["sid"] = fresh_key().into();
                claims["jti"] = fresh_key().into();
                claims["aud"] = json!([mcp]);
            })
        };
        let ask = async |resource: Option<&str>| {
            let subject = for_mcp(&id);
            let mut form = exchange(&subject).to_vec();
            form.push(("client_id", &id));
            form.extend(resource.map(|resource| ("resource", resource)));
            post(&app, "/oauth/token", &form).await
        };
        refused(&ask(Some(API)).await, 400, "invalid_target");
        // What its token is for it gets, also where it names nothing: no door more.
        for resource in [Some(mcp.as_str()), None] {
            let own = access(&ask(resource).await);
            read(&app, &own).await.refused(401, "unauthenticated");
        }
        // Who proved itself may have more.
        let subject = for_mcp("somebody");
        let mut form = exchange(&subject).to_vec();
        form.push(("resource", API));
        read(&app, &access(&proved.ask(&app, &form).await)).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves OC-5.
#[test]
fn an_assertion_that_was_sent_is_spent_whatever_became_of_the_request() {
    each("oauth_spent", |app| async move {
        let workshop = workshop(&app);
        let (app, other) = (trusting(&app, &workshop), trusting(&app, &workshop));
        let (account, _) = app.account("robot", "viewer", &["policies:read"]).await;
        let client = Confidential::register(&app, &["client_credentials"], Some(&account)).await;
        let good = [("grant_type", "client_credentials")];
        let wrong_grant = [("grant_type", "refresh_token"), ("refresh_token", "x")];
        let wrong_scope = [("grant_type", "client_credentials"), ("scope", "unheard:of")];
        let wrong_resource = [
            ("grant_type", "client_credentials"),
            ("resource", "https://elsewhere.example"),
        ];
        let revoking = [("token", "nobodys")];
        for (path, form) in [
            ("/oauth/token", &wrong_grant[..]),
            ("/oauth/token", &wrong_scope),
            ("/oauth/token", &wrong_resource),
            ("/oauth/revoke", &revoking),
        ] {
            let assertion = client.assertion(&app, |_| {});
            client.send(&app, path, form, &assertion).await;
            for server in [&app, &other] {
                let again = client.send(server, "/oauth/token", &good, &assertion).await;
                refused(&again, 401, "invalid_client");
            }
        }
        // One that names another organization, or that is bound to a key, is not the client's word here.
        for (name, value) in [
            ("organization_id", json!("globex")),
            (
                "cnf",
                json!({ "jkt": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" }),
            ),
            ("authorization_details", json!([])),
            ("may_act", json!({ "sub": "somebody" })),
        ] {
            let assertion = client.assertion(&app, |claims| claims[name] = value);
            let reply = client.send(&app, "/oauth/token", &good, &assertion).await;
            refused(&reply, 401, "invalid_client");
        }
        let own = client.assertion(&app, |claims| claims["organization_id"] = "acme".into());
        access(&client.send(&app, "/oauth/token", &good, &own).await);
        app.kernel.stop().await;
        other.kernel.stop().await;
    });
}

/// Proves OA-5.
#[test]
fn an_enterprises_assertion_that_narrows_by_what_is_not_understood_is_refused() {
    each("oauth_id_jag_limits", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        let client = Confidential::register(&app, &[JWT_BEARER], None).await;
        let grant = |name: &str, value: Value| {
            let now = app.now().as_ms() / 1000;
            let mut claims = json!({
                "iss": ISSUER, "sub": "subject-1", "aud": URL, "client_id": client.id, "resource": API,
                "scope": "policies:read", "jti": fresh_key(), "iat": now, "exp": now + 300,
                "email": "ann@acme.example", "email_verified": true,
            });
            claims[name] = value;
            let header = json!({ "alg": "EdDSA", "typ": "oauth-id-jag+jwt", "kid": "ed" });
            workshop.signed(&header, &claims)
        };
        for (name, value) in [
            ("organization_id", json!("globex")),
            (
                "authorization_details",
                json!([{ "type": "policies", "actions": ["read"] }]),
            ),
            ("may_act", json!({ "sub": "somebody" })),
            ("aud_tenant", json!("globex")),
        ] {
            let wrong = grant(name, value);
            refused(&client.ask(&app, &form_of(&wrong)).await, 400, "invalid_grant");
        }
        let good = grant("organization_id", json!("acme"));
        // A resource that it is not for spends it as well.
        let mut form = form_of(&good).to_vec();
        form.push(("resource", "https://elsewhere.example"));
        assert_eq!(client.ask(&app, &form).await.status.as_u16(), 400);
        refused(&client.ask(&app, &form_of(&good)).await, 400, "invalid_grant");
        let another = grant("organization_id", json!("acme"));
        access(&client.ask(&app, &form_of(&another)).await);
        app.kernel.stop().await;
    });
}

#[test]
fn an_enterprises_assertion_serves_once_at_two_servers_and_across_a_restart() {
    each("oauth_id_jag_once", |app| async move {
        let workshop = workshop(&app);
        let (first, second) = (trusting(&app, &workshop), trusting(&app, &workshop));
        user(&first, "ann@acme.example", Some("viewer")).await;
        let client = Confidential::register(&first, &[JWT_BEARER], None).await;
        let now = app.now().as_ms() / 1000;
        let claims = json!({
            "iss": ISSUER, "sub": "subject-1", "aud": URL, "client_id": client.id, "resource": API,
            "scope": "policies:read", "jti": fresh_key(), "iat": now, "exp": now + 300,
            "email": "ann@acme.example", "email_verified": true,
        });
        let header = json!({ "alg": "EdDSA", "typ": "oauth-id-jag+jwt", "kid": "ed" });
        let assertion = workshop.signed(&header, &claims);
        access(&client.ask(&first, &form_of(&assertion)).await);
        refused(
            &client.ask(&second, &form_of(&assertion)).await,
            400,
            "invalid_grant",
        );
        first.kernel.stop().await;
        second.kernel.stop().await;
        let third = trusting(&app, &workshop);
        refused(
            &client.ask(&third, &form_of(&assertion)).await,
            400,
            "invalid_grant",
        );
        // As long as it would be taken.
        app.advance(359);
        refused(
            &client.ask(&third, &form_of(&assertion)).await,
            400,
            "invalid_grant",
        );
        third.kernel.stop().await;
    });
}

/// Proves KY-1.
#[test]
fn a_token_that_a_newer_server_signed_is_read_by_an_older_one() {
    each("oauth_newer_key", |app| async move {
        let workshop = workshop(&app);
        let older = trusting(&app, &workshop);
        user(&older, "alice@acme.example", Some("viewer")).await;
        let client = Confidential::register(&older, &[EXCHANGE], None).await;
        let used = of(&workshop, "alice", "client-1", "s");
        read(&older, &used).await.ok();
        let made = Keys::rotate(&app.keys_dir, "signing", app.now(), &SystemEntropy).unwrap();
        let newer = trusting(&app, &workshop);
        let file = app.keys_dir.join(format!("{made}.key"));
        let away = app.keys_dir.join("away");
        let given = access(&client.ask(&newer, &exchange(&used)).await);
        // A key that is nowhere is the caller's word.
        std::fs::rename(&file, &away).unwrap();
        read(&older, &given).await.refused(401, "unauthenticated");
        std::fs::rename(&away, &file).unwrap();
        app.advance(5);
        read(&older, &given).await.ok();
        // The older one signs with its own key until its next start, and the newer one reads that.
        let own = access(&client.ask(&older, &exchange(&used)).await);
        read(&newer, &own).await.ok();
        newer.kernel.stop().await;
        older.kernel.stop().await;
    });
}
