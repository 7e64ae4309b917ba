//! Which tokens of other issuers are accepted.

use super::dpop::{proof_of, thumbprint};
use super::*;
use crate::support::each;
use aws_lc_rs::signature::Ed25519KeyPair;

/// Proves OC-1.
#[test]
fn every_attack_on_tokens_is_401_with_the_challenge() {
    each("oauth_attacks", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        assert_eq!(read(&app, &token(&workshop, |_| {})).await.status.as_u16(), 200);
        let mut sent = 0;
        for attack in workshop.attacks() {
            let Ok(value) = http::HeaderValue::from_str(&format!("Bearer {}", attack.token)) else {
                continue;
            };
            sent += 1;
            let request = Request::get(app.path(READ)).header("authorization", value);
            let reply = answer(&app, request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.status.as_u16(), 401, "{}: {}", attack.name, reply.text());
            let challenge = reply.header("www-authenticate");
            let wanted =
                format!("resource_metadata=\"{URL}/.well-known/oauth-protected-resource/api/headless/v1\"");
            assert!(challenge.contains(&wanted), "{}: {challenge}", attack.name);
            assert!(
                challenge.contains("error=\"invalid_token\""),
                "{}: {challenge}",
                attack.name
            );
        }
        assert!(sent > 300, "{sent}");
        app.kernel.stop().await;
    });
}

/// Proves CR-2, OC-7.
#[test]
fn a_user_is_found_by_issuer_and_subject_and_linked_on_the_issuers_word_alone() {
    each("oauth_users", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let id = user(&app, "ann@acme.example", None).await;
        let of = |session: &str, change: fn(&mut Value)| {
            let session = session.to_owned();
            token(&workshop, move |claims| {
                claims["sid"] = session.into();
                change(claims);
            })
        };
        // Nobody vouches for the address, so nobody is found.
        read(&app, &of("a", |claims| claims["email_verified"] = false.into()))
            .await
            .refused(401, "unauthenticated");
        read(
            &app,
            &of("b", |claims| claims["email"] = "bob@acme.example".into()),
        )
        .await
        .refused(401, "unauthenticated");
        // Linked, but without a role.
        let ann = of("c", |_| {});
        assert_eq!(read(&app, &ann).await.status.as_u16(), 403);
        let patch = json!({ "permissionRole": "viewer" });
        app.write("PATCH", &format!("/directory/users/{id}"), patch)
            .await
            .ok();
        read(&app, &ann).await.ok();
        // From now on the subject is enough.
        let later = of("d", |claims| claims["email_verified"] = false.into());
        read(&app, &later).await.ok();
        // The role, the token's scopes: the smaller one counts.
        let other = app.request("GET", "/directory/users").token(&later).send().await;
        assert_eq!(other.status.as_u16(), 403);
        // Another organization and another resource.
        let (foreign, _) = app.other_organization("Other").await;
        let mut elsewhere = token(&workshop, |claims| {
            claims["organization_id"] = foreign.clone().into();
        });
        read(&app, &elsewhere).await.refused(401, "unauthenticated");
        elsewhere = token(&workshop, |claims| claims["aud"] = MCP.into());
        read(&app, &elsewhere).await.refused(401, "unauthenticated");
        app.kernel.stop().await;
    });
}

/// Proves OC-7.
#[test]
fn an_address_is_verified_by_true_and_by_that_word_alone() {
    each("oauth_verified_word", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        let of = |session: &str, email: Value, verified: Value| {
            token(&workshop, |claims| {
                claims["sid"] = session.into();
                claims["email"] = email;
                claims["email_verified"] = verified;
            })
        };
        let ann = || json!("ann@acme.example");
        let others = [
            json!(false),
            json!("false"),
            json!("True"),
            json!("TRUE"),
            json!(" true"),
            json!("1"),
            json!("yes"),
            json!(1),
            json!(["true"]),
            json!({ "true": true }),
            Value::Null,
        ];
        for other in &others {
            let refused = read(&app, &of("a", ann(), other.clone())).await;
            refused.refused(401, "unauthenticated");
        }
        read(&app, &of("b", ann(), json!("true"))).await.ok();
        // Whoever is linked by their subject needs no address.
        for email in [Value::Null, json!(""), json!(7), json!("x".repeat(600))] {
            for verified in &others {
                let said = of("c", email.clone(), verified.clone());
                read(&app, &said).await.ok();
            }
        }
        app.kernel.stop().await;
    });
}

#[test]
fn a_suspended_user_and_an_ended_session_are_refused_at_the_next_request_everywhere() {
    each("oauth_ends", |app| async move {
        let workshop = workshop(&app);
        let (app, other) = (trusting(&app, &workshop), trusting(&app, &workshop));
        let id = user(&app, "ann@acme.example", Some("viewer")).await;
        let token = token(&workshop, |_| {});
        read(&app, &token).await.ok();
        read(&other, &token).await.ok();
        app.write("POST", &format!("/directory/users/{id}/suspend"), json!({}))
            .await
            .ok();
        assert_eq!(read(&app, &token).await.status.as_u16(), 401);
        assert_eq!(read(&other, &token).await.status.as_u16(), 401);
        let sessions = app.get("/mcp/sessions").await;
        let session = &sessions.ok()["sessions"][0];
        assert_eq!(session["actorType"], "console_user");
        assert_eq!(session["mcpClientId"], "client-1");
        app.kernel.stop().await;
        other.kernel.stop().await;
    });
}

/// A proof for a request, with other claims.
fn proof(key: &Ed25519KeyPair, token: &str, now: i64, id: &str, url: &str) -> String {
    proof_of("GET", key, token, now, id, url)
}

/// Proves OC-1, OC-8.
#[test]
fn a_bound_token_needs_its_proof_each_time_a_new_one() {
    each("oauth_dpop", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        user(&app, "ann@acme.example", Some("viewer")).await;
        let (key, strange) = (
            Ed25519KeyPair::generate().unwrap(),
            Ed25519KeyPair::generate().unwrap(),
        );
        let jkt = thumbprint(&key);
        let bound = token(&workshop, |claims| claims["cnf"] = json!({ "jkt": jkt }));
        let plain = token(&workshop, |claims| claims["sid"] = "plain".into());
        let certificate = token(&workshop, |claims| claims["cnf"] = json!({ "x5t#S256": jkt }));
        let now = app.now().as_ms() / 1000;
        let url = format!("{URL}{}", app.path(READ));
        let send = |scheme: &str, token: &str, proofs: Vec<String>| {
            let mut request =
                Request::get(app.path(READ)).header("authorization", format!("{scheme} {token}"));
            for proof in proofs {
                request = request.header("dpop", proof);
            }
            let (app, request) = (app.clone(), request.body(Body::empty()).unwrap());
            async move { answer(&app, request).await.status.as_u16() }
        };
        let good = |id: &str| proof(&key, &bound, now, id, &url);
        assert_eq!(send("DPoP", &bound, vec![good("1")]).await, 200);
        assert_eq!(send("DPoP", &bound, vec![good("1")]).await, 401, "replayed");
        assert_eq!(send("dpop", &bound, vec![good("2")]).await, 200);
        assert_eq!(send("Bearer", &bound, vec![good("3")]).await, 401, "as bearer");
        assert_eq!(send("DPoP", &bound, vec![]).await, 401, "no proof");
        assert_eq!(
            send("DPoP", &bound, vec![good("4"), good("5")]).await,
            401,
            "two proofs"
        );
        assert_eq!(
            send("DPoP", &bound, vec![proof(&strange, &bound, now, "6", &url)]).await,
            401
        );
        assert_eq!(
            send("DPoP", &bound, vec![proof(&key, &plain, now, "7", &url)]).await,
            401
        );
        assert_eq!(
            send("DPoP", &bound, vec![proof(&key, &bound, now - 61, "8", &url)]).await,
            401
        );
        assert_eq!(
            send("DPoP", &bound, vec![proof(&key, &bound, now, "9", URL)]).await,
            401
        );
        assert_eq!(
            send("DPoP", &plain, vec![proof(&key, &plain, now, "10", &url)]).await,
            401
        );
        assert_eq!(send("Bearer", &plain, vec![]).await, 200);
        assert_eq!(send("Bearer", &certificate, vec![]).await, 401);
        app.kernel.stop().await;
    });
}

/// Proves OC-8.
#[test]
fn a_proof_serves_the_token_endpoint_once_at_all_servers() {
    each("oauth_dpop_token", |app| async move {
        let other = app.restarted(Extras::default()).unwrap();
        let client = register(&app, public_client("one")).await;
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let key = Ed25519KeyPair::generate().unwrap();
        let now = app.now().as_ms() / 1000;
        let of = |id: &str| proof_of("POST", &key, "", now, id, &format!("{URL}/oauth/token"));
        let codes = [
            code(&app, &client, &ann, &["policies:read"], None).await,
            code(&app, &client, &ann, &["policies:read"], None).await,
        ];
        let (first, second) = (of("1"), of("2"));
        let redeem = async |app: &App, code: &str, proof: &str| {
            let form = redeeming(&client, code);
            post_with(app, "/oauth/token", &form, &[("dpop", proof)]).await
        };
        let reply = redeem(&*app, codes[0].as_str(), first.as_str()).await;
        assert_eq!(reply.ok()["token_type"], "DPoP");
        // A proof that came with a grant that is none is remembered nowhere: whoever has no grant fills no memory.
        for _ in 0..2 {
            let reply = redeem(&*app, "no code of anybody", second.as_str()).await;
            refused(&reply, 400, "invalid_grant");
        }
        // The other server never saw it, and refuses it all the same; the code is not spent.
        for server in [&other, &*app] {
            let reply = redeem(server, codes[1].as_str(), first.as_str()).await;
            refused(&reply, 400, "invalid_dpop_proof");
        }
        assert_eq!(
            redeem(&other, codes[1].as_str(), second.as_str()).await.ok()["token_type"],
            "DPoP"
        );
        other.kernel.stop().await;
    });
}

#[test]
fn the_documents_name_who_gives_out_tokens() {
    each("oauth_documents", |app| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let get = |path: &'static str| {
            let (app, request) = (app.clone(), Request::get(path).body(Body::empty()).unwrap());
            async move { answer(&app, request).await }
        };
        for (path, resource) in [
            ("/.well-known/oauth-protected-resource/api/headless/v1", API),
            ("/.well-known/oauth-protected-resource/mcp", MCP),
            ("/.well-known/oauth-protected-resource", MCP),
        ] {
            let reply = get(path).await;
            assert_eq!(reply.ok()["resource"], resource);
            assert_eq!(reply.json["authorization_servers"], json!([URL, ISSUER]));
            assert_eq!(reply.json["bearer_methods_supported"], json!(["header"]));
            assert_eq!(reply.header("access-control-allow-origin"), "*");
            assert!(!reply.text().contains("offline_access"));
        }
        let server = get("/.well-known/oauth-authorization-server").await;
        assert_eq!(server.ok()["issuer"], URL);
        assert_eq!(server.json["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(server.json["client_id_metadata_document_supported"], true);
        let keys = get("/oauth/jwks").await;
        assert_eq!(keys.ok()["keys"][0]["kid"], "oauth-1");
        assert!(keys.json["keys"][0].get("d").is_none());
        app.kernel.stop().await;
    });
}
