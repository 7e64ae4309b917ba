//! Words by which two users of a directory would be meant: refused by the API, taken from the lines of a file (DI-14, DI-15).

use crate::areas::directory::{chunk, end, import, narrow, run_jobs};
use crate::support::{App, Reply, each};
use provost_kernel::params;
use serde_json::{Value, json};
use std::sync::Arc;

provost_kernel::statements! {
    /// Versions that are noted, users who have an address, and warnings that are kept.
    STORED = "SELECT (SELECT COUNT(*) FROM directory_users WHERE organization_id = ?1 AND word_clash IS NOT NULL), (SELECT COUNT(*) FROM directory_users WHERE organization_id = ?1 AND email IS NOT NULL), (SELECT COUNT(*) FROM directory_import_warnings WHERE organization_id = ?1)";
}

const ADA: &str = "ada@acme.test";

async fn stored(app: &App) -> [i64; 3] {
    let organization = app.organization.clone();
    let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
        let read = |row: &provost_kernel::db::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
        Ok(tx
            .query_opt(&STORED, params![organization.as_str()], read)?
            .unwrap())
    };
    app.kernel.read_system(read).await.unwrap()
}

async fn create(app: &App, body: Value) -> Reply {
    app.write("POST", "/directory/users", body).await
}

async fn make(app: &App, body: Value) -> String {
    create(app, body).await.ok()["user"]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn patch(app: &App, id: &str, body: Value) -> Reply {
    app.write("PATCH", &format!("/directory/users/{id}"), body).await
}

async fn settle(app: &App, apply: &[&Value]) -> Reply {
    let ids: Vec<&Value> = apply.iter().map(|change| &change["id"]).collect();
    app.write("POST", "/directory/held-changes/settle", json!({ "apply": ids }))
        .await
}

/// Returns the address of the user of a login name in the directory `default`; empty where it has none.
async fn address(app: &App, name: &str) -> String {
    let page = app
        .get(&format!("/directory/users?loginName={name}&directoryId=default"))
        .await;
    let found = page.ok()["users"].as_array().unwrap().clone();
    assert_eq!(found.len(), 1, "{name}");
    found[0]["email"].as_str().unwrap_or_default().to_owned()
}

fn how(mode: &str) -> Value {
    json!({ "format": "jsonl", "mode": mode })
}

/// A user's line; without an address the member is absent.
fn line(name: &str, email: Option<&str>) -> Value {
    let mut line = json!({ "type": "user", "loginName": name });
    if let Some(email) = email {
        line["email"] = email.into();
    }
    line
}

/// Sends a file, one line a chunk, applies it and lets jobs run; returns the import and its warnings as (line, path), sorted.
async fn imports(app: &App, mode: &str, file: &[Value]) -> (Value, Vec<(i64, String)>) {
    app.advance(1);
    let id = import(app, how(mode)).await;
    app.advance(1);
    for (number, line) in (1..).zip(file) {
        chunk(app, &id, number, &line.to_string()).await.ok();
    }
    let none = warnings(app, &id).await;
    assert_eq!(none, [], "nothing is judged before the whole file is there");
    let applied = end(app, &id, "apply").await.ok()["import"].clone();
    assert_eq!(applied["state"], "applied");
    run_jobs(app).await;
    let found = warnings(app, &id).await;
    let count = i64::try_from(found.len()).unwrap();
    assert_eq!(applied["counts"]["warnings"], count);
    (applied, found)
}

async fn warnings(app: &App, id: &str) -> Vec<(i64, String)> {
    let page = app.get(&format!("/directory/imports/{id}/warnings")).await;
    let page = page.ok()["warnings"].as_array().unwrap().clone();
    let mut found: Vec<(i64, String)> = page
        .iter()
        .map(|one| {
            assert!(one["userId"].as_str().unwrap().starts_with("usr_"));
            assert!(!one["message"].as_str().unwrap().contains('@'), "{one}");
            (
                one["line"].as_i64().unwrap(),
                one["path"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    found.sort();
    found
}

fn of_email(lines: &[i64]) -> Vec<(i64, String)> {
    lines.iter().map(|line| (*line, "/email".to_owned())).collect()
}

/// Proves DI-14.
#[test]
fn the_api_gives_no_user_an_address_that_is_a_word_of_another() {
    each("clash_api", |app: Arc<App>| async move {
        let taken = "already_exists";
        let ada = make(&app, json!({ "loginName": ADA, "email": "ada.l@acme.test" })).await;
        let bob = make(
            &app,
            json!({ "loginName": "bob@acme.test", "email": "b@acme.test" }),
        )
        .await;
        // Her login name and her address, in any spelling, for somebody new and for somebody who is there.
        for word in [
            ADA,
            "ADA@acme.test",
            "ada\u{200b}@acme.test",
            "ada.l@acme.test",
            "Ada.L@Acme.test",
        ] {
            let body = json!({ "loginName": "carl@acme.test", "email": word });
            create(&app, body).await.refused(409, taken);
            patch(&app, &bob, json!({ "email": word }))
                .await
                .refused(409, taken);
        }
        // The other way round: a login name that is her address.
        create(&app, json!({ "loginName": "Ada.L@acme.test" }))
            .await
            .refused(409, taken);
        patch(&app, &bob, json!({ "loginName": "ada.l@acme.test" }))
            .await
            .refused(409, taken);
        assert_eq!(address(&app, "bob@acme.test").await, "b@acme.test");
        // A suspended user is meant by her words as well.
        app.write("POST", &format!("/directory/users/{ada}/suspend"), json!({}))
            .await
            .ok();
        patch(&app, &bob, json!({ "email": ADA }))
            .await
            .refused(409, taken);

        // One's own words, other directories, and words that nobody has any more are free.
        patch(&app, &bob, json!({ "email": "BOB@acme.test" })).await.ok();
        patch(
            &app,
            &bob,
            json!({ "loginName": "Bob@acme.test", "email": "bob@acme.test" }),
        )
        .await
        .ok();
        create(
            &app,
            json!({ "loginName": "carl", "email": ADA, "directoryId": "other" }),
        )
        .await
        .ok();
        create(
            &app,
            json!({ "loginName": "ada.l@acme.test", "directoryId": "other" }),
        )
        .await
        .ok();
        patch(&app, &ada, json!({ "email": null })).await.ok();
        patch(&app, &bob, json!({ "email": "ada.l@acme.test" }))
            .await
            .ok();
        patch(&app, &ada, json!({ "email": "ada.l@acme.test" }))
            .await
            .refused(409, taken);
        app.delete(&format!("/directory/users/{bob}")).await.ok();
        patch(&app, &ada, json!({ "email": "ada.l@acme.test" }))
            .await
            .ok();
        // Who comes back is judged like everybody.
        create(
            &app,
            json!({ "loginName": "bob@acme.test", "email": "ada.l@acme.test" }),
        )
        .await
        .refused(409, taken);
        let back = make(&app, json!({ "loginName": "bob@acme.test" })).await;
        assert_eq!(back, bob);
    });
}

/// Proves DI-14.
#[test]
fn a_word_that_an_open_import_gives_away_is_taken_and_one_that_it_frees_is_not_free_yet() {
    each("clash_open", |app: Arc<App>| async move {
        let taken = "already_exists";
        let ada = make(&app, json!({ "loginName": "ada", "email": "a@acme.test" })).await;
        let carl = make(&app, json!({ "loginName": "carl" })).await;
        app.advance(1);
        let id = import(&app, how("merge")).await;
        let file = [
            line("ada", Some("new@acme.test")),
            line("bob", Some("b@acme.test")),
        ];
        let text: Vec<String> = file.iter().map(Value::to_string).collect();
        chunk(&app, &id, 1, &text.join("\n")).await.ok();
        for word in ["a@acme.test", "new@acme.test", "b@acme.test", "bob"] {
            patch(&app, &carl, json!({ "email": word }))
                .await
                .refused(409, taken);
        }
        create(&app, json!({ "loginName": "b@acme.test" }))
            .await
            .refused(409, taken);
        // What both versions have stays as it is.
        patch(&app, &ada, json!({ "displayName": "Ada" })).await.ok();
        // A name that is merely staged becomes the new user, with no clash with itself.
        create(&app, json!({ "loginName": "bob", "email": "b@acme.test" }))
            .await
            .ok();
        let applied = end(&app, &id, "apply").await.ok()["import"].clone();
        assert_eq!(applied["counts"]["warnings"], 0);
        run_jobs(&app).await;
        assert_eq!(address(&app, "ada").await, "new@acme.test");
        patch(&app, &carl, json!({ "email": "a@acme.test" })).await.ok();
    });
}

/// Proves DI-15.
#[test]
fn a_line_is_taken_without_an_address_that_another_user_has() {
    each("clash_line", |app: Arc<App>| async move {
        make(&app, json!({ "loginName": ADA, "email": "ada.l@acme.test" })).await;
        make(
            &app,
            json!({ "loginName": "bob", "email": "b@acme.test", "displayName": "Bob" }),
        )
        .await;
        let file = [
            line("new-1", Some("Ada.L@acme.test")),
            line("new-2", Some(ADA)),
            json!({ "type": "user", "loginName": "bob", "email": ADA, "displayName": "Bobby" }),
            line("new-3", Some("free@acme.test")),
        ];
        // Twice: what was left out once is left out again.
        for round in 0..2 {
            let (import, warned) = imports(&app, "merge", &file).await;
            assert_eq!(warned, of_email(&[1, 2, 3]), "{round}");
            assert_eq!(import["counts"]["refused"], 0);
            let users = &import["counts"]["users"];
            let expected = if round == 0 { (3, 1, 0) } else { (0, 0, 4) };
            let counts = (&users["created"], &users["updated"], &users["unchanged"]);
            assert_eq!(
                counts,
                (&json!(expected.0), &json!(expected.1), &json!(expected.2))
            );
            assert_eq!(address(&app, ADA).await, "ada.l@acme.test");
            for (name, expected) in [
                ("new-1", ""),
                ("new-2", ""),
                ("bob", "b@acme.test"),
                ("new-3", "free@acme.test"),
            ] {
                assert_eq!(address(&app, name).await, expected, "{name}");
            }
        }
        let shown = app.get("/directory/users?loginName=bob").await.ok()["users"][0].clone();
        assert_eq!(shown["displayName"], "Bobby", "the rest of the line is taken");
        // Another directory's users are other people.
        let other = json!({ "format": "jsonl", "mode": "merge", "directoryId": "other" });
        let id = import(&app, other).await;
        chunk(&app, &id, 1, &line("x", Some(ADA)).to_string()).await.ok();
        let applied = end(&app, &id, "apply").await.ok()["import"].clone();
        assert_eq!(applied["counts"]["warnings"], 0);
    });
}

/// Proves DI-15.
#[test]
fn an_address_moves_from_one_user_to_another_within_a_file() {
    each("clash_moves", |app: Arc<App>| async move {
        for mode in ["merge", "replace"] {
            for is_reversed in [false, true] {
                let start = [
                    line("ada", Some("a@acme.test")),
                    line("bob", Some("b@acme.test")),
                    line("carl", None),
                ];
                imports(&app, "replace", &start).await;
                // Two swap theirs, and one that is given up goes to a third.
                for (ada, bob, carl) in [
                    (json!("b@acme.test"), json!("a@acme.test"), Value::Null),
                    (json!("c@acme.test"), json!(null), json!("a@acme.test")),
                ] {
                    let mut file: Vec<Value> = [("ada", &ada), ("bob", &bob), ("carl", &carl)]
                        .map(|(name, email)| json!({ "type": "user", "loginName": name, "email": email }))
                        .into();
                    if is_reversed {
                        file.reverse();
                    }
                    let (_, warned) = imports(&app, mode, &file).await;
                    assert_eq!(warned, [], "{mode} {is_reversed}");
                    for (name, email) in [("ada", ada), ("bob", bob), ("carl", carl)] {
                        assert_eq!(
                            address(&app, name).await,
                            email.as_str().unwrap_or_default(),
                            "{name}"
                        );
                    }
                }
            }
        }
        // In mode replace, also from one whom the file does not name; in mode merge that one keeps it.
        let start = [line("ada", Some("a@acme.test")), line("a2@acme.test", None)];
        for (mode, has, warned) in [("merge", "", vec![1, 2]), ("replace", "a@acme.test", vec![])] {
            imports(&app, "replace", &start).await;
            let file = [
                line("bob", Some("a@acme.test")),
                line("carl", Some("a2@acme.test")),
            ];
            assert_eq!(imports(&app, mode, &file).await.1, of_email(&warned), "{mode}");
            assert_eq!(address(&app, "bob").await, has, "{mode}");
        }
        assert_eq!(address(&app, "carl").await, "a2@acme.test");
    });
}

/// Proves DI-15.
#[test]
fn who_had_an_address_keeps_it_and_of_two_new_ones_neither_gets_it() {
    each("clash_both", |app: Arc<App>| async move {
        let (had, new) = ("had@acme.test", "new@acme.test");
        for is_reversed in [false, true] {
            imports(&app, "replace", &[line("ada", Some(had))]).await;
            let mut file = vec![
                line("ada", Some(had)),
                line("bob", Some("HAD@acme.test")),
                line("carl", Some(new)),
                line("dora", Some("New@acme.test")),
                // A login name that a line brings is stronger than an address.
                line("eve@acme.test", None),
                line("fred", Some("eve@acme.test")),
            ];
            if is_reversed {
                file.reverse();
            }
            let (_, warned) = imports(&app, "merge", &file).await;
            let expected = if is_reversed { [1, 3, 4, 5] } else { [2, 3, 4, 6] };
            assert_eq!(warned, of_email(&expected), "{is_reversed}");
            assert_eq!(address(&app, "ada").await, had);
            for name in ["bob", "carl", "dora", "eve@acme.test", "fred"] {
                assert_eq!(address(&app, name).await, "", "{name} {is_reversed}");
            }
        }
    });
}

/// Proves DI-15.
#[test]
fn an_address_that_somebody_keeps_is_not_given_to_the_next_one() {
    each("clash_chain", |app: Arc<App>| async move {
        let word = |n: usize| format!("u{n}@acme.test");
        let start: Vec<Value> = (0..5).map(|n| line(&format!("u{n}"), Some(&word(n)))).collect();
        imports(&app, "replace", &start).await;
        // Each gets the next one's, and the last one keeps hers: nobody moves.
        let moved: Vec<Value> = (0..4)
            .map(|n| line(&format!("u{n}"), Some(&word(n + 1))))
            .collect();
        let (import, warned) = imports(&app, "merge", &moved).await;
        assert_eq!(warned, of_email(&[1, 2, 3, 4]));
        assert_eq!(import["counts"]["users"]["unchanged"], 4);
        for n in 0..5 {
            assert_eq!(address(&app, &format!("u{n}")).await, word(n));
        }
        assert_eq!(stored(&app).await[0], 0, "nothing is noted any more");
    });
}

#[test]
fn a_file_that_renames_somebody_to_anothers_address_makes_the_word_mean_both_and_says_so() {
    each("clash_rename", |app: Arc<App>| async move {
        make(
            &app,
            json!({ "loginName": "ada", "email": ADA, "externalId": "1" }),
        )
        .await;
        make(&app, json!({ "loginName": "bob", "externalId": "2" })).await;
        let file = [
            json!({ "type": "user", "loginName": ADA, "externalId": "2" }),
            json!({ "type": "user", "loginName": "ada", "externalId": "1", "email": ADA }),
        ];
        let (_, warned) = imports(&app, "merge", &file).await;
        assert_eq!(warned, [(1, "/loginName".to_owned())]);
        assert_eq!(address(&app, "ada").await, ADA, "what exists stays");
        // It is said once: what was so before the file is no news of it.
        assert_eq!(imports(&app, "merge", &file).await.1, []);
        // Where the one gives the address up in the same file, nothing is left to say.
        let (_, warned) = imports(
            &app,
            "merge",
            &[
                json!({ "type": "user", "loginName": "bob", "externalId": "2" }),
                json!({ "type": "user", "loginName": "ada", "externalId": "1", "email": "bob" }),
            ],
        )
        .await;
        assert_eq!(warned, of_email(&[2]));
        let freed = [
            json!({ "type": "user", "loginName": ADA, "externalId": "2" }),
            json!({ "type": "user", "loginName": "ada", "externalId": "1", "email": null }),
        ];
        assert_eq!(imports(&app, "merge", &freed).await.1, []);
    });
}

#[test]
fn what_an_import_leaves_out_it_forgets_when_it_is_aborted() {
    each("clash_abort", |app: Arc<App>| async move {
        make(&app, json!({ "loginName": ADA })).await;
        make(&app, json!({ "loginName": "bob", "email": "b@acme.test" })).await;
        let id = import(&app, how("merge")).await;
        chunk(&app, &id, 1, &line("bob", Some(ADA)).to_string())
            .await
            .ok();
        end(&app, &id, "abort").await.ok();
        run_jobs(&app).await;
        assert_eq!(warnings(&app, &id).await, []);
        assert_eq!(address(&app, "bob").await, "b@acme.test");
        assert_eq!(stored(&app).await, [0, 1, 0]);
    });
}

/// Proves DI-15.
#[test]
fn a_file_with_many_clashes_is_judged_in_many_units() {
    each("clash_many", |app: Arc<App>| async move {
        let part = |from: usize, email: &dyn Fn(usize) -> String| -> String {
            let lines = (from..from + 500).map(|n| line(&format!("u{n}"), Some(&email(n))).to_string());
            lines.collect::<Vec<_>>().join("\n")
        };
        let id = import(&app, how("merge")).await;
        // Pairs of lines with one address.
        for at in 0..3 {
            let text = part(at * 500, &|n| format!("p{}@acme.test", n / 2));
            chunk(&app, &id, at + 1, &text).await.ok();
        }
        let applying = end(&app, &id, "apply").await.ok()["import"].clone();
        assert_eq!(applying["state"], "applying");
        assert_eq!(app.get("/directory/users").await.ok()["users"], json!([]));
        run_jobs(&app).await;
        let done = app.get(&format!("/directory/imports/{id}")).await.ok()["import"].clone();
        assert_eq!(
            (&done["state"], &done["counts"]["warnings"]),
            (&json!("applied"), &json!(1_500))
        );
        assert_eq!(stored(&app).await, [0, 0, 1_000]);
    });
}

/// Proves DI-14.
#[test]
fn a_held_change_is_made_only_where_its_words_are_free() {
    each("clash_held", |app: Arc<App>| async move {
        let narrow = narrow(&app).await;
        let admin =
            |name: &str, email: &str| json!({ "loginName": name, "email": email, "permissionRole": "admin" });
        make(&app, admin("ada", "a@acme.test")).await;
        make(&app, admin("bob", "b@acme.test")).await;
        make(&app, json!({ "loginName": "carl", "email": "c@acme.test" })).await;
        let waiting = || async {
            let page = app.get("/directory/held-changes").await;
            page.ok()["heldChanges"].as_array().unwrap().clone()
        };
        // A held line is not judged: it changes nothing. One that wants what a held one would give up goes without.
        let file = [line("ada", Some("c@acme.test")), line("new", Some("a@acme.test"))];
        let (import, warned) = imports(&narrow, "merge", &file).await;
        assert_eq!(import["counts"]["held"], 1);
        assert_eq!(warned, of_email(&[2]));
        let held = waiting().await;
        settle(&app, &[&held[0]]).await.refused(409, "already_exists");
        assert_eq!(address(&app, "ada").await, "a@acme.test");
        assert_eq!(waiting().await, held, "all or nothing");

        // Two that swap their addresses are made together, and neither alone.
        let swap = [line("ada", Some("b@acme.test")), line("bob", Some("a@acme.test"))];
        imports(&narrow, "merge", &swap).await;
        let held = waiting().await;
        assert_eq!(held.len(), 2);
        settle(&app, &[&held[0]]).await.refused(409, "already_exists");
        settle(&app, &[&held[0], &held[1]]).await.ok();
        assert_eq!(address(&app, "ada").await, "b@acme.test");
        assert_eq!(address(&app, "bob").await, "a@acme.test");
        // Two that want one address are refused both.
        let both = [line("ada", Some("x@acme.test")), line("bob", Some("X@acme.test"))];
        imports(&narrow, "merge", &both).await;
        let held = waiting().await;
        settle(&app, &[&held[0], &held[1]])
            .await
            .refused(409, "already_exists");
        settle(&app, &[&held[0]]).await.ok();
    });
}
