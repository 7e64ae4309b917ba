//! The past that history conditions see (DE-6).

use super::{ask, call, content, decide, decide_one, policy};
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// Blocks the tool `y` for whom `x` was called for at least so often within the hour.
async fn after_x(app: &App, times: usize) {
    let change = json!({ "conditions": { "all": [
        { "field": "tool.id", "op": "eq", "value": "y" },
        { "eventCount": { "within": "1h", "where": { "field": "tool.id", "op": "eq", "value": "x" }, "op": "gte", "value": times } },
    ] } });
    policy(app, Family::Content, content("p", "block", &change)).await;
}

fn of(user: &str, tool: &str) -> Value {
    json!({ "identity.user_id": user, "identity.group_ids": [], "tool.id": tool })
}

async fn action(app: &App, user: &str, tool: &str) -> (String, bool) {
    let decision = decide_one(app, &of(user, tool)).await;
    (
        decision["action"].as_str().unwrap().to_owned(),
        decision["unknown"].as_bool().unwrap(),
    )
}

fn known(action: &str) -> (String, bool) {
    (action.to_owned(), false)
}

/// Proves DE-6.
#[test]
fn a_decision_sees_what_was_decided_before_and_forgets_it_in_time() {
    each("decide_past", |app: Arc<App>| async move {
        after_x(&app, 2).await;
        assert_eq!(action(&app, "ann", "y").await, known("allow"));
        assert_eq!(action(&app, "ann", "x").await, known("allow"));
        assert_eq!(action(&app, "ann", "y").await, known("allow"));
        app.advance(30 * 60);
        assert_eq!(action(&app, "ann", "x").await, known("allow"));
        assert_eq!(action(&app, "ann", "y").await, known("block"));
        assert_eq!(action(&app, "bob", "y").await, known("allow"));
        app.advance(31 * 60);
        assert_eq!(action(&app, "ann", "y").await, known("allow"));
    });
}

#[test]
fn events_of_one_request_see_those_that_stand_before_them() {
    each("decide_past_batch", |app: Arc<App>| async move {
        after_x(&app, 2).await;
        let tools = ["y", "x", "x", "y", "x"];
        let events: Vec<Value> = tools.iter().map(|tool| call(&of("ann", tool))).collect();
        let decisions = decide(&app, &events).await;
        let actions: Vec<&str> = decisions
            .iter()
            .map(|one| one["action"].as_str().unwrap())
            .collect();
        assert_eq!(actions, ["allow", "allow", "allow", "block", "allow"]);
    });
}

#[test]
fn a_policy_that_is_written_later_sees_what_was_recorded_earlier() {
    each("decide_past_later", |app: Arc<App>| async move {
        assert_eq!(action(&app, "ann", "x").await, known("allow"));
        after_x(&app, 1).await;
        assert_eq!(action(&app, "ann", "y").await, known("block"));
        // Another set, with the same question: its past is whole, too.
        policy(&app, Family::Content, content("q", "nudge", &json!({}))).await;
        assert_eq!(action(&app, "ann", "y").await, known("block"));
        assert_eq!(action(&app, "bob", "y").await, known("nudge"));
    });
}

/// Proves DE-6.
#[test]
fn two_servers_see_each_others_events_at_the_next_decision() {
    each("decide_two_servers", |app: Arc<App>| async move {
        after_x(&app, 3).await;
        let other = app.beside(
            Vec::new(),
            app.clock.clone(),
            app.kernel.settings.clone(),
            app.location(),
        );
        for round in 0..4 {
            let user = format!("user-{round}");
            for (at, server) in [&*app, &other, &*app].into_iter().enumerate() {
                let (first, second) = if at % 2 == 0 {
                    (&*app, &other)
                } else {
                    (&other, &*app)
                };
                for asked in [first, second] {
                    assert_eq!(
                        action(asked, &user, "y").await,
                        known("allow"),
                        "round {round}, after {at}"
                    );
                }
                assert_eq!(action(server, &user, "x").await, known("allow"));
            }
            for asked in [&other, &*app] {
                assert_eq!(action(asked, &user, "y").await, known("block"), "round {round}");
            }
        }
        other.kernel.stop().await;
    });
}

async fn import(app: &App, source: &str, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let path = format!("/policies/history/import?source={source}");
    let call = app
        .request("POST", &path)
        .content("application/x-ndjson", lines.join("\n").into_bytes());
    let reply = call.send().await;
    assert_eq!(reply.ok()["accepted"], lines.len(), "{}", reply.text());
}

/// Proves DE-6.
#[test]
fn an_import_of_older_events_puts_their_subject_in_doubt_until_the_past_is_made_anew() {
    each("decide_late", |app: Arc<App>| async move {
        let settings = json!({ "history": { "countImports": true } });
        app.write("PUT", "/automation/settings", settings).await.ok();
        after_x(&app, 1).await;
        for user in ["ann", "bob"] {
            assert_eq!(action(&app, user, "y").await, known("allow"));
        }
        let at = |minutes: i64| app.now().plus_secs(-60 * minutes).to_string();
        let mut lines = vec![];
        for (user, minutes) in [("ann", 20), ("carl", 30)] {
            lines.push(json!({ "at": at(minutes), "occasion": "pre_tool", "attributes": of(user, "x") }));
        }
        import(&app, "old", &lines).await;
        // Ann had events after that one, Carl had none.
        assert_eq!(action(&app, "ann", "y").await, ("block".to_owned(), true));
        assert_eq!(action(&app, "bob", "y").await, known("allow"));
        assert_eq!(action(&app, "carl", "y").await, known("block"));
        app.advance(11);
        let mut tries = 0;
        while action(&app, "ann", "y").await != known("block") {
            tries += 1;
            assert!(tries < 500, "the past was not made anew");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(action(&app, "bob", "y").await, known("allow"));
        app.advance(45 * 60);
        assert_eq!(action(&app, "ann", "y").await, known("allow"));
    });
}

provost_kernel::statements! {
    /// Damages every chunk.
    DAMAGE = unscoped("damages a store in a test") "UPDATE history_chunks SET content = ?1";
}

/// Proves DE-5.
#[test]
fn a_past_that_cannot_be_read_is_unknown_and_not_empty() {
    each("decide_damaged", |app: Arc<App>| async move {
        assert_eq!(action(&app, "ann", "x").await, known("allow"));
        let damage = |ctx: &mut provost_kernel::OperationContext<'_>| {
            ctx.execute(&DAMAGE, provost_kernel::params![b"no chunk".as_slice()])
                .map(drop)
        };
        app.kernel.system(app.org(), None, damage).await.unwrap();
        after_x(&app, 1).await;
        let decision = decide_one(&app, &of("bob", "y")).await;
        assert_eq!(
            (&decision["action"], &decision["unknown"]),
            (&json!("block"), &json!(true))
        );
        assert_eq!(decision["reasons"][0]["reason"], "evaluation_failed");
        // What asks nothing about the past is decided as ever.
        assert_eq!(action(&app, "bob", "z").await, known("allow"));
    });
}

/// Asks about an event of somebody of whom nobody can say who it is.
async fn unseen(app: &App, user: Option<&str>, tool: &str) {
    let mut event = call(&json!({ "tool.id": tool }));
    match user {
        Some(user) => event["attributes"]["identity.user_id"] = user.into(),
        None => event["missing"] = json!(["identity.user_id"]),
    }
    decide(app, &[event]).await;
}

/// Proves CH-5.
#[test]
fn what_somebody_did_of_whom_nobody_can_say_who_it_is_may_be_anybodys() {
    each("decide_past_somebody", |app: Arc<App>| async move {
        after_x(&app, 2).await;
        unseen(&app, Some("\u{200b}"), "x").await;
        assert_eq!(action(&app, "ben", "y").await, known("allow"));
        unseen(&app, None, "x").await;
        for user in ["ben", "ann"] {
            assert_eq!(action(&app, user, "y").await, ("block".to_owned(), true));
        }
        // Of whom it is known that nobody of them did it.
        let device = json!({ "device.id": "d1", "tool.id": "y" });
        assert_eq!(decide_one(&app, &device).await["action"], "allow");
        assert_eq!(action(&app, "ben", "z").await, known("allow"));
        // Together with what is known to be hers it is more, and by itself no more than once.
        app.advance(61 * 60);
        assert_eq!(action(&app, "ben", "y").await, known("allow"));
        unseen(&app, None, "x").await;
        assert_eq!(action(&app, "ben", "x").await, known("allow"));
        assert_eq!(action(&app, "ben", "y").await, ("block".to_owned(), true));
        assert_eq!(action(&app, "ben", "x").await, known("allow"));
        assert_eq!(action(&app, "ben", "y").await, known("block"));
        assert_eq!(action(&app, "ann", "y").await, known("allow"));
    });
}

/// Proves CH-5.
#[test]
fn an_event_of_somebody_in_the_same_request_may_be_anybodys() {
    each("decide_past_somebody_batch", |app: Arc<App>| async move {
        after_x(&app, 1).await;
        let mut unseen = call(&json!({ "tool.id": "x" }));
        unseen["missing"] = json!(["identity.user_id"]);
        let found = decide(&app, &[call(&of("ben", "y")), unseen, call(&of("ben", "y"))]).await;
        let found: Vec<_> = found
            .iter()
            .map(|one| (one["action"].as_str().unwrap(), one["unknown"].as_bool().unwrap()))
            .collect();
        assert_eq!(found, [("allow", false), ("allow", false), ("block", true)]);
    });
}

/// Proves DE-6.
#[test]
fn a_decision_sees_what_this_server_answered_as_buffered_before_it() {
    each("decide_past_buffered", |app: Arc<App>| async move {
        after_x(&app, 1).await;
        for n in 0..20 {
            let user = format!("user-{n}");
            let sent = json!({ "events": [call(&of(&user, "x"))], "record": "buffered" });
            assert_eq!(ask(&app, sent).await.ok()["recorded"], false);
            assert_eq!(action(&app, &user, "y").await, known("block"), "{n}");
        }
        assert_eq!(action(&app, "nobody", "y").await, known("allow"));
    });
}
