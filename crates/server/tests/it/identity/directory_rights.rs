//! Whoever gives, re-points or revives needs what the result can do; whoever takes away does not (DI-5, DI-10).

use crate::areas::directory::{chunk, end, group, import, narrow, run_jobs, user};
use crate::areas::policies::definition;
use crate::areas::resources::{credential_body, make_credential, make_resource};
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

async fn user_with(app: &App, body: Value) -> String {
    let made = app.write("POST", "/directory/users", body).await;
    made.ok()["user"]["id"].as_str().unwrap().to_owned()
}

async fn patch(app: &App, id: &str, body: Value) -> Reply {
    app.write("PATCH", &format!("/directory/users/{id}"), body).await
}

async fn act(app: &App, id: &str, how: &str) -> Reply {
    app.write("POST", &format!("/directory/users/{id}/{how}"), json!({}))
        .await
}

async fn seen(app: &App, id: &str) -> Value {
    app.get(&format!("/directory/users/{id}")).await.ok()["user"].clone()
}

async fn held(app: &App) -> Vec<Value> {
    let page = app.get("/directory/held-changes").await;
    page.ok()["heldChanges"].as_array().unwrap().clone()
}

async fn settle(app: &App, body: Value) -> Reply {
    app.write("POST", "/directory/held-changes/settle", body).await
}

fn merge() -> Value {
    json!({ "format": "jsonl", "mode": "merge" })
}

fn lines(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Imports as the caller of `app` and returns the counts.
async fn imports(app: &App, how: Value, file: &[Value]) -> Value {
    let id = import(app, how).await;
    chunk(app, &id, 1, &lines(file)).await.ok();
    end(app, &id, "apply").await.ok()["import"]["counts"].clone()
}

/// Proves DI-5.
#[test]
fn whoever_re_points_a_user_with_a_role_needs_what_it_can_do() {
    each("rights_re_point", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss =
            json!({ "loginName": "boss@acme.test", "permissionRole": "admin", "email": "b@acme.test" });
        let boss = user_with(&app, boss).await;
        let before = seen(&app, &boss).await;
        for body in [
            json!({ "loginName": "mallory@acme.test" }),
            json!({ "email": "mallory@acme.test" }),
            json!({ "email": null }),
            json!({ "externalId": "mallory" }),
            json!({ "permissionRole": "viewer", "loginName": "mallory@acme.test" }),
            json!({ "permissionRole": null, "loginName": "mallory@acme.test" }),
            // Who may not give a role may not say it either.
            json!({ "permissionRole": "admin" }),
        ] {
            patch(&narrow, &boss, body)
                .await
                .refused(403, "escalation_forbidden");
        }
        assert_eq!(seen(&app, &boss).await, before);
        patch(&narrow, &boss, json!({ "displayName": "Boss" })).await.ok();
        patch(&narrow, &boss, json!({ "loginName": "BOSS@acme.test" }))
            .await
            .ok();
        // Whoever takes away needs no more than the scope.
        act(&narrow, &boss, "suspend").await.ok();
        patch(&narrow, &boss, json!({ "email": "mallory@acme.test" }))
            .await
            .refused(403, "escalation_forbidden");
        act(&narrow, &boss, "reactivate")
            .await
            .refused(403, "escalation_forbidden");
        act(&app, &boss, "reactivate").await.ok();
        patch(
            &app,
            &boss,
            json!({ "loginName": "chief@acme.test", "externalId": "1" }),
        )
        .await
        .ok();
        patch(&narrow, &boss, json!({ "permissionRole": null }))
            .await
            .ok();
        patch(&narrow, &boss, json!({ "loginName": "nobody@acme.test" }))
            .await
            .ok();
        patch(&narrow, &boss, json!({ "permissionRole": "viewer" }))
            .await
            .refused(403, "escalation_forbidden");
        // An account that holds all of an operator's rights is no admin's superior.
        let clerk = json!({ "loginName": "clerk@acme.test", "permissionRole": "admin" });
        let clerk = user_with(&app, clerk).await;
        narrow.delete(&format!("/directory/users/{clerk}")).await.ok();
    });
}

/// Proves DI-10.
#[test]
fn a_line_that_needs_more_than_its_caller_holds_is_held() {
    each("rights_held", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "admin", "externalId": "1", "email": "b@acme.test" });
        let (boss, plain) = (user_with(&app, boss).await, user(&app, "plain").await);
        let (dev, ops) = (group(&app, "Dev").await, group(&app, "Ops").await);
        app.write(
            "PUT",
            &format!("/directory/groups/{ops}/members/{boss}"),
            json!({}),
        )
        .await
        .ok();
        let before = seen(&app, &boss).await;
        app.advance(1);
        let from = i64::try_from(app.events(0).await.len()).unwrap();
        let file = [
            json!({ "type": "user", "loginName": "mallory", "externalId": "1", "displayName": "M", "groups": ["Dev"] }),
            json!({ "type": "user", "loginName": "plain", "email": "p@acme.test", "externalId": "2" }),
        ];
        let counts = imports(&narrow, merge(), &file).await;
        assert_eq!((&counts["held"], &counts["refused"]), (&json!(1), &json!(0)));
        assert_eq!(counts["users"]["updated"], 1);
        assert_eq!(seen(&app, &boss).await, before);
        assert_eq!(seen(&app, &plain).await["email"], "p@acme.test");
        let kinds: Vec<String> = app.events(from).await.into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["directory.change.held", "directory.import.applied"]);
        let groups = app.get(&format!("/directory/users/{boss}/groups")).await;
        assert_eq!(groups.ok()["groups"], json!([]), "taking away needs nothing");

        let waiting = held(&app).await;
        assert_eq!(waiting.len(), 1);
        let one = &waiting[0];
        assert_eq!((&one["userId"], &one["line"]), (&json!(boss), &json!(1)));
        assert_eq!(one["before"]["loginName"], "boss");
        assert_eq!(one["after"]["loginName"], "mallory");
        assert_eq!(one["joins"], json!([dev]));
        let apply = json!({ "apply": [one["id"]] });
        settle(&narrow, apply.clone())
            .await
            .refused(403, "escalation_forbidden");
        assert_eq!(seen(&app, &boss).await, before);
        let from = i64::try_from(app.events(0).await.len()).unwrap();
        let done = settle(&app, apply.clone()).await.ok().clone();
        assert_eq!(done["applied"], json!([one]));
        let kinds: Vec<String> = app.events(from).await.into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(
            kinds,
            ["directory.user.updated", "directory.group.member_added"],
            "nobody was reactivated"
        );
        let after = seen(&app, &boss).await;
        assert_eq!(
            (&after["loginName"], &after["displayName"]),
            (&json!("mallory"), &json!("M"))
        );
        assert_eq!(after["permissionRole"], "admin");
        let groups = app.get(&format!("/directory/users/{boss}/groups")).await;
        assert_eq!(groups.ok()["groups"][0]["id"], dev.as_str());
        assert_eq!(held(&app).await, Vec::<Value>::new());
        settle(&app, apply).await.refused(404, "not_found");

        // Who holds what the user can do imports without a word.
        let file = [json!({ "type": "user", "loginName": "boss", "externalId": "1" })];
        let counts = imports(&app, merge(), &file).await;
        assert_eq!(
            (&counts["held"], &counts["users"]["updated"]),
            (&json!(0), &json!(1))
        );
        assert_eq!(seen(&app, &boss).await["loginName"], "boss");
    });
}

/// Proves DI-10.
#[test]
fn a_file_suspends_an_admin_and_does_not_bring_her_back() {
    each("rights_held_status", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "admin" });
        let boss = user_with(&app, boss).await;
        let line = |status: &str| [json!({ "type": "user", "loginName": "boss", "status": status })];
        // Taking away is no gift, whatever else the line wants.
        let both =
            [json!({ "type": "user", "loginName": "boss", "status": "suspended", "email": "m@acme.test" })];
        assert_eq!(imports(&narrow, merge(), &both).await["held"], 1);
        let after = seen(&app, &boss).await;
        assert_eq!(
            (&after["status"], after.get("email")),
            (&json!("suspended"), None)
        );
        assert_eq!(imports(&narrow, merge(), &line("active")).await["held"], 1);
        assert_eq!(seen(&app, &boss).await["status"], "suspended");
        let waiting = held(&app).await;
        assert_eq!(
            waiting.len(),
            1,
            "the later change of one user takes the place of the earlier one"
        );
        assert_eq!(waiting[0]["after"]["status"], "active");
        // A suspension by the API came since: the change found another user.
        act(&app, &boss, "suspend").await.ok();
        let stale = settle(&app, json!({ "apply": [waiting[0]["id"]] })).await;
        stale.refused(409, "conflict");
        assert_eq!(stale.json["stale"], json!([waiting[0]["id"]]));
        assert_eq!(seen(&app, &boss).await["status"], "suspended");
        settle(&narrow, json!({ "drop": [waiting[0]["id"]] })).await.ok();
        act(&app, &boss, "reactivate").await.ok();
        assert_eq!(imports(&narrow, merge(), &line("suspended")).await["held"], 0);
        assert_eq!(imports(&narrow, merge(), &line("active")).await["held"], 1);
        let waiting = held(&app).await;
        let from = i64::try_from(app.events(0).await.len()).unwrap();
        settle(&app, json!({ "apply": [waiting[0]["id"]] })).await.ok();
        assert_eq!(seen(&app, &boss).await["status"], "active");
        let reactivated = |events: &[(String, Value)]| {
            let mut kinds = events.iter().map(|(kind, _)| kind);
            kinds.any(|kind| kind == "directory.user.reactivated")
        };
        assert!(reactivated(&app.events(from).await));
        // A change of somebody who stays suspended reactivates nobody.
        act(&app, &boss, "suspend").await.ok();
        let line = [json!({ "type": "user", "loginName": "boss", "email": "b@acme.test" })];
        assert_eq!(imports(&narrow, merge(), &line).await["held"], 1);
        let waiting = held(&app).await;
        let from = i64::try_from(app.events(0).await.len()).unwrap();
        settle(&app, json!({ "apply": [waiting[0]["id"]] })).await.ok();
        assert_eq!(seen(&app, &boss).await["status"], "suspended");
        assert!(!reactivated(&app.events(from).await));
    });
}

#[test]
fn a_held_change_takes_nobodys_name() {
    each("rights_held_name", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "admin", "externalId": "1" });
        let boss = user_with(&app, boss).await;
        let line = [json!({ "type": "user", "loginName": "chief", "externalId": "1" })];
        assert_eq!(imports(&narrow, merge(), &line).await["held"], 1);
        let chief = user(&app, "chief").await;
        let waiting = held(&app).await;
        let apply = json!({ "apply": [waiting[0]["id"]] });
        settle(&app, apply.clone()).await.refused(409, "already_exists");
        assert_eq!(seen(&app, &boss).await["loginName"], "boss");
        app.delete(&format!("/directory/users/{chief}")).await.ok();
        settle(&app, apply).await.ok();
        assert_eq!(seen(&app, &boss).await["loginName"], "chief");
    });
}

/// Proves DI-10.
#[test]
fn a_held_change_is_made_of_the_record_that_its_line_found_or_not_at_all() {
    each("rights_stale", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "viewer" });
        let boss = user_with(&app, boss).await;
        let plain = user(&app, "plain").await;
        let line = |email: &str| [json!({ "type": "user", "loginName": "boss", "email": email })];
        let stale = |app: Arc<App>| async move {
            let waiting = held(&app).await;
            let id = &waiting[0]["id"];
            settle(&app, json!({ "apply": [id] }))
                .await
                .refused(409, "conflict");
            settle(&app, json!({ "drop": [id] })).await.ok();
            assert_eq!(held(&app).await, Vec::<Value>::new());
        };
        imports(&narrow, merge(), &line("a@acme.test")).await;
        patch(&app, &boss, json!({ "displayName": "Boss" })).await.ok();
        stale(app.clone()).await;
        imports(&narrow, merge(), &line("b@acme.test")).await;
        patch(&app, &boss, json!({ "permissionRole": "admin" }))
            .await
            .ok();
        stale(app.clone()).await;
        imports(&narrow, merge(), &line("c@acme.test")).await;
        let open = import(&app, merge()).await;
        chunk(&app, &open, 1, &lines(&line("d@acme.test"))).await.ok();
        let waiting = held(&app).await;
        settle(&app, json!({ "apply": [waiting[0]["id"]] }))
            .await
            .refused(409, "conflict");
        end(&app, &open, "abort").await.ok();
        app.delete(&format!("/directory/users/{boss}")).await.ok();
        stale(app.clone()).await;
        // What an import holds that is aborted was never there.
        let other = json!({ "loginName": "other", "permissionRole": "admin" });
        user_with(&app, other).await;
        let open = import(&narrow, merge()).await;
        let taken = chunk(
            &narrow,
            &open,
            1,
            r#"{"type":"user","loginName":"other","email":"e@acme.test"}"#,
        )
        .await;
        assert_eq!(taken.ok()["import"]["counts"]["held"], 1);
        assert_eq!(held(&app).await, Vec::<Value>::new());
        end(&narrow, &open, "abort").await.ok();
        run_jobs(&app).await;
        assert_eq!(held(&app).await, Vec::<Value>::new());
        settle(&app, json!({ "apply": [plain], "drop": [plain] }))
            .await
            .refused(409, "conflict");
        settle(&app, json!({ "drop": [plain] }))
            .await
            .refused(404, "not_found");
        let many = vec!["dhc_01m7w5ws2557r5efywan1hf0t3"; 101];
        settle(&app, json!({ "apply": many }))
            .await
            .refused(400, "invalid_request");
    });
}

/// Proves DI-5.
#[test]
fn nobody_gets_a_role_while_an_import_is_about_to_re_point_her() {
    each("rights_meanwhile", |app: Arc<App>| async move {
        let (plain, other) = (user(&app, "plain").await, user(&app, "other").await);
        let narrow = narrow(&app).await;
        let id = import(&narrow, merge()).await;
        let file = [
            json!({ "type": "user", "loginName": "plain", "email": "mallory@acme.test" }),
            json!({ "type": "user", "loginName": "other", "displayName": "Other" }),
        ];
        chunk(&narrow, &id, 1, &lines(&file)).await.ok();
        patch(&app, &plain, json!({ "permissionRole": "admin" }))
            .await
            .refused(409, "conflict");
        patch(&app, &other, json!({ "permissionRole": "admin" }))
            .await
            .ok();
        end(&narrow, &id, "apply").await.ok();
        assert_eq!(seen(&app, &other).await["permissionRole"], "admin");
        assert_eq!(seen(&app, &plain).await.get("permissionRole"), None);
        patch(&app, &plain, json!({ "permissionRole": "admin" }))
            .await
            .ok();

        // Of somebody who has a role, everything else changes meanwhile, and the role may go.
        let id = import(&app, merge()).await;
        let file = [json!({ "type": "user", "loginName": "plain", "email": "p@acme.test" })];
        chunk(&app, &id, 1, &lines(&file)).await.ok();
        patch(&app, &plain, json!({ "displayName": "Plain" })).await.ok();
        patch(&app, &plain, json!({ "permissionRole": null })).await.ok();
        patch(&app, &plain, json!({ "permissionRole": "viewer" }))
            .await
            .refused(409, "conflict");
        end(&app, &id, "abort").await.ok();

        // Whom an import suspended, and another is about to bring back, gets none before either.
        let line = |status: &str| [json!({ "type": "user", "loginName": "plain", "status": status })];
        imports(&app, merge(), &line("suspended")).await;
        let id = import(&narrow, merge()).await;
        chunk(&narrow, &id, 1, &lines(&line("active"))).await.ok();
        patch(&app, &plain, json!({ "permissionRole": "admin" }))
            .await
            .refused(409, "conflict");
        end(&narrow, &id, "abort").await.ok();
        patch(&app, &plain, json!({ "permissionRole": "admin" }))
            .await
            .ok();
    });
}

#[test]
fn a_replacing_file_does_not_remove_a_user_whose_line_is_held() {
    each("rights_held_replace", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "admin", "externalId": "1" });
        let boss = user_with(&app, boss).await;
        let leaver = user(&app, "leaver").await;
        app.advance(1);
        let file = [json!({ "type": "user", "loginName": "mallory", "externalId": "1" })];
        let counts = imports(&narrow, json!({ "format": "jsonl", "mode": "replace" }), &file).await;
        run_jobs(&app).await;
        assert_eq!(
            (&counts["held"], &counts["users"]["removed"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(seen(&app, &boss).await["loginName"], "boss");
        app.get(&format!("/directory/users/{leaver}"))
            .await
            .refused(404, "not_found");
    });
}

#[test]
fn the_entry_of_a_membership_names_what_the_group_opens() {
    each("rights_opens", |app: Arc<App>| async move {
        let (ada, dev, ops) = (
            user(&app, "ada").await,
            group(&app, "Dev").await,
            group(&app, "Ops").await,
        );
        let resource = make_resource(&app).await;
        let credential = make_credential(&app, &resource).await;
        let path = format!("/resources/{resource}/credentials/{credential}");
        let mut assigned = credential_body();
        assigned["assignedTo"] = json!({ "users": [], "groups": [dev], "serviceAccounts": [] });
        app.write("PUT", &path, assigned).await.ok();
        let named = json!({ "field": "identity.group_ids", "op": "contains", "value": "Dev" });
        let mut excepted = definition("content-policies", "excepted", "");
        excepted["except"] = named;
        let mut guarded = definition("content-policies", "guarded", "");
        guarded["appliesTo"] = json!({ "groups": ["dev"] });
        let skill = app.skill("opened").await;
        let mut allowed = definition("skill-acls", "allowed", &skill);
        allowed["effect"] = "allow".into();
        allowed["subjects"] = json!({ "groups": [dev] });
        for (collection, definition) in [
            ("content-policies", excepted),
            ("content-policies", guarded),
            ("skill-acls", allowed),
        ] {
            let body = json!({ "definition": definition });
            app.write("POST", &format!("/{collection}"), body).await.ok();
        }
        for group in [&dev, &ops] {
            let path = format!("/directory/groups/{group}/members/{ada}");
            app.write("PUT", &path, json!({})).await.ok();
        }
        // A held change that joins the group says the same.
        let boss = json!({ "loginName": "boss", "permissionRole": "admin", "externalId": "1" });
        user_with(&app, boss).await;
        let line = [json!({ "type": "user", "loginName": "chief", "externalId": "1", "groups": ["Dev"] })];
        assert_eq!(imports(&narrow(&app).await, merge(), &line).await["held"], 1);
        let waiting = held(&app).await;
        settle(&app, json!({ "apply": [waiting[0]["id"]] })).await.ok();
        let entries = app.entries(&app.organization, 0).await;
        let opened_by = |action: &str| -> Vec<&Value> {
            let entries = entries.iter().filter(|entry| entry["action"] == action);
            let changes = entries.flat_map(|entry| entry["changes"].as_array().unwrap());
            changes.filter(|change| change["path"] == "/opens").collect()
        };
        let opens = opened_by("addHeadlessDirectoryGroupMember");
        let by_settling = opened_by("settleHeadlessDirectoryHeldChanges");
        assert_eq!(by_settling.len(), 1);
        assert_eq!(by_settling[0]["after"], opens[0]["after"]);
        assert_eq!(opens.len(), 1, "{opens:?}");
        assert_eq!(opens[0]["after"]["credentials"], json!([credential]));
        let policies = json!([
            { "policyId": "excepted", "places": ["/except/value"] },
            { "policyId": "allowed", "places": ["/subjects/groups/0"] },
        ]);
        assert_eq!(opens[0]["after"]["policies"], policies);
    });
}
