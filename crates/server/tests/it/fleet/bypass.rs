//! A way out of enforcement for one device: who gives it, how long it lasts, and what ends it.

use super::{act, seen};
use crate::areas::device_judging::{report, set};
use crate::areas::directory::user;
use crate::areas::fleet::{Machine, send, waiting};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_bundle::{Addressee, CHAIN_START, PolicyBundle, open};
use provost_kernel::db::{Access, Conn};
use provost_kernel::dsse::Envelope;
use provost_kernel::expose::mcp::is_offered;
use serde_json::{Value, json};
use std::sync::Arc;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

pub fn path(id: &str) -> String {
    format!("/devices/{id}/bypass")
}

pub async fn begin(app: &App, id: &str, minutes: u64) -> Reply {
    app.write("POST", &path(id), json!({ "minutes": minutes })).await
}

pub async fn end(app: &App, token: &str, id: &str) -> Reply {
    let call = app.request("DELETE", &path(id)).token(token);
    let call = call.header("idempotency-key", &fresh_key());
    call.header("x-reason", "a test").send().await
}

async fn listed(app: &App, id: &str) -> Vec<Value> {
    let page = app.get(&format!("/devices/bypasses?deviceId={id}")).await;
    page.ok()["bypasses"].as_array().unwrap().clone()
}

async fn sweep(app: &App) {
    for area in app.kernel.areas().iter().filter(|area| area.name == "fleet") {
        for timer in area.timers {
            (timer.run)(app.kernel.clone(), false).await.unwrap();
        }
    }
}

/// Returns how often it was told that a bypass begins, and why the others ended.
async fn told(app: &App) -> (usize, Vec<String>) {
    let events = app.events(0).await;
    let begun = events
        .iter()
        .filter(|(kind, _)| kind == "fleet.device.bypass_begun");
    let ended = events
        .iter()
        .filter(|(kind, _)| kind == "fleet.device.bypass_ended");
    let reasons = ended.map(|(_, data)| data["reason"].as_str().unwrap().to_owned());
    (begun.count(), reasons.collect())
}

async fn owned(app: &App, owner: &str) -> Machine {
    let machine = Machine::new(app).await;
    let body = json!({ "ownerUserId": owner });
    app.write("PATCH", &format!("/devices/{}", machine.id), body)
        .await
        .ok();
    machine
}

async fn bundle(app: &App, machine: &Machine, etag: Option<&str>) -> Reply {
    let path = format!("/devices/{}/policy-bundle", machine.id);
    let mut call = app.request("GET", &path).token(&machine.token);
    if let Some(etag) = etag {
        call = call.header("if-none-match", etag);
    }
    call.send().await
}

fn opened(app: &App, machine: &Machine, reply: &Reply) -> PolicyBundle {
    let envelope: Envelope = serde_json::from_value(reply.ok().clone()).unwrap();
    let addressee = Addressee {
        organization_id: &app.organization,
        device_id: &machine.id,
        floor: None,
    };
    open(&envelope, &app.kernel.keys.signing_public_keys(), &addressee).unwrap()
}

/// Proves FL-13.
#[test]
fn a_bypass_is_shown_is_not_prolonged_and_is_over_at_its_time() {
    each("bypass_time", |app: Arc<App>| async move {
        let (laptop, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let key = fresh_key();
        let body = with_trio(
            json!({ "minutes": 60, "clients": ["codex", "claude_code"] }),
            &key,
        );
        let post = || app.request("POST", &path(&laptop.id)).json(body.clone()).send();
        let begun = post().await;
        assert_eq!(begun.status.as_u16(), 201, "{}", begun.text());
        let bypass = begun.json["bypass"].clone();
        assert_eq!(
            (&bypass["state"], &bypass["clients"], &begun.json["effect"]),
            (
                &json!("live"),
                &json!(["claude_code", "codex"]),
                &json!("judging_off")
            )
        );
        let until = app.now().plus_secs(3_600).to_rfc3339();
        assert_eq!(bypass["expiresAt"], json!(until));
        let shown = json!({ "id": bypass["id"], "expiresAt": until, "clients": ["claude_code", "codex"] });
        assert_eq!(seen(&app, &laptop.id).await["bypass"], shown);
        assert!(seen(&app, &other.id).await.get("bypass").is_none());
        // The same answer again, and no second one, however it is asked for.
        app.advance(60);
        assert_eq!(post().await.bytes, begun.bytes);
        for minutes in [1, 1_440] {
            let refused = begin(&app, &laptop.id, minutes).await;
            refused.refused(409, "conflict");
            assert_eq!(
                (&refused.json["status"], &refused.json["bypassId"]),
                (&json!("bypassed"), &bypass["id"])
            );
        }
        assert_eq!(seen(&app, &laptop.id).await["bypass"], shown);
        app.advance(3_540);
        assert!(seen(&app, &laptop.id).await.get("bypass").is_none());
        assert_eq!(listed(&app, &laptop.id).await[0]["state"], "ended");
        assert_eq!(told(&app).await, (1, vec![]));
        sweep(&app).await;
        sweep(&app).await;
        assert_eq!(told(&app).await, (1, vec!["expired".to_owned()]));
        let entry = &listed(&app, &laptop.id).await[0];
        assert_eq!(
            (&entry["endReason"], &entry["endedAt"]),
            (&json!("expired"), &json!(until))
        );
        assert!(listed(&app, &other.id).await.is_empty());
        for (body, at) in [
            (json!({ "minutes": 0 }), "/minutes"),
            (json!({ "minutes": 1_441 }), "/minutes"),
            (json!({ "minutes": 1, "clients": [] }), "/clients"),
            (
                json!({ "minutes": 1, "clients": ["codex", "codex"] }),
                "/clients/1",
            ),
            (json!({ "minutes": 1, "clients": ["cursor"] }), "/clients"),
            (json!({}), "minutes"),
        ] {
            let refused = app.write("POST", &path(&laptop.id), body.clone()).await;
            assert!(
                [400, 422].contains(&refused.status.as_u16()),
                "{body}: {}",
                refused.text()
            );
            assert!(refused.text().contains(at), "{body}: {}", refused.text());
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-13.
#[test]
fn no_repetition_makes_a_device_go_without_enforcement_for_more_than_a_day() {
    each("bypass_day", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        begin(&app, &laptop.id, 600).await;
        app.advance(2 * HOUR);
        end(&app, &app.admin, &laptop.id).await;
        assert!(
            seen(&app, &laptop.id).await.get("bypass").is_none(),
            "it was ended, and counts as it was given"
        );
        let refused = begin(&app, &laptop.id, 841).await;
        refused.refused(409, "conflict");
        assert_eq!(
            (&refused.json["status"], &refused.json["minutesLeft"]),
            (&json!("bypass_used_up"), &json!(840))
        );
        // Somebody who asks every three hours for as much as there is: at no time is more than a day of two without enforcement.
        let mut live = Vec::new();
        for _ in 0..32 {
            for minutes in [1_440, 720, 180, 60] {
                if begin(&app, &laptop.id, minutes).await.status.is_success() {
                    break;
                }
            }
            for _ in 0..3 {
                live.push(seen(&app, &laptop.id).await.get("bypass").is_some());
                app.advance(HOUR);
            }
        }
        let most = live
            .windows(25)
            .filter(|hours| hours.iter().all(|is_live| *is_live));
        assert_eq!(most.count(), 0, "{live:?}");
        assert!(live.iter().filter(|is_live| **is_live).count() > 24, "{live:?}");
        // Many short ones are bounded by their number: what bounds the next is read each time.
        app.advance(2 * DAY);
        for _ in 0..24 {
            assert_eq!(begin(&app, &laptop.id, 1).await.status.as_u16(), 201);
            end(&app, &app.admin, &laptop.id).await;
        }
        let refused = begin(&app, &laptop.id, 1).await;
        assert_eq!(
            (&refused.json["minutesLeft"], refused.status.as_u16()),
            (&json!(0), 409)
        );
        app.kernel.stop().await;
    });
}

/// Proves FL-14.
#[test]
fn what_takes_a_device_from_where_it_is_takes_its_bypass_for_ever() {
    each("bypass_ends", |app: Arc<App>| async move {
        let (ada, bob) = (
            user(&app, "ada@acme.test").await,
            user(&app, "bob@acme.test").await,
        );
        let scopes = ["fleet:bypass", "fleet:read", "fleet:write"];
        let (maker, token) = app.account("maker", "admin", &scopes).await;
        let mut reasons = Vec::new();
        for (how, reason) in [
            ("end", "taken_back"),
            ("quarantine", "quarantined"),
            ("owner", "owner_changed"),
            ("leave", "owner_changed"),
            ("suspend", "owner_ended"),
            ("retire", "retired"),
            ("maker", "maker_ended"),
        ] {
            let laptop = owned(&app, &ada).await;
            let body = with_trio(json!({ "minutes": 60 }), &fresh_key());
            let call = app.request("POST", &path(&laptop.id)).token(&token);
            let begun = call.json(body).send().await;
            assert_eq!(begun.status.as_u16(), 201, "{how}: {}", begun.text());
            let device = format!("/devices/{}", laptop.id);
            match how {
                "end" => assert_eq!(end(&app, &token, &laptop.id).await.status.as_u16(), 204),
                "owner" => {
                    // The same owner again is no other one.
                    let same = json!({ "ownerUserId": ada, "labels": ["site:berlin"] });
                    app.write("PATCH", &device, same).await.ok();
                    assert!(seen(&app, &laptop.id).await.get("bypass").is_some());
                    let body = json!({ "ownerUserId": bob });
                    let changed = app.write("PATCH", &device, body).await;
                    assert!(changed.ok()["device"].get("bypass").is_none());
                }
                "leave" => {
                    let body = json!({ "ownerUserId": null });
                    app.write("PATCH", &device, body).await.ok();
                }
                "suspend" => {
                    let user = format!("/directory/users/{ada}");
                    app.write("POST", &format!("{user}/suspend"), json!({}))
                        .await
                        .ok();
                    begin(&app, &laptop.id, 1).await.refused(409, "conflict");
                    app.write("POST", &format!("{user}/reactivate"), json!({}))
                        .await
                        .ok();
                }
                "maker" => {
                    let path = format!("/service-accounts/{maker}/disable");
                    app.write("POST", &path, json!({})).await.ok();
                }
                verb => {
                    act(&app, &laptop.id, verb).await.ok();
                }
            }
            reasons.push(reason.to_owned());
            assert_eq!(told(&app).await.1, reasons, "{how}");
            let found = listed(&app, &laptop.id).await;
            assert_eq!(
                (&found[0]["state"], &found[0]["endReason"]),
                (&json!("ended"), &json!(reason)),
                "{how}"
            );
            if how == "quarantine" {
                begin(&app, &laptop.id, 1).await.refused(409, "conflict");
                act(&app, &laptop.id, "release").await.ok();
            }
            if how == "retire" {
                begin(&app, &laptop.id, 1).await.refused(409, "conflict");
            }
            assert!(seen(&app, &laptop.id).await.get("bypass").is_none(), "{how}");
            // There is nothing left to end.
            assert_eq!(end(&app, &app.admin, &laptop.id).await.status.as_u16(), 204);
            assert_eq!(told(&app).await.1, reasons, "{how}");
        }
        let waits = waiting(&app).await;
        begin(&app, &waits, 1).await.refused(409, "conflict");
        // Whose machine it is leaves.
        let laptop = owned(&app, &bob).await;
        begin(&app, &laptop.id, 60).await;
        let call = app.request("DELETE", &format!("/directory/users/{bob}"));
        let call = call.header("idempotency-key", &fresh_key());
        let call = call.header("x-reason", "he left").header("x-confirm", "true");
        call.send().await.ok();
        assert_eq!(listed(&app, &laptop.id).await[0]["endReason"], "owner_changed");
        app.kernel.stop().await;
    });
}

/// Proves FL-14.
#[test]
fn an_admin_gives_a_bypass_and_no_device_operator_or_other_organization_does() {
    each("bypass_who", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let (_, narrow) = app
            .account("narrow", "admin", &["fleet:write", "fleet:read"])
            .await;
        let body = || with_trio(json!({ "minutes": 60 }), &fresh_key());
        for (token, code) in [(&operator, "role_forbidden"), (&narrow, "insufficient_scope")] {
            let call = app.request("POST", &path(&laptop.id)).token(token);
            call.json(body()).send().await.refused(403, code);
        }
        // A machine's token is known at the operations of machines alone.
        let reply = send(&app, &laptop.key, &laptop.token, &path(&laptop.id), body()).await;
        assert!([401, 403].contains(&reply.status.as_u16()), "{}", reply.text());
        assert!(listed(&app, &laptop.id).await.is_empty());
        let (organization, admin) = app.other_organization("Umbrella").await;
        let there = app.view_of(organization, admin);
        begin(&there, &laptop.id, 60).await.refused(404, "not_found");
        begin(&app, &laptop.id, 60).await;
        end(&there, &there.admin, &laptop.id)
            .await
            .refused(404, "not_found");
        let path = format!("/devices/bypasses?deviceId={}", laptop.id);
        there.get(&path).await.refused(404, "not_found");
        assert_eq!(there.get("/devices/bypasses").await.ok()["bypasses"], json!([]));
        // Whoever may hold a machine apart may have it enforce again.
        assert_eq!(end(&app, &operator, &laptop.id).await.status.as_u16(), 204);
        assert!(seen(&app, &laptop.id).await.get("bypass").is_none());
        // No model says it for the person whose session it has.
        let meta = |id: &str| app.kernel.registry.find(id).unwrap().meta;
        assert!(!is_offered(meta("beginHeadlessDeviceBypass")));
        assert!(is_offered(meta("endHeadlessDeviceBypass")));
        app.kernel.stop().await;
    });
}

/// Proves FL-13, FL-14.
#[test]
fn a_clock_that_was_set_back_gives_no_bypass_and_ends_what_was_live() {
    each("bypass_set_back", |app: Arc<App>| async move {
        set(&app, "on").await;
        let (ada, bob) = (
            user(&app, "ada@acme.test").await,
            user(&app, "bob@acme.test").await,
        );
        let (laptop, other) = (owned(&app, &ada).await, owned(&app, &ada).await);
        app.advance(600);
        begin(&app, &laptop.id, 60).await;
        app.kernel.keep_time().await.unwrap();
        assert_eq!(
            opened(&app, &laptop, &bundle(&app, &laptop, None).await)
                .bypass
                .len(),
            1
        );
        app.clock.step_ms(-1_800_000);
        begin(&app, &other.id, 60).await.refused(503, "unavailable");
        // Nor is another owner named: which reports are of the time before would be anybody's guess. To take one away needs no clock.
        let path = format!("/devices/{}", other.id);
        let owner = async |owner: Value| app.write("PATCH", &path, json!({ "ownerUserId": owner })).await;
        owner(json!(bob)).await.refused(503, "unavailable");
        owner(Value::Null).await.ok();
        // No device is told anything then: its proofs are of a time that has been.
        bundle(&app, &laptop, None).await.refused(401, "unauthenticated");
        sweep(&app).await;
        assert_eq!(told(&app).await, (1, vec!["clock_set_back".to_owned()]));
        app.advance(31 * 60);
        assert!(seen(&app, &laptop.id).await.get("bypass").is_none());
        assert!(
            opened(&app, &laptop, &bundle(&app, &laptop, None).await)
                .bypass
                .is_empty()
        );
        app.kernel.stop().await;
    });
}

/// Proves FL-14, DJ-2.
#[test]
fn a_bypass_stands_in_the_bundle_of_its_device_while_it_is_live_and_its_end_makes_another_one() {
    each("bypass_bundle", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, "ada@acme.test").await;
        let (laptop, other) = (owned(&app, &ada).await, owned(&app, &ada).await);
        let first = bundle(&app, &laptop, None).await;
        let mut etag = first.header("etag").to_owned();
        let others = bundle(&app, &other, None).await.header("etag").to_owned();
        let mut floor = opened(&app, &laptop, &first).floor();
        for how in ["end", "time", "quarantine"] {
            let body = json!({ "minutes": 60, "clients": ["codex"] });
            let begun = app.write("POST", &path(&laptop.id), body).await;
            let wanted = begun.ok()["bypass"].clone();
            let reply = bundle(&app, &laptop, Some(&etag)).await;
            let with = opened(&app, &laptop, &reply);
            assert_eq!(
                (
                    json!(with.bypass[0].id),
                    json!(with.bypass[0].not_after),
                    &with.bypass[0].clients
                ),
                (
                    wanted["id"].clone(),
                    wanted["expiresAt"].clone(),
                    &vec!["codex".to_owned()]
                )
            );
            assert!(with.floor() > floor, "{how}");
            let same = bundle(&app, &other, Some(&others)).await;
            assert!(same.status.as_u16() == 304 || how != "end", "another device's");
            reply.header("etag").clone_into(&mut etag);
            match how {
                "end" => {
                    end(&app, &app.admin, &laptop.id).await;
                }
                "time" => app.advance(HOUR),
                verb => {
                    act(&app, &laptop.id, verb).await.ok();
                    bundle(&app, &laptop, Some(&etag)).await.refused(409, "conflict");
                    act(&app, &laptop.id, "release").await.ok();
                }
            }
            let reply = bundle(&app, &laptop, Some(&etag)).await;
            let without = opened(&app, &laptop, &reply);
            assert!(without.bypass.is_empty(), "{how}");
            // What was there before is older, or says by itself that it is over.
            assert!(without.floor() > with.floor() || how == "time", "{how}");
            floor = without.floor();
            reply.header("etag").clone_into(&mut etag);
        }
        app.kernel.stop().await;
    });
}

/// Proves FL-14.
#[test]
fn no_bundle_has_the_bypass_of_somebody_who_is_suspended_before_that_was_told_to_anybody() {
    each("bypass_suspended", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, "ada@acme.test").await;
        let laptop = owned(&app, &ada).await;
        assert_eq!(begin(&app, &laptop.id, 60).await.status.as_u16(), 201);
        let with = bundle(&app, &laptop, None).await;
        assert_eq!(opened(&app, &laptop, &with).bypass.len(), 1);
        // An import suspends in one unit, and has whoever listens end things in later ones.
        let location = app.location();
        let sql = "UPDATE directory_users SET status = 'suspended', suspended_at = updated_at, suspended_by = 'import'";
        std::thread::scope(|scope| {
            let run = scope.spawn(|| Conn::open(&location, Access::Write).unwrap().batch(sql).unwrap());
            run.join().unwrap();
        });
        let without = bundle(&app, &laptop, Some(with.header("etag"))).await;
        assert!(opened(&app, &laptop, &without).bypass.is_empty());
        app.kernel.stop().await;
    });
}

/// Proves CV-2.
#[test]
fn the_clients_of_a_bypass_count_as_observed_while_it_is_live() {
    each("bypass_coverage", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let one = |client: &str, level: &str, reasons: &[&str]| json!({ "client": client, "level": level, "basis": "measured", "reasons": reasons });
        let said = json!({ "clients": [
            one("claude_code", "enforced", &[]), one("codex", "bypassable", &["events_unheard"]), one("gemini_cli", "none", &["not_registered"]),
        ] });
        let to = format!("/devices/{}/coverage", laptop.id);
        send(&app, &laptop.key, &laptop.token, &to, said).await.ok();
        let levels = async || {
            let coverage = seen(&app, &laptop.id).await["coverage"].clone();
            let counted = app.get("/devices/coverage").await.ok()["clients"].clone();
            let shown = coverage
                .as_array()
                .unwrap()
                .iter()
                .zip(counted.as_array().unwrap());
            let levels = shown.map(|(one, counts)| {
                let level = one["countsAs"].as_str().unwrap().to_owned();
                assert_eq!(counts[&level], 1, "{counts} {level}");
                level
            });
            levels.collect::<Vec<_>>()
        };
        let finds = async |query: &str| {
            let page = app.get(&format!("/devices?{query}")).await;
            page.ok()["devices"].as_array().unwrap().len()
        };
        assert_eq!(levels().await, ["enforced", "bypassable", "none"]);
        let body = json!({ "minutes": 60, "clients": ["claude_code"] });
        app.write("POST", &path(&laptop.id), body).await;
        assert_eq!(levels().await, ["observed", "bypassable", "none"]);
        assert_eq!(finds("coverage=enforced").await, 0);
        assert_eq!(finds("coverage=observed&client=claude_code").await, 1);
        end(&app, &app.admin, &laptop.id).await;
        assert_eq!(levels().await, ["enforced", "bypassable", "none"]);
        assert_eq!(finds("coverage=enforced").await, 1);
        begin(&app, &laptop.id, 60).await;
        assert_eq!(levels().await, ["observed", "observed", "none"]);
        app.advance(HOUR);
        laptop.beat(&app).await.ok();
        assert_eq!(levels().await, ["enforced", "bypassable", "none"]);
        app.kernel.stop().await;
    });
}

/// Proves DJ-4, FL-14.
#[test]
fn what_passed_by_a_bypass_is_recorded_as_that_and_one_that_nobody_gave_is_told_of() {
    each("bypass_told", |app: Arc<App>| async move {
        set(&app, "on").await;
        let ada = user(&app, "ada@acme.test").await;
        let laptop = owned(&app, &ada).await;
        let begun = begin(&app, &laptop.id, 60).await;
        let id = begun.json["bypass"]["id"].clone();
        let entry = |n: usize, id: &Value| {
            json!({
                "kind": "event", "id": format!("e-{n}"), "at": app.now().to_rfc3339(), "occasion": "pre_tool",
                "attributes": { "tool.id": "Bash", "identity.user_id": "ada@acme.test" },
                "decision": { "action": "block", "mode": "monitor", "policyIds": ["p"], "policySetVersion": "psv_none" },
                "basis": "bypass", "bypass": id, "whole": true,
            })
        };
        let to = format!("/devices/{}/decisions", laptop.id);
        let first = report(1, CHAIN_START, &[entry(1, &id)]);
        let answer = send(&app, &laptop.key, &laptop.token, &to, first.clone()).await;
        assert_eq!(answer.ok()["refused"], json!([]));
        let history = app
            .get(&format!("/policies/history?source=device:{}", laptop.id))
            .await;
        let decision = &history.ok()["events"][0]["decision"];
        assert_eq!(
            (&decision["mode"], &decision["action"]),
            (&json!("bypass"), &json!("block"))
        );
        let found = app.get("/policies/violations?outcome=bypassed").await;
        assert_eq!(found.ok()["violations"][0]["mode"], "bypass");
        // It names no machine, and came of one.
        for (id, count) in [(&laptop.id, 1), (&Machine::new(&app).await.id, 0)] {
            let of_device = app.get(&format!("/policies/violations?deviceId={id}")).await;
            assert_eq!(of_device.ok()["violations"].as_array().map(Vec::len), Some(count));
        }
        let enforced = app.get("/policies/violations?outcome=blocked").await;
        assert_eq!(enforced.ok()["violations"], json!([]));
        let mismatches = async || app.get(&to).await.ok()["told"]["mismatches"].clone();
        assert_eq!(mismatches().await, 0);
        // Of another device, and of nobody.
        let other = owned(&app, &ada).await;
        let foreign = begin(&app, &other.id, 60).await.json["bypass"]["id"].clone();
        let nobodys = json!("byp_01kadh5j9v0000000000000000");
        let entries = [entry(2, &foreign), entry(3, &nobodys), entry(4, &id)];
        let more = report(2, first["head"].as_str().unwrap(), &entries);
        send(&app, &laptop.key, &laptop.token, &to, more).await.ok();
        assert_eq!(mismatches().await, 2);
        app.kernel.stop().await;
    });
}
