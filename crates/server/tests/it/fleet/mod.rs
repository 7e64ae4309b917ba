//! Devices and their tokens: who they are, what they may do, and when that ends.

mod agent;
mod bounds;
mod bypass;
mod clones;
mod commands;
mod coverage;
mod described;
mod gateway_identity;
mod inventory;
mod inventory_at_once;
mod inventory_bounds;
mod inventory_canaries;
mod inventory_credentials;
mod inventory_imports;
mod inventory_references;
mod inventory_skills;
mod inventory_uses;
pub mod judging;
mod judging_told;
mod kept;
mod lives;
mod own_inventory;
mod owners;
mod privacy;
mod proofs;
mod renewal;
mod retire_own;
mod rotation;
mod settings;

use crate::areas::dpop::proof_of;
use crate::areas::fleet::{Machine, TOKENS, beat, enrol, enrolment_token, laptop, new_key as key, send};
use crate::support::{App, Reply, each, fresh_key};
use serde_json::{Value, json};
use std::sync::Arc;

async fn seen(app: &App, id: &str) -> Value {
    app.get(&format!("/devices/{id}")).await.ok()["device"].clone()
}

async fn act(app: &App, id: &str, verb: &str) -> Reply {
    let mut body = json!({});
    if verb == "retire" {
        body["confirm"] = json!(true);
    }
    app.write("POST", &format!("/devices/{id}/{verb}"), body).await
}

#[test]
fn a_laptop_enrols_calls_and_is_retired() {
    each("fleet_life", |app: Arc<App>| async move {
        let (by, secret) = enrolment_token(&app, json!({})).await;
        let laptop = enrol(&app, &secret).await;
        let device = seen(&app, &laptop.id).await;
        assert_eq!(device["status"], "pending");
        assert_eq!(device["presence"], "lost");
        assert_eq!(device["enrolmentTokenId"], json!(by));
        assert_eq!(
            device["keyThumbprint"],
            json!(crate::areas::dpop::thumbprint(&laptop.key))
        );
        assert_eq!(laptop.beat(&app).await.ok()["nextHeartbeatSeconds"], 300);
        let device = seen(&app, &laptop.id).await;
        assert_eq!(
            (&device["status"], &device["presence"]),
            (&json!("active"), &json!("online"))
        );
        assert_eq!(device["osVersion"], "Debian 13");
        app.advance(901);
        assert_eq!(seen(&app, &laptop.id).await["presence"], "away");
        assert_eq!(
            act(&app, &laptop.id, "quarantine").await.ok()["device"]["status"],
            "quarantined"
        );
        laptop.beat(&app).await.ok();
        act(&app, &laptop.id, "approve").await.refused(409, "conflict");
        assert_eq!(
            act(&app, &laptop.id, "release").await.ok()["device"]["status"],
            "active"
        );
        let retired = act(&app, &laptop.id, "retire").await.ok().clone();
        assert_eq!(retired["device"]["status"], "retired");
        assert_eq!(retired["revoked"]["tokens"], 1);
        laptop.beat(&app).await.refused(401, "token_revoked");
        act(&app, &laptop.id, "release").await.refused(409, "conflict");
        let again = act(&app, &laptop.id, "retire").await.ok().clone();
        assert_eq!(again["revoked"]["tokens"], 0);
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let told: Vec<&str> = kinds
            .iter()
            .filter_map(|kind| kind.strip_prefix("fleet."))
            .collect();
        assert_eq!(
            told,
            [
                "enrolment_token.created",
                "device.enrolled",
                "device.activated",
                "device.quarantined",
                "device.released",
                "device.retired",
            ]
        );
        app.kernel.stop().await;
    });
}

/// Proves FL-1.
#[test]
fn a_device_and_an_enrolment_token_are_admitted_to_their_own_operations_alone() {
    each("fleet_doors", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let (_, secret) = enrolment_token(&app, json!({})).await;
        // Another device's, a device of nothing, and what the other kind of token is for.
        for id in [other.id.as_str(), "dev_01kadh5j9v0000000000000000"] {
            let path = format!("/devices/{id}/heartbeat");
            let reply = send(&app, &laptop.key, &laptop.token, &path, beat()).await;
            reply.refused(403, "role_forbidden");
        }
        let own = format!("/devices/{}/heartbeat", laptop.id);
        let reply = send(&app, &laptop.key, &secret, &own, beat()).await;
        reply.refused(403, "role_forbidden");
        assert_eq!(reply.json["message"], "only a device may call this");
        let path = "/devices/enrol";
        let reply = send(&app, &laptop.key, &laptop.token, path, laptop_body()).await;
        reply.refused(403, "role_forbidden");
        assert_eq!(reply.json["message"], "only an enrolment token may call this");
        send(&app, &laptop.key, &app.admin, path, laptop_body())
            .await
            .refused(403, "role_forbidden");
        send(&app, &laptop.key, &app.admin, &own, beat())
            .await
            .refused(403, "role_forbidden");
        // That every other operation refuses them, the matrix of permissions says. No door is left that is no operation.
        let url = &app.kernel.settings.public_url;
        for token in [&laptop.token, &secret] {
            for door in ["/mcp", "/oauth/token", "/oauth/revoke"] {
                let now = app.now().as_ms() / 1000;
                let proof = proof_of(
                    "POST",
                    &laptop.key,
                    token,
                    now,
                    &fresh_key(),
                    &format!("{url}{door}"),
                );
                let (media_type, body) = if door == "/mcp" {
                    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
                    ("application/json", body.to_string())
                } else {
                    let form = format!(
                        "grant_type=refresh_token&refresh_token={token}&token={token}&client_id={token}"
                    );
                    ("application/x-www-form-urlencoded", form)
                };
                let request = http::Request::post(door)
                    .header("host", "127.0.0.1")
                    .header("authorization", format!("Bearer {token}"))
                    .header("dpop", proof)
                    .header("content-type", media_type)
                    .header("accept", "application/json, text/event-stream");
                let request = request.body(axum::body::Body::from(body)).unwrap();
                let reply = crate::access::oauth::answer(&app, request).await;
                let status = reply.status.as_u16();
                assert!(
                    [400, 401].contains(&status),
                    "{door} answered {status}: {}",
                    reply.text()
                );
            }
        }
        laptop.beat(&app).await.ok();
        app.kernel.stop().await;
    });
}

fn laptop_body() -> Value {
    laptop("somebody")
}

/// Proves FL-3, FL-4.
#[test]
fn an_enrolment_is_repeated_by_its_key_alone_and_only_before_the_first_heartbeat() {
    each("fleet_again", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let (path, own) = ("/devices/enrol", key());
        let body = laptop("anna");
        let first = send(&app, &own, &secret, path, body.clone()).await;
        assert_eq!(first.status.as_u16(), 201);
        let again = send(&app, &own, &secret, path, body.clone()).await;
        assert_eq!(again.status.as_u16(), 200);
        assert_eq!(again.json["device"]["id"], first.json["device"]["id"]);
        assert_ne!(again.json["token"]["token"], first.json["token"]["token"]);
        send(&app, &key(), &secret, path, body.clone())
            .await
            .refused(409, "conflict");
        let laptop = Machine::of(&app, own.clone(), &first);
        laptop.beat(&app).await.refused(401, "token_revoked");
        // Not by another token, were it of the same admin.
        let (_, other) = enrolment_token(&app, json!({})).await;
        send(&app, &own, &other, path, body.clone())
            .await
            .refused(409, "conflict");
        let laptop = Machine::of(&app, own, &again);
        laptop.beat(&app).await.ok();
        send(&app, &laptop.key, &secret, path, body.clone())
            .await
            .refused(409, "conflict");
        act(&app, &laptop.id, "retire").await.ok();
        let (_, fresh) = enrolment_token(&app, json!({})).await;
        send(&app, &laptop.key, &fresh, path, body)
            .await
            .refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// A day is the time for it: whoever comes later waits for a new enrolment.
#[test]
fn an_enrolment_is_repeated_for_a_day() {
    each("fleet_day", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({ "expiresInSeconds": 172_800 })).await;
        let (path, own) = ("/devices/enrol", key());
        let first = send(&app, &own, &secret, path, laptop_body()).await;
        app.advance(86_399);
        let again = send(&app, &own, &secret, path, laptop_body()).await;
        assert_eq!(again.ok()["device"]["id"], first.ok()["device"]["id"]);
        app.advance(1);
        let late = send(&app, &own, &secret, path, laptop_body()).await;
        late.refused(409, "conflict");
        app.kernel.stop().await;
    });
}

/// Each answer is a token that is kept for more than a year.
#[test]
fn an_enrolment_is_answered_eight_times_and_never_again() {
    each("fleet_enrolment_again", |app: Arc<App>| async move {
        let (_, secret) = enrolment_token(&app, json!({})).await;
        let (path, own) = ("/devices/enrol", key());
        let mut last = send(&app, &own, &secret, path, laptop_body()).await;
        for _ in 1..8 {
            last = send(&app, &own, &secret, path, laptop_body()).await;
            assert_eq!(last.status.as_u16(), 200);
        }
        for _ in 0..2 {
            let more = send(&app, &own, &secret, path, laptop_body()).await;
            more.refused(409, "conflict");
        }
        Machine::of(&app, own, &last).beat(&app).await.ok();
        app.kernel.stop().await;
    });
}

/// An answer that was lost is fetched by its idempotency key, with the secret, and by nobody else: not by another machine that
/// sends the same key with the same body and the same enrolment token.
/// Proves ID-1, FL-1.
#[test]
fn an_idempotency_key_is_a_machines_own() {
    each("fleet_keys", |app: Arc<App>| async move {
        let reusable = json!({ "maxUses": 3, "requireApproval": true });
        let (_, secret) = enrolment_token(&app, reusable).await;
        let enrol = async |key: &Arc<aws_lc_rs::signature::Ed25519KeyPair>| {
            app.machines.bind(&secret, key);
            let call = app.request("POST", "/devices/enrol").token(&secret);
            let call = call.header("idempotency-key", "the-rollout-of-November");
            call.json(laptop_body()).send().await
        };
        let (one, other) = (key(), key());
        let first = enrol(&one).await;
        let second = enrol(&other).await;
        assert_ne!(first.ok()["device"]["id"], second.ok()["device"]["id"]);
        assert_ne!(first.json["token"]["token"], second.json["token"]["token"]);
        let again = enrol(&one).await;
        assert_eq!(
            (again.header("idempotent-replayed"), &again.bytes),
            ("true", &first.bytes)
        );
        Machine::of(&app, one.clone(), &first).beat(&app).await.ok();
        // Its first use ended the replay.
        let late = enrol(&one).await;
        late.refused(409, "secret_no_longer_retrievable");
        app.kernel.stop().await;
    });
}

/// Proves FL-4.
#[test]
fn an_enrolment_token_is_used_as_often_as_it_says() {
    each("fleet_uses", |app: Arc<App>| async move {
        let (id, secret) = enrolment_token(&app, json!({ "maxUses": 3, "requireApproval": true })).await;
        let mut machines = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (app, secret) = (app.clone(), secret.clone());
            machines.spawn(async move {
                let reply = send(&app, &key(), &secret, "/devices/enrol", laptop_body()).await;
                if reply.status.as_u16() != 201 {
                    reply.refused(409, "conflict");
                }
                reply.status.as_u16()
            });
        }
        let made = machines.join_all().await;
        assert_eq!(
            made.iter().filter(|status| **status == 201).count(),
            3,
            "{made:?}"
        );
        let token = app.get(TOKENS).await.ok()["enrolmentTokens"][0].clone();
        assert_eq!((&token["id"], &token["uses"]), (&json!(id), &json!(3)));
        app.kernel.stop().await;
    });
}

/// Proves FL-1.
#[test]
fn an_enrolment_token_and_a_device_of_another_organization_open_nothing() {
    each("fleet_foreign", |app: Arc<App>| async move {
        let (organization, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(organization, admin);
        let (_, secret) = enrolment_token(&there, json!({})).await;
        let reply = send(&app, &key(), &secret, "/devices/enrol", laptop_body()).await;
        reply.refused(403, "organization_forbidden");
        let (own, foreign) = (Machine::new(&app).await, Machine::new(&there).await);
        let path = format!("/devices/{}/heartbeat", own.id);
        let reply = send(&app, &foreign.key, &foreign.token, &path, beat()).await;
        reply.refused(403, "organization_forbidden");
        assert_eq!(
            app.get("/devices").await.ok()["devices"].as_array().map(Vec::len),
            Some(1)
        );
        // The same key may be a device of each: neither knows of the other.
        let (_, here) = enrolment_token(&app, json!({})).await;
        let reply = send(&app, &foreign.key, &here, "/devices/enrol", laptop_body()).await;
        let twin = Machine::of(&app, foreign.key.clone(), &reply);
        twin.beat(&app).await.ok();
        foreign.beat(&there).await.ok();
        let reply = send(
            &app,
            &twin.key,
            &foreign.token,
            &format!("/devices/{}/heartbeat", twin.id),
            beat(),
        )
        .await;
        reply.refused(403, "organization_forbidden");
        app.kernel.stop().await;
    });
}

#[test]
fn a_dead_enrolment_token_makes_no_device() {
    each("fleet_dead", |app: Arc<App>| async move {
        let (id, revoked) = enrolment_token(&app, json!({})).await;
        let path = format!("{TOKENS}/{id}/revoke");
        assert_eq!(app.write("POST", &path, json!({})).await.ok()["devices"], 0);
        app.write("POST", &path, json!({})).await.ok();
        let (_, expired) = enrolment_token(&app, json!({ "expiresInSeconds": 300 })).await;
        let enrol = "/devices/enrol";
        let reply = send(&app, &key(), &revoked, enrol, laptop_body()).await;
        reply.refused(401, "token_revoked");
        app.advance(300);
        let reply = send(&app, &key(), &expired, enrol, laptop_body()).await;
        reply.refused(401, "token_expired");
        let body = json!({ "name": "reusable", "maxUses": 2 });
        app.write("POST", TOKENS, body)
            .await
            .refused(422, "invalid_definition");
        app.kernel.stop().await;
    });
}

#[test]
fn a_device_that_waits_for_approval_is_active_when_both_have_happened() {
    each("fleet_approval", |app: Arc<App>| async move {
        let reusable = json!({ "maxUses": 2, "requireApproval": true });
        let (id, secret) = enrolment_token(&app, reusable).await;
        let (one, other) = (enrol(&app, &secret).await, enrol(&app, &secret).await);
        one.beat(&app).await.ok();
        assert_eq!(seen(&app, &one.id).await["status"], "pending");
        assert_eq!(
            act(&app, &one.id, "approve").await.ok()["device"]["status"],
            "active"
        );
        assert_eq!(
            act(&app, &other.id, "approve").await.ok()["device"]["status"],
            "pending"
        );
        other.beat(&app).await.ok();
        assert_eq!(seen(&app, &other.id).await["status"], "active");
        let of = app.get(&format!("/devices?enrolmentTokenId={id}&limit=1")).await;
        let of = of.ok().clone();
        assert_eq!(of["devices"][0]["id"], json!(other.id));
        let cursor = of["nextCursor"].as_str().unwrap();
        let rest = app
            .get(&format!("/devices?enrolmentTokenId={id}&limit=1&cursor={cursor}"))
            .await;
        assert_eq!(rest.ok()["devices"][0]["id"], json!(one.id));
        assert_eq!(rest.ok()["nextCursor"], Value::Null);
        app.get(&format!("/devices?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        app.kernel.stop().await;
    });
}

/// Proves FL-2.
#[test]
fn a_restore_holds_devices_back_and_no_release_revives_a_retired_one() {
    each("fleet_held", |app: Arc<App>| async move {
        let (laptop, gone) = (Machine::new(&app).await, Machine::new(&app).await);
        let (_, secret) = enrolment_token(&app, json!({})).await;
        act(&app, &gone.id, "retire").await.ok();
        let hold = |ctx: &mut provost_kernel::OperationContext<'_>| {
            for area in ctx.services().areas().iter().filter(|area| area.name == "fleet") {
                for kind in area.held {
                    (kind.hold)(ctx)?;
                }
                if let Some(end) = area.restore {
                    end(ctx, "restored")?;
                }
            }
            ctx.invalidate_cached_credentials();
            Ok(())
        };
        app.kernel.system(app.org(), None, hold).await.unwrap();
        laptop.beat(&app).await.refused(401, "unauthenticated");
        let reply = send(&app, &key(), &secret, "/devices/enrol", laptop_body()).await;
        reply.refused(401, "token_revoked");
        let still = app.get("/restore/held").await.ok().clone();
        assert_eq!(still["held"].as_array().map(Vec::len), Some(1), "{still}");
        let body = json!({ "ids": [laptop.id], "confirm": true });
        let released = app.write("POST", "/restore/release", body).await;
        assert_eq!(released.ok()["deviceIds"], json!([laptop.id]));
        laptop.beat(&app).await.ok();
        gone.beat(&app).await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}
