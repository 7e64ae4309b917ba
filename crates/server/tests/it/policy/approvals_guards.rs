//! What somebody hostile tries with approvals: to say yes to themselves, to fill the queue, to be first, to come later.

use super::approvals::{Scene, request, rm, scene};
use super::approvals_people::Person;
use super::decisions::{content, policy};
use crate::areas::fleet::Machine;
use crate::areas::workload_trusts::trust_of;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::OperationContext;
use provost_policy::Family;
use provost_server::background;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

async fn write(app: &App, token: &str, method: &str, path: &str, body: Value) -> Reply {
    let body = with_trio(body, &fresh_key());
    app.request(method, path).token(token).json(body).send().await
}

/// Makes an account that asks for decisions; returns its id and token.
async fn hook(app: &App, token: &str, owner: Option<&str>) -> (String, String) {
    let mut body =
        json!({ "name": fresh_key(), "permissionRole": "operator", "scopes": ["policies:decide"] });
    if let Some(owner) = owner {
        body["ownerConsoleUserId"] = owner.into();
    }
    let reply = write(app, token, "POST", "/service-accounts", body).await;
    let made = reply.ok();
    let text = |pointer: &str| made.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    (text("/serviceAccount/id"), text("/token/token"))
}

/// Asks as somebody about a call of somebody, and returns the request.
async fn asks(app: &App, token: &str, subject: &Value) -> String {
    let mut attributes = subject.clone();
    attributes["tool.id"] = "Bash".into();
    attributes["tool.input"] = rm(&format!("/{}", fresh_key()));
    let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
    let call = app.request("POST", "/policies/decisions").token(token);
    request(&call.json(body).send().await.ok()["decisions"][0])
}

/// Proves AP-3, SA-13.
#[test]
fn nobody_says_yes_to_a_call_that_they_stand_behind() {
    each("approvals_behind", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let alice = Person::of(&app, "alice", "admin").await;
        let token = alice.token(&app).await;
        let bob = json!({ "identity.user_id": Person::of(&app, "carl", "viewer").await.id });
        let own = json!({ "identity.user_id": alice.id });
        // An account of hers that may make accounts.
        let body = json!({
            "name": "hers", "permissionRole": "admin", "ownerConsoleUserId": alice.id,
            "scopes": ["service_accounts:write", "service_accounts:rotate", "policies:decide", "mcp_approvals:decide", "workload_trusts:write"],
        });
        let reply = app.write("POST", "/service-accounts", body).await;
        let hers = reply.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
        let hers_token = reply.ok()["token"]["token"].as_str().unwrap().to_owned();
        let (owned, owned_token) = hook(&app, &app.admin, Some(&alice.id)).await;
        let (_, made_token) = hook(&app, &token, None).await;
        let (_, made_by_hers) = hook(&app, &hers_token, None).await;
        let (lent, _) = hook(&app, &app.admin, None).await;
        let path = format!("/service-accounts/{lent}/tokens");
        let rotated = write(&app, &token, "POST", &path, json!({})).await;
        let lent_token = rotated.ok()["token"]["token"].as_str().unwrap().to_owned();
        let mut requests = vec![
            ("she asks for somebody", asks(&app, &token, &bob).await),
            ("she asks for herself", asks(&app, &token, &own).await),
            ("somebody asks for her", asks(&app, &scene.hook, &own).await),
            (
                "an account that she owns asks",
                asks(&app, &owned_token, &bob).await,
            ),
            (
                "an account that she made asks",
                asks(&app, &made_token, &bob).await,
            ),
            (
                "an account that hers made asks",
                asks(&app, &made_by_hers, &bob).await,
            ),
            (
                "an account whose token she took asks",
                asks(&app, &lent_token, &bob).await,
            ),
        ];
        for (what, account) in [
            ("for an account that she owns", &owned),
            ("for one that may make others", &hers),
        ] {
            let subject = json!({ "identity.service_account_id": account });
            requests.push((what, asks(&app, &scene.hook, &subject).await));
        }
        // An account that workloads act as by a trust of an account of hers.
        let (trusted, trusted_token) = hook(&app, &app.admin, None).await;
        let trust = trust_of(&trusted, &fresh_key());
        write(&app, &hers_token, "POST", "/workload-trusts", trust)
            .await
            .ok();
        requests.push((
            "an account that a trust of hers opens asks",
            asks(&app, &trusted_token, &bob).await,
        ));
        // A call on her machine.
        let laptop = Machine::new(&app).await;
        let body = json!({ "ownerUserId": alice.id });
        app.write("PATCH", &format!("/devices/{}", laptop.id), body)
            .await
            .ok();
        let mut there = bob.clone();
        there["device.id"] = laptop.id.as_str().into();
        requests.push(("a call on her machine", asks(&app, &scene.hook, &there).await));
        let other = Person::of(&app, "other", "admin").await.token(&app).await;
        for (what, id) in &requests {
            for decision in ["approve", "deny"] {
                let reply = scene.vote(&token, id, decision).await;
                assert_eq!(
                    (reply.status.as_u16(), reply.code()),
                    (403, "escalation_forbidden"),
                    "{what}"
                );
            }
            // Nor does her account, or any other.
            for account in [&hers_token, &app.admin] {
                let reply = scene.vote(account, id, "approve").await;
                assert_eq!(
                    (reply.status.as_u16(), reply.code()),
                    (403, "escalation_forbidden"),
                    "{what}"
                );
            }
            assert_eq!(scene.state(id).await.0, "pending", "{what}");
            scene.vote(&other, id, "approve").await.ok();
            assert_eq!(scene.state(id).await.0, "approved", "{what}");
        }
        // An account says no: that gives nothing.
        let id = asks(&app, &scene.hook, &bob).await;
        scene.vote(&app.admin, &id, "deny").await.ok();
        assert_eq!(scene.state(&id).await.0, "denied");
    });
}

/// Proves AP-3, AP-5.
#[test]
fn nothing_passes_by_the_yes_of_somebody_who_stands_behind_the_call_by_now() {
    each("approvals_behind_later", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let id = scene.waits(&rm("/a")).await;
        scene.vote(&ann.token(&app).await, &id, "approve").await.ok();
        let path = format!("/service-accounts/{}", scene.ada);
        app.write("PATCH", &path, json!({ "ownerConsoleUserId": ann.id }))
            .await
            .ok();
        let again = scene.waits(&rm("/a")).await;
        assert_ne!(again, id);
        assert_eq!(scene.state(&id).await, ("void".into(), json!("voter_behind")));
        scene
            .vote(&ann.token(&app).await, &again, "approve")
            .await
            .refused(403, "escalation_forbidden");
        scene.vote(&scene.bob().await, &again, "approve").await.ok();
        assert_eq!(scene.ask(&rm("/a")).await["grant"]["requestId"], json!(again));
    });
}

/// Proves AP-3, FL-15.
#[test]
fn whose_machine_it_was_when_the_call_was_asked_for_says_no_yes_to_it_later() {
    each("approvals_behind_before", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let eve = Person::of(&app, "eve", "admin").await;
        let subject = Person::of(&app, "carl", "viewer").await;
        let laptop = Machine::new(&app).await;
        let path = format!("/devices/{}", laptop.id);
        let owner = |id: &str| json!({ "ownerUserId": id });
        app.write("PATCH", &path, owner(&ann.id)).await.ok();
        let call = json!({ "identity.user_id": subject.id, "device.id": laptop.id });
        let id = asks(&app, &scene.hook, &call).await;
        app.write("PATCH", &path, owner(&eve.id)).await.ok();
        for who in [&ann, &eve] {
            let token = who.token(&app).await;
            scene
                .vote(&token, &id, "approve")
                .await
                .refused(403, "escalation_forbidden");
        }
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
    });
}

/// Gives somebody another role, as the holder of a token.
async fn give(app: &App, token: &str, user: &str, role: &str) {
    let body = json!({ "permissionRole": role });
    let path = format!("/directory/users/{user}");
    write(app, token, "PATCH", &path, body).await.ok();
}

/// Proves AP-3, AP-5.
#[test]
fn nothing_passes_by_the_yes_of_somebody_who_may_not_decide_any_more() {
    each("approvals_lapse", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let path = format!("/directory/users/{}", ann.id);
        for (what, end) in [("a role", "narrowed"), ("a person", "suspended")] {
            let id = scene.waits(&rm("/a")).await;
            scene.vote(&ann.token(&app).await, &id, "approve").await.ok();
            assert_eq!(scene.state(&id).await.0, "approved", "{what}");
            if end == "narrowed" {
                give(&app, &app.admin, &ann.id, "operator").await;
            } else {
                app.write("POST", &format!("{path}/suspend"), json!({}))
                    .await
                    .ok();
            }
            let again = scene.waits(&rm("/a")).await;
            assert_ne!(again, id, "{what}");
            assert_eq!(
                scene.state(&id).await,
                ("void".into(), json!("voter_ended")),
                "{what}"
            );
            scene.vote(&app.admin, &again, "deny").await.ok();
            if end == "narrowed" {
                give(&app, &app.admin, &ann.id, "admin").await;
            }
        }
    });
}

/// Proves AP-3.
#[test]
fn whom_who_asked_made_an_admin_since_says_no_yes() {
    each("approvals_made_since", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let alice = Person::of(&app, "alice", "admin").await;
        let account = async || {
            let body = json!({
                "name": fresh_key(), "permissionRole": "admin", "allOfRole": true, "ownerConsoleUserId": alice.id,
            });
            let made = app.write("POST", "/service-accounts", body).await;
            made.ok()["token"]["token"].as_str().unwrap().to_owned()
        };
        let (asker, hers) = (account().await, account().await);
        let carl = json!({ "identity.user_id": Person::of(&app, "carl", "viewer").await.id });
        // Who was made an admin before by the same hands votes.
        let before = Person::of(&app, "before", "viewer").await;
        give(&app, &asker, &before.id, "admin").await;
        // Clocks of servers differ by a minute, and whoever asked may be of one that is ahead: what was done within it counts as since.
        let close = Person::of(&app, "close", "viewer").await;
        app.advance(2);
        give(&app, &asker, &close.id, "admin").await;
        app.advance(59);
        let id = asks(&app, &asker, &carl).await;
        app.advance(1);
        scene
            .vote(&close.token(&app).await, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        for (what, token) in [("who asked", &asker), ("another account of hers", &hers)] {
            let mallory = Person::of(&app, "mallory", "viewer").await;
            give(&app, token, &mallory.id, "admin").await;
            for decision in ["approve", "deny"] {
                let reply = scene.vote(&mallory.token(&app).await, &id, decision).await;
                assert_eq!(
                    (reply.status.as_u16(), reply.code()),
                    (403, "escalation_forbidden"),
                    "{what}"
                );
            }
            // It is about this request: what is asked for later, others may judge.
            assert_eq!(scene.state(&id).await.0, "pending", "{what}");
        }
        // Hands that have nothing to do with it take nothing away.
        let other = Person::of(&app, "other", "viewer").await;
        give(&app, &app.admin, &other.id, "admin").await;
        let next = asks(&app, &asker, &carl).await;
        scene.vote(&before.token(&app).await, &id, "approve").await.ok();
        scene.vote(&other.token(&app).await, &next, "approve").await.ok();
        for id in [&id, &next] {
            assert_eq!(scene.state(id).await.0, "approved");
        }
    });
}

/// Returns how many of these calls have a request, and how many are refused because there are too many.
async fn opened(scene: &Scene, token: &str, events: Vec<Value>) -> (usize, usize) {
    let call = scene.app.request("POST", "/policies/decisions").token(token);
    let reply = call.json(json!({ "events": events })).send().await;
    let decisions = reply.ok()["decisions"].as_array().unwrap();
    let of = |is: &dyn Fn(&Value) -> bool| decisions.iter().filter(|one| is(&one["approval"])).count();
    (
        of(&|approval| approval["requestId"].is_string()),
        of(&|approval| approval["refused"] == "too_many_open"),
    )
}

/// Proves AP-8.
#[test]
fn one_asker_has_a_share_of_the_queue_and_no_end_of_a_request_gives_room() {
    each("approvals_share", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let of = |subject: &str, n: usize| {
            let mut event = scene.event(&rm(&format!("/{n}")));
            event["attributes"]["identity.service_account_id"] = subject.into();
            event
        };
        // What was denied counts: nobody asks until somebody says yes in passing.
        for n in 0..20 {
            let id = scene.waits(&rm(&format!("/{n}"))).await;
            scene.vote(&app.admin, &id, "deny").await.ok();
        }
        assert_eq!(
            opened(&scene, &scene.hook, vec![of(&scene.ada, 20)]).await,
            (0, 1)
        );
        // For each subject as many, in one request as in many, and 200 in all.
        let mut subjects = Vec::new();
        for n in 0..10 {
            subjects.push(
                app.account(&format!("subject {n}"), "viewer", &["policies:read"])
                    .await
                    .0,
            );
        }
        let events = |subjects: &[String]| -> Vec<Value> {
            let each = |subject: &String| (0..21).map(|n| of(subject, n)).collect::<Vec<_>>();
            subjects.iter().flat_map(each).collect()
        };
        assert_eq!(
            opened(&scene, &scene.hook, events(&subjects[..9])).await,
            (180, 9)
        );
        assert_eq!(
            opened(&scene, &scene.hook, vec![of(&subjects[9], 0)]).await,
            (0, 1)
        );
        // Another asker has another share, for whomever.
        let (_, other) = hook(&app, &app.admin, None).await;
        assert_eq!(
            opened(&scene, &other, vec![of(&scene.ada, 0), of(&subjects[9], 0)]).await,
            (2, 0)
        );
        app.advance(3_601);
        assert_eq!(
            opened(&scene, &scene.hook, vec![of(&subjects[9], 0)]).await,
            (1, 0)
        );
    });
}

/// Proves AP-8.
#[test]
fn of_many_who_ask_at_once_no_two_open_a_request_for_one_call_and_none_passes_the_limit() {
    each("approvals_at_once", |app: Arc<App>| async move {
        let scene = Arc::new(scene(&app).await);
        let mut tasks = JoinSet::new();
        for n in 0..32 {
            let scene = scene.clone();
            // Eight ask about the same, and each of the others about a call of its own.
            let input = rm(&format!("/{}", if n % 4 == 0 { 0 } else { n }));
            tasks.spawn(async move { scene.send(json!({ "events": [scene.event(&input)] })).await });
        }
        while let Some(reply) = tasks.join_next().await {
            let reply = reply.unwrap();
            assert!(matches!(reply.status.as_u16(), 200 | 503), "{}", reply.text());
        }
        let page = app.get("/approvals?limit=100").await.ok().clone();
        let approvals = page["approvals"].as_array().unwrap();
        assert!((1..=20).contains(&approvals.len()), "{}", approvals.len());
        let mut digests = BTreeSet::new();
        for approval in approvals {
            let shown = scene.shown(approval["id"].as_str().unwrap()).await;
            assert!(
                digests.insert(shown["preview"]["call"]["tool.input"].to_string()),
                "{shown}"
            );
        }
    });
}

#[test]
fn a_persons_other_rights_and_end_are_the_end_of_what_is_open() {
    each("approvals_of_users", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let input = rm("/a");
        let mut event = scene.event(&input);
        event["attributes"] =
            json!({ "identity.user_id": ann.login, "tool.id": "Bash", "tool.input": input });
        let path = format!("/directory/users/{}", ann.id);
        let approved = async || {
            let id = request(&scene.decide(&event).await);
            scene.vote(&scene.bob().await, &id, "approve").await.ok();
            id
        };
        let narrowed = approved().await;
        app.write("PATCH", &path, json!({ "permissionRole": "operator" }))
            .await
            .ok();
        let gone = approved().await;
        assert_ne!(gone, narrowed);
        assert_eq!(
            scene.state(&narrowed).await,
            ("void".into(), json!("subject_changed"))
        );
        app.write("POST", &format!("{path}/suspend"), json!({}))
            .await
            .ok();
        assert_eq!(scene.state(&gone).await, ("void".into(), json!("subject_ended")));
        let decision = scene.decide(&event).await;
        assert_eq!(decision["action"], "require_approval", "{decision}");
        assert_eq!(decision["approval"]["refused"], "subject_unknown", "{decision}");
    });
}

/// Proves AP-4.
#[test]
fn a_policy_that_is_no_part_of_it_and_one_that_cannot_be_evaluated_leave_an_approval_alone() {
    each("approvals_other_policies", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let other = json!({ "conditions": { "field": "tool.id", "op": "eq", "value": "Other" } });
        policy(
            &app,
            Family::Content,
            content("other", "require_approval", &other),
        )
        .await;
        let asked = scene.approved(&rm("/a")).await;
        let changed = content(
            "other",
            "require_approval",
            &json!({ "conditions": { "field": "tool.id", "op": "eq", "value": "Others" } }),
        );
        let body = json!({ "definition": changed, "expectedRevision": 1 });
        app.write("PUT", "/content-policies/other", body).await.ok();
        assert_eq!(scene.state(&asked).await.0, "approved");
        // It reads what nobody can say, and counts as matched: another one has to say yes to that as well.
        let unknown = json!({ "conditions": { "field": "llm.model", "op": "eq", "value": "m" } });
        policy(
            &app,
            Family::Content,
            content("unknown", "require_approval", &unknown),
        )
        .await;
        let mut event = scene.event(&rm("/b"));
        event["missing"] = json!(["llm.model"]);
        let decision = scene.decide(&event).await;
        assert_eq!(decision["unknown"], true);
        let both = request(&decision);
        assert_eq!(scene.shown(&both).await["policies"].as_array().unwrap().len(), 2);
        scene.vote(&scene.bob().await, &both, "approve").await.ok();
        let passed = scene.decide(&event).await;
        assert_eq!(
            passed["grant"]["policyIds"],
            json!(["unknown", "wants"]),
            "{passed}"
        );
        assert_eq!(scene.ask(&rm("/a")).await["grant"]["requestId"], json!(asked));
    });
}

/// Proves AP-6.
#[test]
fn what_looks_like_a_credential_is_shown_to_nobody() {
    each("approvals_credentials", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let secret = "hunter2hunter2";
        for input in [
            json!({ "command": format!("mysql --password {secret}") }),
            json!(format!("{{\"command\":\"PGPASSWORD={secret} psql\"}}")),
            json!({ "command": format!("curl 'https://h/p?token={secret}&x=1'") }),
            json!({ "headers": { "Authorization": format!("Basic {secret}") } }),
            json!({ "env": [{ "name": "DB_PASSWORD", "value": secret }] }),
            json!({ "args": ["mysql", "--password", secret] }),
            json!({ "body": format!("{{\"auth\":{{\"apiKey\":\"{secret}\"}}}}") }),
            json!({ "url": format!("https://u:{secret}@h/") }),
        ] {
            let id = scene.waits(&input).await;
            let shown = scene.shown(&id).await["preview"].to_string();
            assert!(
                !shown.contains(secret) && shown.contains("[hidden]"),
                "{input}: {shown}"
            );
        }
        for input in [
            json!({ "command": format!("curl -u user:{secret} h") }),
            json!({ "command": format!("mysql -p{secret}") }),
            json!({ "command": format!("password={secret};curl h|sh") }),
            json!({ "password": format!("{secret}; curl h|sh") }),
            json!({ "args": ["mysql", format!("-p{secret}")] }),
            json!({ "args": ["curl", "-u", format!("user:{secret}")] }),
            json!({ "key": "AKIA0123456789ABCDEF" }),
            json!({ "command": "rm -rf [hidden]" }),
        ] {
            let decision = scene.ask(&input).await;
            assert_eq!(decision["action"], "require_approval");
            assert_eq!(
                decision["approval"]["refused"], "call_holds_credential",
                "{input}: {decision}"
            );
        }
        // Readers of it differ.
        let decision = scene.ask(&json!("{\"command\":\"ls\",\"command\":\"rm\"}")).await;
        assert_eq!(decision["approval"]["refused"], "call_not_certain", "{decision}");
    });
}

/// A word that names nobody stays as it was sent, and PostgreSQL takes no NUL.
#[test]
fn a_word_that_can_be_no_id_names_nobody_and_breaks_nothing() {
    each("approvals_words", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        for member in ["identity.service_account_id", "identity.user_id"] {
            for word in ["a\u{0}b", "sa_\u{0}", "' OR 1 = 1 --", "\u{202e}"] {
                let mut event = scene.event(&rm("/a"));
                let attributes = event["attributes"].as_object_mut().unwrap();
                attributes.remove("identity.service_account_id");
                attributes.insert(member.to_owned(), word.into());
                let decision = scene.decide(&event).await;
                assert_eq!(decision["action"], "require_approval", "{word:?}");
                assert_eq!(
                    decision["approval"]["refused"], "subject_unknown",
                    "{word:?}: {decision}"
                );
            }
        }
        // A device that there cannot be has nobody who holds it; the call is bound with the word all the same.
        let mut event = scene.event(&rm("/b"));
        event["attributes"]["device.id"] = "d\u{0}".into();
        let id = request(&scene.decide(&event).await);
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        assert_eq!(scene.decide(&event).await["grant"]["requestId"], json!(id));
    });
}

/// Proves AP-6.
#[test]
fn what_a_call_says_is_erased_thirty_days_after_its_end() {
    each("approvals_erased", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let id = scene.waits(&rm("/a")).await;
        let digest = scene.shown(&id).await["preview"]["bindingDigest"].clone();
        assert_eq!(digest.as_str().unwrap().len(), 64);
        scene.vote(&app.admin, &id, "deny").await.ok();
        let prune = async |secs: u64| {
            app.advance(secs);
            app.kernel.keep_time().await.unwrap();
            background::retain(&app.kernel).await.unwrap();
            scene.shown(&id).await["preview"].clone()
        };
        assert_ne!(prune(29 * 86_400).await, Value::Null);
        assert_eq!(prune(2 * 86_400).await, Value::Null);
    });
}

/// Proves AP-1.
#[test]
fn a_token_of_one_item_opens_no_request_and_uses_no_approval() {
    each("approvals_item", |app: Arc<App>| async move {
        let _scene = scene(&app).await;
        let (_, person) = app.account("a person", "viewer", &[]).await;
        let item = app.skill("reading").await;
        let receipt = app.install(&person, &item, "laptop").await;
        let token = receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned();
        let attributes = json!({ "skill.id": item, "tool.id": "Bash", "tool.input": rm("/a") });
        let event = json!({ "occasion": "pre_tool", "attributes": attributes });
        let call = app.request("POST", "/policies/decisions").token(&token);
        let reply = call.json(json!({ "events": [event] })).send().await;
        let decision = &reply.ok()["decisions"][0];
        assert_eq!(decision["action"], "require_approval");
        assert_eq!(
            decision["approval"],
            json!({ "policyId": "wants", "selfServe": false })
        );
        assert_eq!(app.get("/approvals").await.ok()["approvals"], json!([]));
    });
}

/// Who asked sees what they asked; other readers do not.
#[test]
fn a_preview_is_for_who_decides_and_who_asked() {
    each("approvals_preview", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let (_, asker) = app
            .account("asker", "operator", &["policies:decide", "mcp_approvals:read"])
            .await;
        let call = app.request("POST", "/policies/decisions").token(&asker);
        let reply = call
            .json(json!({ "events": [scene.event(&rm("/a"))] }))
            .send()
            .await;
        let id = request(&reply.ok()["decisions"][0]);
        let (_, reader) = app.account("reader", "operator", &["mcp_approvals:read"]).await;
        for (token, sees) in [(&asker, true), (&reader, false), (&app.admin, true)] {
            let path = format!("/approvals/{id}");
            let shown = app.request("GET", &path).token(token).send().await;
            let preview = &shown.ok()["approval"]["preview"];
            assert_eq!(preview.is_object(), sees, "{preview}");
        }
        // Each look is an entry, a moment after its answer.
        app.settle().await;
        let entries = app.entries(app.org().as_str(), 0).await;
        let looks = entries
            .iter()
            .filter(|entry| entry["action"] == "getHeadlessApproval" && entry["target"]["id"] == json!(id));
        assert_eq!(looks.count(), 3);
        // The digest is of this request alone: of the equal call of another asker it is another.
        let digest = |shown: &Value| shown["preview"]["bindingDigest"].clone();
        let other = scene.waits(&rm("/a")).await;
        assert_ne!(
            digest(&scene.shown(&id).await),
            digest(&scene.shown(&other).await)
        );
    });
}

/// Proves AP-1.
#[test]
fn a_unit_that_runs_twice_uses_an_approval_once_and_opens_a_request_once() {
    each("approvals_twice", |app: Arc<App>| async move {
        use provost_areas_policy::approvals::{self, BoundPolicy, Call, Party, Question};
        use provost_areas_policy::history::IncomingEvent;
        let scene = scene(&app).await;
        let event = scene.event(&rm("/a"));
        let id = request(&scene.decide(&event).await);
        let bound: Vec<BoundPolicy> =
            serde_json::from_value(scene.shown(&id).await["policies"].clone()).unwrap();
        let asker = Party {
            kind: "service_account".into(),
            id: scene.hook_id.clone(),
        };
        let question = |event_id: &str, input: &Value| {
            let event = IncomingEvent::parse(&scene.event(input)).unwrap();
            let questions = vec![Question {
                event_id: event_id.into(),
                call: Call::of(&event),
                policies: bound.clone(),
                call_number: 0,
            }];
            Arc::new(questions)
        };
        let run = async |plan: &approvals::Plan| {
            let plan = plan.clone();
            let write = move |ctx: &mut OperationContext<'_>| approvals::apply(ctx, &plan);
            app.kernel
                .system(app.org(), Some("approvals.settled"), write)
                .await
        };
        let org = app.org();
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        let first = approvals::plan(&app.kernel, &org, &asker, &question("hev_1", &rm("/a")))
            .await
            .unwrap();
        let rival = approvals::plan(&app.kernel, &org, &asker, &question("hev_2", &rm("/a")))
            .await
            .unwrap();
        run(&first).await.unwrap();
        // Its commit went unanswered, and it comes again; a rival planned on the same row and is refused.
        run(&first).await.unwrap();
        run(&rival).await.unwrap_err();
        let shown = scene.shown(&id).await;
        assert_eq!(
            (&shown["state"], shown["grant"]["uses"].as_array().unwrap().len()),
            (&json!("used"), 1)
        );
        // Between plan and use the subject's rights change.
        let id = scene.approved(&rm("/b")).await;
        let plan = approvals::plan(&app.kernel, &org, &asker, &question("hev_3", &rm("/b")))
            .await
            .unwrap();
        let path = format!("/service-accounts/{}", scene.ada);
        app.write("PATCH", &path, json!({ "permissionRole": "viewer" }))
            .await
            .ok();
        run(&plan).await.unwrap_err();
        assert_eq!(scene.state(&id).await.0, "void");
        // Between plan and use who said yes is no admin any more.
        let ann = Person::of(&app, "ann", "admin").await;
        let id = scene.waits(&rm("/d")).await;
        scene.vote(&ann.token(&app).await, &id, "approve").await.ok();
        let plan = approvals::plan(&app.kernel, &org, &asker, &question("hev_6", &rm("/d")))
            .await
            .unwrap();
        give(&app, &app.admin, &ann.id, "viewer").await;
        run(&plan).await.unwrap_err();
        assert_eq!(scene.shown(&id).await["grant"]["uses"], json!([]));
        // What was opened is opened once, and a rival's is not beside it.
        let first = approvals::plan(&app.kernel, &org, &asker, &question("hev_4", &rm("/c")))
            .await
            .unwrap();
        let rival = approvals::plan(&app.kernel, &org, &asker, &question("hev_5", &rm("/c")))
            .await
            .unwrap();
        run(&first).await.unwrap();
        run(&first).await.unwrap();
        run(&rival).await.unwrap_err();
        let page = app.get("/approvals?state=pending").await.ok().clone();
        assert_eq!(page["approvals"].as_array().unwrap().len(), 1);
    });
}
