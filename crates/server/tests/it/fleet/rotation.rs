//! How a device comes to another key, and what the earlier one is worth then.

use super::{act, seen};
use crate::areas::dpop::thumbprint;
use crate::areas::fleet::{
    Machine, beat, beat_of, enrol, enrolment_token, laptop, new_key, proof_of_a_key, rotation, send,
};
use crate::support::{App, Reply, each};
use aws_lc_rs::signature::Ed25519KeyPair;
use provost_kernel::ends::EndJournal;
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: u64 = 86_400;

async fn ask(app: &App, machine: &Machine, proof: &str) -> Reply {
    let path = format!("/devices/{}/key", machine.id);
    let call = app.request("POST", &path).token(&machine.token);
    call.json(rotation(proof)).send().await
}

/// Asks for a new key, and returns the machine with it.
async fn rotate(app: &App, machine: &Machine, key: &Arc<Ed25519KeyPair>) -> Machine {
    let reply = ask(app, machine, &proof_of_a_key(app, &machine.id, key)).await;
    assert_eq!(reply.ok()["keyThumbprint"], json!(thumbprint(key)));
    let token = reply.ok()["token"]["token"].as_str().unwrap().to_owned();
    app.machines.bind(&token, key);
    Machine {
        token,
        key: key.clone(),
        id: machine.id.clone(),
    }
}

/// Where a device stands, and what is suspected of it.
async fn standing(app: &App, machine: &Machine) -> (String, Value) {
    let device = seen(app, &machine.id).await;
    let status = device["status"].as_str().unwrap().to_owned();
    (status, device["tamper"]["reason"].clone())
}

async fn is_untouched(app: &App, machine: &Machine) -> bool {
    standing(app, machine).await == ("active".to_owned(), Value::Null)
}

async fn is_apart(app: &App, machine: &Machine) -> bool {
    standing(app, machine).await == ("quarantined".to_owned(), json!("former_key"))
}

/// The keys that devices gave up, as they stand beside the keys of the server.
fn given_up(app: &App) -> Vec<Vec<String>> {
    let all = EndJournal::of(&app.kernel.keys.end_lines().unwrap()).lines;
    let of_keys = all
        .into_iter()
        .filter(|line| (line.what.as_str(), line.how.as_str()) == ("device_key", "given_up"));
    of_keys.flat_map(|line| line.ids).collect()
}

/// Proves FL-6, CR-5, EN-3.
#[test]
fn a_machine_that_lost_the_answer_asks_again_and_nobody_else_does_with_the_former_key() {
    each("fleet_rotation", |app: Arc<App>| async move {
        app.named().await;
        let former = Machine::new(&app).await;
        let lost = rotate(&app, &former, &new_key()).await;
        assert_eq!(given_up(&app), [[former.id.clone(), thumbprint(&former.key)]]);
        assert_eq!(
            seen(&app, &former.id).await["keyThumbprint"],
            json!(thumbprint(&lost.key))
        );
        // Each token has its key: neither opens anything beside the other one.
        let path = format!("/devices/{}/heartbeat", former.id);
        for (key, token) in [(&former.key, &lost.token), (&lost.key, &former.token)] {
            let reply = send(&app, key, token, &path, beat()).await;
            reply.refused(401, "unauthenticated");
        }
        let present = rotate(&app, &former, &lost.key).await;
        lost.beat(&app).await.refused(401, "token_revoked");
        assert!(is_untouched(&app, &present).await);
        present.beat(&app).await.ok();
        app.settle().await;
        // Once the new key was used, its machine has no reason to ask with the former one.
        let proof = proof_of_a_key(&app, &former.id, &present.key);
        let answer = ask(&app, &former, &proof).await.ok().clone();
        assert_eq!(answer["keyThumbprint"], json!(thumbprint(&present.key)));
        assert!(answer.get("token").is_none());
        assert!(is_apart(&app, &present).await);
        // Both go on, whoever they are: a person decides. What that decides does not last while the former key is used.
        former.beat(&app).await.ok();
        present.beat(&app).await.ok();
        act(&app, &present.id, "release").await.ok();
        former.beat(&app).await.ok();
        assert!(is_apart(&app, &present).await);
        // It is nobody's any more.
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let reply = send(&app, &former.key, &secret, "/devices/enrol", laptop("again")).await;
        reply.refused(409, "conflict");
        let stranger = Machine::new(&app).await;
        for known in [&former.key, &present.key] {
            let proof = proof_of_a_key(&app, &stranger.id, known);
            ask(&app, &stranger, &proof).await.refused(409, "conflict");
        }
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let count = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
        assert_eq!(count("fleet.device.key_rotated"), 1);
        assert_eq!(count("fleet.device.quarantined"), 2);
        app.kernel.stop().await;
    });
}

/// Proves FL-6.
#[test]
fn the_first_use_of_a_former_key_quarantines_whatever_is_called() {
    each("fleet_former_keys", |app: Arc<App>| async move {
        let other = Machine::new(&app).await;
        let absent = "cmd_01kadh5j9v0000000000000000";
        for place in 0..8 {
            let former = Machine::new(&app).await;
            let present = rotate(&app, &former, &new_key()).await;
            present.beat(&app).await.ok();
            assert!(is_untouched(&app, &former).await);
            if place > 5 {
                // Nobody was heard from there, so that the caller is judged before the body.
                app.advance(601);
            }
            let own = format!("/devices/{}", former.id);
            let (path, body) = match place {
                0 => (format!("{own}/heartbeat"), beat()),
                1 => (
                    format!("{own}/commands/{absent}/result"),
                    json!({ "outcome": "succeeded" }),
                ),
                // What is refused was a use as well.
                2 | 7 => (format!("/devices/{}/heartbeat", other.id), beat()),
                3 => (format!("{own}/key"), rotation("x")),
                // Neither is what the operation never hears of.
                5 => (format!("{own}/key"), json!({})),
                6 => (format!("/devices/{}/key", other.id), rotation("x")),
                _ => (
                    format!("{own}/key"),
                    rotation(&proof_of_a_key(&app, &former.id, &new_key())),
                ),
            };
            let call = app.request("POST", &path).token(&former.token);
            let reply = call.json(body).send().await;
            assert!(is_apart(&app, &former).await, "{place}: {}", reply.text());
            if place == 3 || place == 4 {
                assert!(reply.ok().get("token").is_none());
            }
        }
        let former = Machine::new(&app).await;
        rotate(&app, &former, &new_key()).await;
        former.age(&app).await;
        former.renew(&app).await.refused(409, "conflict");
        assert!(is_apart(&app, &former).await);
        app.kernel.stop().await;
    });
}

/// Proves FL-6, FL-8.
#[test]
fn a_thief_who_rotates_first_shuts_nobody_out_and_is_seen() {
    each("fleet_thief", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (robot, _) = app
            .account("robot", "viewer", &["service_accounts:rotate_self"])
            .await;
        let identity = format!("/devices/{}/gateway-identity", laptop.id);
        let body = json!({ "serviceAccountId": robot });
        app.write("PUT", &identity, body).await.ok();
        let thief = rotate(&app, &laptop.clone(), &new_key()).await;
        thief.beat(&app).await.ok();
        app.settle().await;
        assert!(is_untouched(&app, &laptop).await);
        app.get(&identity).await.ok();
        laptop.beat(&app).await.ok();
        assert!(is_apart(&app, &laptop).await);
        app.get(&identity).await.refused(404, "not_found");
        // A renewal by the thief ends no token of the machine.
        thief.age(&app).await;
        thief.renew(&app).await.ok();
        app.advance(601);
        laptop.beat(&app).await.ok();
        act(&app, &laptop.id, "retire").await.ok();
        for machine in [&laptop, &thief] {
            machine.beat(&app).await.refused(401, "token_revoked");
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-6.
#[test]
fn nobody_has_a_key_that_was_not_proven_for_this() {
    each("fleet_rotation_proofs", |app: Arc<App>| async move {
        let (laptop, stranger) = (Machine::new(&app).await, Machine::new(&app).await);
        let good = || proof_of_a_key(&app, &laptop.id, &new_key());
        let for_another = proof_of_a_key(&app, &stranger.id, &new_key());
        let spoiled = {
            let good = good();
            let (rest, signature) = good.rsplit_once('.').unwrap();
            let first = if signature.starts_with('A') { "B" } else { "A" };
            format!("{rest}.{first}{}", &signature[1..])
        };
        let late = good();
        app.advance(61);
        for wrong in ["", "x", for_another.as_str(), spoiled.as_str(), late.as_str()] {
            ask(&app, &laptop, wrong).await.refused(422, "invalid_definition");
        }
        let long = ask(&app, &laptop, &"x".repeat(4097)).await;
        long.refused(400, "invalid_request");
        let own = proof_of_a_key(&app, &laptop.id, &laptop.key);
        let refused = ask(&app, &laptop, &own).await;
        refused.refused(409, "conflict");
        assert_eq!(refused.json["keyThumbprint"], json!(thumbprint(&laptop.key)));
        let path = format!("/devices/{}/key", laptop.id);
        let call = app.request("POST", &path).token(&stranger.token);
        call.json(rotation(&good()))
            .send()
            .await
            .refused(403, "role_forbidden");
        // Of two copies the one that called more often may.
        let far = 1_000_000_000;
        let path = format!("/devices/{}/heartbeat", laptop.id);
        let call = app.request("POST", &path).token(&laptop.token);
        call.json(beat_of(far, "one")).send().await.ok();
        let change = async |counter: i64| {
            let body = json!({ "newKeyProof": good(), "counter": counter });
            let path = format!("/devices/{}/key", laptop.id);
            let call = app.request("POST", &path).token(&laptop.token);
            call.json(body).send().await
        };
        change(far).await.refused(409, "conflict");
        assert!(
            is_untouched(&app, &laptop).await,
            "it has the key that the device has"
        );
        change(far + 1).await.ok();
        // One that nobody heard of has no other key yet.
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let waiting = enrol(&app, &secret).await;
        let proof = proof_of_a_key(&app, &waiting.id, &new_key());
        ask(&app, &waiting, &proof).await.refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// Proves FL-6.
#[test]
fn the_same_rotation_is_answered_eight_times_and_never_again() {
    each("fleet_rotation_again", |app: Arc<App>| async move {
        let former = Machine::new(&app).await;
        let mut present = rotate(&app, &former, &new_key()).await;
        for _ in 1..8 {
            app.advance(1);
            assert!(is_untouched(&app, &former).await);
            present = rotate(&app, &former, &present.key).await;
        }
        let is_suspected = ("active".to_owned(), json!("former_key"));
        assert_eq!(standing(&app, &former).await, is_suspected);
        for _ in 0..2 {
            app.advance(1);
            let proof = proof_of_a_key(&app, &former.id, &present.key);
            let refused = ask(&app, &former, &proof).await;
            refused.refused(409, "conflict");
            assert_eq!(refused.json["keyThumbprint"], json!(thumbprint(&present.key)));
        }
        // What was answered last serves, and ends with the device.
        present.beat(&app).await.ok();
        assert_eq!(standing(&app, &former).await, is_suspected);
        act(&app, &former.id, "retire").await.ok();
        for machine in [&former, &present] {
            machine.beat(&app).await.refused(401, "token_revoked");
        }
        app.kernel.stop().await;
    });
}

/// The answer is lost and the clock moves: the machine shows the new key at another time, and nobody else has it.
/// Proves FL-6.
#[test]
fn a_late_proof_of_the_new_key_is_refused_and_holds_nobody_apart() {
    each("fleet_rotation_late", |app: Arc<App>| async move {
        let former = Machine::new(&app).await;
        let lost = rotate(&app, &former, &new_key()).await;
        let late = proof_of_a_key(&app, &former.id, &lost.key);
        let of_another = proof_of_a_key(&app, &former.id, &new_key());
        app.advance(61);
        let refused = ask(&app, &former, &late).await;
        refused.refused(422, "invalid_definition");
        assert_eq!(refused.json["keyThumbprint"], json!(thumbprint(&lost.key)));
        assert!(is_untouched(&app, &former).await);
        let present = rotate(&app, &former, &lost.key).await;
        assert!(is_untouched(&app, &former).await);
        present.beat(&app).await.ok();
        // A late proof of a key that the device never had says nothing for whoever shows it.
        ask(&app, &former, &of_another).await.ok();
        assert!(is_apart(&app, &former).await);
        app.kernel.stop().await;
    });
}

/// Proves FL-6.
#[test]
fn the_tokens_of_former_keys_end_by_their_own_time_and_bound_how_often_a_key_changes() {
    each("fleet_rotation_bound", |app: Arc<App>| async move {
        let former = Machine::new(&app).await;
        let mut present = former.clone();
        for _ in 0..3 {
            present = rotate(&app, &present, &new_key()).await;
            present.beat(&app).await.ok();
        }
        let proof = proof_of_a_key(&app, &present.id, &new_key());
        ask(&app, &present, &proof).await.refused(409, "conflict");
        app.advance(30 * DAY - 1);
        former.beat(&app).await.ok();
        assert!(is_apart(&app, &present).await);
        app.advance(1);
        former.beat(&app).await.refused(401, "token_expired");
        app.kernel.stop().await;
    });
}

/// A machine that renewed has two tokens beside one key: what is bounded is how often the key changes.
/// Proves FL-6.
#[test]
fn a_machine_that_renewed_changes_its_key_as_often_as_any_other() {
    each("fleet_rotation_renewed", |app: Arc<App>| async move {
        let first = Machine::new(&app).await;
        first.age(&app).await;
        let renewed = first.renew(&app).await;
        let token = renewed.ok()["token"]["token"].as_str().unwrap().to_owned();
        app.machines.bind(&token, &first.key);
        let mut present = Machine {
            token,
            ..first.clone()
        };
        for _ in 0..3 {
            present.beat(&app).await.ok();
            present = rotate(&app, &present, &new_key()).await;
        }
        let proof = proof_of_a_key(&app, &present.id, &new_key());
        ask(&app, &present, &proof).await.refused(409, "conflict");
        assert!(is_untouched(&app, &present).await);
        app.kernel.stop().await;
    });
}
