//! Files of users and groups: nothing before the swap, everything behind it.

use crate::areas::directory::{chunk, content_chunk, end, group, import, run_jobs, user};
use crate::support::{App, each, fresh_key, number};
use provost_kernel::time::ManualClock;
use provost_kernel::{kernel::Settings, params};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

provost_kernel::statements! {
    /// Rows that no reader can see once everything was cleared away.
    ROWS = "SELECT (SELECT COUNT(*) FROM directory_users WHERE organization_id = ?1), (SELECT COUNT(*) FROM directory_groups WHERE organization_id = ?1), (SELECT COUNT(*) FROM directory_memberships WHERE organization_id = ?1), (SELECT COUNT(*) FROM directory_import_names WHERE organization_id = ?1)";
}

async fn rows(app: &App) -> Vec<i64> {
    let organization = app.organization.clone();
    let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
        let found = tx.query_opt(&ROWS, params![organization.as_str()], |row| {
            (0..4).map(|place| row.get::<i64>(place)).collect()
        })?;
        Ok(found.unwrap())
    };
    app.kernel.read_system(read).await.unwrap()
}

/// Every user: login name to status, display name and group names.
async fn users(app: &App) -> BTreeMap<String, (String, String, Vec<String>)> {
    let mut all = BTreeMap::new();
    let page = app.get("/directory/users?limit=100").await.ok().clone();
    for user in page["users"].as_array().unwrap() {
        let id = user["id"].as_str().unwrap();
        let groups = app.get(&format!("/directory/users/{id}/groups?limit=100")).await;
        let groups = groups.ok()["groups"].as_array().unwrap();
        let mut groups: Vec<String> = groups
            .iter()
            .map(|g| g["name"].as_str().unwrap().to_owned())
            .collect();
        groups.sort();
        let text = |member: &str| user[member].as_str().unwrap_or("").to_owned();
        all.insert(text("loginName"), (text("status"), text("displayName"), groups));
    }
    all
}

async fn logins(app: &App) -> Vec<String> {
    users(app).await.into_keys().collect()
}

fn user_line(name: &str) -> Value {
    json!({ "type": "user", "loginName": name })
}

fn lines(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

fn merge() -> Value {
    json!({ "format": "jsonl", "mode": "merge" })
}

fn replace() -> Value {
    json!({ "format": "jsonl", "mode": "replace" })
}

/// Proves DI-1, DI-2, DI-3.
#[test]
fn an_import_is_invisible_until_it_is_applied_and_visible_at_once() {
    each("import_swap", |app: Arc<App>| async move {
        let id = import(&app, merge()).await;
        let first = lines(&[
            json!({ "type": "group", "name": "Dev", "description": "Builds" }),
            json!({ "type": "user", "loginName": "ada", "displayName": "Ada", "groups": ["dev"] }),
        ]);
        let taken = chunk(&app, &id, 1, &first).await.ok().clone();
        assert_eq!(taken["import"]["counts"]["users"]["created"], 1);
        let second =
            lines(&[json!({ "type": "user", "loginName": "bob", "groups": ["Dev"], "status": "suspended" })]);
        chunk(&app, &id, 2, &second).await.ok();
        assert!(logins(&app).await.is_empty());
        let page = app.get("/directory/groups").await;
        assert_eq!(page.ok()["groups"], json!([]));

        let applied = end(&app, &id, "apply").await.ok().clone();
        assert_eq!(applied["import"]["state"], "applied");
        let counts = json!({
            "lines": 3, "refused": 0, "held": 0, "warnings": 0, "superseded": 0,
            "users": { "created": 2, "updated": 0, "unchanged": 0, "removed": 0 },
            "groups": { "created": 1, "updated": 0, "unchanged": 0, "removed": 0 },
            "memberships": { "added": 2, "removed": 0 },
        });
        assert_eq!(applied["import"]["counts"], counts);
        let seen = users(&app).await;
        let dev = vec!["Dev".to_owned()];
        assert_eq!(seen["ada"], ("active".into(), "Ada".into(), dev.clone()));
        assert_eq!(seen["bob"], ("suspended".into(), String::new(), dev));
        end(&app, &id, "apply").await.ok();
        end(&app, &id, "abort").await.refused(409, "conflict");
        run_jobs(&app).await;
        assert_eq!(rows(&app).await, [2, 1, 2, 0]);

        // The same file again: nothing is staged.
        let id = import(&app, merge()).await;
        chunk(&app, &id, 1, &first).await.ok();
        let taken = chunk(&app, &id, 2, &second).await.ok().clone();
        assert_eq!(taken["import"]["counts"]["users"]["unchanged"], 2);
        assert_eq!(taken["import"]["counts"]["memberships"]["added"], 0);
        assert_eq!(rows(&app).await[..3], [2, 1, 2]);
        // Ada leaves her group and changes her name; the visible version stays until the swap.
        end(&app, &id, "apply").await.ok();
        let before = app.get("/directory/users?loginName=ada").await.ok()["users"][0]["id"].clone();
        let id = import(&app, merge()).await;
        let line = json!({ "type": "user", "loginName": "ADA", "displayName": null, "groups": [] });
        chunk(&app, &id, 1, &lines(&[line])).await.ok();
        assert_eq!(users(&app).await["ada"].1, "Ada");
        end(&app, &id, "apply").await.ok();
        assert_eq!(users(&app).await["ADA"], ("active".into(), String::new(), vec![]));
        let after = app.get("/directory/users?loginName=ada").await.ok()["users"][0]["id"].clone();
        assert_eq!(before, after, "a record keeps its id");
        run_jobs(&app).await;
        assert_eq!(rows(&app).await, [2, 1, 1, 0]);
    });
}

/// Proves DI-3, DI-7.
#[test]
fn a_file_with_a_refused_line_is_applied_only_if_it_may_be_partial() {
    each("import_refused", |app: Arc<App>| async move {
        let long = format!("user,{}\n", "x".repeat(64 * 1024));
        let text = format!(
            "type,loginName,groups\nuser,ada,\nuser,\"b\"ob,\n{long}user,carl,Nowhere\n\nuser,ADA,\nuser,dora,\n"
        );
        for partial in [false, true] {
            let body = json!({ "format": "csv", "mode": "merge", "partial": partial });
            let id = import(&app, body).await;
            chunk(&app, &id, 1, "{}").await.refused(409, "conflict");
            let taken = content_chunk(&app, &id, 1, "text/csv", text.as_bytes()).await;
            let refused = taken.ok()["refusedLines"].as_array().unwrap().clone();
            let places: Vec<_> = refused
                .iter()
                .map(|r| (r["line"].as_i64().unwrap(), r["path"].as_str()))
                .collect();
            let expected = [
                (3, None),
                (4, None),
                (5, Some("/groups/0")),
                (7, Some("/loginName")),
            ];
            assert_eq!(places, expected, "{refused:?}");
            // The header of a later chunk does not count: its line of data is line 9 of the file.
            let again = content_chunk(&app, &id, 2, "text/csv", b"type,loginName\nuser,DORA\n").await;
            let last = &again.ok()["refusedLines"][0];
            assert_eq!(
                (&last["line"], &last["message"]),
                (&json!(9), &json!("line 8 names this user already"))
            );

            let path = format!("/directory/imports/{id}");
            let page = app
                .get(&format!("{path}/refused-lines?limit=4"))
                .await
                .ok()
                .clone();
            assert_eq!(page["refusedLines"].as_array().unwrap(), &refused);
            let next = page["nextCursor"].as_str().unwrap();
            let page = app.get(&format!("{path}/refused-lines?cursor={next}")).await;
            assert_eq!(page.ok()["refusedLines"], json!([last]));

            let applied = end(&app, &id, "apply").await;
            if partial {
                assert_eq!(applied.ok()["import"]["counts"]["refused"], 5);
                assert_eq!(logins(&app).await, ["ada", "dora"]);
            } else {
                applied.refused(409, "conflict");
                assert_eq!(applied.json["refused"], 5);
                assert!(logins(&app).await.is_empty());
                assert_eq!(app.get(&path).await.ok()["import"]["state"], "open");
            }
        }
        let both = json!({ "format": "csv", "mode": "replace", "partial": true });
        app.write("POST", "/directory/imports", both)
            .await
            .refused(400, "invalid_request");
    });
}

/// Proves DI-8.
#[test]
fn chunks_arrive_once_and_in_order() {
    each("import_chunks", |app: Arc<App>| async move {
        let id = import(&app, merge()).await;
        let other = app.write("POST", "/directory/imports", merge()).await;
        other.refused(409, "conflict");
        assert_eq!(other.json["importId"], id.as_str());

        let early = chunk(&app, &id, 2, &lines(&[user_line("ada")])).await;
        early.refused(409, "conflict");
        assert_eq!(early.json["nextSequence"], 1);
        let key = fresh_key();
        let send = || {
            app.request("POST", &format!("/directory/imports/{id}/chunks?sequence=1"))
                .header("idempotency-key", &key)
                .header("x-reason", "a test")
                .content("application/x-ndjson", lines(&[user_line("ada")]).into_bytes())
                .send()
        };
        let first = send().await;
        first.ok();
        let again = send().await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(first.bytes, again.bytes);
        let late = chunk(&app, &id, 1, &lines(&[user_line("ada")])).await;
        late.refused(409, "conflict");
        assert_eq!(late.json["nextSequence"], 2);
        chunk(&app, &id, 2, "\n").await.refused(400, "invalid_request");
        let twice = chunk(&app, &id, 2, &lines(&[user_line("ADA")])).await;
        assert_eq!(twice.ok()["refusedLines"][0]["path"], "/loginName");
        let many = lines(&vec![user_line("x"); 501]);
        chunk(&app, &id, 3, &many).await.refused(400, "invalid_request");
        let large = vec![b' '; 1024 * 1024 + 1];
        content_chunk(&app, &id, 3, "application/x-ndjson", &large)
            .await
            .refused(413, "payload_too_large");
        end(&app, &id, "abort").await.ok();
        chunk(&app, &id, 3, &lines(&[user_line("x")]))
            .await
            .refused(409, "conflict");
        run_jobs(&app).await;
        assert_eq!(rows(&app).await, [0, 0, 0, 0]);
    });
}

/// Proves DI-9.
#[test]
fn what_a_replacing_file_does_not_name_goes_away() {
    each("import_replace", |app: Arc<App>| async move {
        let (ada, _bob) = (user(&app, "ada").await, user(&app, "bob").await);
        let (dev, ops) = (group(&app, "Dev").await, group(&app, "Ops").await);
        for group in [&dev, &ops] {
            let path = format!("/directory/groups/{group}/members/{ada}");
            app.write("PUT", &path, json!({})).await.ok();
        }
        let elsewhere = json!({ "loginName": "eve", "directoryId": "okta" });
        app.write("POST", "/directory/users", elsewhere).await.ok();
        app.advance(1);

        let id = import(&app, replace()).await;
        app.advance(1);
        let file = lines(&[
            json!({ "type": "group", "name": "Dev" }),
            user_line("ada"),
            json!({ "type": "user", "loginName": "new", "groups": ["Dev"] }),
            json!({ "type": "user", "loginName": "odd", "groups": ["Ops"] }),
        ]);
        let taken = chunk(&app, &id, 1, &file).await.ok().clone();
        assert_eq!(
            taken["refusedLines"][0]["path"], "/groups/0",
            "the file does not name Ops"
        );
        end(&app, &id, "apply").await.refused(409, "conflict");

        let id = import(&app, replace()).await;
        app.advance(1);
        let file = file.lines().take(3).collect::<Vec<_>>().join("\n");
        chunk(&app, &id, 1, &file).await.ok();
        user(&app, "made meanwhile").await;
        let from = i64::try_from(app.events(0).await.len()).unwrap();
        let applied = end(&app, &id, "apply").await.ok().clone();
        assert_eq!(applied["import"]["counts"]["users"]["removed"], 1);
        assert_eq!(applied["import"]["counts"]["groups"]["removed"], 1);
        assert_eq!(logins(&app).await, ["ada", "eve", "made meanwhile", "new"]);
        assert_eq!(users(&app).await["ada"].2, ["Dev"]);
        run_jobs(&app).await;
        assert_eq!(rows(&app).await, [4, 1, 2, 0]);
        let events: Vec<String> = app.events(from).await.into_iter().map(|(kind, _)| kind).collect();
        let expected = [
            "directory.import.applied",
            "directory.user.deleted",
            "directory.group.deleted",
        ];
        assert_eq!(events, expected);
    });
}

#[test]
fn a_file_that_replaces_many_is_prepared_in_many_units() {
    each("import_many", |app: Arc<App>| async move {
        let id = import(&app, merge()).await;
        for sequence in 1..=9 {
            let part: Vec<_> = (0..500)
                .map(|n| user_line(&format!("u{}", sequence * 500 + n)))
                .collect();
            chunk(&app, &id, sequence, &lines(&part)).await.ok();
        }
        end(&app, &id, "apply").await.ok();
        run_jobs(&app).await;
        app.advance(1);
        let id = import(&app, replace()).await;
        chunk(&app, &id, 1, &lines(&[user_line("u600")])).await.ok();
        let unsaid = end(&app, &id, "apply").await;
        unsaid.refused(409, "too_many_removals");
        assert_eq!(unsaid.json["confirmRemovals"], 4499);
        let body = json!({ "confirm": true, "confirmRemovals": 4499 });
        let path = format!("/directory/imports/{id}/apply");
        let applying = app.write("POST", &path, body).await.ok().clone();
        assert_eq!(applying["import"]["state"], "applying");
        assert_eq!(logins(&app).await.len(), 100, "a whole page is still there");
        run_jobs(&app).await;
        let done = app.get(&format!("/directory/imports/{id}")).await.ok().clone();
        assert_eq!(done["import"]["state"], "applied");
        assert_eq!(done["import"]["counts"]["users"]["removed"], 4499);
        assert_eq!(logins(&app).await, ["u600"]);
        assert_eq!(rows(&app).await, [1, 0, 0, 0]);
    });
}

/// Proves DI-1, DI-4, DI-6.
#[test]
fn what_the_api_changes_while_an_import_is_open_is_not_lost() {
    each("import_beside_the_api", |app: Arc<App>| async move {
        let ids: BTreeMap<&str, String> = {
            let mut ids = BTreeMap::new();
            for name in ["before", "after", "gone before", "gone after", "kept"] {
                ids.insert(name, user(&app, name).await);
            }
            ids
        };
        let id = import(&app, merge()).await;
        let act = |name: &'static str, how: &'static str| {
            let (app, id) = (app.clone(), ids[name].clone());
            async move {
                let path = format!("/directory/users/{id}");
                match how {
                    "delete" => app.delete(&path).await.ok().clone(),
                    "suspend" => app
                        .write("POST", &format!("{path}/suspend"), json!({}))
                        .await
                        .ok()
                        .clone(),
                    name => app
                        .write("PATCH", &path, json!({ "displayName": name }))
                        .await
                        .ok()
                        .clone(),
                }
            }
        };
        act("before", "suspend").await;
        act("gone before", "delete").await;
        let line = |name: &str| json!({ "type": "user", "loginName": name, "email": format!("{name}@new.test"), "status": "active" });
        let mut file: Vec<_> = ids.keys().map(|name| line(name)).collect();
        file.push(line("staged"));
        let taken = chunk(&app, &id, 1, &lines(&file)).await.ok().clone();
        assert_eq!(taken["import"]["counts"]["superseded"], 1);
        act("after", "suspend").await;
        act("gone after", "delete").await;
        act("kept", "Kept").await;
        let adopted = json!({ "loginName": "STAGED", "displayName": "By the API" });
        let adopted = app.write("POST", "/directory/users", adopted).await.ok().clone();
        end(&app, &id, "apply").await.ok();

        let seen = users(&app).await;
        let names: Vec<&str> = seen.keys().map(String::as_str).collect();
        assert_eq!(names, ["STAGED", "after", "before", "kept"]);
        assert_eq!(seen["before"].0, "suspended");
        assert_eq!(seen["after"].0, "suspended");
        assert_eq!(
            (seen["kept"].0.as_str(), seen["kept"].1.as_str()),
            ("active", "Kept")
        );
        let kept = app.get(&format!("/directory/users/{}", ids["kept"])).await;
        assert_eq!(
            kept.ok()["user"]["email"],
            "kept@new.test",
            "of both the file and the API"
        );
        let staged = app.get("/directory/users?loginName=staged").await;
        assert_eq!(staged.ok()["users"], json!([adopted["user"]]));
        run_jobs(&app).await;
        assert_eq!(rows(&app).await, [4, 0, 0, 0]);
    });
}

/// Proves DI-2.
#[test]
fn an_import_that_is_left_behind_is_never_seen() {
    each("import_left_behind", |app: Arc<App>| async move {
        user(&app, "ada").await;
        let id = import(&app, merge()).await;
        let file = lines(&[
            json!({ "type": "user", "loginName": "ada", "displayName": "never" }),
            user_line("never"),
        ]);
        chunk(&app, &id, 1, &file).await.ok();
        // The server dies; another one goes on with the store.
        app.kernel.stop().await;
        let settings = Settings {
            rate_limits: false,
            ..Settings::default()
        };
        let clock = Arc::new(ManualClock::new(app.now()));
        let next = app.beside(vec![], clock.clone(), settings, app.location());
        assert_eq!(logins(&next).await, ["ada"]);
        clock.advance(std::time::Duration::from_secs(3_599));
        provost_areas_identity::directory::tidy(&next.kernel)
            .await
            .unwrap();
        let path = format!("/directory/imports/{id}");
        assert_eq!(next.get(&path).await.ok()["import"]["state"], "open");
        clock.advance(std::time::Duration::from_secs(2));
        provost_areas_identity::directory::tidy(&next.kernel)
            .await
            .unwrap();
        let expired = next.get(&path).await.ok().clone();
        assert_eq!(expired["import"]["state"], "aborted");
        assert_eq!(expired["import"]["abortReason"], "expired");
        run_jobs(&next).await;
        // The generation of the import behind it lies above the one that was given up.
        let id = import(&next, merge()).await;
        chunk(&next, &id, 1, &lines(&[user_line("bob")])).await.ok();
        end(&next, &id, "apply").await.ok();
        assert_eq!(logins(&next).await, ["ada", "bob"]);
        assert_eq!(users(&next).await["ada"].1, "");
        run_jobs(&next).await;
        assert_eq!(rows(&next).await, [2, 0, 0, 0]);
        clock.advance(std::time::Duration::from_hours(31 * 24));
        provost_areas_identity::directory::tidy(&next.kernel)
            .await
            .unwrap();
        next.kernel.stop().await;
    });
}

/// Proves DI-2.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the time that the machine takes is what is compared"
)]
fn the_swap_takes_no_longer_for_many_records() {
    each("import_cost", |app: Arc<App>| async move {
        let count = usize::try_from(number("PROVOST_TEST_IMPORT_USERS", 5_000)).unwrap();
        let id = import(&app, merge()).await;
        let mut slowest = std::time::Duration::ZERO;
        for (sequence, from) in (1..).zip((0..count).step_by(500)) {
            let part: Vec<_> = (from..from + 500)
                .map(|n| user_line(&format!("user-{n}@acme.test")))
                .collect();
            let start = std::time::Instant::now();
            chunk(&app, &id, sequence, &lines(&part)).await.ok();
            slowest = slowest.max(start.elapsed());
        }
        let start = std::time::Instant::now();
        end(&app, &id, "apply").await.ok();
        let swap = start.elapsed();
        eprintln!("{count} users: the slowest chunk took {slowest:?}, the swap {swap:?}");
        // A unit of work is refused after 250 ms: this is about how the two compare.
        assert!(
            swap < slowest * 2 + std::time::Duration::from_millis(50),
            "{swap:?} {slowest:?}"
        );
        let page = app
            .get(&format!(
                "/directory/users?loginName=user-{}@acme.test",
                count - 1
            ))
            .await;
        assert_eq!(page.ok()["users"].as_array().unwrap().len(), 1);
        run_jobs(&app).await;
    });
}

/// The columns are those that `provost directory import --format okta` sends.
///
/// Proves DI-3.
#[test]
fn a_table_without_types_suspends_and_never_leaves_out() {
    each("import_table", |app: Arc<App>| async move {
        let body = json!({ "format": "csv", "mode": "merge" });
        let id = import(&app, body.clone()).await;
        let text = "LoginName,externalId,status\nann,00u1,active\n\n\nbo,00u2,suspended\n";
        content_chunk(&app, &id, 1, "text/csv", text.as_bytes())
            .await
            .ok();
        // Blank lines behind a repeated header are lines of the file: the header alone is none.
        let again = "LoginName,externalId,status\n\ncy,00u3,\nANN,00u9,active\n";
        let taken = content_chunk(&app, &id, 2, "text/csv", again.as_bytes()).await;
        let refused = &taken.ok()["refusedLines"][0];
        assert_eq!(
            (&refused["line"], &refused["message"]),
            (&json!(8), &json!("line 2 names this user already"))
        );
        end(&app, &id, "abort").await.ok();

        let id = import(&app, body.clone()).await;
        content_chunk(&app, &id, 1, "text/csv", text.as_bytes())
            .await
            .ok();
        end(&app, &id, "apply").await.ok();
        let seen = users(&app).await;
        assert_eq!(
            (seen["ann"].0.as_str(), seen["bo"].0.as_str()),
            ("active", "suspended")
        );
        run_jobs(&app).await;

        // Who leaves is suspended by the next file, and is the same record under another name.
        let before = app.get("/directory/users?loginName=ann").await.ok()["users"][0]["id"].clone();
        let id = import(&app, body).await;
        let text = "loginName,externalId,status\nann.li,00u1,suspended\n";
        content_chunk(&app, &id, 1, "text/csv", text.as_bytes())
            .await
            .ok();
        end(&app, &id, "apply").await.ok();
        let found = app.get("/directory/users?loginName=ann.li").await.ok().clone();
        assert_eq!(found["users"][0]["id"], before);
        assert_eq!(found["users"][0]["status"], "suspended");
    });
}
