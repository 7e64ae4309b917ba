//! What a machine sends beside its token: a proof of its key, for one request.

use crate::areas::dpop::proof_of;
use crate::areas::fleet::{Machine, beat, enrolment_token, laptop, new_key as key};
use crate::support::{App, Reply, each};
use aws_lc_rs::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use std::sync::Arc;

/// A request with these proofs and nothing else to prove.
async fn call(app: &App, scheme: &str, token: &str, path: &str, body: Value, proofs: &[&String]) -> Reply {
    let mut call = app
        .request("POST", path)
        .anonymous()
        .header("authorization", &format!("{scheme} {token}"));
    for proof in proofs {
        call = call.header("dpop", proof);
    }
    call.json(body).send().await
}

/// Proofs that are right but for one thing.
fn wrong(key_of: &Ed25519KeyPair, token: &str, now: i64, url: &str) -> Vec<(&'static str, String)> {
    let proof = |key: &Ed25519KeyPair, method: &str, token: &str, now: i64, what: &str, url: &str| {
        proof_of(method, key, token, now, what, url)
    };
    let good = proof(key_of, "POST", token, now, "spoiled", url);
    let (rest, signature) = good.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { "B" } else { "A" };
    vec![
        ("another method", proof(key_of, "GET", token, now, "a", url)),
        (
            "another path",
            proof(key_of, "POST", token, now, "b", &format!("{url}/x")),
        ),
        (
            "another server",
            proof(key_of, "POST", token, now, "c", &url.replace("://", "://other.")),
        ),
        ("too old", proof(key_of, "POST", token, now - 61, "d", url)),
        ("in the future", proof(key_of, "POST", token, now + 61, "e", url)),
        ("another token", proof(key_of, "POST", "another", now, "f", url)),
        (
            "a spoiled signature",
            format!("{rest}.{first}{}", &signature[1..]),
        ),
        ("no proof", "x".to_owned()),
    ]
}

/// Proves FL-1, CR-5.
#[test]
fn a_token_without_the_key_and_a_proof_of_this_request_opens_nothing() {
    each("fleet_proofs", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = format!("/devices/{}/heartbeat", laptop.id);
        let now = app.now().as_ms() / 1000;
        let url = format!("{}{}", app.kernel.settings.public_url, app.path(&path));
        let token = &laptop.token;
        let send =
            async |scheme: &str, proofs: &[&String]| call(&app, scheme, token, &path, beat(), proofs).await;
        send("Bearer", &[]).await.refused(401, "unauthenticated");
        for (what, proof) in wrong(&laptop.key, token, now, &url) {
            let reply = send("Bearer", &[&proof]).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (401, "unauthenticated"),
                "{what}"
            );
        }
        let stranger = proof_of("POST", &key(), token, now, "another key", &url);
        send("Bearer", &[&stranger]).await.refused(401, "unauthenticated");
        let good = proof_of("POST", &laptop.key, token, now, "good", &url);
        let better = proof_of("POST", &laptop.key, token, now, "better", &url);
        // An opaque token is a bearer, with one proof.
        send("DPoP", &[&good]).await.refused(401, "unauthenticated");
        send("Bearer", &[&good, &better])
            .await
            .refused(401, "unauthenticated");
        send("Bearer", &[&good]).await.ok();
        send("Bearer", &[&good]).await.refused(401, "unauthenticated");
        // As old and as young as it may be.
        for (what, at) in [("old", now - 60), ("young", now + 60)] {
            send("Bearer", &[&proof_of("POST", &laptop.key, token, at, what, &url)])
                .await
                .ok();
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-1, FL-4, CR-5.
#[test]
fn an_enrolment_token_without_a_proof_makes_no_device() {
    each("fleet_enrol_proofs", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({ "maxUses": 2, "requireApproval": true })).await;
        let (path, own) = ("/devices/enrol", key());
        let now = app.now().as_ms() / 1000;
        let url = format!("{}{}", app.kernel.settings.public_url, app.path(path));
        let send =
            async |proofs: &[&String]| call(&app, "Bearer", &secret, path, laptop("laptop"), proofs).await;
        send(&[]).await.refused(401, "unauthenticated");
        for (what, proof) in wrong(&own, &secret, now, &url) {
            let reply = send(&[&proof]).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (401, "unauthenticated"),
                "{what}"
            );
        }
        let good = proof_of("POST", &own, &secret, now, "good", &url);
        send(&[&good]).await.ok();
        send(&[&good]).await.refused(401, "unauthenticated");
        assert_eq!(
            app.get("/devices").await.ok()["devices"].as_array().map(Vec::len),
            Some(1)
        );
        // A proof of one key does not make the token of another key better.
        let token = app.get("/devices/enrolment-tokens").await.ok()["enrolmentTokens"][0].clone();
        assert_eq!(token["uses"], 1);
        app.kernel.stop().await;
    });
}

/// A token has 1 300 proofs in two minutes.
#[test]
fn a_machine_that_calls_without_end_takes_its_own_share_alone() {
    each("fleet_proof_share", |app: Arc<App>| async move {
        let (noisy, quiet) = (Machine::new(&app).await, Machine::new(&app).await);
        // The first one made it active.
        for _ in 1..1_300 {
            noisy.beat(&app).await.ok();
        }
        let reply = noisy.beat(&app).await;
        reply.refused(503, "unavailable");
        assert!(reply.text().contains("too many proofs"), "{}", reply.text());
        quiet.beat(&app).await.ok();
        app.kernel.stop().await;
    });
}
