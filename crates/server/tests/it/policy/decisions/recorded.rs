//! What was answered is in the history, one to one; what could not be recorded is not answered (DE-3).

#![expect(
    clippy::similar_names,
    clippy::disallowed_methods,
    reason = "what was recorded is compared with the record; a test waits for a while"
)]

use super::{ask, call, content, policy};
use crate::support::{App, each, exchange};
use provost_kernel::{OperationContext, params};
use provost_policy::Family;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

provost_kernel::statements! {
    /// Takes the table of chunks away.
    TAKE_AWAY = unscoped("breaks a store in a test") "ALTER TABLE history_chunks RENAME TO history_chunks_away";
    /// Puts it back.
    PUT_BACK = unscoped("mends it") "ALTER TABLE history_chunks_away RENAME TO history_chunks";
}

/// Returns everything that is recorded, by event id.
async fn history(app: &App) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let reply = app.get(&format!("/policies/history?limit=100{cursor}")).await;
        for event in reply.ok()["events"].as_array().unwrap() {
            let id = event["eventId"].as_str().unwrap().to_owned();
            assert!(all.insert(id, event.clone()).is_none(), "listed twice: {event}");
        }
        match reply.json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Asserts that an answer's decisions are recorded as they were answered, and takes them out.
fn take(recorded: &mut BTreeMap<String, Value>, answer: &Value, sent: &[Value]) {
    let decisions = answer["decisions"].as_array().unwrap();
    assert_eq!(decisions.len(), sent.len());
    for (decision, sent) in decisions.iter().zip(sent) {
        let event = recorded.remove(decision["eventId"].as_str().unwrap());
        let event = event.unwrap_or_else(|| panic!("not recorded: {decision}"));
        assert_eq!(event["decision"]["action"], decision["action"]);
        assert_eq!(
            event["decision"].get("policyIds").unwrap_or(&json!([])),
            &decision["policyIds"]
        );
        assert_eq!(
            event["decision"]["policySetVersionId"],
            answer["policySetVersion"]["id"]
        );
        assert_eq!(event["decision"]["mode"], answer["mode"]);
        assert_eq!(event["occasion"], sent["occasion"]);
        assert_eq!(event["tool"], sent["attributes"]["tool.id"]);
        assert_eq!(event["callId"], sent["callId"]);
        assert_eq!(event["source"], "decisions");
    }
}

fn event(asker: usize, n: usize) -> Value {
    let mut event = call(&json!({ "tool.id": format!("t{}", (asker + n) % 4), "tool.input": { "n": n } }));
    event["callId"] = format!("{asker}-{n}").into();
    event
}

/// Proves DE-3.
#[test]
fn a_storm_of_64_connections_is_recorded_as_it_was_answered() {
    each("decide_storm", |app: Arc<App>| async move {
        for (tool, action) in ["block", "nudge", "redact"].into_iter().enumerate() {
            let change =
                json!({ "conditions": { "field": "tool.id", "op": "eq", "value": format!("t{tool}") } });
            policy(&app, Family::Content, content(action, action, &change)).await;
        }
        let served = app.serve().await;
        let mut askers = JoinSet::new();
        for asker in 0..64 {
            let (app, address) = (app.clone(), served.address);
            askers.spawn(async move {
                let mut answers = Vec::new();
                for n in 0..6 {
                    let sent: Vec<Value> = (0..=(asker + n) % 4)
                        .map(|at| event(asker, n * 10 + at))
                        .collect();
                    let mode = if (asker + n) % 3 == 0 {
                        "monitor"
                    } else {
                        "enforce"
                    };
                    let body = json!({ "events": sent, "mode": mode });
                    let bytes = app.on_the_wire("POST", "/policies/decisions", &app.admin, &body);
                    let (status, answer) = exchange(address, &bytes).await.json();
                    assert_eq!(status, 200, "{answer}");
                    assert_eq!(answer["recorded"], true);
                    answers.push((answer, sent));
                }
                answers
            });
        }
        let mut answers = Vec::new();
        while let Some(more) = askers.join_next().await {
            answers.extend(more.unwrap());
        }
        let mut recorded = history(&app).await;
        for (answer, sent) in &answers {
            take(&mut recorded, answer, sent);
        }
        assert!(recorded.is_empty(), "recorded and never answered: {recorded:?}");
    });
}

#[test]
fn buffered_decisions_are_recorded_soon() {
    each("decide_buffered", |app: Arc<App>| async move {
        let mut waits = Vec::new();
        for n in 0..10 {
            let sent = [event(0, n)];
            let reply = ask(&app, json!({ "events": sent, "record": "buffered" })).await;
            assert_eq!(reply.ok()["recorded"], false);
            let id = reply.json["decisions"][0]["eventId"].as_str().unwrap();
            let (answered, path) = (Instant::now(), format!("/policies/history/{id}"));
            while app.get(&path).await.status != 200 {
                assert!(
                    answered.elapsed() < Duration::from_secs(20),
                    "{id} was never written"
                );
                tokio::task::yield_now().await;
            }
            waits.push(answered.elapsed());
        }
        // A machine that does something else now and then does not always keep the time.
        assert!(
            waits.iter().min().unwrap() < &Duration::from_millis(100),
            "{waits:?}"
        );
        assert_eq!(history(&app).await.len(), 10);
    });
}

/// Proves DE-3.
#[test]
fn a_decision_that_cannot_be_recorded_is_not_given_out() {
    each("decide_unrecorded", |app: Arc<App>| async move {
        policy(&app, Family::Content, content("p", "block", &json!({}))).await;
        let alter = async |statement: &'static provost_kernel::db::Statement| {
            let run = move |ctx: &mut OperationContext<'_>| ctx.execute(statement, params![]).map(drop);
            app.kernel.system(app.org(), None, run).await.unwrap();
        };
        let before = ask(&app, json!({ "events": [event(0, 0)] })).await;
        before.ok();
        alter(&TAKE_AWAY).await;
        for n in 1..4 {
            let reply = ask(&app, json!({ "events": [event(0, n)] })).await;
            reply.refused(503, "unavailable");
            assert!(reply.json.get("decisions").is_none(), "{}", reply.text());
        }
        alter(&PUT_BACK).await;
        let after = ask(&app, json!({ "events": [event(0, 9)] })).await;
        let mut recorded = history(&app).await;
        take(&mut recorded, before.ok(), &[event(0, 0)]);
        take(&mut recorded, after.ok(), &[event(0, 9)]);
        assert!(recorded.is_empty(), "refused and recorded: {recorded:?}");
    });
}
