//! Approvals as a hook meets them: its own questions, what the server says, and what the client then does.

use super::approvals::{Scene, rm, scene};
use super::approvals_people::Person;
use super::decisions::{content, policy};
use crate::support::{App, each};
use provost_hooks::{Client, Decision, Message, Mode, Question, answer, hear};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// A call of Claude Code's shell, in a session and a folder.
fn heard(session: &str, folder: &str, command: &str) -> Question {
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": session, "cwd": folder, "tool_name": "Bash", "tool_use_id": "toolu_1",
        "tool_input": { "command": command },
    });
    match hear(Client::ClaudeCode, event.to_string().as_bytes()).unwrap() {
        Message::Question(question) => *question,
        Message::Remark => panic!("a remark"),
    }
}

/// Asks the server as a hook does, and returns what was decided, what the hook says, and the server's own words.
async fn asked(scene: &Scene, user: &str, host: &str, question: &Question) -> (Decision, String, Value) {
    let reply = scene
        .send(question.request(Some(user), Some(host), Mode::Enforce))
        .await;
    let decisions = reply.ok()["decisions"].clone();
    let decision = Decision::read(&reply.bytes, question.count()).unwrap();
    let said = answer(question, Mode::Enforce, &decision);
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    let word = said["hookSpecificOutput"]["permissionDecision"]
        .as_str()
        .unwrap_or("passes");
    (decision, word.to_owned(), decisions)
}

fn access(id: &str, action: &str, approval: &Value) -> Value {
    let mut definition = json!({
        "id": id, "name": id, "action": action, "enforcementSurfaces": ["inline_hook"], "acknowledgeBroadScope": true,
        "conditions": { "field": "product.id", "op": "exists" },
    });
    if !approval.is_null() {
        definition["approval"] = approval.clone();
    }
    definition
}

/// The person is asked where the person's own yes is enough, and nowhere else: what waits for somebody is never a question of the
/// client.
#[test]
fn a_hook_asks_the_person_only_where_the_policy_says_that_this_is_enough() {
    each("approvals_hook_table", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        app.delete("/content-policies/wants?expectedRevision=1")
            .await
            .ok();
        let ann = Person::of(&app, "ann", "viewer").await;
        let auto = |is: bool| json!({ "approval": { "autoApproveOnRequest": is } });
        let table = [
            (
                Family::Content,
                content("a", "require_approval", &json!({})),
                "deny",
            ),
            (
                Family::Content,
                content("b", "require_approval", &auto(false)),
                "deny",
            ),
            (
                Family::Content,
                content("c", "require_approval", &auto(true)),
                "ask",
            ),
            (
                Family::Access,
                access("d", "require_approval", &Value::Null),
                "deny",
            ),
            (
                Family::Access,
                access("e", "require_approval", &json!({ "mode": "admin_approval" })),
                "deny",
            ),
            (
                Family::Access,
                access("f", "require_approval", &json!({ "mode": "self_serve" })),
                "ask",
            ),
        ];
        for (at, (family, definition, word)) in table.into_iter().enumerate() {
            let collection = if family == Family::Content {
                "content-policies"
            } else {
                "access-policies"
            };
            policy(&app, family, definition.clone()).await;
            let question = heard("s-1", "/srv", &format!("rm -rf /{at}"));
            let (decision, said, decisions) = asked(&scene, &ann.login, "laptop", &question).await;
            assert_eq!(said, word, "{definition}: {decisions}");
            assert_eq!(decision.self_serve, word == "ask", "{definition}: {decisions}");
            // While it waits, and after it was refused.
            if let Some(request) = decision.requests.first() {
                let (_, said, _) = asked(&scene, &ann.login, "laptop", &question).await;
                assert_eq!(said, "deny");
                scene.vote(&scene.bob().await, request, "deny").await.ok();
                let (_, said, _) = asked(&scene, &ann.login, "laptop", &question).await;
                assert_eq!(said, "deny");
            }
            let id = definition["id"].as_str().unwrap();
            app.delete(&format!("/{collection}/{id}?expectedRevision=1"))
                .await
                .ok();
        }
    });
}

/// Proves AP-1, AP-2.
#[test]
fn a_call_of_a_hook_is_approved_and_passes_once_where_it_was_asked() {
    each("approvals_hook_call", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let question = heard("s-1", "/srv", "rm -rf old");
        let (decision, said, decisions) = asked(&scene, &ann.login, "laptop", &question).await;
        assert_eq!(
            (said.as_str(), decision.requests.len()),
            ("deny", 1),
            "{decisions}"
        );
        let id = decision.requests[0].clone();
        let shown = scene.shown(&id).await;
        assert_eq!(shown["requestedFor"], json!({ "kind": "user", "id": ann.id }));
        let preview = &shown["preview"];
        assert_eq!(preview["call"]["tool.input"], json!({ "command": "rm -rf old" }));
        assert_eq!(
            (&preview["folder"], &preview["host"], &preview["session"]),
            (&json!("/srv"), &json!("laptop"), &json!("s-1"))
        );
        assert_eq!(preview["missing"], json!(["llm.model", "llm.provider"]));
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        // Another session, folder, machine or person is another call.
        let carl = Person::of(&app, "carl", "viewer").await;
        for (session, folder, host, user) in [
            ("s-2", "/srv", "laptop", &ann),
            ("s-1", "/", "laptop", &ann),
            ("s-1", "/srv", "desktop", &ann),
            ("s-1", "/srv", "laptop", &carl),
        ] {
            let other = heard(session, folder, "rm -rf old");
            let (decision, said, decisions) = asked(&scene, &user.login, host, &other).await;
            assert_eq!(said, "deny", "{decisions}");
            assert!(!decision.requests.contains(&id), "{decisions}");
        }
        let (_, said, decisions) = asked(&scene, &ann.login, "laptop", &question).await;
        assert_eq!(said, "passes", "{decisions}");
        assert_eq!(decisions[0]["grant"]["requestId"], json!(id));
        let (decision, said, _) = asked(&scene, &ann.login, "laptop", &question).await;
        assert_eq!(said, "deny");
        assert!(!decision.requests.contains(&id));
        // Nobody can say whose it is: then there is no request, and the hook says why.
        let reply = scene.send(question.request(None, None, Mode::Enforce)).await;
        assert_eq!(
            reply.ok()["decisions"][0]["approval"]["refused"],
            "subject_unknown"
        );
    });
}

/// Proves AP-10.
#[test]
fn a_call_that_does_not_pass_uses_no_approval() {
    each("approvals_hook_kept", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let question = heard("s-1", "/srv", "rm -rf old");
        let (decision, ..) = asked(&scene, &ann.login, "laptop", &question).await;
        let id = decision.requests[0].clone();
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        // The use of the product is blocked, and then waits for somebody: the content of the same call was approved.
        for (beside, action, state, refused) in [
            ("beside-1", "block", Value::Null, json!("call_is_blocked")),
            ("beside-2", "require_approval", json!("approved"), Value::Null),
        ] {
            policy(&app, Family::Access, access(beside, action, &Value::Null)).await;
            let (_, said, decisions) = asked(&scene, &ann.login, "laptop", &question).await;
            assert_eq!(said, "deny", "{decisions}");
            let approval = &decisions[0]["approval"];
            assert_eq!(
                (&approval["state"], &approval["refused"]),
                (&state, &refused),
                "{decisions}"
            );
            assert_eq!(decisions[0]["grant"], Value::Null);
            assert_eq!(scene.state(&id).await.0, "approved");
            app.delete(&format!("/access-policies/{beside}?expectedRevision=1"))
                .await
                .ok();
        }
        // Nor does a blocked call open a request.
        policy(&app, Family::Access, access("beside-3", "block", &Value::Null)).await;
        let other = heard("s-1", "/srv", "rm -rf other");
        let (decision, ..) = asked(&scene, &ann.login, "laptop", &other).await;
        assert!(decision.requests.is_empty());
        app.delete("/access-policies/beside-3?expectedRevision=1")
            .await
            .ok();
        // What the person's own yes satisfies passes as far as the server goes: the client asks.
        let own = access("beside-4", "require_approval", &json!({ "mode": "self_serve" }));
        policy(&app, Family::Access, own).await;
        let (_, said, decisions) = asked(&scene, &ann.login, "laptop", &question).await;
        assert_eq!(said, "ask", "{decisions}");
        assert_eq!(decisions[0]["grant"]["requestId"], json!(id));
        assert_eq!(scene.state(&id).await.0, "used");
    });
}

/// Proves AP-4.
#[test]
fn an_admins_yes_is_not_the_persons_own() {
    each("approvals_hook_own", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let own = content(
            "own",
            "require_approval",
            &json!({ "approval": { "autoApproveOnRequest": true } }),
        );
        policy(&app, Family::Content, own).await;
        let id = scene.waits(&rm("/a")).await;
        let bound = scene.shown(&id).await["policies"].clone();
        assert_eq!(bound.as_array().unwrap().len(), 1, "{bound}");
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        let decision = scene.ask(&rm("/a")).await;
        assert_eq!(decision["grant"]["policyIds"], json!(["wants"]));
        // The other policy's question is left, and the person answers it.
        assert_eq!(decision["action"], "require_approval");
        assert_eq!(
            decision["approval"],
            json!({ "policyId": "own", "autoApproveOnRequest": true, "selfServe": true })
        );
    });
}
