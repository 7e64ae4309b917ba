//! Users, groups and memberships through the API.

use crate::areas::directory::{group, user};
use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;

fn names<'a>(page: &'a Value, kind: &str, member: &str) -> Vec<&'a str> {
    let items = page[kind].as_array().unwrap();
    items.iter().map(|item| item[member].as_str().unwrap()).collect()
}

#[test]
fn users_are_made_found_changed_and_deleted() {
    each("directory_users", |app: Arc<App>| async move {
        let ada = user(&app, "Ada@Acme.test").await;
        let taken = json!({ "loginName": "ada@acme.TEST" });
        app.write("POST", "/directory/users", taken.clone())
            .await
            .refused(409, "already_exists");
        let mut elsewhere = taken;
        elsewhere["directoryId"] = "okta".into();
        app.write("POST", "/directory/users", elsewhere).await.ok();
        let bob = user(&app, "bob@acme.test").await;

        let path = format!("/directory/users/{ada}");
        let changed = app
            .write(
                "PATCH",
                &path,
                json!({ "displayName": "Ada", "email": "a@acme.test" }),
            )
            .await;
        assert_eq!(changed.ok()["user"]["displayName"], "Ada");
        let cleared = app.write("PATCH", &path, json!({ "email": null })).await;
        assert!(cleared.ok()["user"].get("email").is_none());
        app.write("PATCH", &path, json!({ "loginName": "BOB@acme.test" }))
            .await
            .refused(409, "already_exists");

        let found = app
            .get("/directory/users?loginName=ADA@acme.test")
            .await
            .ok()
            .clone();
        assert_eq!(names(&found, "users", "directoryId"), ["default", "okta"]);
        let found = app
            .get("/directory/users?loginName=ADA@acme.test&directoryId=okta")
            .await
            .ok()
            .clone();
        assert_eq!(names(&found, "users", "directoryId"), ["okta"]);
        app.write("POST", &format!("/directory/users/{bob}/suspend"), json!({}))
            .await
            .ok();
        let found = app.get("/directory/users?status=suspended").await.ok().clone();
        assert_eq!(names(&found, "users", "id"), [bob.as_str()]);
        assert!(found["users"][0]["suspendedAt"].is_string());

        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = app
                .get(&format!("/directory/users?limit=1{cursor}"))
                .await
                .ok()
                .clone();
            seen.extend(names(&page, "users", "loginName").into_iter().map(str::to_owned));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ["Ada@Acme.test", "ada@acme.TEST", "bob@acme.test"]);

        let unconfirmed = app
            .request("DELETE", &path)
            .header("idempotency-key", &crate::support::fresh_key())
            .header("x-reason", "a test");
        unconfirmed.send().await.refused(400, "confirmation_required");
        app.delete(&path).await.ok();
        app.get(&path).await.refused(404, "not_found");
        user(&app, "ADA@acme.test").await;
    });
}

/// Proves DI-9.
#[test]
fn deleting_a_user_or_a_group_ends_its_memberships() {
    each("directory_memberships", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, "ada").await, user(&app, "bob").await);
        let (dev, ops) = (group(&app, "Dev").await, group(&app, "Ops").await);
        for (group, user) in [(&dev, &ada), (&dev, &bob), (&ops, &ada), (&dev, &ada)] {
            let path = format!("/directory/groups/{group}/members/{user}");
            app.write("PUT", &path, json!({})).await.ok();
        }
        let members = |group: String| {
            let app = app.clone();
            async move {
                let page = app.get(&format!("/directory/groups/{group}/members")).await;
                names(page.ok(), "users", "loginName")
                    .into_iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            }
        };
        assert_eq!(members(dev.clone()).await, ["ada", "bob"]);
        let in_dev = app
            .get(&format!("/directory/users?groupId={dev}&loginName=ADA"))
            .await;
        assert_eq!(names(in_dev.ok(), "users", "id"), [ada.as_str()]);
        let of_ada = app.get(&format!("/directory/users/{ada}/groups")).await;
        assert_eq!(names(of_ada.ok(), "groups", "name"), ["Dev", "Ops"]);

        app.delete(&format!("/directory/users/{ada}")).await.ok();
        assert_eq!(members(dev.clone()).await, ["bob"]);
        assert!(members(ops).await.is_empty());
        app.delete(&format!("/directory/groups/{dev}")).await.ok();
        let of_bob = app.get(&format!("/directory/users/{bob}/groups")).await;
        assert!(names(of_bob.ok(), "groups", "name").is_empty());
        let events: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let added = events.iter().filter(|e| *e == "directory.group.member_added");
        assert_eq!(added.count(), 3, "the fourth was there already");
    });
}

/// Proves DI-5.
#[test]
fn nobody_gives_a_user_more_than_they_hold() {
    each("directory_escalation", |app: Arc<App>| async move {
        let (_, narrow) = app
            .account("narrow", "admin", &["directory:read", "directory:write"])
            .await;
        let write = |path: String, body: Value, token: String| {
            let app = app.clone();
            async move {
                let method = if path.matches('/').count() == 3 {
                    "PATCH"
                } else {
                    "POST"
                };
                let body = crate::support::with_trio(body, &crate::support::fresh_key());
                app.request(method, &path).token(&token).json(body).send().await
            }
        };
        for role in ["admin", "operator", "auditor", "viewer", "member"] {
            let body = json!({ "loginName": role, "permissionRole": role });
            let path = "/directory/users".to_owned();
            write(path, body, narrow.clone())
                .await
                .refused(403, "escalation_forbidden");
        }
        let plain = json!({ "loginName": "plain" });
        let made = write("/directory/users".into(), plain, narrow.clone()).await;
        let id = made.ok()["user"]["id"].as_str().unwrap().to_owned();
        let path = format!("/directory/users/{id}");
        write(
            path.clone(),
            json!({ "permissionRole": "viewer" }),
            narrow.clone(),
        )
        .await
        .refused(403, "escalation_forbidden");
        write(
            path.clone(),
            json!({ "permissionRole": "admin" }),
            app.admin.clone(),
        )
        .await
        .ok();
        write(format!("{path}/suspend"), json!({}), narrow.clone())
            .await
            .ok();
        write(format!("{path}/reactivate"), json!({}), narrow.clone())
            .await
            .refused(403, "escalation_forbidden");
        write(path, json!({ "permissionRole": null }), narrow).await.ok();
    });
}

/// Proves SU-5.
#[test]
fn names_of_groups_and_accounts_are_unique_across_kinds() {
    each("directory_names", |app: Arc<App>| async move {
        user(&app, "ada@acme.test").await;
        group(&app, "Straße").await;
        app.account("Deploy", "viewer", &["fleet:read"]).await;
        let account = |name: &str| json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
        for taken in ["ADA@acme.test", "STRASSE", "deploy"] {
            app.write("POST", "/directory/groups", json!({ "name": taken }))
                .await
                .refused(409, "already_exists");
            app.write("POST", "/service-accounts", account(taken))
                .await
                .refused(409, "already_exists");
        }
        let other = group(&app, "Other").await;
        let path = format!("/directory/groups/{other}");
        app.write("PATCH", &path, json!({ "name": "DEPLOY" }))
            .await
            .refused(409, "already_exists");
        app.write("PATCH", &path, json!({ "name": "OTHER" })).await.ok();
        let (id, _) = app.account("Free", "viewer", &["fleet:read"]).await;
        app.write(
            "PATCH",
            &format!("/service-accounts/{id}"),
            json!({ "name": "other" }),
        )
        .await
        .refused(409, "already_exists");
        app.delete(&path).await.ok();
        app.write(
            "PATCH",
            &format!("/service-accounts/{id}"),
            json!({ "name": "other" }),
        )
        .await
        .ok();
    });
}

#[test]
fn accounts_of_a_suspended_or_deleted_user_keep_working_and_are_reported() {
    each("directory_orphans", |app: Arc<App>| async move {
        let ada = user(&app, "ada").await;
        let body = json!({
            "name": "robot", "permissionRole": "viewer", "allOfRole": true, "ownerConsoleUserId": ada,
        });
        let made = app.write("POST", "/service-accounts", body).await.ok().clone();
        let (account, token) = (&made["serviceAccount"]["id"], &made["token"]["token"]);
        for how in ["suspend", "delete"] {
            let from = i64::try_from(app.events(0).await.len()).unwrap();
            let reply = if how == "delete" {
                app.delete(&format!("/directory/users/{ada}")).await
            } else {
                app.write("POST", &format!("/directory/users/{ada}/suspend"), json!({}))
                    .await
            };
            reply.ok();
            let events = app.events(from).await;
            let orphaned = events.iter().find(|(kind, _)| kind == "service_account.orphaned");
            assert_eq!(&orphaned.unwrap().1["serviceAccountId"], account, "{how}");
            assert_eq!(app.used(token.as_str().unwrap()).await.0, 200, "{how}");
        }
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await;
        let noted = entries.iter().filter(|entry| {
            let changes = entry["changes"].as_array();
            changes.is_some_and(|all| all.iter().any(|c| c["path"] == "/orphaned_service_account"))
        });
        assert_eq!(noted.count(), 2);
    });
}

#[test]
fn an_organization_does_not_see_another_ones_directory() {
    each("directory_foreign", |app: Arc<App>| async move {
        let ada = user(&app, "ada").await;
        let dev = group(&app, "Dev").await;
        let (organization, admin) = app.other_organization("Globex").await;
        let other = app.view_of(organization, admin);
        for path in [
            format!("/directory/users/{ada}"),
            format!("/directory/groups/{dev}"),
        ] {
            other.get(&path).await.refused(404, "not_found");
            other.delete(&path).await.refused(404, "not_found");
        }
        let own = user(&other, "ada").await;
        group(&other, "Dev").await;
        other
            .write(
                "PUT",
                &format!("/directory/groups/{dev}/members/{own}"),
                json!({}),
            )
            .await
            .refused(404, "not_found");
        let page = other.get("/directory/users").await;
        assert_eq!(names(page.ok(), "users", "id"), [own.as_str()]);
    });
}
