//! What ends without anybody asking, what is kept of a heartbeat, and what nobody makes come back.

use super::{act, laptop_body, seen};
use crate::areas::fleet::{Machine, TOKENS, beat, enrol, enrolment_token, new_key, send};
use crate::support::{App, each, fresh_key, with_trio};
use provost_kernel::{OperationContext, params, statements};
use serde_json::json;
use std::sync::Arc;

statements! {
    /// Has a device be as a restore leaves it.
    HOLD = "UPDATE devices SET held_at = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Makes a device that waits for approval.
    WAIT = "INSERT INTO devices (organization_id, id, seq, name, status, needs_approval, mode, platform, arch, key_thumbprint, key_protection, enrolment_token_id, created_at, updated_at) VALUES (?1, ?2, ?3, 'laptop', 'pending', ?5, 'system', 'linux', 'x86_64', ?2, 'file', ?4, ?6, ?6)";
}

/// Has a device be as a restore leaves it.
pub async fn hold(app: &App, id: &str) {
    let id = id.to_owned();
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        ctx.queue(&HOLD, params![org, id.as_str(), now])
    };
    app.kernel
        .system(app.org(), Some("test.held"), run)
        .await
        .unwrap();
}

/// Runs what the area does by time.
pub async fn sweep(app: &App) {
    for area in app.kernel.areas().iter().filter(|area| area.name == "fleet") {
        for timer in area.timers {
            (timer.run)(app.kernel.clone(), false).await.unwrap();
        }
    }
}

/// Makes devices that wait for approval; their ids.
pub async fn make_devices(app: &App, count: i64) -> Vec<String> {
    let waiting = json!({ "maxUses": 9, "requireApproval": true });
    let (by, _) = enrolment_token(app, waiting).await;
    let ids: Vec<String> = (0..count).map(|number| format!("dev_{number:026}")).collect();
    let made = ids.clone();
    let run = move |ctx: &mut OperationContext<'_>| {
        let (org, now) = (ctx.org(), ctx.now());
        for (id, seq) in made.iter().zip(10_i64..) {
            ctx.queue(&WAIT, params![org, id.as_str(), seq, by.as_str(), true, now])?;
        }
        Ok(())
    };
    app.kernel
        .system(app.org(), Some("test.waiting"), run)
        .await
        .unwrap();
    ids
}

#[test]
fn a_device_that_never_called_or_that_nobody_approves_is_retired_by_time() {
    each("fleet_sweep", |app: Arc<App>| async move {
        let lasting = json!({ "maxUses": 9, "requireApproval": true });
        let (_, waiting) = enrolment_token(&app, lasting).await;
        let (_, one) = enrolment_token(&app, json!({})).await;
        let (_, other) = enrolment_token(&app, json!({})).await;
        let active = Machine::new(&app).await;
        let (silent, held) = (enrol(&app, &one).await, enrol(&app, &other).await);
        let (unapproved, approved) = (enrol(&app, &waiting).await, enrol(&app, &waiting).await);
        unapproved.beat(&app).await.ok();
        approved.beat(&app).await.ok();
        act(&app, &approved.id, "approve").await.ok();
        hold(&app, &held.id).await;
        let status = async |machine: &Machine| seen(&app, &machine.id).await["status"].clone();
        app.advance(86_399);
        sweep(&app).await;
        assert_eq!(status(&silent).await, "pending");
        app.advance(1);
        sweep(&app).await;
        let gone = seen(&app, &silent.id).await;
        assert_eq!(
            (&gone["status"], &gone["retireReason"]),
            (&json!("retired"), &json!("never_called"))
        );
        assert_eq!(status(&unapproved).await, "pending");
        // It beats to the last day, and nobody approves it.
        app.advance(29 * 86_400 - 1);
        unapproved.beat(&app).await.ok();
        sweep(&app).await;
        assert_eq!(status(&unapproved).await, "pending");
        app.advance(1);
        sweep(&app).await;
        let gone = seen(&app, &unapproved.id).await;
        assert_eq!(
            (&gone["status"], &gone["retireReason"]),
            (&json!("retired"), &json!("never_approved"))
        );
        for (machine, expected) in [(&active, "active"), (&approved, "active"), (&held, "pending")] {
            assert_eq!(status(machine).await, expected);
        }
        app.kernel.stop().await;
    });
}

#[test]
fn what_somebody_released_has_its_time_again_before_the_sweep() {
    each("fleet_sweep_released", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let machine = enrol(&app, &secret).await;
        hold(&app, &machine.id).await;
        app.advance(3 * 86_400);
        sweep(&app).await;
        let body = json!({ "ids": [machine.id], "confirm": true });
        app.write("POST", "/restore/release", body).await.ok();
        sweep(&app).await;
        assert_eq!(seen(&app, &machine.id).await["status"], "pending");
        app.advance(86_400);
        sweep(&app).await;
        assert_eq!(seen(&app, &machine.id).await["status"], "retired");
        app.kernel.stop().await;
    });
}

#[test]
fn a_maker_of_very_many_enrolment_tokens_ends_all_the_same() {
    each("fleet_makers_bound", |app: Arc<App>| async move {
        let (maker, token) = app.account("busy", "admin", &[]).await;
        let make = async |number: usize| {
            // Within the rate of writes.
            app.advance(1);
            let body = with_trio(
                json!({ "name": format!("laptop {number}"), "expiresInSeconds": 86_400 }),
                &fresh_key(),
            );
            app.request("POST", TOKENS).token(&token).json(body).send().await
        };
        let mut last = String::new();
        for number in 0..100 {
            last = make(number).await.ok()["token"].as_str().unwrap().to_owned();
        }
        make(100).await.refused(409, "conflict");
        enrol(&app, &last).await;
        // A used one makes no device any more, and does not count.
        let secret = make(101).await.ok()["token"].as_str().unwrap().to_owned();
        make(102).await.refused(409, "conflict");
        let path = format!("/service-accounts/{maker}/disable");
        app.write("POST", &path, json!({})).await.ok();
        let reply = send(&app, &new_key(), &secret, "/devices/enrol", laptop_body()).await;
        reply.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

#[test]
fn a_heartbeat_that_comes_early_is_answered_and_not_kept() {
    each("fleet_early", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let path = format!("/devices/{}/heartbeat", laptop.id);
        let say = async |system: &str| {
            let mut body = beat();
            body["osVersion"] = json!(system);
            let call = app.request("POST", &path).token(&laptop.token).json(body);
            call.send().await.ok().clone()
        };
        let system = async || seen(&app, &laptop.id).await["osVersion"].clone();
        app.advance(9);
        assert_eq!(say("early").await["nextHeartbeatSeconds"], 300);
        assert_eq!(system().await, "Debian 13");
        app.advance(1);
        say("kept").await;
        assert_eq!(system().await, "kept");
        // A clock that went ahead and back keeps nothing from being kept.
        app.clock.step_ms(50_000);
        say("ahead").await;
        app.clock.step_ms(-50_000);
        say("back").await;
        assert_eq!(system().await, "back");
        assert_eq!(seen(&app, &laptop.id).await["presence"], "online");
        app.kernel.stop().await;
    });
}

#[test]
fn a_thousand_devices_wait_at_most_by_one_enrolment_token() {
    each("fleet_waiting", |app: Arc<App>| async move {
        let (id, secret) = enrolment_token(&app, json!({ "maxUses": 2000, "requireApproval": true })).await;
        let first = enrol(&app, &secret).await;
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            for number in 0..999_i64 {
                let device = format!("dev_{number:026}");
                ctx.queue(
                    &WAIT,
                    params![org, device.as_str(), 10 + number, id.as_str(), true, now],
                )?;
            }
            Ok(())
        };
        app.kernel
            .system(app.org(), Some("test.waiting"), run)
            .await
            .unwrap();
        let one_more = || async {
            let key = new_key();
            send(&app, &key, &secret, "/devices/enrol", laptop_body()).await
        };
        one_more().await.refused(409, "conflict");
        act(&app, &first.id, "retire").await.ok();
        one_more().await.ok();
        one_more().await.refused(409, "conflict");
        app.kernel.stop().await;
    });
}

#[test]
fn an_enrolment_token_ends_with_whoever_made_it() {
    each("fleet_makers", |app: Arc<App>| async move {
        let (_, others) = enrolment_token(&app, json!({})).await;
        for what in ["disabled", "deleted", "narrowed"] {
            let (maker, token) = app.account(what, "admin", &[]).await;
            let call = app.request("POST", TOKENS).token(&token);
            let made = call
                .json(with_trio(json!({ "name": what }), &fresh_key()))
                .send()
                .await;
            let secret = made.ok()["token"].as_str().unwrap().to_owned();
            let path = format!("/service-accounts/{maker}");
            match what {
                "disabled" => drop(
                    app.write("POST", &format!("{path}/disable"), json!({}))
                        .await
                        .ok()
                        .clone(),
                ),
                "deleted" => assert_eq!(app.delete(&path).await.status.as_u16(), 204),
                _ => {
                    let body = json!({ "permissionRole": "viewer" });
                    app.write("PATCH", &path, body).await.ok();
                }
            }
            let reply = send(&app, &new_key(), &secret, "/devices/enrol", laptop_body()).await;
            reply.refused(401, "token_revoked");
        }
        enrol(&app, &others).await;
        app.kernel.stop().await;
    });
}

#[test]
fn whoever_releases_devices_may_look_after_them() {
    each("fleet_release", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        hold(&app, &laptop.id).await;
        let (_, without) = app.account("without", "admin", &["service_accounts:write"]).await;
        let scopes = ["service_accounts:write", "fleet:write"];
        let (_, with) = app.account("with", "admin", &scopes).await;
        let release = async |token: &str, body: serde_json::Value| {
            let call = app.request("POST", "/restore/release").token(token);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        for body in [
            json!({ "ids": [laptop.id], "confirm": true }),
            json!({ "all": true, "confirm": true }),
        ] {
            release(&without, body).await.refused(403, "insufficient_scope");
        }
        let body = json!({ "ids": [laptop.id], "confirm": true });
        assert_eq!(release(&with, body).await.ok()["deviceIds"], json!([laptop.id]));
        app.kernel.stop().await;
    });
}

/// Proves FL-10.
#[test]
fn an_enrolment_token_ends_with_the_token_by_which_it_was_made_unless_that_was_rotated() {
    each("fleet_origins", |app: Arc<App>| async move {
        let made_by = async |token: &str| {
            let body = with_trio(json!({ "name": fresh_key() }), &fresh_key());
            let made = app.request("POST", TOKENS).token(token).json(body).send().await;
            made.ok()["token"].as_str().unwrap().to_owned()
        };
        let (maker, token) = app.account("maker", "admin", &[]).await;
        let known = app.get(&format!("/service-accounts/{maker}")).await;
        let id = known.ok()["serviceAccount"]["tokens"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let rotated = app
            .write(
                "POST",
                &format!("/service-accounts/{maker}/tokens"),
                json!({ "gracePeriodSeconds": 600 }),
            )
            .await;
        let successor = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        let (before, after) = (made_by(&token).await, made_by(&successor).await);
        let path = format!("/service-accounts/{maker}/tokens/{id}/revoke");
        app.write("POST", &path, json!({ "confirm": true })).await.ok();
        let reply = send(&app, &new_key(), &before, "/devices/enrol", laptop_body()).await;
        reply.refused(401, "token_revoked");
        enrol(&app, &after).await;
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let told = kinds
            .iter()
            .filter(|kind| *kind == "fleet.enrolment_token.revoked");
        assert_eq!(told.count(), 1);
        app.kernel.stop().await;
    });
}

/// Proves FL-2, ID-3.
#[test]
fn the_secret_of_a_retired_device_is_not_repeated() {
    each("fleet_erased", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        app.machines.bind(&secret, &new_key());
        let enrol = async || {
            let call = app.request("POST", "/devices/enrol").token(&secret);
            let call = call.header("idempotency-key", "an-enrolment-of-november");
            call.json(laptop_body()).send().await
        };
        let first = enrol().await;
        let id = first.ok()["device"]["id"].as_str().unwrap().to_owned();
        assert_eq!(enrol().await.bytes, first.bytes);
        act(&app, &id, "retire").await.ok();
        enrol().await.refused(409, "secret_no_longer_retrievable");
        app.kernel.stop().await;
    });
}

/// A key that a restore holds back is given no other token.
/// Proves FL-2.
#[test]
fn a_device_that_is_held_back_does_not_enrol_again() {
    each("fleet_held_again", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let key = new_key();
        let first = send(&app, &key, &secret, "/devices/enrol", laptop_body()).await;
        let laptop = Machine::of(&app, key.clone(), &first);
        hold(&app, &laptop.id).await;
        let again = send(&app, &key, &secret, "/devices/enrol", laptop_body()).await;
        again.refused(409, "conflict");
        laptop.beat(&app).await.refused(401, "unauthenticated");
        app.kernel.stop().await;
    });
}

/// Proves CR-5.
#[test]
fn a_proof_of_an_rsa_key_is_none_here() {
    each("fleet_rsa", |app: Arc<App>| async move {
        use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
        use base64::Engine;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let key = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        // SEQUENCE { INTEGER n, INTEGER e } in DER: the number behind nine bytes is as long as the key.
        let der = key.public_key().as_ref();
        let modulus = &der[9..9 + key.public_modulus_len()];
        let jwk = json!({ "kty": "RSA", "n": B64.encode(modulus), "e": "AQAB" });
        let url = format!("{}{}", app.kernel.settings.public_url, app.path("/devices/enrol"));
        let ath = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secret.as_bytes());
        let header = json!({ "alg": "RS256", "typ": "dpop+jwt", "jwk": jwk });
        let claims = json!({
            "jti": fresh_key(), "htm": "POST", "htu": url, "iat": app.now().as_ms() / 1000, "ath": B64.encode(ath),
        });
        let signed = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let mut signature = vec![0; key.public_modulus_len()];
        let random = aws_lc_rs::rand::SystemRandom::new();
        key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
            .unwrap();
        let proof = format!("{signed}.{}", B64.encode(signature));
        let call = app
            .request("POST", "/devices/enrol")
            .token(&secret)
            .header("dpop", &proof);
        call.json(laptop_body())
            .send()
            .await
            .refused(401, "unauthenticated");
        app.kernel.stop().await;
    });
}
