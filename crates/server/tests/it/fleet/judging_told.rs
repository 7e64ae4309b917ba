//! What devices tell of what they judged: in order, once, and of nobody but their own people.

use super::act;
use super::judging::owned;
use crate::areas::device_judging::report;
use crate::areas::directory::user;
use crate::areas::fleet::{Machine, send};
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
        assert_eq!(answer["foreign"], json!([4, 5, 6]));
        assert_eq!(answer["refused"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            (&answer["refused"][0]["entry"], &answer["expected"]),
            (&json!(10), &json!(11))
        );
        let events = recorded(&app, &machine).await;
        assert_eq!(events.len(), 6);
        let text = json!(events).to_string();
        assert!(
            !text.contains(&bob) && !text.to_lowercase().contains("bob@"),
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
            ("foreign", 3),
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
            counts.contains(&(&json!(ada), &json!(3))) && counts.contains(&(&json!("root"), &json!(2))),
            "{counts:?}"
        );
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
        told(1_001, &head, "allow").await;
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
        app.kernel.stop().await;
    });
}
