//! Calls that wait for somebody's yes, through HTTP: what is bound, who votes, what passes, and what ends it.

use super::approvals_people::Person;
use super::decisions::{content, policy};
use crate::support::{App, Reply, each, fresh_key};
use provost_policy::Family;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Who asks, for whom, and who else may decide.
pub struct Scene {
    pub app: Arc<App>,
    pub hook: String,
    pub hook_id: String,
    /// A service account whose calls wait.
    pub ada: String,
    bob: Person,
}

/// Returns a scene with a policy that wants a yes for each call of a tool.
pub async fn scene(app: &Arc<App>) -> Scene {
    policy(
        app,
        Family::Content,
        content("wants", "require_approval", &json!({})),
    )
    .await;
    let (hook_id, hook) = app.account("hook", "operator", &["policies:decide"]).await;
    let (ada, _) = app.account("ada", "operator", &["policies:read"]).await;
    Scene {
        app: app.clone(),
        hook,
        hook_id,
        ada,
        bob: Person::of(app, "bob", "admin").await,
    }
}

impl Scene {
    /// Signs an admin in who has nothing to do with who asks and whom it is for.
    pub async fn bob(&self) -> String {
        self.bob.token(&self.app).await
    }

    pub fn event(&self, input: &Value) -> Value {
        let attributes =
            json!({ "identity.service_account_id": self.ada, "tool.id": "Bash", "tool.input": input });
        json!({ "occasion": "pre_tool", "callId": "c-1", "session": "s-1", "attributes": attributes })
    }

    pub async fn send(&self, body: Value) -> Reply {
        self.app
            .request("POST", "/policies/decisions")
            .token(&self.hook)
            .json(body)
            .send()
            .await
    }

    pub async fn decide(&self, event: &Value) -> Value {
        self.send(json!({ "events": [event] })).await.ok()["decisions"][0].clone()
    }

    /// Asks about a call and returns the decision.
    pub async fn ask(&self, input: &Value) -> Value {
        self.decide(&self.event(input)).await
    }

    /// Asks about a call that has to wait and returns its request.
    pub async fn waits(&self, input: &Value) -> String {
        request(&self.ask(input).await)
    }

    pub async fn shown(&self, id: &str) -> Value {
        self.app.get(&format!("/approvals/{id}")).await.ok()["approval"].clone()
    }

    pub async fn act(&self, token: &str, id: &str, verb: &str, body: Value) -> Reply {
        let body = crate::support::with_trio(body, &fresh_key());
        let path = format!("/approvals/{id}/{verb}");
        self.app
            .request("POST", &path)
            .token(token)
            .json(body)
            .send()
            .await
    }

    pub async fn vote(&self, token: &str, id: &str, decision: &str) -> Reply {
        let shown = self.shown(id).await;
        let digest = shown["preview"]["bindingDigest"].clone();
        self.act(
            token,
            id,
            "decision",
            json!({ "decision": decision, "bindingDigest": digest }),
        )
        .await
    }

    /// Asks about a call and has it approved.
    pub async fn approved(&self, input: &Value) -> String {
        let id = self.waits(input).await;
        let reply = self.vote(&self.bob().await, &id, "approve").await;
        assert_eq!(reply.ok()["approval"]["state"], "approved");
        id
    }

    pub async fn state(&self, id: &str) -> (String, Value) {
        let shown = self.shown(id).await;
        (
            shown["state"].as_str().unwrap().to_owned(),
            shown["endReason"].clone(),
        )
    }
}

pub fn request(decision: &Value) -> String {
    assert_eq!(decision["action"], "require_approval", "{decision}");
    assert_eq!(decision["grant"], Value::Null, "{decision}");
    let id = decision["approval"]["requestId"].as_str();
    id.unwrap_or_else(|| panic!("{decision}")).to_owned()
}

pub fn rm(path: &str) -> Value {
    json!({ "command": format!("rm -rf {path}") })
}

/// Proves AP-1, AP-7, AP-8.
#[test]
fn a_call_waits_is_approved_and_passes_once() {
    each("approvals_once", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let first = scene.ask(&rm("/srv")).await;
        let id = request(&first);
        assert_eq!(first["approval"]["state"], "pending");
        // The same call again, under whatever call id, joins the request.
        assert_eq!(scene.waits(&rm("/srv")).await, id);
        let shown = scene.shown(&id).await;
        assert_eq!(shown["preview"]["call"]["tool.input"], rm("/srv"));
        assert_eq!(shown["policies"][0]["policyId"], "wants");
        let reply = scene.vote(&scene.bob().await, &id, "approve").await;
        assert_eq!(reply.ok()["approval"]["state"], "approved");
        let passed = scene.ask(&rm("/srv")).await;
        assert_eq!(
            (&passed["action"], &passed["basis"]),
            (&json!("allow"), &json!("policies"))
        );
        assert_eq!(passed["grant"]["requestId"], json!(id));
        assert_eq!(passed["grant"]["policyIds"], json!(["wants"]));
        assert_eq!(passed["policyIds"], json!([]));
        let shown = scene.shown(&id).await;
        assert_eq!(shown["state"], "used");
        assert_eq!(shown["grant"]["uses"][0]["eventId"], passed["eventId"]);
        assert_eq!(shown["grant"]["id"], passed["grant"]["id"]);
        let recorded = app
            .get(&format!(
                "/policies/history/{}",
                passed["eventId"].as_str().unwrap()
            ))
            .await;
        assert_eq!(
            recorded.ok().pointer("/decision/action"),
            Some(&json!("allow")),
            "{}",
            recorded.text()
        );
        assert_ne!(scene.waits(&rm("/srv")).await, id);
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        for kind in ["approval.requested", "approval.approved", "grant.consumed"] {
            assert!(told.iter().any(|known| known == kind), "{kind} among {told:?}");
        }
        let entries = app.entries(app.org().as_str(), 0).await;
        let settled = entries
            .iter()
            .filter(|entry| entry["action"] == "approvals.settled");
        let by: BTreeSet<&str> = settled
            .map(|entry| entry["actor"]["id"].as_str().unwrap())
            .collect();
        assert_eq!(by, BTreeSet::from([scene.hook_id.as_str()]));
    });
}

/// Proves AP-2.
#[test]
fn a_changed_argument_waits_and_only_the_order_of_members_makes_no_difference() {
    each("approvals_arguments", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let input = json!({ "command": "caf\u{e9}", "n": 1, "to": ["a"] });
        let id = scene.approved(&input).await;
        let send = async |input: &str| {
            let event = scene
                .event(&json!("INPUT"))
                .to_string()
                .replace("\"INPUT\"", input);
            let body = format!("{{\"events\":[{event}]}}");
            let call = app.request("POST", "/policies/decisions").token(&scene.hook);
            call.bytes(body)
                .header("content-type", "application/json")
                .send()
                .await
        };
        for other in [
            "{\"command\":\"cafe\u{301}\",\"n\":1,\"to\":[\"a\"]}",
            "{\"command\":\"caf\u{e9}\",\"n\":1.0,\"to\":[\"a\"]}",
            "{\"command\":\"caf\u{e9}\",\"n\":1.00000000000000000001,\"to\":[\"a\"]}",
            "{\"command\":\"caf\u{e9}\",\"n\":\"1\",\"to\":[\"a\"]}",
            "{\"command\":\"caf\u{e9}\",\"n\":1,\"to\":\"a\"}",
            "{\"command\":\"caf\u{e9} \",\"n\":1,\"to\":[\"a\"]}",
            "{\"command\":\"caf\u{e9}\",\"n\":1,\"to\":[\"a\"],\"x\":null}",
            "\"{\\\"command\\\":\\\"caf\u{e9}\\\",\\\"n\\\":1,\\\"to\\\":[\\\"a\\\"]}\"",
        ] {
            let reply = send(other).await;
            assert_ne!(request(&reply.ok()["decisions"][0]), id, "{other}");
        }
        send("{\"command\":\"caf\u{e9}\",\"n\":1,\"n\":1,\"to\":[\"a\"]}")
            .await
            .refused(400, "invalid_request");
        // Another tool, another subject, another asker, more said of it, something missing.
        let mut others = vec![scene.event(&input); 4];
        others[0]["attributes"]["tool.id"] = json!("Bash2");
        others[1]["attributes"]["identity.service_account_id"] = json!(scene.hook_id);
        others[2]["attributes"]["device.id"] = json!("d-1");
        for other in &others[..3] {
            assert_ne!(request(&scene.decide(other).await), id, "{other}");
        }
        others[3]["missing"] = json!(["mcp.server_id"]);
        assert_ne!(request(&scene.decide(&others[3]).await), id);
        let (_, other) = app
            .account("another hook", "operator", &["policies:decide"])
            .await;
        let call = app.request("POST", "/policies/decisions").token(&other);
        let reply = call.json(json!({ "events": [scene.event(&input)] })).send().await;
        assert_ne!(request(&reply.ok()["decisions"][0]), id);
        assert_eq!(scene.state(&id).await.0, "approved");
        let reply = send("{\"to\":[\"a\"],\"n\":1,\"command\":\"caf\u{e9}\"}").await;
        assert_eq!(
            reply.ok()["decisions"][0]["grant"]["requestId"],
            json!(id),
            "{}",
            reply.text()
        );
    });
}

/// Proves AP-4.
#[test]
fn an_approval_answers_the_policies_that_asked_for_it_and_no_other() {
    each("approvals_policies", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let (blocked, asked) = (scene.approved(&rm("/a")).await, scene.approved(&rm("/b")).await);
        let nudge = content("nudges", "nudge", &json!({ "message": "look twice" }));
        policy(&app, Family::Content, nudge).await;
        let nudged = scene.ask(&rm("/a")).await;
        assert_eq!(
            (&nudged["action"], &nudged["policyIds"]),
            (&json!("nudge"), &json!(["nudges"]))
        );
        assert_eq!(nudged["grant"]["requestId"], json!(blocked));
        let blocked = scene.approved(&rm("/a")).await;
        let guard =
            json!({ "conditions": { "field": "tool.input.command", "op": "contains", "value": "/a" } });
        policy(&app, Family::Content, content("blocks", "block", &guard)).await;
        let decision = scene.ask(&rm("/a")).await;
        assert_eq!(
            (&decision["action"], &decision["grant"]),
            (&json!("block"), &Value::Null)
        );
        assert_eq!(scene.state(&blocked).await.0, "approved");
        // A second policy that wants a yes: the first one's does not do.
        policy(
            &app,
            Family::Content,
            content("wants-too", "require_approval", &json!({})),
        )
        .await;
        let again = scene.waits(&rm("/b")).await;
        assert_ne!(again, asked);
        assert_eq!(scene.shown(&again).await["policies"].as_array().unwrap().len(), 2);
        // What asks beside it may ask no more: the first one is as good as before.
        assert_eq!(scene.state(&asked).await.0, "approved");
        app.delete("/content-policies/wants-too?expectedRevision=1")
            .await
            .ok();
        assert_eq!(scene.state(&again).await.0, "void");
        assert_eq!(scene.ask(&rm("/b")).await["grant"]["requestId"], json!(asked));
    });
}

#[test]
fn what_is_open_is_void_when_a_policy_that_it_answers_changes() {
    each("approvals_changed", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let (open, approved) = (scene.waits(&rm("/a")).await, scene.approved(&rm("/b")).await);
        let definition = content("wants", "require_approval", &json!({ "message": "ask Ann" }));
        let body = json!({ "definition": definition, "expectedRevision": 1 });
        app.write("PUT", "/content-policies/wants", body).await.ok();
        for id in [&open, &approved] {
            assert_eq!(scene.state(id).await, ("void".into(), json!("policies_changed")));
        }
        let next = scene.waits(&rm("/b")).await;
        scene
            .vote(&scene.bob().await, &approved, "approve")
            .await
            .refused(409, "already_terminal");
        app.delete("/content-policies/wants?expectedRevision=2")
            .await
            .ok();
        assert_eq!(scene.state(&next).await.0, "void");
        assert_eq!(scene.ask(&rm("/b")).await["action"], "allow");
    });
}

/// Proves AP-3.
#[test]
fn who_asked_whom_it_is_for_and_who_may_not_decide_do_not_vote() {
    each("approvals_voters", |app: Arc<App>| async move {
        policy(
            &app,
            Family::Content,
            content("wants", "require_approval", &json!({})),
        )
        .await;
        // Admins with every right: the first asks, for the second.
        let (asker_id, asker) = app.account("asker", "admin", &[]).await;
        let (subject_id, subject) = app.account("subject", "admin", &[]).await;
        let (_, reader) = app.account("reader", "operator", &[]).await;
        let scene = Scene {
            app: app.clone(),
            hook: asker.clone(),
            hook_id: asker_id,
            ada: subject_id,
            bob: Person::of(&app, "bob", "admin").await,
        };
        let bob = scene.bob().await;
        let id = scene.waits(&rm("/a")).await;
        for own in [&asker, &subject] {
            for decision in ["approve", "deny"] {
                scene
                    .vote(own, &id, decision)
                    .await
                    .refused(403, "escalation_forbidden");
            }
        }
        scene
            .vote(&reader, &id, "approve")
            .await
            .refused(403, "role_forbidden");
        let unseen = json!({ "decision": "approve", "bindingDigest": "0".repeat(64) });
        scene
            .act(&bob, &id, "decision", unseen)
            .await
            .refused(412, "precondition_failed");
        // No account says yes, whoever has its token.
        scene
            .vote(&app.admin, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        assert_eq!(scene.state(&id).await.0, "pending");
        // Readers who may not decide do not see what the call says.
        let shown = app
            .request("GET", &format!("/approvals/{id}"))
            .token(&reader)
            .send()
            .await;
        assert_eq!(shown.ok()["approval"]["preview"], Value::Null);
        // Of who may not, and did not ask, there is nothing to cancel.
        scene
            .act(&reader, &id, "cancel", json!({}))
            .await
            .refused(404, "not_found");
        assert_eq!(scene.state(&id).await.0, "pending");
        scene.vote(&bob, &id, "deny").await.ok();
        scene.vote(&bob, &id, "deny").await.ok();
        scene
            .vote(&bob, &id, "approve")
            .await
            .refused(409, "already_terminal");
        scene
            .act(&bob, &id, "revoke", json!({}))
            .await
            .refused(409, "already_terminal");
        // Who was denied asks anew, and who asked takes that back.
        let next = scene.waits(&rm("/a")).await;
        assert_ne!(next, id);
        scene.vote(&bob, &next, "abstain").await.ok();
        scene.act(&asker, &next, "cancel", json!({})).await.ok();
        scene.act(&asker, &next, "cancel", json!({})).await.ok();
        assert_eq!(scene.state(&next).await.0, "canceled");
    });
}

/// Proves AP-5.
#[test]
fn nothing_passes_after_an_end() {
    each("approvals_ends", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let revoked = scene.approved(&rm("/revoked")).await;
        scene
            .act(&scene.bob().await, &revoked, "revoke", json!({}))
            .await
            .ok();
        scene
            .act(&scene.bob().await, &revoked, "revoke", json!({}))
            .await
            .ok();
        let late = scene.approved(&rm("/late")).await;
        let waits = scene.waits(&rm("/waits")).await;
        app.advance(900);
        for (id, path) in [(&revoked, "/revoked"), (&late, "/late")] {
            assert_ne!(&scene.waits(&rm(path)).await, id);
        }
        assert_eq!(scene.state(&late).await.0, "expired");
        scene
            .act(&scene.bob().await, &late, "revoke", json!({}))
            .await
            .refused(409, "already_terminal");
        app.advance(3_600 - 900);
        scene
            .vote(&scene.bob().await, &waits, "approve")
            .await
            .refused(409, "already_terminal");
        assert_ne!(scene.waits(&rm("/waits")).await, waits);
        // What takes away the rights of the subject, or the subject.
        let narrowed = scene.approved(&rm("/narrowed")).await;
        let path = format!("/service-accounts/{}", scene.ada);
        app.write("PATCH", &path, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        assert_eq!(scene.state(&narrowed).await.0, "void");
        assert_ne!(scene.waits(&rm("/narrowed")).await, narrowed);
        let gone = scene.approved(&rm("/gone")).await;
        app.write("POST", &format!("{path}/disable"), json!({}))
            .await
            .ok();
        assert_eq!(scene.state(&gone).await, ("void".into(), json!("subject_ended")));
        let decision = scene.ask(&rm("/gone")).await;
        assert_eq!(decision["approval"]["refused"], "subject_unknown", "{decision}");
        app.write("POST", &format!("{path}/enable"), json!({})).await.ok();
        assert_ne!(scene.waits(&rm("/gone")).await, gone);
    });
}

#[test]
fn a_restore_ends_what_is_open() {
    each("approvals_restored", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let (open, approved) = (scene.waits(&rm("/a")).await, scene.approved(&rm("/b")).await);
        let end = |ctx: &mut provost_kernel::OperationContext<'_>| {
            let mut areas = ctx
                .services()
                .areas()
                .iter()
                .filter(|area| area.name == "approvals");
            areas.try_for_each(|area| area.restore.map_or(Ok(()), |end| end(ctx, "restored")))
        };
        app.kernel
            .system(app.org(), Some("approvals.expired"), end)
            .await
            .unwrap();
        for id in [&open, &approved] {
            assert_eq!(scene.state(id).await, ("void".into(), json!("restored")));
        }
    });
}

/// Proves AP-8.
#[test]
fn a_flood_of_one_subject_fills_no_queue() {
    each("approvals_flood", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let events: Vec<Value> = (0..30)
            .map(|n| scene.event(&rm(&format!("/{}", n / 2 * 2 % 44))))
            .collect();
        let reply = scene.send(json!({ "events": events })).await;
        let mut ids = BTreeSet::new();
        for decision in reply.ok()["decisions"].as_array().unwrap() {
            ids.insert(request(decision));
        }
        assert_eq!(ids.len(), 15, "equal calls of one question join as well");
        let events: Vec<Value> = (100..110).map(|n| scene.event(&rm(&format!("/{n}")))).collect();
        let reply = scene.send(json!({ "events": events })).await;
        let decisions = reply.ok()["decisions"].as_array().unwrap().clone();
        let refused = decisions
            .iter()
            .filter(|one| one["approval"]["refused"] == "too_many_open");
        assert_eq!(refused.count(), 5);
        assert!(decisions.iter().all(|one| one["action"] == "require_approval"));
        // One that waits already is joined all the same.
        assert!(ids.contains(&scene.waits(&rm("/0")).await));
        let listed = app.get("/approvals?state=pending&limit=15").await.ok().clone();
        let cursor = listed["nextCursor"].as_str().unwrap();
        let rest = app
            .get(&format!("/approvals?state=pending&limit=15&cursor={cursor}"))
            .await
            .ok()
            .clone();
        let count = |page: &Value| page["approvals"].as_array().unwrap().len();
        assert_eq!((count(&listed), count(&rest)), (15, 5));
        app.get(&format!("/approvals?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
    });
}

#[test]
fn who_does_not_enforce_and_what_needs_nobody_else_opens_nothing() {
    each("approvals_none", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let reply = scene
            .send(json!({ "mode": "monitor", "events": [scene.event(&rm("/a"))] }))
            .await;
        assert_eq!(
            reply.ok()["decisions"][0]["approval"],
            json!({ "policyId": "wants", "selfServe": false })
        );
        for (change, why) in [
            (json!({ "occasion": "prompt" }), None),
            (
                json!({ "attributes": { "tool.id": "Bash", "identity.service_account_id": scene.ada } }),
                Some("call_not_certain"),
            ),
            (
                json!({ "attributes": { "tool.id": "Bash", "tool.input": {} } }),
                Some("subject_unknown"),
            ),
            (
                json!({ "attributes": { "tool.id": "Bash", "tool.input": {}, "identity.user_id": "nobody@acme.test" } }),
                Some("subject_unknown"),
            ),
        ] {
            let mut event = scene.event(&rm("/a"));
            event
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let decision = scene.decide(&event).await;
            let refused = decision["approval"]["refused"].as_str();
            assert_eq!(refused, why, "{decision}");
            assert_eq!(decision["approval"].get("requestId"), None);
        }
        // What the person's own yes satisfies.
        let own = content(
            "wants",
            "require_approval",
            &json!({ "approval": { "autoApproveOnRequest": true } }),
        );
        let body = json!({ "definition": own, "expectedRevision": 1 });
        app.write("PUT", "/content-policies/wants", body).await.ok();
        let decision = scene.ask(&rm("/a")).await;
        assert_eq!(
            decision["approval"],
            json!({ "policyId": "wants", "autoApproveOnRequest": true, "selfServe": true })
        );
        assert_eq!(app.get("/approvals").await.ok()["approvals"], json!([]));
    });
}

/// Proves AP-1, AP-7.
#[test]
fn of_many_at_once_one_passes() {
    each("approvals_race", |app: Arc<App>| async move {
        let scene = Arc::new(scene(&app).await);
        for round in 0..5 {
            let input = rm(&format!("/{round}"));
            let id = scene.approved(&input).await;
            let mut tasks = JoinSet::new();
            for _ in 0..12 {
                let (scene, input) = (scene.clone(), input.clone());
                tasks.spawn(async move {
                    let mut second = scene.event(&input);
                    second["callId"] = json!("c-2");
                    scene
                        .send(json!({ "events": [scene.event(&input), second] }))
                        .await
                });
            }
            let mut passed = 0;
            while let Some(reply) = tasks.join_next().await {
                let reply = reply.unwrap();
                if reply.status.as_u16() == 503 {
                    continue;
                }
                let decisions = reply.ok()["decisions"].as_array().unwrap();
                passed += decisions.iter().filter(|one| one["action"] == "allow").count();
            }
            let uses = scene.shown(&id).await["grant"]["uses"].as_array().unwrap().len();
            assert_eq!((passed, uses), (1, 1), "round {round}");
        }
    });
}

provost_kernel::statements! {
    /// What is kept of answers for who repeats a request.
    ANSWERS = unscoped("a test reads everything") "SELECT body FROM idempotency_keys";
}

/// Proves AP-6.
#[test]
fn what_a_call_says_stands_in_no_entry_and_no_event() {
    each("approvals_hidden", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let secret = "correct-horse-battery-staple";
        let id = scene
            .approved(&json!({ "command": format!("mysql --password {secret} -e marker-of-the-call") }))
            .await;
        scene
            .ask(&json!({ "command": format!("mysql --password {secret} -e marker-of-the-call") }))
            .await;
        let shown = scene.shown(&id).await.to_string();
        assert!(
            !shown.contains(secret) && shown.contains("marker-of-the-call"),
            "{shown}"
        );
        let kept = app
            .kernel
            .read_system(|tx| tx.query(&ANSWERS, &[], |row| row.get::<String>(0)))
            .await
            .unwrap();
        assert!(kept.iter().any(|answer| answer.contains(&id)), "the vote is kept");
        let kept = kept.join("\n");
        let listed = app.get("/approvals").await.text();
        let entries = serde_json::to_string(&app.entries(app.org().as_str(), 0).await).unwrap();
        let events = serde_json::to_string(&app.events(0).await).unwrap();
        for text in [listed, entries, events, kept] {
            assert!(!text.contains(secret) && !text.contains("marker-of-the-call"));
        }
    });
}
