//! What is claimed of groups opens nothing, and hides nothing of somebody of whom nobody can say who it is (WD-5, WD-6).

use super::{ask, content, decide, policy, rego};
use crate::areas::directory;
use crate::areas::history::NDJSON;
use crate::policy::backtests_worker::{Worker, ended};
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

const TOOL: &str = "tool";

/// Events of somebody of whom nobody can say who it is, each with these groups claimed: missing, blank, one of two, deleted.
fn of_somebody(groups: &Value) -> Vec<(&'static str, Value)> {
    let event = |user: Option<&str>| {
        let mut attributes = json!({ "tool.id": TOOL, "identity.group_ids": groups });
        if let Some(user) = user {
            attributes["identity.user_id"] = user.into();
        }
        json!({ "occasion": "pre_tool", "attributes": attributes })
    };
    let mut missing = event(None);
    missing["missing"] = json!(["identity.user_id"]);
    vec![
        ("missing", missing),
        ("blank", event(Some("\u{200b}"))),
        ("one of two", event(Some("twin"))),
        ("deleted", event(Some("cleo"))),
    ]
}

fn stranger(groups: &Value) -> Value {
    json!({ "occasion": "pre_tool",
        "attributes": { "tool.id": TOOL, "identity.user_id": "okta|17", "identity.group_ids": groups } })
}

/// Two who share a name, of whom one is a member, a member who was deleted, a member and one who is none; returns the group.
async fn world(app: &App) -> String {
    let group = directory::group(app, "contractors").await;
    directory::user(app, "ben").await;
    let cleo = directory::user(app, "cleo").await;
    let mut members = vec![cleo.clone(), directory::user(app, "ada").await];
    for directory in ["one", "two"] {
        let body = json!({ "loginName": "twin", "directoryId": directory });
        let made = app.write("POST", "/directory/users", body).await;
        if directory == "one" {
            members.push(made.ok()["user"]["id"].as_str().unwrap().to_owned());
        }
    }
    for id in members {
        let member = format!("/directory/groups/{group}/members/{id}");
        app.write("PUT", &member, json!({})).await.ok();
    }
    app.delete(&format!("/directory/users/{cleo}")).await.ok();
    group
}

fn verdict(decision: &Value) -> (&str, bool) {
    (
        decision["action"].as_str().unwrap(),
        decision["unknown"].as_bool().unwrap(),
    )
}

fn known(user: &str) -> Value {
    json!({ "occasion": "pre_tool", "attributes": { "tool.id": TOOL, "identity.user_id": user } })
}

async fn answers(app: &App, events: &[(&'static str, Value)], expected: (&str, bool)) {
    let sent: Vec<Value> = events.iter().map(|(_, event)| event.clone()).collect();
    for ((name, event), decision) in events.iter().zip(decide(app, &sent).await) {
        assert_eq!(verdict(&decision), expected, "{name}: {event} {decision}");
    }
}

/// Proves WD-5.
#[test]
fn an_exception_for_a_group_does_not_open_by_a_claim() {
    each("claims_exception", |app: Arc<App>| async move {
        let group = world(&app).await;
        for (excepted, of_each) in [
            (
                json!({ "except": { "field": "identity.group_ids", "op": "contains_any", "value": ["contractors"] } }),
                true,
            ),
            // Of two who share a name both have groups, if only none.
            (
                json!({ "conditions": { "not": { "field": "identity.group_ids", "op": "exists" } } }),
                false,
            ),
        ] {
            let id = if of_each { "p" } else { "q" };
            policy(&app, Family::Content, content(id, "block", &excepted)).await;
            for claimed in [json!(["contractors"]), json!([group]), json!(["CONTRACTORS "])] {
                let mut events = of_somebody(&claimed);
                events.retain(|(name, _)| of_each || *name != "one of two");
                events.push(("unknown", stranger(&claimed)));
                answers(&app, &events, ("block", true)).await;
            }
            // For whom it is meant it is open.
            assert_eq!(verdict(&decide(&app, &[known("ada")]).await[0]), ("allow", false));
            app.delete(&format!("/content-policies/{id}?expectedRevision=1"))
                .await
                .ok();
        }
    });
}

/// Proves WD-5.
#[test]
fn a_guard_of_a_group_holds_whatever_is_claimed_of_somebody() {
    each("claims_guard", |app: Arc<App>| async move {
        world(&app).await;
        let guard = json!({ "appliesTo": { "groups": ["contractors"] }, "acknowledgeBroadScope": null });
        policy(&app, Family::Content, content("p", "block", &guard)).await;
        for claimed in [json!(["x"]), json!([]), json!(["contractors"])] {
            answers(&app, &of_somebody(&claimed), ("block", true)).await;
        }
        // Whom the directory does not know keeps what was sent: what is claimed may be so, and nothing else is.
        let claimed = stranger(&json!(["x", "contractors"]));
        let other = stranger(&json!(["x"]));
        let found = decide(&app, &[claimed, other.clone(), known("ada"), known("ben")]).await;
        let found: Vec<_> = found.iter().map(verdict).collect();
        let expected = [
            ("block", true),
            ("allow", false),
            ("block", false),
            ("allow", false),
        ];
        assert_eq!(found, expected);
        // A user is in no group without one.
        let nobody = json!({ "occasion": "pre_tool", "attributes": { "tool.id": TOOL, "identity.group_ids": ["contractors"] } });
        assert_eq!(verdict(&decide(&app, &[nobody]).await[0]), ("allow", false));
        // Where everybody has a record, one without is somebody of whom nobody can say who it is.
        let complete = json!({ "directory": { "complete": true } });
        app.write("PATCH", "/automation/settings", complete).await.ok();
        assert_eq!(verdict(&decide(&app, &[other]).await[0]), ("block", true));
    });
}

/// Proves WD-5.
#[test]
fn an_allow_list_of_a_group_does_not_admit_by_a_claim() {
    each("claims_allowed", |app: Arc<App>| async move {
        world(&app).await;
        app.skill("deploy").await;
        let acl = json!({ "id": "acl", "skillId": "deploy", "subjects": { "groups": ["contractors"] }, "effect": "allow" });
        policy(&app, Family::SkillAcl, acl).await;
        let skill = |mut event: Value| {
            event["occasion"] = "skill".into();
            event["attributes"]["skill.id"] = "deploy".into();
            event["attributes"].as_object_mut().unwrap().remove("tool.id");
            event
        };
        let claimed = json!(["contractors"]);
        let mut events = of_somebody(&claimed);
        events.push(("unknown", stranger(&claimed)));
        let events: Vec<Value> = events.into_iter().map(|(_, event)| skill(event)).collect();
        for (event, decision) in events.iter().zip(decide(&app, &events).await) {
            assert_eq!(decision["action"], "block", "{event} {decision}");
        }
        let found = decide(&app, &[skill(known("ada")), skill(known("ben"))]).await;
        assert_eq!((verdict(&found[0]).0, verdict(&found[1]).0), ("allow", "block"));
    });
}

/// Proves WD-5.
#[test]
fn a_module_is_told_nothing_of_what_is_claimed() {
    each("claims_module", |app: Arc<App>| async move {
        let group = world(&app).await;
        let module = |condition: &str| {
            format!("package forge.content\nimport rego.v1\nmatch := {{\"matched\": true}} if {condition}\n")
        };
        for (id, condition) in [
            ("words", "not \"contractors\" in input.identity.group_words"),
            ("ids", "not input.identity.group_ids"),
        ] {
            policy(&app, Family::Content, rego(id, &module(condition))).await;
            for claimed in [json!(["contractors"]), json!([group])] {
                let mut events = of_somebody(&claimed);
                events.push(("unknown", stranger(&claimed)));
                answers(&app, &events, ("block", true)).await;
            }
            app.delete(&format!("/content-policies/{id}?expectedRevision=1"))
                .await
                .ok();
        }
    });
}

/// Proves WD-5.
#[test]
fn what_is_claimed_is_shown_as_it_was_sent_and_stays_a_claim_in_imports_and_backtests() {
    each("claims_backtest", |app: Arc<App>| async move {
        let group = world(&app).await;
        let except = json!({ "except": { "field": "identity.group_ids", "op": "contains_any", "value": ["contractors"] } });
        policy(&app, Family::Content, content("p", "block", &except)).await;
        let at = app.now();
        let mut events = of_somebody(&json!(["contractors"]));
        events.push(("unknown", stranger(&json!(["contractors"]))));
        let lines: Vec<String> = events
            .iter()
            .map(|(_, event)| {
                let mut line = event.clone();
                line["at"] = at.to_rfc3339().into();
                line.to_string()
            })
            .collect();
        let path = "/policies/history/import?source=claims";
        let sent = app
            .request("POST", path)
            .content(NDJSON, lines.join("\n").into_bytes());
        assert_eq!(sent.send().await.ok()["accepted"], lines.len());
        let listed = app.get("/policies/history?limit=10").await;
        let listed = listed.ok()["events"].as_array().unwrap().clone();
        let mut shown = Vec::new();
        for event in &listed {
            let path = format!("/policies/history/{}", event["eventId"].as_str().unwrap());
            let whole = app.get(&path).await.ok().clone();
            shown.extend(whole["attributes"].get("identity.group_ids").cloned());
        }
        assert_eq!(shown, [json!([group])]);
        app.advance(2);
        let worker = Worker::start(&app);
        // What is compared with nothing: whom the policies of now do not stop is unchanged.
        let body = json!({
            "candidate": { "kind": "set", "policies": [] },
            "window": { "from": at.to_rfc3339(), "to": at.plus_secs(1).to_rfc3339() },
        });
        let made = app.write("POST", "/policies/backtests", body).await;
        let run = ended(&app, made.ok()["id"].as_str().unwrap()).await;
        worker.stop().await;
        assert_eq!(run["results"]["eventsEvaluated"], lines.len(), "{run}");
        assert_eq!(run["results"]["unchanged"], 0, "{run}");
        assert_eq!(run["results"]["unknown"], lines.len(), "{run}");
    });
}

/// Proves WD-6.
#[test]
fn whoever_comes_back_is_in_groups_that_nobody_knows_until_somebody_says_so() {
    each("claims_return", |app: Arc<App>| async move {
        let guard = json!({ "appliesTo": { "groups": ["contractors"] }, "acknowledgeBroadScope": null });
        let group = directory::group(&app, "contractors").await;
        policy(&app, Family::Content, content("p", "block", &guard)).await;
        let create = async |name: &str| {
            let made = app
                .write("POST", "/directory/users", json!({ "loginName": name }))
                .await;
            made.ok().clone()
        };
        let member = |user: &str| format!("/directory/groups/{group}/members/{user}");
        let action = async |user: &str| {
            let decision = decide(&app, &[known(user)]).await.remove(0);
            let (action, unknown) = verdict(&decision);
            (action.to_owned(), unknown)
        };
        let (guarded, unset, free) = (
            ("block".to_owned(), false),
            ("block".to_owned(), true),
            ("allow".to_owned(), false),
        );
        for (name, settle) in [("cleo", "PUT"), ("dora", "DELETE")] {
            let made = create(name).await;
            assert_eq!(made.get("warnings"), None);
            let id = made["user"]["id"].as_str().unwrap().to_owned();
            app.write("PUT", &member(&id), json!({})).await.ok();
            assert_eq!(action(name).await, guarded);
            app.delete(&format!("/directory/users/{id}")).await.ok();
            assert_eq!(action(name).await, unset);
            let back = create(name).await;
            assert_eq!(back["user"]["id"], id.as_str());
            let warning = &back["warnings"][0];
            assert_eq!(warning["code"], "groups_unset");
            assert!(
                warning["message"].as_str().unwrap().contains("contractors"),
                "{warning}"
            );
            assert_eq!(action(name).await, unset);
            // Somebody sets them.
            if settle == "PUT" {
                app.write("PUT", &member(&id), json!({})).await.ok();
                assert_eq!(action(name).await, guarded);
            } else {
                app.delete(&member(&id)).await.ok();
                assert_eq!(action(name).await, free);
            }
        }
        // Who was in no group comes back in none.
        let eve = create("eve").await["user"]["id"].as_str().unwrap().to_owned();
        app.delete(&format!("/directory/users/{eve}")).await.ok();
        assert_eq!(create("eve").await.get("warnings"), None);
        assert_eq!(action("eve").await, free);
    });
}

/// Proves WD-6.
#[test]
fn a_file_that_gives_the_groups_of_who_comes_back_settles_them_and_another_does_not() {
    each("claims_return_file", |app: Arc<App>| async move {
        let guard = json!({ "appliesTo": { "groups": ["contractors"] }, "acknowledgeBroadScope": null });
        let group = directory::group(&app, "contractors").await;
        policy(&app, Family::Content, content("p", "block", &guard)).await;
        let file = async |mode: &str, lines: &[Value], verb: &str| {
            let id = directory::import(&app, json!({ "format": "jsonl", "mode": mode })).await;
            app.advance(1);
            let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
            directory::chunk(&app, &id, 1, &lines.join("\n")).await.ok();
            directory::end(&app, &id, verb).await.ok();
            directory::run_jobs(&app).await;
        };
        let action = async |user: &str| {
            let decision = decide(&app, &[known(user)]).await.remove(0);
            let (action, unknown) = verdict(&decision);
            (action.to_owned(), unknown)
        };
        let (unset, free) = (("block".to_owned(), true), ("allow".to_owned(), false));
        let cleo = directory::user(&app, "cleo").await;
        let member = format!("/directory/groups/{group}/members/{cleo}");
        app.write("PUT", &member, json!({})).await.ok();
        app.advance(1);
        let others = [
            json!({ "type": "group", "name": "contractors" }),
            json!({ "type": "user", "loginName": "ben" }),
        ];
        file("replace", &others, "apply").await;
        assert_eq!(action("cleo").await, unset);
        // Back without a word about groups.
        let back = json!({ "type": "user", "loginName": "cleo" });
        file("merge", std::slice::from_ref(&back), "apply").await;
        assert_eq!(action("cleo").await, unset);
        // A file that is aborted says nothing.
        let none = json!({ "type": "user", "loginName": "cleo", "groups": [] });
        file("merge", std::slice::from_ref(&none), "abort").await;
        assert_eq!(action("cleo").await, unset);
        file("merge", &[none], "apply").await;
        assert_eq!(action("cleo").await, free);
    });
}

#[test]
fn what_is_claimed_is_no_list_of_anything_else() {
    each("claims_refused", |app: Arc<App>| async move {
        // What is still refused: a claim that is no list of texts.
        for groups in [json!("contractors"), json!([7]), json!({})] {
            let event = json!({ "occasion": "pre_tool", "attributes": { "identity.group_ids": groups }, "missing": ["identity.user_id"] });
            ask(&app, json!({ "events": [event] }))
                .await
                .refused(400, "invalid_request");
        }
    });
}
