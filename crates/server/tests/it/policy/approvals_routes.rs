//! Routes: which of those who may decide do, how many, and until when.

use super::approvals::{Scene, rm, scene};
use super::approvals_people::Person;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::{OperationContext, params};
use serde_json::{Value, json};
use std::sync::Arc;

fn route(name: &str, change: &Value) -> Value {
    let mut route = json!({ "name": name, "approvers": { "roles": ["admin"] }, "quorum": 1, "deadlineSeconds": 3_600, "onDeadline": "expire" });
    route
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    route
}

async fn revision(app: &App) -> Value {
    app.get("/approval-routes").await.ok()["revision"].clone()
}

async fn put_as(app: &App, token: &str, routes: Value) -> Reply {
    send(app, token, routes, true).await
}

async fn send(app: &App, token: &str, routes: Value, is_confirmed: bool) -> Reply {
    let mut body = json!({ "routes": routes, "expectedRevision": revision(app).await });
    if is_confirmed {
        body["confirm"] = true.into();
    }
    app.request("PUT", "/approval-routes")
        .token(token)
        .json(with_trio(body, &fresh_key()))
        .send()
        .await
}

async fn put(app: &App, routes: Value) {
    put_as(app, &app.admin, routes).await.ok();
}

async fn says(scene: &Scene, person: &Person, id: &str, word: &str) -> Reply {
    let token = person.token(&scene.app).await;
    scene.vote(&token, id, word).await
}

async fn group_of(app: &App, user: &str) -> String {
    let made = app
        .write("POST", "/directory/groups", json!({ "name": fresh_key() }))
        .await;
    let id = made.ok()["group"]["id"].as_str().unwrap().to_owned();
    let path = format!("/directory/groups/{id}/members/{user}");
    app.write("PUT", &path, json!({})).await.ok();
    id
}

/// Proves AP-3, AP-13.
#[test]
fn as_many_people_say_yes_as_the_route_says_and_nobody_twice() {
    each("approvals_quorum", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let dan = Person::of(&app, "dan", "admin").await;
        put(
            &app,
            json!([
                route("others", &json!({ "match": { "tool": "Other*" }, "quorum": 5 })),
                route(
                    "two",
                    &json!({ "match": { "kind": "tool_call", "tool": "Ba*" }, "quorum": 2 })
                ),
            ]),
        )
        .await;
        let id = scene.waits(&rm("/a")).await;
        let shown = scene.shown(&id).await;
        assert_eq!(
            (&shown["quorum"], &shown["route"]["name"]),
            (&json!(2), &json!("two"))
        );
        assert_eq!(shown["route"]["fallsToAdmins"], json!(false));
        says(&scene, &ann, &id, "approve").await.ok();
        // The same person in another session is the same person.
        says(&scene, &ann, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "pending");
        assert_eq!(scene.waits(&rm("/a")).await, id);
        // Who took it back is none of two.
        says(&scene, &ann, &id, "abstain").await.ok();
        says(&scene, &dan, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "pending");
        says(&scene, &ann, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "approved");
        assert_eq!(scene.ask(&rm("/a")).await["grant"]["requestId"], json!(id));
        // One of two who may not decide any more: the yes of the other is not enough.
        let id = scene.waits(&rm("/b")).await;
        for one in [&ann, &dan] {
            says(&scene, one, &id, "approve").await.ok();
        }
        let body = json!({ "permissionRole": "operator" });
        app.write("PATCH", &format!("/directory/users/{}", dan.id), body)
            .await
            .ok();
        assert_ne!(scene.waits(&rm("/b")).await, id);
        assert_eq!(scene.state(&id).await, ("void".into(), json!("voter_ended")));
    });
}

/// Proves AP-13.
#[test]
fn whom_a_route_names_decide_and_a_no_may_say_everybody_who_decides() {
    each("approvals_route_names", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let dan = Person::of(&app, "dan", "admin").await;
        let vera = Person::of(&app, "vera", "viewer").await;
        let group = group_of(&app, &dan.id).await;
        app.advance(1);
        let approvers = json!({ "users": [ann.id, vera.id], "groups": [group] });
        put(&app, json!([route("named", &json!({ "approvers": approvers }))])).await;
        for (path, one) in [("/a", &ann), ("/b", &dan)] {
            let id = scene.waits(&rm(path)).await;
            scene
                .vote(&scene.bob().await, &id, "approve")
                .await
                .refused(403, "escalation_forbidden");
            assert_eq!(scene.state(&id).await.0, "pending");
            says(&scene, one, &id, "approve").await.ok();
            assert_eq!(scene.state(&id).await.0, "approved");
        }
        // A route gives nobody a right.
        let id = scene.waits(&rm("/c")).await;
        let reply = says(&scene, &vera, &id, "approve").await;
        assert_eq!(reply.status.as_u16(), 403, "{}", reply.text());
        scene.vote(&scene.bob().await, &id, "deny").await.ok();
        assert_eq!(scene.state(&id).await.0, "denied");
        // Who has left the group when it is used may not decide any more.
        let path = format!("/directory/groups/{group}/members/{}", dan.id);
        app.delete(&path).await;
        assert_ne!(scene.waits(&rm("/b")).await, "");
        assert!(scene.ask(&rm("/b")).await["grant"].is_null());
        // Who came into it by the hands of who asked says no yes.
        let (_, asker) = app.account(&fresh_key(), "admin", &[]).await;
        let late = Person::of(&app, "late", "admin").await;
        let attributes =
            json!({ "identity.service_account_id": scene.ada, "tool.id": "Bash", "tool.input": rm("/d") });
        let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
        let call = app.request("POST", "/policies/decisions").token(&asker);
        let id = super::approvals::request(&call.json(body).send().await.ok()["decisions"][0]);
        app.advance(1);
        let path = format!("/directory/groups/{group}/members/{}", late.id);
        let call = app.request("PUT", &path).token(&asker);
        call.json(with_trio(json!({}), &fresh_key())).send().await.ok();
        says(&scene, &late, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
    });
}

/// Proves AP-13.
#[test]
fn what_waits_keeps_its_route_and_nobody_becomes_who_decides_their_own() {
    each("approvals_route_frozen", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let alice = Person::of(&app, "alice", "admin").await;
        let ann = Person::of(&app, "ann", "admin").await;
        let owner = json!({ "ownerConsoleUserId": alice.id });
        app.write("PATCH", &format!("/service-accounts/{}", scene.hook_id), owner)
            .await
            .ok();
        put(&app, json!([route("two", &json!({ "quorum": 2 }))])).await;
        let id = scene.waits(&rm("/a")).await;
        // Who stands behind it names themselves alone.
        let hers = json!([route("mine", &json!({ "approvers": { "users": [alice.id] } }))]);
        let token = alice
            .token_for(&app, &["mcp_approvals:write", "automation_settings:write"])
            .await;
        put_as(&app, &token, hers).await.ok();
        assert_eq!(scene.shown(&id).await["route"]["name"], "two");
        says(&scene, &alice, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        says(&scene, &ann, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "pending");
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "approved");
        // What is asked for from now on has nobody who can be reached but her: all who may decide do, and it says so.
        let next = scene.waits(&rm("/b")).await;
        assert_eq!(scene.shown(&next).await["route"]["fallsToAdmins"], json!(true));
        says(&scene, &alice, &next, "approve")
            .await
            .refused(403, "escalation_forbidden");
        says(&scene, &ann, &next, "approve").await.ok();
        assert_eq!(scene.state(&next).await.0, "approved");
        // The same of who is suspended, and of a group without anybody.
        let gone = Person::of(&app, "gone", "admin").await;
        app.write(
            "POST",
            &format!("/directory/users/{}/suspend", gone.id),
            json!({}),
        )
        .await
        .ok();
        put(
            &app,
            json!([route("gone", &json!({ "approvers": { "users": [gone.id] } }))]),
        )
        .await;
        let last = scene.waits(&rm("/c")).await;
        assert_eq!(scene.shown(&last).await["route"]["fallsToAdmins"], json!(true));
        // The quorum stays.
        let few = route("few", &json!({ "approvers": { "users": [ann.id] }, "quorum": 2 }));
        put(&app, json!([few])).await;
        let two = scene.waits(&rm("/d")).await;
        let shown = scene.shown(&two).await;
        assert_eq!(
            (&shown["quorum"], &shown["route"]["fallsToAdmins"]),
            (&json!(2), &json!(true))
        );
    });
}

/// Proves AP-5, AP-8, AP-13.
#[test]
fn a_request_waits_as_long_as_its_route_says_and_is_denied_where_it_says_so() {
    each("approvals_route_deadline", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        put(
            &app,
            json!([route(
                "soon",
                &json!({ "deadlineSeconds": 60, "onDeadline": "deny" })
            )]),
        )
        .await;
        let id = scene.waits(&rm("/a")).await;
        app.advance(60);
        assert_eq!(scene.state(&id).await.0, "denied");
        scene
            .vote(&scene.bob().await, &id, "approve")
            .await
            .refused(409, "already_terminal");
        assert_ne!(scene.waits(&rm("/a")).await, id);
        assert_eq!(scene.state(&id).await, ("denied".into(), json!("deadline")));
        app.advance(3_600);
        // What waits for days counts for its asker as long as it waits.
        put(
            &app,
            json!([route("days", &json!({ "deadlineSeconds": 172_800 }))]),
        )
        .await;
        for n in 0..20 {
            scene.waits(&rm(&format!("/{n}"))).await;
        }
        app.advance(7_200);
        let decision = scene.ask(&rm("/20")).await;
        assert_eq!(decision["approval"]["refused"], "too_many_open", "{decision}");
        app.advance(172_800);
        scene.waits(&rm("/20")).await;
    });
}

provost_kernel::statements! {
    /// Has others have asked for the same as often as said.
    COPY = "INSERT INTO approvals (organization_id, id, grant_id, kind, state, asker_kind, asker_id, subject_kind, subject_id, subject_rights, call_mac, tool, policies, votes, uses, quorum, max_uses, use_count, deadline_at, created_at, revision, binding_mac, policies_sha256, owner_id, route) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT a.organization_id, a.id || '_' || CAST(n.i AS TEXT), a.grant_id || '_' || CAST(n.i AS TEXT), a.kind, a.state, a.asker_kind, 'sa_other', a.subject_kind, 'sa_other', a.subject_rights, a.call_mac || CAST(n.i AS TEXT), a.tool, a.policies, a.votes, a.uses, a.quorum, a.max_uses, 0, a.deadline_at, a.created_at, 0, a.binding_mac, a.policies_sha256, 'sa_other', a.route FROM approvals a CROSS JOIN n WHERE a.organization_id = ?1 AND a.id = ?2";
}

/// Proves AP-8.
#[test]
fn what_waits_for_days_leaves_half_of_the_queue() {
    each("approvals_route_queue", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        put(
            &app,
            json!([route("days", &json!({ "deadlineSeconds": 172_800 }))]),
        )
        .await;
        let id = scene.waits(&rm("/a")).await;
        let others = async |many: i64| {
            let id = id.clone();
            let run = move |ctx: &mut OperationContext<'_>| {
                let org = ctx.org();
                ctx.execute(&COPY, params![org, id.as_str(), many]).map(drop)
            };
            let done = app.kernel.system(app.org(), Some("approvals.settled"), run);
            done.await.unwrap();
        };
        others(498).await;
        scene.waits(&rm("/b")).await;
        let decision = scene.ask(&rm("/c")).await;
        assert_eq!(decision["approval"]["refused"], "too_many_open", "{decision}");
        // An hour is no longer than an hour.
        put(&app, json!([route("hour", &json!({ "deadlineSeconds": 3_600 }))])).await;
        scene.waits(&rm("/c")).await;
        put(&app, json!([])).await;
        scene.waits(&rm("/d")).await;
    });
}

/// Proves AP-13.
#[test]
fn routes_that_would_not_do_what_they_say_are_refused_and_every_change_is_known() {
    each("approvals_route_refused", |app: Arc<App>| async move {
        let ann = Person::of(&app, "ann", "admin").await;
        let nobody = "usr_01kaf9q2m4x7t8v3c5d6e0g1h2";
        for (change, place) in [
            (json!({ "approvers": {} }), "/routes/0/approvers"),
            (
                json!({ "approvers": { "users": [ann.id, nobody] } }),
                "/routes/0/approvers/users/1",
            ),
            (
                json!({ "approvers": { "groups": [ann.id] } }),
                "/routes/0/approvers/groups/0",
            ),
            (
                json!({ "match": { "requesterGroups": ["grp_none"] } }),
                "/routes/0/match/requesterGroups/0",
            ),
        ] {
            let reply = put_as(&app, &app.admin, json!([route("one", &change)])).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains(place), "{place}: {}", reply.text());
        }
        let twice = json!([route("one", &json!({})), route("one", &json!({}))]);
        put_as(&app, &app.admin, twice)
            .await
            .refused(422, "invalid_definition");
        for change in [
            json!({ "quorum": 0 }),
            json!({ "quorum": 6 }),
            json!({ "deadlineSeconds": 59 }),
            json!({ "onDeadline": "allow" }),
            json!({ "approvers": { "roles": ["operator"] } }),
            json!({ "approver": {} }),
        ] {
            put_as(&app, &app.admin, json!([route("one", &change)]))
                .await
                .refused(400, "invalid_request");
        }
        assert_eq!(revision(&app).await, json!(0));
        for scopes in [
            &["mcp_approvals:write", "mcp_approvals:decide"][..],
            &["automation_settings:write"],
        ] {
            let (_, narrow) = app.account(&fresh_key(), "admin", scopes).await;
            put_as(&app, &narrow, json!([]))
                .await
                .refused(403, "insufficient_scope");
        }
        put(&app, json!([route("one", &json!({}))])).await;
        let stale = json!({ "routes": [], "expectedRevision": 0 });
        app.write("PUT", "/approval-routes", stale)
            .await
            .refused(409, "conflict");
        assert_eq!(revision(&app).await, json!(1));
        let entries = app.entries(app.org().as_str(), 0).await;
        let written = entries.iter().filter(|entry| {
            entry["action"] == "putHeadlessApprovalRoutes" && entry["outcome"]["decision"] == "allowed"
        });
        assert_eq!(written.count(), 1);
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        assert!(
            told.iter().any(|kind| kind == "approval.routes_changed"),
            "{told:?}"
        );
    });
}

#[test]
fn who_only_asks_learns_nobodys_id_by_the_route() {
    each("approvals_route_own", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        put(
            &app,
            json!([route("named", &json!({ "approvers": { "users": [ann.id] } }))]),
        )
        .await;
        let vera = Person::of(&app, "vera", "viewer").await;
        let mut event = scene.event(&rm("/a"));
        let attributes = json!({ "identity.user_id": vera.login, "tool.id": "Bash", "tool.input": rm("/a") });
        event["attributes"] = attributes;
        let id = super::approvals::request(&scene.decide(&event).await);
        let token = vera.token(&app).await;
        let own = app.request("GET", "/approvals/own").token(&token).send().await;
        let hers = &own.ok()["approvals"][0];
        assert_eq!(
            (&hers["id"], &hers["route"]["name"]),
            (&json!(id), &json!("named"))
        );
        assert_eq!(hers["route"]["fallsToAdmins"], json!(false));
        assert!(
            hers["route"]["approvers"].is_null() && !own.text().contains(&ann.id),
            "{hers}"
        );
        let shown = scene.shown(&id).await;
        assert_eq!(shown["route"]["approvers"], json!({ "users": [ann.id] }));
    });
}

/// Proves AP-14.
#[test]
fn no_route_asks_for_less_where_that_was_not_confirmed() {
    each("approvals_route_weaker", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let two = || route("two", &json!({ "match": { "tool": "Bash" }, "quorum": 2 }));
        let one = || route("one", &json!({}));
        // What is added asks for nothing less, nor does what asks for more.
        for routes in [json!([two()]), json!([two(), one()]), json!([two(), one()])] {
            send(&app, &app.admin, routes, false).await.ok();
        }
        let weak = route("two", &json!({ "match": { "tool": "Bash" } }));
        for (routes, said) in [
            (json!([]), "two is taken away; one is taken away"),
            (json!([weak, one()]), "two wants 1 instead of 2"),
            (json!([one(), two()]), "one comes before two"),
        ] {
            let reply = send(&app, &app.admin, routes, false).await;
            reply.refused(400, "confirmation_required");
            assert!(reply.text().contains(said), "{said}: {}", reply.text());
            assert!(reply.text().contains("confirm: true"), "{}", reply.text());
        }
        assert_eq!(revision(&app).await, json!(3));
        assert_eq!(
            scene.shown(&scene.waits(&rm("/a")).await).await["quorum"],
            json!(2)
        );
        send(&app, &app.admin, json!([]), true).await.ok();
        assert_eq!(
            scene.shown(&scene.waits(&rm("/b")).await).await["quorum"],
            json!(1)
        );
    });
}

/// Proves AP-14.
#[test]
fn a_route_fits_a_tool_in_whatever_spelling_its_policy_fits() {
    each("approvals_route_spelling", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let route_of = |tool: &str| route("two", &json!({ "match": { "tool": tool }, "quorum": 2 }));
        for (named, fits) in [
            ("Bash", true),
            ("bash", true),
            ("bA*", true),
            ("Bash2", false),
            ("Bas", false),
        ] {
            put(&app, json!([route_of(named)])).await;
            for tool in ["Bash", "bash", "BASH", "Bash "] {
                let mut event = scene.event(&rm(&format!("/{}", fresh_key())));
                event["attributes"]["tool.id"] = tool.into();
                let id = super::approvals::request(&scene.decide(&event).await);
                let quorum = if fits { 2 } else { 1 };
                assert_eq!(
                    scene.shown(&id).await["quorum"],
                    json!(quorum),
                    "{named} {tool:?}"
                );
                let path = format!("/approvals/{id}/cancel");
                app.write("POST", &path, json!({})).await.ok();
                // Requests of an hour are counted.
                app.advance(400);
            }
        }
        let unseen = json!([route_of("\u{200b}*")]);
        let reply = put_as(&app, &app.admin, unseen).await;
        reply.refused(422, "invalid_definition");
        assert!(reply.text().contains("/routes/0/match/tool"), "{}", reply.text());
    });
}

/// Proves AP-13.
#[test]
fn a_route_of_people_who_cannot_decide_is_named_and_too_many_names_are_refused() {
    each("approvals_route_warnings", |app: Arc<App>| async move {
        let ann = Person::of(&app, "ann", "admin").await.id;
        let dan = Person::of(&app, "dan", "admin").await.id;
        let vera = Person::of(&app, "vera", "viewer").await.id;
        let gone = Person::of(&app, "gone", "admin").await.id;
        app.write("POST", &format!("/directory/users/{gone}/suspend"), json!({}))
            .await
            .ok();
        let (deciding, idle) = (group_of(&app, &dan).await, group_of(&app, &vera).await);
        let warnings = async |approvers: Value, quorum: i64| {
            let one = route("one", &json!({ "approvers": approvers, "quorum": quorum }));
            put_as(&app, &app.admin, json!([one])).await.ok()["warnings"].clone()
        };
        let warning = |code: &str| json!({ "route": "one", "code": code });
        let cannot = |ids: &[&String]| {
            let mut warning = warning("names_who_cannot_decide");
            let mut ids: Vec<&String> = ids.to_vec();
            ids.sort_unstable();
            warning["userIds"] = json!(ids);
            warning
        };
        let falls = warning("falls_to_admins");
        assert_eq!(warnings(json!({ "users": [ann, dan] }), 2).await, Value::Null);
        assert_eq!(
            warnings(json!({ "users": [ann], "groups": [deciding] }), 2).await,
            Value::Null
        );
        assert_eq!(warnings(json!({ "users": [ann] }), 2).await, json!([falls]));
        // Who is named twice is one.
        assert_eq!(
            warnings(json!({ "users": [dan], "groups": [deciding] }), 2).await,
            json!([falls])
        );
        assert_eq!(warnings(json!({ "groups": [idle] }), 1).await, json!([falls]));
        assert_eq!(
            warnings(json!({ "users": [ann, vera] }), 1).await,
            json!([cannot(&[&vera])])
        );
        assert_eq!(
            warnings(json!({ "users": [vera, gone] }), 1).await,
            json!([cannot(&[&vera, &gone]), falls])
        );
        assert_eq!(warnings(json!({ "roles": ["admin"] }), 5).await, json!([falls]));
        let all: Vec<Value> = (0..6)
            .map(|n| {
                let users: Vec<String> = (0..100).map(|m| format!("usr_{n}_{m}")).collect();
                route(&format!("route {n}"), &json!({ "approvers": { "users": users } }))
            })
            .collect();
        let reply = put_as(&app, &app.admin, json!(all)).await;
        reply.refused(422, "invalid_definition");
        assert!(reply.text().contains("at most 500"), "{}", reply.text());
    });
}

#[test]
fn a_preview_for_nobody_is_refused() {
    each("approvals_preview_nobody", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let gone = Person::of(&app, "gone", "viewer").await;
        app.delete(&format!("/directory/users/{}", gone.id)).await;
        let preview = async |by: &str, of: Option<&str>| {
            let mut body = json!({ "kind": "tool_call", "tool": "Bash", "requestedBy": by });
            if let Some(of) = of {
                body["requestedFor"] = of.into();
            }
            app.request("POST", "/approval-routes/preview")
                .json(body)
                .send()
                .await
        };
        preview(&ann.id, Some(&scene.ada)).await.ok();
        for nobody in [
            gone.id.as_str(),
            ann.login.as_str(),
            "usr_01kaf9q2m4x7t8v3c5d6e0g1h2",
            "sa_01kaf9q2m4x7t8v3c5d6e0g1h2",
            "dev_01kaf9q2m4x7t8v3c5d6e0g1h2",
        ] {
            let reply = preview(nobody, None).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains("/requestedBy"), "{}", reply.text());
            let reply = preview(&ann.id, Some(nobody)).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains("/requestedFor"), "{}", reply.text());
        }
    });
}

#[test]
fn a_preview_says_which_route_fits_and_who_could_vote() {
    each("approvals_route_preview", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let ann = Person::of(&app, "ann", "admin").await;
        let vera = Person::of(&app, "vera", "viewer").await;
        let group = group_of(&app, &vera.id).await;
        let of_group = json!({ "match": { "requesterGroups": [group] }, "approvers": { "users": [ann.id] }, "quorum": 1, "deadlineSeconds": 600 });
        put(&app, json!([route("theirs", &of_group)])).await;
        let preview = async |by: &str, of: &str| {
            let body = json!({ "kind": "tool_call", "tool": "Bash", "requestedBy": by, "requestedFor": of });
            let call = app.request("POST", "/approval-routes/preview");
            call.json(body).send().await.ok().clone()
        };
        let fits = preview(&scene.hook_id, &vera.id).await;
        assert_eq!(
            (&fits["route"]["name"], &fits["voters"]),
            (&json!("theirs"), &json!([ann.id]))
        );
        assert_eq!(
            (&fits["deadlineSeconds"], &fits["fallsToAdmins"]),
            (&json!(600), &json!(false))
        );
        let none = preview(&scene.hook_id, &scene.ada).await;
        assert_eq!((&none["route"], &none["quorum"]), (&Value::Null, &json!(1)));
        let voters = none["voters"].as_array().unwrap();
        assert!(
            voters.contains(&json!(ann.id)) && !voters.contains(&json!(vera.id)),
            "{none}"
        );
        // Nobody votes on their own.
        let own = preview(&ann.id, &ann.id).await;
        assert!(
            !own["voters"].as_array().unwrap().contains(&json!(ann.id)),
            "{own}"
        );
        assert_eq!(app.get("/approvals").await.ok()["approvals"], json!([]));
    });
}
