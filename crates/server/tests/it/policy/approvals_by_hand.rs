//! What people ask for by hand: a server of the inventory, by whom it is approved, and what keeps it from being.

use super::approvals::{request, rm, scene};
use super::approvals_people::Person;
use crate::areas::approvals::wish;
use crate::areas::fleet::Machine;
use crate::areas::inventory::{one, server};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: u64 = 86_400;

async fn ask(app: &App, token: &str, body: Value) -> Reply {
    let body = with_trio(body, &fresh_key());
    app.request("POST", "/approvals")
        .token(token)
        .json(body)
        .send()
        .await
}

async fn asked(app: &App, token: &str, body: Value) -> String {
    let reply = ask(app, token, body).await;
    assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
    reply.json["approval"]["id"].as_str().unwrap().to_owned()
}

async fn shown(app: &App, id: &str) -> Value {
    app.get(&format!("/approvals/{id}")).await.ok()["approval"].clone()
}

async fn vote(app: &App, token: &str, id: &str, decision: &str) -> Reply {
    let digest = shown(app, id).await["preview"]["bindingDigest"].clone();
    let body = with_trio(
        json!({ "decision": decision, "bindingDigest": digest }),
        &fresh_key(),
    );
    app.request("POST", &format!("/approvals/{id}/decision"))
        .token(token)
        .json(body)
        .send()
        .await
}

async fn standing(app: &App, server: &str) -> Value {
    let path = format!("/inventory/mcp-servers/{server}");
    app.get(&path).await.ok()["server"].clone()
}

/// Proves AP-11.
#[test]
fn a_server_that_somebody_asks_for_stands_approved_with_the_vote() {
    each("approvals_server", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let bob = Person::of(&app, "bob", "admin").await;
        let token = ann.token(&app).await;
        let id = asked(&app, &token, wish(&server)).await;
        // The same again joins it.
        assert_eq!(asked(&app, &token, wish(&server)).await, id);
        let waits = shown(&app, &id).await;
        assert_eq!(
            (&waits["kind"], &waits["state"]),
            (&json!("mcp_server"), &json!("pending"))
        );
        let herself = json!({ "kind": "user", "id": ann.id });
        assert_eq!(
            (&waits["requestedBy"], &waits["requestedFor"]),
            (&herself, &herself)
        );
        let known = standing(&app, &server).await;
        assert_eq!(waits["tool"], known["key"]);
        let preview = &waits["preview"];
        assert_eq!(preview["server"]["id"], json!(server));
        assert_eq!(preview["server"]["key"], known["key"]);
        assert_eq!(preview["justification"], "my team needs it");
        assert_eq!(preview.get("call"), None);
        vote(&app, &token, &id, "approve")
            .await
            .refused(403, "role_forbidden");
        assert_eq!(standing(&app, &server).await["standing"], "shadow");
        let reply = vote(&app, &bob.token(&app).await, &id, "approve").await;
        assert_eq!(reply.ok()["approval"]["state"], "used");
        let done = shown(&app, &id).await;
        let until = done["grant"]["expiresAt"].clone();
        let least = app.now().plus_secs(86_400 - 60).to_rfc3339();
        assert!(until.as_str() > Some(least.as_str()), "{until}");
        assert_eq!(done["grant"]["uses"][0]["eventId"], json!(server));
        let stands = standing(&app, &server).await;
        assert_eq!(
            (
                &stands["standing"],
                &stands["standingUntil"],
                &stands["standingBy"]
            ),
            (&json!("approved"), &until, &json!(bob.id))
        );
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        for kind in [
            "approval.requested",
            "approval.approved",
            "inventory.mcp_server.standing_changed",
        ] {
            assert!(told.iter().any(|known| known == kind), "{kind} among {told:?}");
        }
        // It is approved for as long already.
        ask(&app, &token, wish(&server)).await.refused(409, "conflict");
    });
}

/// Proves AP-3, AP-11.
#[test]
fn who_asked_and_who_could_not_do_it_do_not_approve_a_server() {
    each("approvals_server_voters", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let bob = Person::of(&app, "bob", "admin").await;
        let id = asked(&app, &ann.token(&app).await, wish(&server)).await;
        for own in [ann.token(&app).await, app.admin.clone()] {
            vote(&app, &own, &id, "approve")
                .await
                .refused(403, "escalation_forbidden");
        }
        let narrow = bob
            .token_for(&app, &["mcp_approvals:decide", "mcp_approvals:read"])
            .await;
        vote(&app, &narrow, &id, "approve")
            .await
            .refused(403, "insufficient_scope");
        assert_eq!(shown(&app, &id).await["state"], "pending");
        assert_eq!(shown(&app, &id).await["votes"], json!([]));
        assert_eq!(standing(&app, &server).await["standing"], "shadow");
        vote(&app, &narrow, &id, "deny").await.ok();
        assert_eq!(shown(&app, &id).await["state"], "denied");
        assert_eq!(standing(&app, &server).await["standing"], "shadow");
    });
}

/// Proves AP-5, AP-11.
#[test]
fn what_stands_otherwise_by_now_is_not_approved_and_what_ended_neither() {
    each("approvals_server_moved", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let bob = Person::of(&app, "bob", "admin").await;
        let id = asked(&app, &ann.token(&app).await, wish(&server)).await;
        let path = format!("/inventory/mcp-servers/{server}/standing");
        app.write("POST", &path, json!({ "standing": "denied" }))
            .await
            .ok();
        vote(&app, &bob.token(&app).await, &id, "approve")
            .await
            .refused(409, "conflict");
        assert_eq!(shown(&app, &id).await["state"], "pending");
        assert_eq!(standing(&app, &server).await["standing"], "denied");
        // Who asks now asks about a server that is denied, and that is decided.
        let next = asked(&app, &ann.token(&app).await, wish(&server)).await;
        assert_ne!(next, id);
        app.advance(7 * DAY);
        vote(&app, &bob.token(&app).await, &next, "approve")
            .await
            .refused(409, "already_terminal");
        let last = asked(&app, &ann.token(&app).await, wish(&server)).await;
        assert_ne!(last, next);
        assert_eq!(shown(&app, &next).await["state"], "expired");
        assert_eq!(standing(&app, &server).await["standing"], "denied");
        vote(&app, &bob.token(&app).await, &last, "approve").await.ok();
        assert_eq!(standing(&app, &server).await["standing"], "approved");
        // With who asked it is over.
        let other = one(&app).await;
        let id = asked(&app, &ann.token(&app).await, wish(&other)).await;
        let path = format!("/directory/users/{}/suspend", ann.id);
        app.write("POST", &path, json!({})).await.ok();
        let gone = shown(&app, &id).await;
        assert_eq!(
            (&gone["state"], &gone["endReason"]),
            (&json!("void"), &json!("subject_ended"))
        );
        vote(&app, &bob.token(&app).await, &id, "approve")
            .await
            .refused(409, "already_terminal");
        assert_eq!(standing(&app, &other).await["standing"], "shadow");
    });
}

/// Has one more machine report a server of a key in a version.
async fn has(app: &App, key: &str, version: &str) {
    let machine = Machine::new(app).await;
    let mut found = server("files", key, false);
    found["version"] = version.into();
    machine.has(app, "ada", &json!([found])).await.ok();
}

/// Proves AP-11, AP-18.
#[test]
fn what_is_known_of_a_server_is_frozen_and_what_could_make_it_another_keeps_it_from_being_approved() {
    each("approvals_server_drift", |app: Arc<App>| async move {
        let id = one(&app).await;
        let key = standing(&app, &id).await["key"].as_str().unwrap().to_owned();
        let ann = Person::of(&app, "ann", "viewer").await;
        let bob = Person::of(&app, "bob", "admin").await;
        let drift = async |approval: &str| {
            let preview = shown(&app, approval).await["preview"].clone();
            preview["drift"].as_array().cloned().unwrap_or_default()
        };
        let first = asked(&app, &ann.token(&app).await, wish(&id)).await;
        let facts = shown(&app, &first).await["preview"]["server"]["facts"].clone();
        let known = json!({
            "devices": 1, "accounts": 1, "instances": 1, "weakInstances": 0, "lookedAt": 1, "clients": ["claude_code"],
            "transports": ["stdio"], "versionPins": ["exact"], "versions": ["1.2.3"], "credentials": true,
        });
        assert_eq!(facts, known);
        assert_eq!(drift(&first).await, Vec::<Value>::new());
        // More of the same weighs nothing; who does not read the inventory is not told of it.
        has(&app, &key, "1.2.3").await;
        let more = drift(&first).await;
        let expected = json!({ "path": "/devices", "then": 1, "now": 2, "isWeighty": false });
        assert!(more.contains(&expected), "{more:?}");
        assert!(more.iter().all(|one| one["isWeighty"] == false), "{more:?}");
        let blind = ["mcp_approvals:decide", "mcp_approvals:read"];
        let token = bob.token_for(&app, &blind).await;
        let path = format!("/approvals/{first}");
        let seen = app.request("GET", &path).token(&token).send().await;
        assert_eq!(seen.ok()["approval"]["preview"].get("drift"), None);
        assert_eq!(asked(&app, &ann.token(&app).await, wish(&id)).await, first);
        // Another version is what nobody looked at.
        has(&app, &key, "6.6.6").await;
        let weighty =
            json!({ "path": "/versions", "then": ["1.2.3"], "now": ["1.2.3", "6.6.6"], "isWeighty": true });
        assert!(drift(&first).await.contains(&weighty));
        let reply = vote(&app, &bob.token(&app).await, &first, "approve").await;
        reply.refused(409, "conflict");
        assert_eq!(reply.json["drift"], "/versions");
        assert_eq!(shown(&app, &first).await["state"], "pending");
        assert_eq!(standing(&app, &id).await["standing"], "shadow");
        // Who asks again asks about what is there now.
        let next = asked(&app, &ann.token(&app).await, wish(&id)).await;
        assert_ne!(next, first);
        has(&app, &key, "6.6.6").await;
        vote(&app, &bob.token(&app).await, &next, "approve").await.ok();
        assert_eq!(standing(&app, &id).await["standing"], "approved");
        // It is shown after the decision as well.
        has(&app, &key, "7.0.0").await;
        assert!(drift(&next).await.iter().any(|one| one["isWeighty"] == true));
    });
}

/// Proves AP-11.
#[test]
fn who_asked_by_hand_takes_it_back_and_nobody_elses() {
    each("approvals_canceled", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let dora = Person::of(&app, "dora", "viewer").await;
        let bob = Person::of(&app, "bob", "admin").await;
        let id = asked(&app, &ann.token(&app).await, wish(&server)).await;
        let cancel = async |token: &str| {
            let body = with_trio(json!({}), &fresh_key());
            let call = app.request("POST", &format!("/approvals/{id}/cancel"));
            call.token(token).json(body).send().await
        };
        for other in [
            dora.token(&app).await,
            bob.token_for(&app, &["mcp_approvals:request"]).await,
        ] {
            cancel(&other).await.refused(404, "not_found");
        }
        assert_eq!(shown(&app, &id).await["state"], "pending");
        let own = ann.token_for(&app, &["mcp_approvals:request"]).await;
        assert_eq!(cancel(&own).await.ok()["approval"]["state"], "canceled");
        cancel(&own).await.ok();
        vote(&app, &bob.token(&app).await, &id, "approve")
            .await
            .refused(409, "already_terminal");
        assert_eq!(standing(&app, &server).await["standing"], "shadow");
        // What was decided is nothing that waits.
        let id = asked(&app, &ann.token(&app).await, wish(&server)).await;
        vote(&app, &bob.token(&app).await, &id, "approve").await.ok();
        let body = with_trio(json!({}), &fresh_key());
        let call = app
            .request("POST", &format!("/approvals/{id}/cancel"))
            .token(&own);
        call.json(body).send().await.refused(409, "already_terminal");
    });
}

#[test]
fn a_member_sees_and_takes_back_their_own_requests_and_nothing_else() {
    each("approvals_member", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let dora = Person::of(&app, "dora", "member").await;
        let id = asked(&app, &ann.token(&app).await, wish(&server)).await;
        let path = format!("/directory/users/{}", ann.id);
        let body = json!({ "permissionRole": "member" });
        app.write("PATCH", &path, body).await.ok();
        let (hers, doras) = (ann.token(&app).await, dora.token(&app).await);
        let own = async |token: &str| {
            let page = app.request("GET", "/approvals/own").token(token).send().await;
            let all = page.ok()["approvals"].as_array().unwrap().clone();
            all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(own(&hers).await, [json!(id)]);
        assert!(own(&doras).await.is_empty());
        for path in ["/approvals".to_owned(), format!("/approvals/{id}")] {
            let reply = app.request("GET", &path).token(&hers).send().await;
            reply.refused(403, "role_forbidden");
        }
        // Who asks by hand reads what is asked for, and a member reads no inventory and no policies.
        ask(&app, &hers, wish(&server))
            .await
            .refused(403, "role_forbidden");
        vote(&app, &hers, &id, "approve")
            .await
            .refused(403, "role_forbidden");
        let cancel = async |token: &str| {
            let body = with_trio(json!({}), &fresh_key());
            let call = app.request("POST", &format!("/approvals/{id}/cancel"));
            call.token(token).json(body).send().await
        };
        cancel(&doras).await.refused(404, "not_found");
        assert_eq!(shown(&app, &id).await["state"], "pending");
        assert_eq!(cancel(&hers).await.ok()["approval"]["state"], "canceled");
    });
}

#[test]
fn what_cannot_be_asked_for_is_refused_by_name() {
    each("approvals_refused", |app: Arc<App>| async move {
        let server_id = one(&app).await;
        let (_, token) = app
            .account("asker", "viewer", &["mcp_approvals:request", "inventory:read"])
            .await;
        for kind in ["mcp_tool", "tool_call", "skill", "access", "operation"] {
            let mut body = wish(&server_id);
            body["kind"] = kind.into();
            let reply = ask(&app, &token, body).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains(kind), "{}", reply.text());
        }
        let mut nothing = wish(&server_id);
        nothing.as_object_mut().unwrap().remove("serverId");
        let unknown = wish("srv_01kaf9q2m4x7t8v3c5d6e0g1h2");
        for body in [nothing, unknown] {
            let reply = ask(&app, &token, body).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains("/serverId"), "{}", reply.text());
        }
        let mut short = wish(&server_id);
        short["expiresInSeconds"] = 60.into();
        ask(&app, &token, short).await.refused(400, "invalid_request");
        // What does not say wholly what runs is approved by nobody.
        let key = format!("npm:@acme/{}", fresh_key());
        let machine = Machine::new(&app).await;
        machine
            .has(&app, "ada", &json!([server("files", &key, true)]))
            .await
            .ok();
        let listed = app.get("/inventory/mcp-servers").await.ok().clone();
        let weak = listed["servers"][0]["id"].as_str().unwrap();
        ask(&app, &token, wish(weak)).await.refused(409, "conflict");
        assert_eq!(app.get("/approvals").await.ok()["approvals"], json!([]));
        // Whoever may not read the inventory asks for nothing of it.
        let (_, narrow) = app.account("narrow", "viewer", &["mcp_approvals:request"]).await;
        ask(&app, &narrow, wish(&server_id))
            .await
            .refused(403, "insufficient_scope");
    });
}

/// Proves AP-8.
#[test]
fn a_hundred_requests_by_hand_of_one_principal_wait_and_no_more() {
    each("approvals_by_hand_many", |app: Arc<App>| async move {
        let server = one(&app).await;
        let account = async |name: &str| {
            app.account(name, "viewer", &["mcp_approvals:request", "inventory:read"])
                .await
                .1
        };
        let (one, other) = (account("one").await, account("other").await);
        let wish = |more: u32| {
            let mut body = wish(&server);
            body["expiresInSeconds"] = (3_600 + more).into();
            body
        };
        let mut ids = Vec::new();
        for more in 0..100 {
            ids.push(asked(&app, &one, wish(more)).await);
        }
        ask(&app, &one, wish(100)).await.refused(429, "rate_limited");
        // What waits is joined all the same, and somebody else has room of their own.
        assert_eq!(asked(&app, &one, wish(7)).await, ids[7]);
        asked(&app, &other, wish(100)).await;
        app.write("POST", &format!("/approvals/{}/cancel", ids[0]), json!({}))
            .await
            .ok();
        asked(&app, &one, wish(100)).await;
    });
}

#[test]
fn everybody_sees_what_they_asked_for_and_what_was_asked_for_them_and_nothing_else() {
    each("approvals_own", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let carl = Person::of(&app, "carl", "viewer").await;
        let own = async |person: &Person, rest: &str| {
            let path = format!("/approvals/own{rest}");
            let token = person.token(&app).await;
            let reply = app.request("GET", &path).token(&token).send().await;
            reply.ok().clone()
        };
        let server = one(&app).await;
        let wished = asked(&app, &ann.token(&app).await, wish(&server)).await;
        app.advance(1);
        // Of her call somebody else asks.
        let mut event = scene.event(&rm("/a"));
        event["attributes"] =
            json!({ "identity.user_id": ann.login, "tool.id": "Bash", "tool.input": rm("/a") });
        let called = request(&scene.decide(&event).await);
        app.advance(1);
        asked(&app, &carl.token(&app).await, wish(&server)).await;
        let all = own(&ann, "").await;
        let ids: Vec<&str> = all["approvals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, [called.as_str(), wished.as_str()]);
        assert!(!all.to_string().contains("rm -rf"), "{all}");
        let first = own(&ann, "?limit=1").await;
        assert_eq!(first["approvals"][0]["id"], json!(called));
        let cursor = first["nextCursor"].as_str().unwrap();
        let rest = own(&ann, &format!("?limit=1&cursor={cursor}")).await;
        assert_eq!(rest["approvals"][0]["id"], json!(wished));
        assert_eq!(rest["nextCursor"], Value::Null);
        // A cursor of one person is none of another's list.
        let path = format!("/approvals/own?cursor={cursor}");
        let token = carl.token(&app).await;
        app.request("GET", &path)
            .token(&token)
            .send()
            .await
            .refused(400, "invalid_request");
        // The list of everybody's is for those who read it.
        app.request("GET", "/approvals")
            .token(&token)
            .send()
            .await
            .refused(403, "role_forbidden");
    });
}
