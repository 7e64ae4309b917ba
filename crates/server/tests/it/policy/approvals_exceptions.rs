//! Exceptions of policies that people ask for by hand: for whom they hold, by whose yes, until when, and of which policies there are none.

use super::approvals_people::Person;
use super::decisions::{call, content, decide, policy, rego};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;
const ASKING: [&str; 3] = ["inventory:read", "mcp_approvals:request", "policies:read"];
const DECIDING: [&str; 3] = ["mcp_approvals:decide", "mcp_approvals:read", "policies:write"];

/// Who is stopped, who is as well, and who writes policies.
struct Scene {
    app: Arc<App>,
    ann: Person,
    carl: Person,
    bob: Person,
}

/// Returns a scene with a policy `no-tools` that blocks every call of a tool.
async fn scene(app: &Arc<App>) -> Scene {
    policy(app, Family::Content, content("no-tools", "block", &json!({}))).await;
    let asker = async |name: &str| Person::with(app, name, "viewer", &ASKING).await;
    Scene {
        app: app.clone(),
        ann: asker("ann").await,
        carl: asker("carl").await,
        bob: Person::with(app, "bob", "admin", &DECIDING).await,
    }
}

fn wish(policy: &str) -> Value {
    json!({ "kind": "exception", "policyId": policy, "expiresInSeconds": DAY, "justification": "the release is tonight" })
}

impl Scene {
    async fn ask(&self, by: &Person, body: Value) -> Reply {
        let token = by.token_for(&self.app, &ASKING).await;
        ask(&self.app, &token, body).await
    }

    async fn asked(&self, by: &Person, body: Value) -> String {
        let reply = self.ask(by, body).await;
        assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
        reply.json["approval"]["id"].as_str().unwrap().to_owned()
    }

    async fn shown(&self, id: &str) -> Value {
        self.app.get(&format!("/approvals/{id}")).await.ok()["approval"].clone()
    }

    /// Says yes as who writes policies.
    async fn yes(&self, id: &str) -> Reply {
        let token = self.bob.token_for(&self.app, &DECIDING).await;
        self.vote(&token, id, "approve").await
    }

    async fn vote(&self, token: &str, id: &str, decision: &str) -> Reply {
        let digest = self.shown(id).await["preview"]["bindingDigest"].clone();
        let body = with_trio(
            json!({ "decision": decision, "bindingDigest": digest }),
            &fresh_key(),
        );
        let path = format!("/approvals/{id}/decision");
        let call = self.app.request("POST", &path).token(token);
        call.json(body).send().await
    }

    async fn policy(&self, path: &str) -> Value {
        self.app.get(path).await.ok()["item"].clone()
    }

    async fn no_tools(&self) -> Value {
        self.policy("/content-policies/no-tools").await
    }

    /// Returns what becomes of one call of each of two people with a tool.
    async fn actions(&self, tool: &str) -> [String; 2] {
        let of = |person: &Person| {
            call(&json!({ "identity.user_id": person.login, "tool.id": tool, "tool.input": { "a": 1 } }))
        };
        let decisions = decide(&self.app, &[of(&self.ann), of(&self.carl)]).await;
        let action = |at: usize| decisions[at]["action"].as_str().unwrap().to_owned();
        [action(0), action(1)]
    }

    async fn replace(&self, id: &str, revision: i64, definition: Value) -> Reply {
        let body = json!({ "definition": definition, "expectedRevision": revision });
        let path = format!("/content-policies/{id}");
        self.app.write("PUT", &path, body).await
    }
}

async fn ask(app: &App, token: &str, body: Value) -> Reply {
    let body = with_trio(body, &fresh_key());
    let call = app.request("POST", "/approvals").token(token);
    call.json(body).send().await
}

/// Proves AP-11, AP-17, PO-10.
#[test]
fn an_exception_that_somebody_asks_for_holds_for_them_alone_until_the_end_that_was_shown() {
    each("exceptions_asked", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let before = scene.no_tools().await;
        assert_eq!(scene.actions("Bash").await, ["block", "block"]);
        let id = scene.asked(&scene.ann, wish("no-tools")).await;
        assert_eq!(scene.asked(&scene.ann, wish("no-tools")).await, id);
        // What somebody else asks for, and says of it, is another request.
        let other = scene.asked(&scene.carl, wish("no-tools")).await;
        let mut said = wish("no-tools");
        said["justification"] = "for fun".into();
        let again = scene.asked(&scene.ann, said).await;
        assert!(other != id && again != id && again != other);
        assert_eq!(scene.no_tools().await, before);
        let waits = scene.shown(&id).await;
        assert_eq!(
            (&waits["kind"], &waits["state"], &waits["tool"]),
            (&json!("exception"), &json!("pending"), &json!("no-tools"))
        );
        assert_eq!(
            waits["policies"],
            json!([{ "family": "content", "policyId": "no-tools", "definitionSha256": before["definitionSha256"] }])
        );
        let shown = waits["preview"]["exception"].clone();
        let end = app.now().plus_secs(86_400).to_rfc3339();
        assert!(shown["expiresAt"].as_str() <= Some(end.as_str()), "{shown}");
        assert_eq!(
            json!([
                shown["policyId"],
                shown["family"],
                shown["name"],
                shown["action"],
                shown["revision"]
            ]),
            json!(["no-tools", "content", "no-tools", "block", 1])
        );
        let expected = json!({
            "id": id, "reason": "the release is tonight", "expiresAt": shown["expiresAt"],
            "conditions": { "field": "identity.user_id", "op": "eq", "value": scene.ann.id },
        });
        assert_eq!(shown["exception"], expected);
        assert_eq!(waits["preview"]["justification"], "the release is tonight");
        // Who decides is told what the first one costs everybody.
        assert_eq!(shown["leavesDevices"], true, "{shown}");

        assert_eq!(scene.yes(&id).await.ok()["approval"]["state"], "used");
        let done = scene.shown(&id).await;
        assert_eq!(done["grant"]["expiresAt"], shown["expiresAt"]);
        assert_eq!(done["grant"]["uses"][0]["eventId"], "no-tools");
        let after = scene.no_tools().await;
        let mut definition = before["definition"].clone();
        definition["exceptions"] = json!([expected]);
        assert_eq!(
            (&after["definition"], &after["currentRevision"]),
            (&definition, &json!(2))
        );
        assert_eq!(scene.actions("Bash").await, ["allow", "block"]);
        // The entry is about the policy, and names the approval.
        let entries = app.get("/audit/events?action=decideHeadlessApproval").await.ok()["events"].clone();
        let entry = &entries[0];
        assert_eq!(
            entry["target"],
            json!({ "type": "policy", "id": "no-tools" }),
            "{entry}"
        );
        let named = entry["changes"].as_array().unwrap().iter();
        let named: Vec<&Value> = named.filter(|change| change["path"] == "/approvalId").collect();
        assert_eq!(named[0]["after"], json!(id));
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        for kind in ["approval.requested", "approval.approved", "policy.updated"] {
            assert!(told.iter().any(|known| known == kind), "{kind} among {told:?}");
        }
        // The policy is another now: what else was asked about it is asked anew.
        for id in [&other, &again] {
            let ended = scene.shown(id).await;
            assert_eq!(
                (&ended["state"], &ended["endReason"]),
                (&json!("void"), &json!("policies_changed"))
            );
        }
        // The second one takes nothing more from devices, and neither does one that is asked for when the first has ended.
        for days in [0, 1] {
            app.advance(days * DAY);
            let next = scene.asked(&scene.carl, wish("no-tools")).await;
            let shown = scene.shown(&next).await["preview"]["exception"].clone();
            assert!(
                shown["exception"].is_object() && shown["leavesDevices"].is_null(),
                "{shown}"
            );
        }
        assert_eq!(scene.actions("Bash").await, ["block", "block"]);
    });
}

/// Proves AP-17.
#[test]
fn conditions_narrow_an_exception_and_widen_it_for_nobody() {
    each("exceptions_narrowed", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = json!({ "field": "identity.user_id", "op": "eq", "value": scene.ann.id });
        let tool = json!({ "field": "tool.id", "op": "eq", "value": "Bash" });
        let everybody = [
            json!({ "field": "tool.id", "op": "exists" }),
            json!({ "any": [tool, { "not": tool }] }),
            json!({ "not": ann }),
            json!({ "any": [{ "field": "identity.user_id", "op": "exists" }, ann] }),
            json!({ "field": "identity.user_id", "op": "eq", "value": scene.carl.id }),
        ];
        for (at, conditions) in everybody.into_iter().enumerate() {
            let mut body = wish("no-tools");
            body["conditions"] = conditions.clone();
            let id = scene.asked(&scene.ann, body).await;
            let shown = scene.shown(&id).await["preview"]["exception"]["exception"].clone();
            assert_eq!(shown["conditions"], json!({ "all": [ann, conditions] }));
            scene.yes(&id).await.ok();
            assert_eq!(scene.actions("Other").await[1], "block", "{conditions}");
            // One of the five at a time.
            let definition = content("no-tools", "block", &json!({}));
            let revision = i64::try_from(at).unwrap() * 2 + 2;
            scene.replace("no-tools", revision, definition).await.ok();
        }
        let mut body = wish("no-tools");
        body["conditions"] = tool.clone();
        let id = scene.asked(&scene.ann, body).await;
        scene.yes(&id).await.ok();
        assert_eq!(scene.actions("Bash").await, ["allow", "block"]);
        assert_eq!(scene.actions("Other").await, ["block", "block"]);
    });
}

/// Proves AP-3, AP-11, AP-17.
#[test]
fn who_could_not_write_the_policy_gives_no_exception_of_it_and_who_asked_neither() {
    each("exceptions_voters", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let id = scene.asked(&scene.ann, wish("no-tools")).await;
        let narrow = ["mcp_approvals:decide", "mcp_approvals:read"];
        let token = scene.bob.token_for(&app, &narrow).await;
        scene
            .vote(&token, &id, "approve")
            .await
            .refused(403, "insufficient_scope");
        let waits = scene.shown(&id).await;
        assert_eq!(
            (&waits["state"], &waits["votes"]),
            (&json!("pending"), &json!([]))
        );
        assert_eq!(scene.no_tools().await["currentRevision"], 1);
        // An account has every right, and is nobody.
        scene
            .vote(&app.admin, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        scene.vote(&token, &id, "deny").await.ok();
        assert_eq!(scene.shown(&id).await["state"], "denied");
        // Who writes policies asks like everybody else.
        let all = [
            "inventory:read",
            "mcp_approvals:decide",
            "mcp_approvals:read",
            "mcp_approvals:request",
            "policies:read",
            "policies:write",
        ];
        let dora = Person::with(&app, "dora", "admin", &all).await;
        let token = dora.token_for(&app, &all).await;
        let own = ask(&app, &token, wish("no-tools")).await;
        assert_eq!(own.status.as_u16(), 201, "{}", own.text());
        let own = own.json["approval"]["id"].as_str().unwrap().to_owned();
        scene
            .vote(&token, &own, "approve")
            .await
            .refused(403, "escalation_forbidden");
        assert_eq!(scene.no_tools().await["currentRevision"], 1);
        // Who may not read policies learns nothing of one.
        let blind = ["mcp_approvals:request", "inventory:read"];
        let (_, token) = app.account("blind", "viewer", &blind).await;
        for policy in ["no-tools", "nothing"] {
            ask(&app, &token, wish(policy))
                .await
                .refused(403, "insufficient_scope");
        }
    });
}

/// Proves AP-5, AP-11, AP-17.
#[test]
fn a_policy_that_is_another_by_now_or_somebody_elses_gets_no_exception() {
    each("exceptions_moved", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let id = scene.asked(&scene.ann, wish("no-tools")).await;
        let changed = content("no-tools", "block", &json!({ "description": "since Monday" }));
        scene.replace("no-tools", 1, changed.clone()).await.ok();
        let ended = scene.shown(&id).await;
        assert_eq!(
            (&ended["state"], &ended["endReason"]),
            (&json!("void"), &json!("policies_changed"))
        );
        scene.yes(&id).await.refused(409, "already_terminal");
        assert_eq!(scene.no_tools().await["definition"], changed);
        // A manager took it over, which changes no word of it.
        let id = scene.asked(&scene.ann, wish("no-tools")).await;
        let claim = json!({ "expectedRevision": 2, "managerId": "platform", "managerInstance": "one" });
        app.write("POST", "/policy-authority/no-tools/claim", claim)
            .await
            .ok();
        let reply = scene.yes(&id).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("Terraform"), "{}", reply.text());
        assert_eq!(scene.shown(&id).await["state"], "pending");
        assert_eq!(scene.no_tools().await["currentRevision"], 2);
        // An hour was asked for, and it is over before anybody looked.
        policy(&app, Family::Content, content("other", "block", &json!({}))).await;
        let mut body = wish("other");
        body["expiresInSeconds"] = HOUR.into();
        let id = scene.asked(&scene.ann, body).await;
        let waits = scene.shown(&id).await;
        assert_eq!(waits["deadlineAt"], waits["preview"]["exception"]["expiresAt"]);
        app.advance(HOUR);
        scene.yes(&id).await.refused(409, "already_terminal");
        assert_eq!(
            scene.policy("/content-policies/other").await["currentRevision"],
            1
        );
        // Deleted.
        let id = scene.asked(&scene.ann, wish("other")).await;
        let gone = app.delete("/content-policies/other?expectedRevision=1").await;
        assert_eq!(gone.status.as_u16(), 204);
        assert_eq!(scene.shown(&id).await["endReason"], "policies_changed");
        scene
            .ask(&scene.ann, wish("other"))
            .await
            .refused(422, "invalid_definition");
    });
}

/// Proves AP-17.
#[test]
fn where_two_people_change_policies_nobody_gets_an_exception_by_asking() {
    each("exceptions_of_two", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        Person::with(&app, "dora", "admin", &DECIDING).await;
        let id = scene.asked(&scene.ann, wish("no-tools")).await;
        let name = json!({ "approvals": { "requireFor": ["policies"] } });
        app.write("PATCH", "/automation/settings", name).await.ok();
        for reply in [
            scene.yes(&id).await,
            scene.ask(&scene.ann, wish("no-tools")).await,
        ] {
            reply.refused(409, "conflict");
            assert!(reply.text().contains("requestApproval=true"), "{}", reply.text());
        }
        assert_eq!(scene.shown(&id).await["state"], "pending");
        assert_eq!(scene.no_tools().await["currentRevision"], 1);
    });
}

/// Proves AP-17, PO-10.
#[test]
fn policies_that_stop_nobody_or_would_become_another_thing_have_no_exceptions() {
    each("exceptions_of_none", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let add = async |family, definition| policy(&app, family, definition).await;
        let server = json!({ "field": "mcp.server_id", "op": "eq", "value": "files" });
        let listed = json!({ "conditions": server, "appliesTo": { "users": [scene.ann.login] } });
        for (id, action, change) in [
            ("asks", "require_approval", json!({})),
            ("flags", "flag_for_review", json!({})),
            ("allows", "allow", json!({})),
            ("off", "block", json!({ "enabled": false })),
            ("list", "allow", listed.clone()),
            ("kept-out", "block", listed),
        ] {
            add(Family::Content, content(id, action, &change)).await;
        }
        let monitored = json!({
            "id": "watched", "name": "watched", "action": "block", "enforcement": "monitor", "acknowledgeBroadScope": true,
            "conditions": { "field": "request.http.path", "op": "exists" },
        });
        add(Family::Resource, monitored).await;
        let acl = app.policy("skill-acls").await;
        add(Family::Content, content("claimed", "block", &json!({}))).await;
        let claim = json!({ "expectedRevision": 1, "managerId": "platform", "managerInstance": "one" });
        app.write("POST", "/policy-authority/claimed/claim", claim)
            .await
            .ok();
        for (id, why) in [
            ("asks", "ask for the call"),
            ("flags", "stops nobody"),
            ("allows", "stops nobody"),
            ("off", "not enabled"),
            ("list", "access list"),
            ("kept-out", "access list"),
            ("watched", "only monitored"),
            (acl.as_str(), "skill ACL"),
            ("claimed", "Terraform"),
        ] {
            let reply = scene.ask(&scene.ann, wish(id)).await;
            reply.refused(409, "conflict");
            assert!(reply.text().contains(why), "{id}: {}", reply.text());
        }
        let full: Vec<Value> = (0..256)
            .map(|at| json!({ "id": at.to_string(), "reason": "r", "conditions": { "field": "tool.id", "op": "eq", "value": "x" } }))
            .collect();
        add(
            Family::Content,
            content("full", "block", &json!({ "exceptions": full })),
        )
        .await;
        let reply = scene.ask(&scene.ann, wish("full")).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("256 exceptions"), "{}", reply.text());
        // The author of an access policy says whether anybody asks.
        let product = |id: &str, request: &str| {
            json!({
                "id": id, "name": id, "action": "block", "enforcementSurfaces": ["inline_hook"], "acknowledgeBroadScope": true,
                "conditions": { "field": "product.id", "op": "exists" }, "notification": { "exceptionRequest": request },
            })
        };
        add(Family::Access, product("closed", "disabled_for_future_blocks")).await;
        let reply = scene.ask(&scene.ann, wish("closed")).await;
        reply.refused(409, "conflict");
        assert!(reply.text().contains("exceptionRequest"), "{}", reply.text());
        // An account has them of what knows accounts.
        let (robot, token) = app.account("robot", "viewer", &ASKING).await;
        let access = product("no-product", "available_when_future_policy_blocks");
        add(Family::Access, access).await;
        ask(&app, &token, wish("no-product"))
            .await
            .refused(409, "conflict");
        let reply = ask(&app, &token, wish("no-tools")).await;
        assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
        let id = reply.json["approval"]["id"].as_str().unwrap().to_owned();
        let shown = scene.shown(&id).await["preview"]["exception"]["exception"].clone();
        let own = json!({ "field": "identity.service_account_id", "op": "eq", "value": robot });
        assert_eq!(shown["conditions"], own);
        let id = scene.asked(&scene.ann, wish("no-product")).await;
        scene.yes(&id).await.ok();
        let item = scene.policy("/access-policies/no-product").await;
        assert_eq!(item["definition"]["exceptions"][0]["id"], json!(id));
    });
}

/// Proves AP-17.
#[test]
fn a_condition_that_does_not_fit_is_refused_with_its_place_and_nothing_waits() {
    each("exceptions_refused", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let tool = |value: Value| json!({ "field": "tool.id", "op": "eq", "value": value });
        let mut deep = tool("x".into());
        for _ in 0..20 {
            deep = json!({ "not": deep });
        }
        for (conditions, place) in [
            (
                json!({ "field": "no.such.field", "op": "exists" }),
                "/conditions/field",
            ),
            (tool(7.into()), "/conditions/value"),
            (json!({ "all": [] }), "/conditions/all"),
            (deep, "/conditions"),
            // Who decides would see another text than the one that is compared.
            (tool("Ba\u{200b}sh".into()), "/conditions"),
            (tool("Ba\u{202e}sh".into()), "/conditions"),
            (tool("x".repeat(17 * 1024).into()), "/conditions"),
        ] {
            let mut body = wish("no-tools");
            body["conditions"] = conditions;
            let reply = scene.ask(&scene.ann, body).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains(place), "{place}: {}", reply.text());
        }
        let count = r#"{"eventCount":{"within":"1h","op":"gt","value":12345678901234567890123,"where":{"field":"tool.id","op":"exists"}}}"#;
        let body = with_trio(wish("no-tools"), &fresh_key()).to_string();
        let body = body.replacen('{', &format!("{{\"conditions\":{count},"), 1);
        let token = scene.ann.token_for(&app, &ASKING).await;
        let call = app.request("POST", "/approvals").token(&token);
        let reply = call
            .header("content-type", "application/json")
            .bytes(body)
            .send()
            .await;
        reply.refused(422, "invalid_definition");
        assert!(reply.text().contains("\"/conditions\""), "{}", reply.text());
        // Members of the other kind, and none of the own.
        let server = "srv_01kaf9q2m4x7t8v3c5d6e0g1h2";
        for (member, value, place) in [
            ("serverId", json!(server), "/serverId"),
            ("policyId", Value::Null, "/policyId"),
            ("policyId", json!("nothing"), "/policyId"),
        ] {
            let mut body = wish("no-tools");
            body[member] = value;
            body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let reply = scene.ask(&scene.ann, body).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains(place), "{place}: {}", reply.text());
        }
        assert_eq!(app.get("/approvals").await.ok()["approvals"], json!([]));
    });
}

/// Proves AP-11, PO-10.
#[test]
fn a_policy_of_a_module_gets_an_exception_beside_its_module() {
    each("exceptions_rego", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let off = content("no-tools", "block", &json!({ "enabled": false }));
        scene.replace("no-tools", 1, off).await.ok();
        let module = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\n\
            match := {\"matched\": true} if input.tool.id == \"Bash\"\n";
        policy(&app, Family::Content, rego("module", module)).await;
        assert_eq!(scene.actions("Bash").await, ["block", "block"]);
        let id = scene.asked(&scene.ann, wish("module")).await;
        scene.yes(&id).await.ok();
        assert_eq!(scene.actions("Bash").await, ["allow", "block"]);
        let item = scene.policy("/content-policies/module").await;
        assert_eq!(item["definition"]["logic"]["module"], module);
    });
}
