//! What passed by somebody's approval: in the record, in lists and in counts, before its subject and in backtests (VI-1, VI-6, DE-15).

use super::approvals::{Scene, request, rm, scene};
use super::backtests_worker::{Worker, ask, ended};
use super::decisions::{content, policy};
use super::violations::{PATH, count, grouped, id_of, listed, say};
use crate::support::{App, each};
use provost_areas_policy::history;
use provost_areas_policy::violations::AREA;
use provost_kernel::area::Check;
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// Policies that have a part in a call beside the one that wants somebody's yes, each by a word in its command.
async fn beside(app: &App) {
    for (id, action, more) in [
        ("marks", "flag_for_review", json!({})),
        ("hides", "redact", json!({})),
        (
            "own",
            "require_approval",
            json!({ "approval": { "autoApproveOnRequest": true } }),
        ),
    ] {
        let mut change = more;
        change["conditions"] = json!({ "field": "tool.input.command", "op": "contains", "value": id });
        policy(app, Family::Content, content(id, action, &change)).await;
    }
}

/// A call of an account.
fn of(scene: &Scene, account: &str, word: &str) -> Value {
    let mut event = scene.event(&rm(&format!("/{word}")));
    event["attributes"]["identity.service_account_id"] = json!(account);
    event
}

/// Has a call be approved, and asks about it again; returns what was decided then.
async fn passed(scene: &Scene, event: &Value) -> Value {
    let id = request(&scene.decide(event).await);
    scene.vote(&scene.bob().await, &id, "approve").await.ok();
    let decided = scene.decide(event).await;
    assert_eq!(decided["grant"]["requestId"], json!(id), "{decided}");
    decided
}

fn one<'a>(all: &'a [Value], decided: &Value) -> &'a Value {
    let id = id_of(decided);
    let found = all.iter().find(|one| one["eventId"] == id.as_str());
    found.unwrap_or_else(|| panic!("{id} among {all:?}"))
}

/// Proves VI-1, VI-7, DE-15.
#[test]
fn what_passes_by_an_approval_says_so_in_its_record_and_its_violation() {
    each("violations_approved", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        beside(&app).await;
        let mut decided = Vec::new();
        for (word, action, outcome, policies) in [
            ("plain", "allow", "approved", json!(["wants"])),
            ("marks", "flag_for_review", "approved", json!(["marks", "wants"])),
            ("hides", "redact", "approved", json!(["hides", "wants"])),
            // One's own yes is asked for still.
            ("own", "require_approval", "asked", json!(["own", "wants"])),
        ] {
            let event = of(&scene, &scene.ada, word);
            let one_of = passed(&scene, &event).await;
            assert_eq!(one_of["action"], action, "{one_of}");
            decided.push((one_of, action, outcome, policies));
        }
        let all = listed(&app, "").await;
        assert_eq!(all.len(), 8, "{all:?}");
        for (decision, action, outcome, policies) in &decided {
            let violation = one(&all, decision);
            assert_eq!(
                (&violation["outcome"], &violation["action"], &violation["mode"]),
                (&json!(outcome), &json!(action), &json!("enforce")),
                "{violation}"
            );
            assert_eq!(
                (&violation["basis"], &violation["policyIds"]),
                (&json!("approved"), policies)
            );
            let path = format!("/policies/history/{}", id_of(decision));
            let recorded = app.get(&path).await.ok()["decision"].clone();
            assert_eq!(
                (&recorded["action"], &recorded["basis"], &recorded["policyIds"]),
                (&json!(action), &json!("approved"), policies)
            );
            let whole = app.get(&format!("{PATH}/{}", id_of(decision))).await.ok().clone();
            assert_eq!(whole["outcome"], json!(outcome));
        }
        // What waited for it was asked about and nothing else.
        let ids: Vec<String> = decided.iter().map(|(decision, ..)| id_of(decision)).collect();
        let waited = all
            .iter()
            .filter(|one| !ids.iter().any(|id| one["eventId"] == id.as_str()));
        for violation in waited {
            assert_eq!(
                (&violation["outcome"], &violation["basis"]),
                (&json!("asked"), &json!("policies"))
            );
        }
        // What only looks on uses none, and says so.
        let event = of(&scene, &scene.ada, "looked-at");
        let id = request(&scene.decide(&event).await);
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        let looked = scene
            .send(json!({ "events": [event], "mode": "monitor" }))
            .await
            .ok()["decisions"][0]
            .clone();
        let all = listed(&app, "").await;
        let monitored = one(&all, &looked);
        assert_eq!(
            (&monitored["outcome"], &monitored["basis"]),
            (&json!("monitored"), &json!("policies"))
        );
        // And what is blocked beside it passes by none.
        let guard = json!({ "conditions": { "field": "tool.input.command", "op": "contains", "value": "looked-at" } });
        policy(&app, Family::Content, content("blocks", "block", &guard)).await;
        let blocked = scene.decide(&event).await;
        let all = listed(&app, "").await;
        let blocked = one(&all, &blocked);
        assert_eq!(
            (&blocked["outcome"], &blocked["basis"], &blocked["policyIds"]),
            (&json!("blocked"), &json!("policies"), &json!(["blocks"]))
        );
        assert_eq!(scene.state(&id).await.0, "approved");
        app.kernel.stop().await;
    });
}

/// Proves VI-1, VI-3.
#[test]
fn what_was_approved_is_found_by_each_filter_and_the_numbers_say_the_same() {
    each("violations_approved_counts", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        beside(&app).await;
        for word in ["plain", "marks", "hides", "own"] {
            passed(&scene, &of(&scene, &scene.ada, word)).await;
        }
        // What allows without an approval is none.
        let prompt = json!({ "occasion": "prompt", "attributes": { "request.prompt": "hello" } });
        assert_eq!(scene.decide(&prompt).await["action"], "allow");
        let queries = [
            ("", 8),
            ("&outcome=approved", 3),
            ("&outcome=asked", 5),
            ("&outcome=redacted", 0),
            ("&outcome=flagged", 0),
            ("&outcome=monitored", 0),
            ("&outcome=approved&mode=enforce", 3),
            ("&outcome=approved&action=redact", 1),
            ("&action=allow", 1),
            ("&action=redact", 1),
            ("&action=flag_for_review", 1),
            ("&action=require_approval", 5),
            ("&mode=enforce", 8),
            ("&mode=monitor", 0),
            ("&source=decisions&outcome=approved", 3),
        ];
        count(&app).await;
        for (query, number) in queries {
            assert_eq!(listed(&app, query).await.len(), number, "{query}");
        }
        // And by the columns of a segment.
        app.advance(601);
        history::seal(&app.kernel).await.unwrap();
        for (query, number) in queries {
            assert_eq!(listed(&app, query).await.len(), number, "{query}");
            let days = grouped(&app, &format!("day{query}")).await["groups"].clone();
            let days = days.as_array().unwrap().iter();
            let sum: i64 = days.map(|group| group["events"].as_i64().unwrap()).sum();
            assert_eq!(sum, i64::try_from(number).unwrap(), "{query}");
        }
        for (policy, number) in [("wants", 8), ("marks", 1), ("hides", 1), ("own", 2)] {
            let query = format!("&policyId={policy}");
            assert_eq!(listed(&app, &query).await.len(), number, "{policy}");
            let groups = grouped(&app, &format!("policy{query}")).await["groups"].clone();
            assert_eq!(groups[0]["events"], json!(number), "{policy}");
        }
        let wants = grouped(&app, "policy&policyId=wants").await["groups"][0]["outcomes"].clone();
        assert_eq!(
            wants,
            json!({ "blocked": 0, "approved": 3, "asked": 5, "redacted": 0, "flagged": 0, "monitored": 0, "bypassed": 0 })
        );
        let of_ada = grouped(&app, "subject&outcome=approved").await["groups"].clone();
        assert_eq!(
            (&of_ada[0]["subject"]["id"], &of_ada[0]["events"]),
            (&json!(scene.ada), &json!(3))
        );
        for unfit in [
            "outcome=approved&mode=monitor",
            "outcome=approved&action=block",
            "outcome=approved&action=require_approval",
            "action=allow&mode=monitor",
            "action=allow&outcome=blocked",
        ] {
            let reply = app.get(&format!("{PATH}?{unfit}")).await;
            reply.refused(422, "invalid_definition");
        }
        // The check of a store knows these numbers.
        let Check::Find(check) = AREA.check else {
            panic!("the area checks nothing");
        };
        let now = app.now();
        let broken = app.kernel.read_system(move |tx| check(tx, now)).await;
        assert_eq!(broken.unwrap(), Vec::<String>::new());
        app.kernel.stop().await;
    });
}

/// Proves VI-4, VI-6.
#[test]
fn who_was_approved_says_that_the_question_was_needless_and_sees_not_who_watched() {
    each("violations_approved_own", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        beside(&app).await;
        let (robot, secret) = app.account("robot", "viewer", &["policies:feedback"]).await;
        let mut decided = Vec::new();
        for word in ["plain", "marks", "hides"] {
            decided.push(passed(&scene, &of(&scene, &robot, word)).await);
        }
        passed(&scene, &of(&scene, &scene.ada, "theirs")).await;
        let page = app
            .request("GET", &format!("{PATH}/own"))
            .token(&secret)
            .send()
            .await;
        let own = page.ok()["violations"].as_array().unwrap().clone();
        assert_eq!(own.len(), 6, "{}", page.text());
        for (decision, action) in decided.iter().zip(["allow", "allow", "redact"]) {
            let violation = one(&own, decision);
            assert_eq!(
                (&violation["outcome"], &violation["action"], &violation["basis"]),
                (&json!("approved"), &json!(action), &json!("approved"))
            );
            assert_eq!(violation["policyIds"], json!([]));
        }
        let text = page.text();
        assert!(
            !text.contains("marks") && !text.contains("flag_for_review"),
            "{text}"
        );
        let needless = id_of(&decided[0]);
        say(&app, &secret, &needless, "nobody has to be asked for this")
            .await
            .ok();
        count(&app).await;
        assert_eq!(
            grouped(&app, "policy&policyId=wants").await["groups"][0]["feedback"],
            1
        );
        app.kernel.stop().await;
    });
}

/// What a run compares is what two sets say of an event, and not what was recorded of it.
#[test]
fn an_unchanged_set_changes_nothing_of_what_passed_by_an_approval() {
    each("violations_approved_backtest", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        passed(&scene, &of(&scene, &scene.ada, "plain")).await;
        let from = app.now().plus_secs(-3_600);
        app.advance(3_600);
        let worker = Worker::start(&app);
        let window = json!({ "from": from, "to": app.now() });
        for (action, unchanged, by_change) in [
            ("require_approval", 2, json!({})),
            ("block", 0, json!({ "require_approval_to_block": 2 })),
        ] {
            let definition = content("wants", action, &json!({}));
            let candidate = json!({ "kind": "inline", "family": "content", "definition": definition });
            let id = ask(&app, json!({ "candidate": candidate, "window": window })).await;
            let run = ended(&app, &id).await;
            let results = &run["results"];
            assert_eq!(
                (&results["eventsEvaluated"], &results["unchanged"]),
                (&json!(2), &json!(unchanged)),
                "{run}"
            );
            assert_eq!(results["byChange"], by_change, "{run}");
        }
        worker.stop().await;
        app.kernel.stop().await;
    });
}
