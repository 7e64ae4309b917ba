//! What devices tell of what they judged: in order, once, and of nobody but their own people.

use super::act;
use super::judging::owned;
use crate::areas::device_judging::report;
use crate::areas::directory::user;
use crate::areas::fleet::{Machine, send};
use crate::policy::backtests_worker::{Worker, ask, ended};
use crate::policy::decisions::{content, decide_one, policy};
use crate::support::{App, Reply, each};
use provost_bundle::CHAIN_START;
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

const ADA: &str = "ada@acme.test";

async fn tell(app: &App, machine: &Machine, body: Value) -> Reply {
    let path = format!("/devices/{}/decisions", machine.id);
    send(app, &machine.key, &machine.token, &path, body).await
}

/// Returns an event that a device judged.
fn judged(app: &App, id: usize, attributes: &Value, action: &str, version: &str) -> Value {
    json!({
        "kind": "event", "id": format!("e-{id}"), "at": app.now().to_rfc3339(), "occasion": "pre_tool", "attributes": attributes,
        "decision": { "action": action, "mode": "enforce", "policyIds": ["p"], "policySetVersion": version },
        "basis": "judged", "whole": true,
    })
}

fn of_ada(tool: &str) -> Value {
    json!({ "tool.id": tool, "identity.user_id": ADA })
}

async fn recorded(app: &App, machine: &Machine) -> Vec<Value> {
    let path = format!("/policies/history?source=device:{}", machine.id);
    let page = app.get(&path).await.ok().clone();
    page["events"].as_array().unwrap().clone()
}

/// Proves DJ-3.
#[test]
fn entries_are_taken_once_in_their_order_and_without_a_gap() {
    each("judging_chain", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let entries: Vec<Value> = (1..=6)
            .map(|n| judged(&app, n, &of_ada("Bash"), "block", "psv_none"))
            .collect();
        let first = report(1, CHAIN_START, &entries[..2]);
        let answer = tell(&app, &machine, first.clone()).await.ok().clone();
        assert_eq!((&answer["accepted"], &answer["expected"]), (&json!(2), &json!(3)));
        assert_eq!(answer["head"], first["head"]);
        // Lost answers, and a machine that sends more than is new.
        let again = tell(&app, &machine, first.clone()).await.ok().clone();
        assert_eq!((&again["accepted"], &again["expected"]), (&json!(0), &json!(3)));
        let more = report(1, CHAIN_START, &entries[..4]);
        let answer = tell(&app, &machine, more.clone()).await.ok().clone();
        assert_eq!((&answer["accepted"], &answer["expected"]), (&json!(2), &json!(5)));
        assert_eq!(recorded(&app, &machine).await.len(), 4);
        // A gap, another machine in the same place, and what is older than the last.
        let head = more["head"].as_str().unwrap();
        let late = report(6, head, &entries[5..]);
        let other = report(5, &"f".repeat(64), &entries[4..]);
        for (body, status) in [(late, "gap"), (other, "fork"), (first, "fork")] {
            let refused = tell(&app, &machine, body).await;
            refused.refused(409, "conflict");
            assert_eq!(refused.json["status"], status);
            assert_eq!(
                (&refused.json["expected"], &refused.json["head"]),
                (&json!(5), &json!(head))
            );
        }
        let mut wrong = report(5, head, &entries[4..]);
        wrong["head"] = json!("0".repeat(64));
        tell(&app, &machine, wrong)
            .await
            .refused(422, "invalid_definition");
        assert_eq!(recorded(&app, &machine).await.len(), 4);
        // At once: one of them is taken, once.
        let body = report(5, head, &entries[4..]);
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (app, machine, body) = (app.clone(), machine.clone(), body.clone());
            calls.spawn(async move { tell(&app, &machine, body).await.status.as_u16() });
        }
        let statuses = calls.join_all().await;
        assert!(
            statuses.contains(&200) && statuses.iter().all(|status| [200, 409].contains(status)),
            "{statuses:?}"
        );
        assert_eq!(recorded(&app, &machine).await.len(), 6);
        // Nobody else tells for it, and what is retired tells nothing.
        let stranger = Machine::new(&app).await;
        let path = format!("/devices/{}/decisions", machine.id);
        let body = report(7, CHAIN_START, &entries[..1]);
        let reply = send(&app, &stranger.key, &stranger.token, &path, body.clone()).await;
        reply.refused(403, "role_forbidden");
        act(&app, &machine.id, "retire").await.ok();
        tell(&app, &machine, body).await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

/// Proves DJ-4.
#[test]
fn no_event_of_a_device_is_somebody_elses() {
    each("judging_foreign", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, ADA).await, user(&app, "bob@acme.test").await);
        let machine = owned(&app, &ada).await;
        let of = |word: &str| json!({ "tool.id": "Bash", "identity.user_id": word, "device.id": "another" });
        let words = [
            ADA,
            ada.as_str(),
            "root",
            "bob@acme.test",
            bob.as_str(),
            "BOB@acme.test",
        ];
        let entries: Vec<Value> = words
            .iter()
            .enumerate()
            .map(|(n, word)| judged(&app, n, &of(word), "block", "psv_none"))
            .chain([
                json!({ "kind": "count", "user": ADA, "client": "codex", "tool": "Read", "minute": app.now().to_rfc3339(), "count": 3 }),
                json!({ "kind": "count", "user": "root", "client": "codex", "minute": app.now().to_rfc3339(), "count": 2 }),
                json!({ "kind": "dropped", "events": 40, "why": "queue_full" }),
                json!({ "kind": "event" }),
            ])
            .collect();
        let answer = tell(&app, &machine, report(1, CHAIN_START, &entries))
            .await
            .ok()
            .clone();
        assert_eq!(answer["foreign"], json!([3, 4, 5, 6]));
        assert_eq!(answer["refused"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            (&answer["refused"][0]["entry"], &answer["expected"]),
            (&json!(10), &json!(11))
        );
        let events = recorded(&app, &machine).await;
        assert_eq!(events.len(), 6);
        let text = json!(events).to_string();
        assert!(
            !text.contains(&bob) && !text.to_lowercase().contains("bob@") && !text.contains("root"),
            "{text}"
        );
        assert!(
            events
                .iter()
                .all(|event| event["source"] == json!(format!("device:{}", machine.id))),
            "{text}"
        );
        let told = app
            .get(&format!("/devices/{}/decisions", machine.id))
            .await
            .ok()
            .clone();
        let sums = &told["told"];
        for (member, expected) in [
            ("expected", 11),
            ("events", 6),
            ("passed", 5),
            ("dropped", 40),
            ("refused", 1),
            ("foreign", 4),
        ] {
            assert_eq!(sums[member], expected, "{member} of {sums}");
        }
        let counts: Vec<(&Value, &Value)> = told["counts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|count| (&count["user"], &count["passed"]))
            .collect();
        assert!(
            counts.contains(&(&json!(ada), &json!(3))) && counts.contains(&(&Value::Null, &json!(2))),
            "{counts:?}"
        );
        app.kernel.stop().await;
    });
}

/// Proves DJ-4.
#[test]
fn a_word_that_nobody_has_is_the_past_of_nobody_who_gets_it() {
    each("judging_nobody", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let prior = json!({ "hasPriorEvent": { "field": "tool.id", "op": "eq", "value": "Secrets" } });
        let asks = json!({ "field": "tool.id", "op": "eq", "value": "Send" });
        let after = json!({ "conditions": { "all": [asks, prior] } });
        policy(&app, Family::Content, content("after", "block", &after)).await;
        let of = |word: &str, tool: &str| json!({ "tool.id": tool, "identity.user_id": word });
        let entries: Vec<Value> = ["new.hire@acme.test", ADA]
            .iter()
            .enumerate()
            .map(|(n, word)| judged(&app, n, &of(word, "Secrets"), "allow", "psv_none"))
            .collect();
        let answer = tell(&app, &machine, report(1, CHAIN_START, &entries))
            .await
            .ok()
            .clone();
        assert_eq!(answer["foreign"], json!([1]));
        user(&app, "new.hire@acme.test").await;
        let action = async |word: &str| decide_one(&app, &of(word, "Send")).await["action"].clone();
        assert_eq!(action("new.hire@acme.test").await, "allow");
        assert_eq!(action(ADA).await, "block", "of its own people a device tells");
        app.kernel.stop().await;
    });
}

/// Proves DJ-6.
#[test]
fn a_device_tells_so_much_a_day_and_what_was_refused_still_has_room() {
    each("judging_room", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        // What cannot be read costs as much as it is long: 200 units.
        let long = json!({ "kind": "x".repeat(200_000) });
        let (mut next, mut head) = (1, CHAIN_START.to_owned());
        let mut send = async |entries: &[Value]| {
            let body = report(next, &head, entries);
            let reply = tell(&app, &machine, body).await;
            if reply.status == 200 {
                next = usize::try_from(reply.json["expected"].as_u64().unwrap()).unwrap();
                reply.json["head"].as_str().unwrap().clone_into(&mut head);
            }
            reply
        };
        let unit = long.to_string().len().div_ceil(1_024);
        let most = 50_000 / unit;
        for _ in 0..most / 20 {
            let twenty: Vec<Value> = (0..20).map(|_| long.clone()).collect();
            assert_eq!(send(&twenty).await.ok()["accepted"], 20);
        }
        let event = |n: usize, action: &str| judged(&app, n, &of_ada("Bash"), action, "psv_none");
        // The first ones have room, and those behind them stay where they are.
        let rest = most % 20;
        let mut entries: Vec<Value> = (0..=rest).map(|_| long.clone()).collect();
        entries.extend([event(1, "allow"), event(2, "block")]);
        let answer = send(&entries).await.ok().clone();
        assert_eq!(answer["accepted"], rest, "{answer}");
        let full = send(&entries[rest..]).await;
        full.refused(429, "rate_limited");
        assert_eq!(
            (&full.json["status"], &full.json["expected"]),
            (&json!("day_is_full"), &answer["expected"])
        );
        assert_eq!(full.json["head"], answer["head"]);
        let wait: i64 = full.header("retry-after").parse().unwrap();
        assert!((1..=86_400).contains(&wait), "{wait}");
        // What was refused and comes first is taken, and what is known already is answered as known.
        assert_eq!(
            send(&[event(2, "block"), event(3, "require_approval"), long.clone()])
                .await
                .ok()["accepted"],
            2
        );
        assert_eq!(recorded(&app, &machine).await.len(), 2);
        app.advance(u64::try_from(wait).unwrap());
        assert_eq!(send(&[long.clone(), event(1, "allow")]).await.ok()["accepted"], 2);
        assert_eq!(recorded(&app, &machine).await.len(), 3);
        app.kernel.stop().await;
    });
}

/// Proves DJ-8.
#[test]
fn a_backtest_says_how_much_devices_only_counted() {
    each("judging_backtest", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let before = app.now();
        app.advance(3 * 86_400);
        let count = |back_secs: i64, count: i64| {
            let minute = app.now().plus_secs(-back_secs).to_rfc3339();
            json!({ "kind": "count", "user": ADA, "client": "codex", "tool": "Read", "minute": minute, "count": count })
        };
        let entries = [count(0, 3), count(3_600, 4), count(2 * 86_400, 50)];
        tell(&app, &machine, report(1, CHAIN_START, &entries)).await.ok();
        let mut counted = Vec::new();
        for from in [
            app.now().plus_secs(-7_200),
            before,
            app.now().plus_secs(-3 * 3_600 - 86_400),
        ] {
            let body = crate::policy::backtests::window(from, app.now());
            let run = app.write("POST", "/policies/backtests", body).await.ok().clone();
            let path = format!("/policies/backtests/{}", run["id"].as_str().unwrap());
            assert_eq!(
                app.get(&path).await.ok()["countedOnDevices"],
                run["countedOnDevices"]
            );
            counted.push(run["countedOnDevices"].as_i64().unwrap());
        }
        assert_eq!(counted[1], 57, "{counted:?}");
        assert!(counted[0] == 7 && counted[2] == 7, "whole days: {counted:?}");
        app.kernel.stop().await;
    });
}

/// Proves HS-15, VI-2.
#[test]
fn what_devices_invent_takes_no_room_that_what_was_seen_needs() {
    each("judging_names", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let entries: Vec<Value> = (0..600)
            .map(|n| {
                let attributes = json!({ "identity.user_id": ADA, "tool.id": "Bash", "mcp.server_id": format!("invented-{n}") });
                let mut event = judged(&app, n, &attributes, "block", "psv_none");
                event["decision"]["policyIds"] = json!([format!("invented-{n}"), format!("other-{n}")]);
                event
            })
            .collect();
        tell(&app, &machine, report(1, CHAIN_START, &entries)).await.ok();
        crate::policy::violations::count(&app).await;
        policy(&app, Family::Content, content("real", "block", &json!({}))).await;
        super::inventory_uses::ask(&app, ADA, "docs", None).await;
        crate::policy::violations::count(&app).await;
        super::inventory_uses::count(&app).await;
        let named = crate::policy::violations::grouped(&app, "policy&policyId=real").await;
        assert_eq!(named["groups"][0]["policyId"], "real", "{named}");
        let page = app.get("/inventory/uses?limit=100").await.ok().clone();
        let uses = page["uses"].as_array().unwrap();
        let of = |evidence: &str| uses.iter().filter(|one| one["evidence"] == evidence).count();
        assert_eq!((of("hook"), uses.len()), (1, 100), "{page}");
        assert!(of("device") > 0);
        app.kernel.stop().await;
    });
}

/// Proves DJ-5.
#[test]
fn what_devices_tell_of_the_past_makes_verdicts_stronger_and_none_weaker() {
    each("judging_past", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let prior =
            |tool: &str| json!({ "hasPriorEvent": { "field": "tool.id", "op": "eq", "value": tool } });
        let asks = |tool: &str| json!({ "field": "tool.id", "op": "eq", "value": tool });
        // After a look at secrets nothing is sent; and nothing is deployed before the tests ran.
        let after = json!({ "conditions": { "all": [asks("Send"), prior("Secrets")] } });
        let unless = json!({ "conditions": { "all": [asks("Deploy"), { "not": prior("Tests") }] } });
        policy(&app, Family::Content, content("after", "block", &after)).await;
        policy(&app, Family::Content, content("unless", "block", &unless)).await;
        let action = async |tool: &str| decide_one(&app, &of_ada(tool)).await["action"].clone();
        assert_eq!(
            (action("Send").await, action("Deploy").await),
            (json!("allow"), json!("block"))
        );
        let entries = [
            judged(&app, 1, &of_ada("Secrets"), "allow", "psv_none"),
            judged(&app, 2, &of_ada("Tests"), "allow", "psv_none"),
        ];
        tell(&app, &machine, report(1, CHAIN_START, &entries)).await.ok();
        assert_eq!(action("Send").await, "block", "a device told of it");
        assert_eq!(action("Deploy").await, "block", "a device's word opens nothing");
        // What the server saw itself opens it.
        assert_eq!(action("Tests").await, "allow");
        assert_eq!(action("Deploy").await, "allow");
        app.kernel.stop().await;
    });
}

/// Proves DJ-7, DJ-9, DE-14.
#[test]
fn what_nobody_wants_to_hear_of_a_device_any_more_is_no_past_and_goes_with_it() {
    each("judging_unheard", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let prior = json!({ "hasPriorEvent": { "field": "tool.id", "op": "eq", "value": "Secrets" } });
        let asks = json!({ "field": "tool.id", "op": "eq", "value": "Send" });
        let after = json!({ "conditions": { "all": [asks, prior] } });
        policy(&app, Family::Content, content("after", "block", &after)).await;
        let action = async || decide_one(&app, &of_ada("Send")).await["action"].clone();
        let count = json!({ "kind": "count", "user": ADA, "client": "codex", "minute": app.now().to_rfc3339(), "count": 3 });
        let entries = [judged(&app, 1, &of_ada("Secrets"), "allow", "psv_none"), count];
        let told = report(1, CHAIN_START, &entries);
        tell(&app, &machine, told.clone()).await.ok();
        assert_eq!(action().await, "block");
        crate::areas::device_judging::set(&app, "off").await;
        assert_eq!(action().await, "allow", "nobody wants it");
        // What was begun is told to its end.
        let rest = [judged(&app, 2, &of_ada("Bash"), "block", "psv_none")];
        let more = report(3, told["head"].as_str().unwrap(), &rest);
        tell(&app, &machine, more).await.ok();
        crate::areas::device_judging::set(&app, "on").await;
        assert_eq!(action().await, "block");
        // What another device tells goes on, so that there is a past that devices tell.
        let other = owned(&app, &ada).await;
        let nothing = [judged(&app, 1, &of_ada("Bash"), "block", "psv_none")];
        tell(&app, &other, report(1, CHAIN_START, &nothing)).await.ok();
        // A past is made anew once a minute, and the one that is there is used until then.
        let becomes = async |due: &str, why: &str| {
            assert_ne!(action().await, due, "{why}: not yet");
            app.advance(61);
            for _ in 0..100 {
                if action().await == due {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            panic!("{why}: never {due}");
        };
        act(&app, &machine.id, "quarantine").await.ok();
        becomes("allow", "nobody knows who speaks").await;
        act(&app, &machine.id, "release").await.ok();
        becomes("block", "it is released").await;
        act(&app, &machine.id, "quarantine").await.ok();
        becomes("allow", "nobody knows who speaks").await;
        act(&app, &machine.id, "retire").await.ok();
        app.advance(61);
        for _ in 0..3 {
            assert_eq!(action().await, "allow", "it is retired");
        }
        let third = owned(&app, &ada).await;
        let secret = [judged(&app, 1, &of_ada("Secrets"), "allow", "psv_none")];
        tell(&app, &third, report(1, CHAIN_START, &secret)).await.ok();
        assert_eq!(action().await, "block");
        act(&app, &third.id, "retire").await.ok();
        becomes("allow", "it is retired").await;
        let page = app
            .get(&format!("/devices/{}/decisions", machine.id))
            .await
            .ok()
            .clone();
        assert!(
            page.get("told").is_none() && page["counts"] == json!([]),
            "{page}"
        );
        assert_eq!(recorded(&app, &machine).await.len(), 2, "the history keeps it");
        app.kernel.stop().await;
    });
}

/// Proves DJ-9.
#[test]
fn what_was_counted_of_a_person_goes_with_the_person() {
    each("judging_deleted", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let count = |user: Option<&str>| {
            let mut count =
                json!({ "kind": "count", "client": "codex", "minute": app.now().to_rfc3339(), "count": 3 });
            if let Some(user) = user {
                count["user"] = json!(user);
            }
            count
        };
        tell(
            &app,
            &machine,
            report(1, CHAIN_START, &[count(Some(ADA)), count(None)]),
        )
        .await
        .ok();
        let counts = async || {
            let page = app
                .get(&format!("/devices/{}/decisions", machine.id))
                .await
                .ok()
                .clone();
            page["counts"].as_array().unwrap().len()
        };
        assert_eq!(counts().await, 2);
        let path = format!("/directory/users/{ada}");
        app.delete(&path).await.ok();
        assert_eq!(counts().await, 1);
        app.kernel.stop().await;
    });
}

#[test]
fn a_device_that_judges_otherwise_is_told_of() {
    each("judging_again", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        policy(&app, Family::Content, content("p", "block", &json!({}))).await;
        let asked = app.request("POST", "/policies/decisions");
        let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": of_ada("Bash") }] });
        let version = asked.json(body).send().await.ok()["policySetVersion"]["id"].clone();
        let version = version.as_str().unwrap();
        let told = async |from: usize, previous: &str, action: &str| {
            let entries: Vec<Value> = (0..1_000)
                .map(|n| judged(&app, n, &of_ada("Bash"), action, version))
                .collect();
            let body = report(from, previous, &entries);
            tell(&app, &machine, body).await.ok()["head"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let mismatches = async || {
            let page = app
                .get(&format!("/devices/{}/decisions", machine.id))
                .await
                .ok()
                .clone();
            page["told"]["mismatches"].as_i64().unwrap()
        };
        let head = told(1, CHAIN_START, "block").await;
        assert_eq!(mismatches().await, 0);
        let head = told(1_001, &head, "allow").await;
        // One in a hundred of a thousand, by a key.
        let found = mismatches().await;
        assert!((1..=60).contains(&found), "{found}");
        let events = app.events(0).await;
        let event = events
            .iter()
            .find(|(kind, _)| kind == "fleet.device.decision_mismatch");
        let (_, data) = event.expect("an event tells of it");
        assert_eq!(
            (&data["deviceId"], &data["events"]),
            (&json!(machine.id), &json!(found))
        );
        // Versions that are used since push it out of what is kept; then no device has it compiled again.
        for n in 0..33 {
            policy(
                &app,
                Family::Content,
                content(&format!("p{n}"), "block", &json!({})),
            )
            .await;
            let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": of_ada("Bash") }] });
            app.request("POST", "/policies/decisions")
                .json(body)
                .send()
                .await
                .ok();
        }
        told(2_001, &head, "allow").await;
        assert_eq!(mismatches().await, found);
        app.kernel.stop().await;
    });
}

/// A word that stands in every content.
const CANARY: &str = "cnry-2n8f";

/// Returns an event of Ada with contents, as a device tells it that has them told, or knows nothing of it.
fn with_contents(app: &App, id: usize, occasion: &str) -> Value {
    let text = format!("rm {CANARY} {id}");
    let attributes = match occasion {
        "prompt" => json!({ "identity.user_id": ADA, "request.prompt": text }),
        "pre_tool" => {
            json!({ "identity.user_id": ADA, "tool.id": "Bash", "tool.input": { "command": text, CANARY: text } })
        }
        _ => {
            json!({ "identity.user_id": ADA, "tool.id": "Bash", "tool.input": { "command": text }, "tool.result": text })
        }
    };
    let mut event = judged(app, id, &attributes, "block", "psv_none");
    event["occasion"] = occasion.into();
    event
}

async fn tells(app: &App, prompts: &str, arguments: &str) {
    let privacy = json!({ "prompts": prompts, "toolArguments": arguments });
    let body = json!({ "fleet": { "privacy": privacy }, "confirm": true });
    app.write("PATCH", "/automation/settings", body).await.ok();
}

/// Proves DJ-10.
///
/// A machine whose agent or bundle is an earlier one tells everything.
#[test]
fn contents_that_the_settings_do_not_have_told_are_kept_nowhere_and_do_not_come_back() {
    each("judging_contents", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let (mut next, mut head) = (1, CHAIN_START.to_owned());
        let mut tell_all = async |n: usize| {
            let entries: Vec<Value> = ["prompt", "pre_tool", "post_tool"]
                .iter()
                .map(|occasion| with_contents(&app, n, occasion))
                .collect();
            let reply = tell(&app, &machine, report(next, &head, &entries)).await;
            let answer = reply.ok();
            assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(3), &json!([])));
            next += 3;
            answer["head"].as_str().unwrap().clone_into(&mut head);
        };
        tell_all(1).await;
        let found = async || {
            let mut all = Vec::new();
            for event in recorded(&app, &machine).await {
                let path = format!("/policies/history/{}", event["eventId"].as_str().unwrap());
                all.push(app.get(&path).await.ok().clone());
            }
            all
        };
        let of = |events: &[Value], occasion: &str| {
            let of_occasion = events.iter().find(|event| event["occasion"] == occasion);
            of_occasion.unwrap_or_else(|| panic!("{events:?}")).clone()
        };
        let kept = found().await;
        let mut said = json!(kept).to_string();
        said += &app.get("/audit/events?limit=100").await.text();
        if let provost_kernel::db::Location::Sqlite(path) = app.location() {
            for end in ["", "-wal"] {
                let file = format!("{}{end}", path.display());
                said += &String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default());
            }
        }
        assert!(!said.contains(CANARY) && kept.len() == 3, "{kept:?}");
        for (occasion, names) in [
            ("prompt", &["request.prompt"][..]),
            ("pre_tool", &["tool.input"]),
            ("post_tool", &["tool.input", "tool.result"]),
        ] {
            let event = of(&kept, occasion);
            for name in names {
                let missing = event["missing"].as_array().unwrap();
                assert!(missing.contains(&json!(name)), "{name}: {event}");
            }
            assert_eq!(event["decision"]["action"], "block", "{event}");
            if occasion != "prompt" {
                assert_eq!(event["attributes"]["tool.id"], "Bash", "{event}");
            }
        }
        // Each word for itself, and what was left out stays so.
        tells(&app, "full", "none").await;
        tell_all(2).await;
        tells(&app, "off", "full").await;
        tell_all(3).await;
        tells(&app, "off", "none").await;
        tell_all(4).await;
        let kept = found().await;
        let holds = |n: usize, occasion: &str| {
            let text = format!("{CANARY} {n}");
            let mut of_occasion = kept.iter().filter(|event| event["occasion"] == occasion);
            of_occasion.any(|event| event["attributes"].to_string().contains(&text))
        };
        assert_eq!(kept.len(), 12);
        for (n, prompts, arguments) in [
            (1, false, false),
            (2, true, false),
            (3, false, true),
            (4, false, false),
        ] {
            let is_kept = ["prompt", "pre_tool", "post_tool"].map(|occasion| holds(n, occasion));
            assert_eq!(is_kept, [prompts, arguments, arguments], "{n}");
        }
        app.kernel.stop().await;
    });
}

/// Proves DJ-10.
#[test]
fn what_was_left_out_is_unknown_in_a_backtest_and_never_decided() {
    each("judging_unknown", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let entries: Vec<Value> = (0..3).map(|n| with_contents(&app, n, "pre_tool")).collect();
        tell(&app, &machine, report(1, CHAIN_START, &entries)).await.ok();
        let from = app.now().plus_secs(-3_600);
        app.advance(60);
        let worker = Worker::start(&app);
        let run = async |field: &str, value: &str| {
            let condition = json!({ "field": field, "op": "contains", "value": value });
            let definition = content("rm", "block", &json!({ "conditions": condition }));
            let body = json!({ "candidate": { "kind": "inline", "family": "content", "definition": definition },
                "window": { "from": from, "to": app.now() } });
            let id = ask(&app, body).await;
            let results = ended(&app, &id).await["results"].clone();
            ["unknown", "changed", "unchanged"].map(|figure| results[figure].as_u64().unwrap())
        };
        assert_eq!(run("tool.input.command", "rm").await, [3, 0, 0]);
        assert_eq!(
            run("tool.input.command", "never").await,
            [3, 0, 0],
            "nobody knows that it was not there"
        );
        assert_eq!(run("tool.id", "Ba").await, [0, 3, 0], "what was told is judged");
        worker.stop().await;
        app.kernel.stop().await;
    });
}

/// Proves DJ-10, LJ-14.
#[test]
fn an_event_without_its_contents_is_not_said_to_be_judged_otherwise() {
    each("judging_again_contents", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let by_command =
            json!({ "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm" } });
        policy(&app, Family::Content, content("p", "block", &by_command)).await;
        let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": of_ada("Bash") }] });
        let asked = app.request("POST", "/policies/decisions");
        let version = asked.json(body).send().await.ok()["policySetVersion"]["id"].clone();
        let (mut next, mut head) = (1, CHAIN_START.to_owned());
        let mut told = async |action: &str, change: fn(&mut Value)| {
            let entries: Vec<Value> = (0..1_000)
                .map(|n| {
                    let mut event = with_contents(&app, n, "pre_tool");
                    event["decision"]["action"] = action.into();
                    event["decision"]["policySetVersion"] = version.clone();
                    change(&mut event);
                    event
                })
                .collect();
            let reply = tell(&app, &machine, report(next, &head, &entries)).await;
            next += 1_000;
            reply.ok()["head"].as_str().unwrap().clone_into(&mut head);
            let path = format!("/devices/{}/decisions", machine.id);
            app.get(&path).await.ok()["told"]["mismatches"].as_i64().unwrap()
        };
        let as_agents_tell = |event: &mut Value| {
            event["attributes"].as_object_mut().unwrap().remove("tool.input");
            event["missing"] = json!(["tool.input"]);
            event["whole"] = false.into();
        };
        // By the whole text one of the two is wrong, and nobody can say which: the server took the text out, or the device did.
        for action in ["block", "allow"] {
            assert_eq!(told(action, |_| {}).await, 0, "{action}");
            assert_eq!(told(action, as_agents_tell).await, 0, "{action}");
        }
        // With the text it is found.
        tells(&app, "off", "full").await;
        assert_eq!(told("block", |_| {}).await, 0);
        assert!(told("allow", |_| {}).await > 0);
        app.kernel.stop().await;
    });
}
