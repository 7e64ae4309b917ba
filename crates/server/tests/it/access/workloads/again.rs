//! A token that comes again: after its trust was let in again, through another trust, or asking for something else.

use super::*;
use crate::access::oauth::dpop::proof_of;
use crate::access::oauth::post_with;
use crate::access::oauth::stub_server::StubServer;
use crate::support::each;
use aws_lc_rs::signature::Ed25519KeyPair;

/// Proves WO-5.
#[test]
fn a_token_from_before_a_trust_was_let_in_again_is_refused() {
    each("workload_old_tokens", |app| async move {
        let scene = Scene::of(&app, Platform::Gitlab, "viewer", &["policies:read"]).await;
        scene.update(&app, json!({ "suspended": true })).await.ok();
        let old = scene.token(&app, |_| {});
        app.advance(5);
        let same_second = scene.token(&app, |_| {});
        scene.update(&app, json!({ "suspended": false })).await.ok();
        app.advance(1);
        for token in [&old, &same_second] {
            not_accepted(&scene.exchange(&app, token).await);
        }
        let new = scene.token(&app, |_| {});
        access(&scene.exchange(&app, &new).await);
        // What changes nothing forgets nothing, and a trust that was let in is let in.
        let kept = scene.token(&app, |_| {});
        app.advance(1);
        scene.update(&app, json!({ "suspended": false })).await.ok();
        access(&scene.exchange(&app, &kept).await);
        scene.update(&app, json!({ "name": fresh_key() })).await.ok();
        not_accepted(&scene.exchange(&app, &old).await);
    });
}

/// Proves WO-5.
#[test]
fn a_loss_that_is_accepted_voids_every_token_that_was_issued() {
    each("workload_lost", |app| async move {
        let scene = Scene::of(&app, Platform::Gitlab, "viewer", &["policies:read"]).await;
        let used = scene.token(&app, |_| {});
        let unused = scene.token(&app, |_| {});
        access(&scene.exchange(&app, &used).await);
        app.advance(5);
        crate::access::oauth::unit(&app, provost_areas_access::oauth::void_codes).await;
        app.advance(1);
        for token in [&used, &unused] {
            not_accepted(&scene.exchange(&app, token).await);
        }
        access(&scene.exchange(&app, &scene.token(&app, |_| {})).await);
    });
}

/// Proves WO-5.
#[test]
fn a_token_serves_once_whether_the_keys_are_the_trusts_or_the_issuers() {
    each("workload_both_keys", |app| async move {
        let workshop = workshop(&app);
        let issuer: StubServer = keys::platform(workshop.key_set()).await;
        let app = keys::allowing(&app);
        let (account, _) = app.account(&fresh_key(), "viewer", &["policies:read"]).await;
        let mut body = Platform::Github.trust(&account);
        body["issuer"] = issuer.url.clone().into();
        let fetching = trusted(&app, body.clone()).await;
        body["name"] = fresh_key().into();
        body["jwks"] = workshop.key_set();
        let holding = trusted(&app, body).await;
        for (first, second) in [(&fetching, &holding), (&holding, &fetching)] {
            let mut claims = Platform::Github.claims(app.now().as_ms() / 1000);
            claims["iss"] = issuer.url.clone().into();
            let token = workshop.signed(&Platform::Github.header(), &claims);
            access(&exchange(&app, first, &token, &[]).await);
            not_accepted(&exchange(&app, second, &token, &[]).await);
            access(&exchange(&app, first, &token, &[]).await);
        }
        app.kernel.stop().await;
    });
}

/// Proves WO-5.
#[test]
fn what_is_asked_again_is_answered_only_where_it_is_the_same() {
    each("workload_repeats", |app| async move {
        let scene = Scene::of(&app, Platform::Gitlab, "viewer", &["policies:read"]).await;
        let url = format!("{URL}/oauth/token");
        let bound = async |token: &str, key: &Ed25519KeyPair| {
            let now = app.now().as_ms() / 1000;
            let proof = proof_of("POST", key, "", now, &fresh_key(), &url);
            let form = [
                ("grant_type", EXCHANGE),
                ("client_id", scene.trust.as_str()),
                ("subject_token", token),
                ("subject_token_type", JWT),
            ];
            post_with(&app, "/oauth/token", &form, &[("dpop", &proof)]).await
        };
        let (key, thief) = (
            Ed25519KeyPair::generate().unwrap(),
            Ed25519KeyPair::generate().unwrap(),
        );
        let token = scene.token(&app, |_| {});
        let first = bound(&token, &key).await;
        assert_eq!(first.ok()["token_type"], "DPoP");
        not_accepted(&scene.exchange(&app, &token).await);
        not_accepted(&bound(&token, &thief).await);
        assert_eq!(bound(&token, &key).await.ok()["token_type"], "DPoP");
        // Nor does one without a key become one with a key.
        let token = scene.token(&app, |_| {});
        access(&scene.exchange(&app, &token).await);
        not_accepted(&bound(&token, &thief).await);
        let mcp = [("resource", crate::access::oauth::MCP)];
        not_accepted(&exchange(&app, &scene.trust, &token, &mcp).await);
        access(&scene.exchange(&app, &token).await);
    });
}
