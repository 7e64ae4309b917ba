//! Records that come back, files that rename, and files that would remove too much (DI-11, DI-12).

use crate::areas::directory::{chunk, end, group, import, narrow, run_jobs, user};
use crate::areas::resources::{credential_body, make_credential, make_resource};
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: u64 = 86_400;

fn merge() -> Value {
    json!({ "format": "jsonl", "mode": "merge" })
}

fn replace() -> Value {
    json!({ "format": "jsonl", "mode": "replace" })
}

fn lines(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Imports a file and returns its counts; jobs do not run.
async fn imports(app: &App, how: Value, file: &[Value]) -> Value {
    let id = import(app, how).await;
    app.advance(1);
    chunk(app, &id, 1, &lines(file)).await.ok();
    end(app, &id, "apply").await.ok()["import"]["counts"].clone()
}

async fn make(app: &App, kind: &str, body: Value) -> Value {
    let made = app.write("POST", &format!("/directory/{kind}s"), body).await;
    made.ok()[kind].clone()
}

async fn named(app: &App, name: &str) -> Value {
    let page = app.get(&format!("/directory/users?loginName={name}")).await;
    let found = page.ok()["users"].as_array().unwrap().clone();
    assert_eq!(found.len(), 1, "{name}");
    found[0].clone()
}

/// Returns the application as an admin sees it whose token lives for a year.
async fn for_long(app: &App) -> App {
    let body = json!({ "name": "for long", "permissionRole": "admin", "allOfRole": true, "expiresInSeconds": 365 * DAY });
    let made = app.write("POST", "/service-accounts", body).await;
    let token = made.ok()["token"]["token"].as_str().unwrap().to_owned();
    app.view_of(app.organization.clone(), token)
}

async fn apply(app: &App, id: &str, sum: i64) -> Reply {
    let body = json!({ "confirm": true, "confirmRemovals": sum });
    app.write("POST", &format!("/directory/imports/{id}/apply"), body)
        .await
}

/// Proves DI-11.
#[test]
fn a_record_that_comes_back_within_90_days_gets_its_id_and_nothing_else() {
    each("return_api", |app: Arc<App>| async move {
        let dev = group(&app, "Dev").await;
        let body = json!({ "loginName": "ada", "permissionRole": "admin", "externalId": "1" });
        let ada = make(&app, "user", body).await;
        let id = ada["id"].as_str().unwrap().to_owned();
        app.write("PUT", &format!("/directory/groups/{dev}/members/{id}"), json!({}))
            .await
            .ok();
        let resource = make_resource(&app).await;
        let credential = make_credential(&app, &resource).await;
        let path = format!("/resources/{resource}/credentials/{credential}");
        let mut assigned = credential_body();
        assigned["assignedTo"] = json!({ "users": [id], "groups": [dev], "serviceAccounts": [] });
        app.write("PUT", &path, assigned).await.ok();
        app.delete(&format!("/directory/users/{id}")).await.ok();

        // Under another name and the same external id.
        app.advance(89 * DAY);
        let back = make(
            &app,
            "user",
            json!({ "loginName": "ada.lovelace", "externalId": "1" }),
        )
        .await;
        assert_eq!(back["id"], id.as_str());
        assert_eq!(
            (back.get("permissionRole"), &back["status"]),
            (None, &json!("active"))
        );
        let groups = app.get(&format!("/directory/users/{id}/groups")).await;
        assert_eq!(groups.ok()["groups"], json!([]));
        let held = app.get(&path).await.ok().clone();
        assert_eq!(held["assignedTo"]["users"], json!([]));

        // A group, by its name, where neither has an external id.
        app.delete(&format!("/directory/groups/{dev}")).await.ok();
        let again = make(&app, "group", json!({ "name": "DEV" })).await;
        assert_eq!(again["id"], dev.as_str());
        let members = app.get(&format!("/directory/groups/{dev}/members")).await;
        assert_eq!(members.ok()["users"], json!([]));
        let held = app.get(&path).await.ok().clone();
        assert_eq!(held["assignedTo"]["groups"], json!([]));
    });
}

/// Proves DI-11.
#[test]
fn who_comes_back_under_another_external_id_another_directory_or_too_late_is_somebody_else() {
    each("return_others", |app: Arc<App>| async move {
        let app = for_long(&app).await;
        // What it had, what it has, days between, and whether it is the same; the days ascend.
        let cases = [
            (Some("1"), Some("2"), 0, false),
            (Some("1"), None, 0, false),
            (None, Some("1"), 0, false),
            (Some("1"), Some("1"), 89, true),
            (None, None, 89, true),
            (Some("1"), Some("1"), 91, false),
            (None, None, 91, false),
        ];
        let body = |member: &str, name: &str, external: Option<&str>| {
            let mut body = json!({ member: name });
            if let Some(id) = external {
                // External ids of the cases are apart, so that none finds another case's record.
                body["externalId"] = format!("{name}-{id}").into();
            }
            body
        };
        let mut gone = Vec::new();
        for (number, (had, has, days, is_same)) in cases.into_iter().enumerate() {
            for (kind, member) in [("user", "loginName"), ("group", "name")] {
                for by_file in [false, true] {
                    let name = format!("{kind}-{number}-{by_file}");
                    let id = make(&app, kind, body(member, &name, had)).await["id"].clone();
                    let path = format!("/directory/{kind}s/{}", id.as_str().unwrap());
                    app.delete(&path).await.ok();
                    gone.push((days, kind, member, by_file, name, has, id, is_same));
                }
            }
        }
        let mut day = 0;
        for (days, kind, member, by_file, name, has, id, is_same) in gone {
            app.advance((days - day) * DAY);
            day = days;
            let mut again = body(member, &name, has);
            let after = if by_file {
                again["type"] = kind.into();
                imports(&app, merge(), &[again]).await;
                let page = app.get(&format!("/directory/{kind}s?{member}={name}")).await;
                page.ok()[format!("{kind}s")][0]["id"].clone()
            } else {
                make(&app, kind, again).await["id"].clone()
            };
            assert_eq!(id == after, is_same, "{name} {has:?} {days}");
        }
        let ada = user(&app, "ada").await;
        app.delete(&format!("/directory/users/{ada}")).await.ok();
        let other = make(&app, "user", json!({ "loginName": "ada", "directoryId": "okta" })).await;
        assert_ne!(other["id"], ada.as_str());
        provost_areas_identity::directory::tidy(&app.kernel)
            .await
            .unwrap();
    });
}

/// Proves DI-11.
#[test]
fn a_record_that_comes_back_before_its_end_was_cleared_away_keeps_what_it_gets() {
    each("return_at_once", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let boss = json!({ "loginName": "boss", "permissionRole": "admin" });
        let boss = make(&app, "user", boss).await["id"].as_str().unwrap().to_owned();
        let dev = group(&app, "Dev").await;
        app.write(
            "PUT",
            &format!("/directory/groups/{dev}/members/{boss}"),
            json!({}),
        )
        .await
        .ok();
        app.advance(1);
        let other = [
            json!({ "type": "user", "loginName": "other" }),
            json!({ "type": "group", "name": "Dev" }),
        ];
        imports(&narrow, replace(), &other).await;
        app.get(&format!("/directory/users/{boss}"))
            .await
            .refused(404, "not_found");
        // Nothing was cleared away yet.
        let back = make(&app, "user", json!({ "loginName": "boss" })).await;
        assert_eq!(back["id"], boss.as_str());
        assert_eq!(back.get("permissionRole"), None);
        app.write(
            "PUT",
            &format!("/directory/groups/{dev}/members/{boss}"),
            json!({}),
        )
        .await
        .ok();
        run_jobs(&app).await;
        let groups = app.get(&format!("/directory/users/{boss}/groups")).await;
        assert_eq!(groups.ok()["groups"][0]["id"], dev.as_str());
        let deleted = app
            .events(0)
            .await
            .into_iter()
            .filter(|(kind, _)| kind == "directory.user.deleted");
        assert_eq!(deleted.count(), 1);

        // Two files at once: the second brings back what the first removed, under its id and without its groups.
        app.advance(1);
        imports(&app, replace(), &other).await;
        let back = json!({ "type": "user", "loginName": "BOSS" });
        imports(&app, merge(), &[back]).await;
        assert_eq!(named(&app, "boss").await["id"], boss.as_str());
        run_jobs(&app).await;
        assert_eq!(named(&app, "boss").await["id"], boss.as_str());
        let groups = app.get(&format!("/directory/users/{boss}/groups")).await;
        assert_eq!(groups.ok()["groups"], json!([]));

        // An import that is aborted brings back nobody, and the id waits for who does.
        app.delete(&format!("/directory/users/{boss}")).await.ok();
        let id = import(&app, merge()).await;
        chunk(&app, &id, 1, r#"{"type":"user","loginName":"boss"}"#)
            .await
            .ok();
        end(&app, &id, "abort").await.ok();
        run_jobs(&app).await;
        assert_eq!(
            make(&app, "user", json!({ "loginName": "boss" })).await["id"],
            boss.as_str()
        );
    });
}

#[test]
fn a_file_lifts_no_suspension_by_deleting_a_user_and_bringing_her_back() {
    each("return_suspended", |app: Arc<App>| async move {
        let eve = user(&app, "eve").await;
        app.write("POST", &format!("/directory/users/{eve}/suspend"), json!({}))
            .await
            .ok();
        app.advance(1);
        imports(
            &app,
            replace(),
            &[json!({ "type": "user", "loginName": "other" })],
        )
        .await;
        run_jobs(&app).await;
        let back = json!({ "type": "user", "loginName": "eve", "status": "active" });
        imports(&app, merge(), &[back]).await;
        let back = named(&app, "eve").await;
        assert_eq!((&back["id"], &back["status"]), (&json!(eve), &json!("suspended")));
    });
}

#[test]
fn a_new_name_under_the_same_external_id_is_a_rename() {
    each("return_rename", |app: Arc<App>| async move {
        let file = |name: &str, group: &str| {
            [
                json!({ "type": "group", "name": group, "externalId": "g1" }),
                json!({ "type": "user", "loginName": name, "externalId": "u1", "groups": [group] }),
            ]
        };
        imports(&app, merge(), &file("ada", "Dev")).await;
        let ada = named(&app, "ada").await["id"].clone();
        let dev = app.get("/directory/groups?name=dev").await.ok()["groups"][0].clone();
        assert_eq!(dev["externalId"], "g1");
        for (how, name, group) in [
            (merge(), "ada.lovelace", "Developers"),
            (replace(), "countess", "Engineers"),
        ] {
            app.advance(1);
            let counts = imports(&app, how, &file(name, group)).await;
            run_jobs(&app).await;
            assert_eq!(
                counts["users"],
                json!({ "created": 0, "updated": 1, "unchanged": 0, "removed": 0 })
            );
            assert_eq!(
                counts["groups"],
                json!({ "created": 0, "updated": 1, "unchanged": 0, "removed": 0 })
            );
            assert_eq!(counts["memberships"], json!({ "added": 0, "removed": 0 }));
            assert_eq!(named(&app, name).await["id"], ada);
            let found = app.get(&format!("/directory/groups?name={group}")).await;
            assert_eq!(found.ok()["groups"][0]["id"], dev["id"]);
        }
        // The old name is free for somebody else, also in the file that renames.
        let freed = [
            json!({ "type": "user", "loginName": "ada", "externalId": "u1" }),
            json!({ "type": "user", "loginName": "countess", "externalId": "u2" }),
        ];
        imports(&app, merge(), &freed).await;
        assert_eq!(named(&app, "ada").await["id"], ada);
        assert_ne!(named(&app, "countess").await["id"], ada);
        // A name that another user has and keeps is refused; so is one record on two lines.
        let id = import(&app, merge()).await;
        let file = [
            json!({ "type": "user", "loginName": "countess", "externalId": "u1" }),
            json!({ "type": "user", "loginName": "ada" }),
            json!({ "type": "user", "loginName": "third", "externalId": "u1" }),
            json!({ "type": "group", "name": "Fourth", "externalId": "g1" }),
            json!({ "type": "group", "name": "Fifth", "externalId": "g1" }),
        ];
        let taken = chunk(&app, &id, 1, &lines(&file)).await.ok().clone();
        let places: Vec<_> = taken["refusedLines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|refused| {
                (
                    refused["line"].as_i64().unwrap(),
                    refused["path"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(places, [(1, "/loginName"), (3, "/loginName"), (5, "/externalId")]);
    });
}

#[test]
fn what_the_api_deleted_does_not_come_back_under_its_external_id() {
    each("return_superseded", |app: Arc<App>| async move {
        let body = json!({ "loginName": "ada", "externalId": "u1" });
        let ada = make(&app, "user", body).await["id"].as_str().unwrap().to_owned();
        let dev = json!({ "name": "Dev", "externalId": "g1" });
        let dev = make(&app, "group", dev).await["id"].as_str().unwrap().to_owned();
        let id = import(&app, merge()).await;
        app.delete(&format!("/directory/users/{ada}")).await.ok();
        app.delete(&format!("/directory/groups/{dev}")).await.ok();
        let file = [
            json!({ "type": "user", "loginName": "other", "externalId": "u1" }),
            json!({ "type": "group", "name": "Other", "externalId": "g1" }),
        ];
        let taken = chunk(&app, &id, 1, &lines(&file)).await.ok().clone();
        assert_eq!(taken["import"]["counts"]["superseded"], 2);
        end(&app, &id, "apply").await.ok();
        assert_eq!(app.get("/directory/users").await.ok()["users"], json!([]));
        assert_eq!(app.get("/directory/groups").await.ok()["groups"], json!([]));
    });
}

/// Proves DI-12.
#[test]
#[expect(clippy::too_many_lines, reason = "one directory, step by step")]
fn a_file_that_would_remove_much_of_one_kind_says_how_much_or_removes_nothing() {
    each("removals", |app: Arc<App>| async move {
        let mut whole: Vec<Value> = (0..8)
            .map(|n| json!({ "type": "group", "name": format!("g{n}") }))
            .collect();
        whole.extend((0..8).map(|n| {
            let groups: Vec<String> = (0..8).map(|g| format!("g{g}")).collect();
            json!({ "type": "user", "loginName": format!("u{n}"), "groups": groups })
        }));
        imports(&app, merge(), &whole).await;
        run_jobs(&app).await;
        let state = || async {
            let users = app.get("/directory/users?limit=100").await.ok()["users"]
                .as_array()
                .unwrap()
                .len();
            let groups = app.get("/directory/groups?limit=100").await.ok()["groups"]
                .as_array()
                .unwrap()
                .len();
            (users, groups)
        };
        let without = |kind: &str, count: usize| -> Vec<Value> {
            let of_kind = |line: &&Value| line["type"] == kind;
            let kept = whole.iter().filter(of_kind).skip(count);
            let gone: Vec<&Value> = whole
                .iter()
                .filter(of_kind)
                .take(count)
                .map(|line| &line["name"])
                .collect();
            let mut kept: Vec<Value> = whole
                .iter()
                .filter(|line| line["type"] != kind)
                .chain(kept)
                .cloned()
                .collect();
            for line in &mut kept {
                if let Some(groups) = line.get_mut("groups").and_then(Value::as_array_mut) {
                    groups.retain(|group| !gone.iter().any(|one| **one == *group));
                }
            }
            kept.sort_by_key(|line| line["type"] != "group");
            kept
        };
        let mut fewer = whole.clone();
        for line in fewer.iter_mut().filter(|line| line["type"] == "user") {
            line["groups"] = json!(["g0", "g1", "g2", "g3", "g4", "g5", "g6"]);
        }
        // An empty file, and one kind at a time.
        let cases: [(Vec<Value>, Value); 4] = [
            (
                vec![json!({ "type": "user", "loginName": "one" })],
                json!({ "users": 8, "groups": 8, "memberships": 64 }),
            ),
            (
                without("user", 6),
                json!({ "users": 6, "groups": 0, "memberships": 48 }),
            ),
            (
                without("group", 6),
                json!({ "users": 0, "groups": 6, "memberships": 48 }),
            ),
            (fewer, json!({ "users": 0, "groups": 0, "memberships": 8 })),
        ];
        for (file, expected) in cases {
            app.advance(1);
            let id = import(&app, replace()).await;
            app.advance(1);
            chunk(&app, &id, 1, &lines(&file)).await.ok();
            let shown = app
                .get(&format!("/directory/imports/{id}/removals"))
                .await
                .ok()
                .clone();
            let sum = expected
                .as_object()
                .unwrap()
                .values()
                .map(|n| n.as_i64().unwrap())
                .sum::<i64>();
            assert_eq!(
                (&shown["sum"], &shown["needsConfirmation"]),
                (&json!(sum), &json!(true))
            );
            assert_eq!(shown["removals"]["users"]["of"], 8);
            let refused = end(&app, &id, "apply").await;
            refused.refused(409, "too_many_removals");
            assert_eq!(refused.json["removals"], expected);
            assert_eq!(refused.json["confirmRemovals"], sum);
            for other in [0, sum - 1, sum + 1] {
                apply(&app, &id, other).await.refused(409, "too_many_removals");
            }
            assert_eq!(state().await, (8, 8));
            let open = app.get(&format!("/directory/imports/{id}")).await;
            assert_eq!(open.ok()["import"]["state"], "open");
        }
        // Nothing at all arrived.
        app.advance(1);
        let id = import(&app, replace()).await;
        app.advance(1);
        end(&app, &id, "apply").await.refused(409, "too_many_removals");
        // A few go without a word, and more where the settings say so.
        app.write(
            "PUT",
            "/automation/settings",
            json!({ "directory": { "maxRemovalPercent": 0 } }),
        )
        .await
        .refused(400, "invalid_request");
        let body = json!({ "directory": { "maxRemovalPercent": 75 } });
        app.write("PUT", "/automation/settings", body).await.ok();
        app.advance(1);
        let id = import(&app, replace()).await;
        app.advance(1);
        chunk(&app, &id, 1, &lines(&without("user", 6))).await.ok();
        end(&app, &id, "apply").await.ok();
        run_jobs(&app).await;
        assert_eq!(state().await, (2, 8));
        // With the sum it goes on, however much it is.
        app.advance(1);
        let id = import(&app, replace()).await;
        app.advance(1);
        apply(&app, &id, 26).await.ok();
        run_jobs(&app).await;
        assert_eq!(state().await, (0, 0));
        end(&app, &id, "apply").await.ok();
        let shown = app.get(&format!("/directory/imports/{id}/removals")).await;
        assert_eq!(shown.ok()["sum"], 0, "nothing goes any more");
    });
}

#[test]
fn a_few_records_of_a_small_directory_go_without_a_word() {
    each("removals_few", |app: Arc<App>| async move {
        for n in 0..5 {
            user(&app, &format!("u{n}")).await;
        }
        app.advance(1);
        let id = import(&app, replace()).await;
        app.advance(1);
        chunk(&app, &id, 1, r#"{"type":"user","loginName":"new"}"#)
            .await
            .ok();
        let applied = end(&app, &id, "apply").await;
        assert_eq!(applied.ok()["import"]["counts"]["users"]["removed"], 5);
    });
}
