//! Violations: what was stopped, in lists and in counts, and what its subjects say of it (invariants VI-1 to VI-5).

use crate::access::oauth::{token, trusting, user, workshop};
use crate::policy::decisions::{ask, call, content, decide_one, policy};
use crate::policy::history::import;
use crate::support::{App, Reply, each};
use provost_areas_policy::violations::count_days;
use provost_kernel::params;
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

provost_kernel::statements! {
    /// Has the chunks of an organization be gone.
    LOSE = "DELETE FROM history_chunks WHERE organization_id = ?1";
    /// How many days are counted, and of how many decisions something was said.
    KEPT = unscoped("a test") "SELECT (SELECT COUNT(*) FROM violation_days), (SELECT COUNT(*) FROM violation_feedback) + (SELECT COUNT(*) FROM violation_feedback_policies)";
}

pub const PATH: &str = "/policies/violations";
pub const ACTIONS: [&str; 6] = [
    "block",
    "require_approval",
    "redact",
    "filter",
    "flag_for_review",
    "nudge",
];

/// One policy for each action, which is called like it and decides about a tool of that name.
pub async fn policies(app: &App) {
    for action in ACTIONS {
        let change = json!({ "conditions": { "field": "tool.id", "op": "eq", "value": action } });
        policy(app, Family::Content, content(action, action, &change)).await;
    }
}

pub async fn listed(app: &App, query: &str) -> Vec<Value> {
    let page = app.get(&format!("{PATH}?limit=100{query}")).await.ok().clone();
    assert!(
        page.get("groups").is_none() && page["scannedTo"].is_string(),
        "{page}"
    );
    page["violations"].as_array().unwrap().clone()
}

pub async fn grouped(app: &App, query: &str) -> Value {
    let page = app
        .get(&format!("{PATH}?limit=100&groupBy={query}"))
        .await
        .ok()
        .clone();
    assert_eq!(page["violations"], json!([]));
    page
}

pub async fn count(app: &App) {
    count_days(&app.kernel).await.unwrap();
}

pub async fn say(app: &App, token: &str, event: &str, text: &str) -> Reply {
    app.request("POST", &format!("{PATH}/{event}/feedback"))
        .token(token)
        .json(json!({ "text": text }))
        .send()
        .await
}

pub fn id_of(decision: &Value) -> String {
    decision["eventId"].as_str().unwrap().to_owned()
}

/// Proves VI-1.
#[test]
fn what_does_not_simply_allow_is_listed_with_what_became_of_it() {
    each("violations_list", |app: Arc<App>| async move {
        policies(&app).await;
        let outcomes = ["blocked", "asked", "redacted", "redacted", "flagged", "flagged"];
        for action in ACTIONS {
            let decided = decide_one(&app, &json!({ "tool.id": action, "device.id": "laptop-1" })).await;
            assert_eq!(decided["action"], action);
        }
        assert_eq!(
            decide_one(&app, &json!({ "tool.id": "Read" })).await["action"],
            "allow"
        );
        let reported = json!({ "events": [call(&json!({ "tool.id": "block" }))], "mode": "monitor" });
        ask(&app, reported).await.ok();
        let all = listed(&app, "").await;
        assert_eq!(all.len(), 7);
        assert_eq!(
            (&all[0]["outcome"], &all[0]["mode"], &all[0]["action"]),
            (&json!("monitored"), &json!("monitor"), &json!("block"))
        );
        for (violation, (action, outcome)) in all[1..].iter().rev().zip(ACTIONS.iter().zip(outcomes)) {
            assert_eq!(violation["action"], *action);
            assert_eq!(violation["outcome"], outcome);
            assert_eq!(violation["policyIds"], json!([action]));
            assert_eq!(
                (&violation["tool"], &violation["deviceId"], &violation["source"]),
                (&json!(action), &json!("laptop-1"), &json!("decisions"))
            );
            assert_eq!(violation["imported"], false);
            assert!(violation.get("attributes").is_none());
        }
        app.kernel.stop().await;
    });
}

/// A violation of each action, one that was only reported, and one that was imported.
async fn one_of_each(app: &App) {
    policies(app).await;
    for action in ACTIONS {
        decide_one(app, &json!({ "tool.id": action, "device.id": "laptop-1" })).await;
    }
    decide_one(app, &json!({ "tool.id": "Read" })).await;
    let reported = json!({ "events": [call(&json!({ "tool.id": "block" }))], "mode": "monitor" });
    ask(app, reported).await.ok();
    // Of an import the answer says that it was imported, and what allows is none.
    let at = app.now().to_rfc3339();
    let line = |tool: &str, action: &str| {
        let decision = json!({ "action": action, "policyIds": ["theirs"] });
        json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": tool }, "decision": decision })
            .to_string()
    };
    let body = [line("x", "block"), line("y", "allow")].join("\n");
    import(app, "elsewhere", body).await.ok();
}

/// Proves VI-1, VI-3.
#[test]
fn a_list_is_narrowed_exactly_and_the_numbers_say_the_same() {
    each("violations_filters", |app: Arc<App>| async move {
        one_of_each(&app).await;
        for (query, number) in [
            ("&action=block", 3),
            ("&outcome=blocked", 2),
            ("&outcome=monitored", 1),
            ("&outcome=redacted", 2),
            ("&outcome=redacted&action=filter", 1),
            ("&outcome=approved", 0),
            ("&action=allow", 0),
            ("&mode=enforce", 7),
            ("&mode=monitor&action=block", 1),
            ("&mode=monitor&action=nudge", 0),
            ("&policyId=block", 2),
            ("&policyId=theirs", 1),
            ("&tool=nudge", 1),
            ("&deviceId=laptop-1", 6),
            ("&source=elsewhere", 1),
            ("&source=decisions", 7),
            ("&tool=Read", 0),
            ("&tool=y", 0),
            ("", 8),
        ] {
            assert_eq!(listed(&app, query).await.len(), number, "{query}");
        }
        // The numbers say the same as the list.
        count(&app).await;
        for query in [
            "&outcome=blocked",
            "&outcome=asked",
            "&outcome=approved",
            "&outcome=redacted",
            "&outcome=flagged",
            "&outcome=monitored",
            "&action=filter",
            "&action=block",
            "&mode=monitor",
            "&mode=enforce",
            "&source=elsewhere",
            "&tool=block",
            "",
        ] {
            let groups = grouped(&app, &format!("tool{query}")).await["groups"].clone();
            let groups = groups.as_array().unwrap().iter();
            let sum: i64 = groups.map(|group| group["events"].as_i64().unwrap()).sum();
            let there = i64::try_from(listed(&app, query).await.len()).unwrap();
            assert_eq!(sum, there, "{query}");
        }
        let theirs = &listed(&app, "&source=elsewhere").await[0];
        assert_eq!(theirs["imported"], true);
        assert!(theirs.get("policySetVersionId").is_none());
        // What no decision says is no question, and what never fits is said.
        for wrong in [
            "action=pass",
            "outcome=failed",
            "outcome=allowed",
            "mode=off",
            "groupBy=device",
        ] {
            let reply = app.get(&format!("{PATH}?{wrong}")).await;
            reply.refused(400, "invalid_request");
        }
        for unfit in ["outcome=blocked&mode=monitor", "outcome=asked&action=block"] {
            let reply = app.get(&format!("{PATH}?{unfit}")).await;
            reply.refused(422, "invalid_definition");
        }
        for unknown in ["serverId=srv_1", "occasion=pre_tool"] {
            let reply = app.get(&format!("{PATH}?{unknown}")).await;
            reply.refused(400, "unknown_parameter");
        }
        // Pages hold each once.
        let first = app.get(&format!("{PATH}?limit=5")).await.ok().clone();
        let cursor = first["nextCursor"].as_str().unwrap();
        let second = app
            .get(&format!("{PATH}?limit=5&cursor={cursor}"))
            .await
            .ok()
            .clone();
        let both = [&first, &second].map(|page| page["violations"].as_array().unwrap().clone());
        assert_eq!(both.concat(), listed(&app, "").await);
        app.kernel.stop().await;
    });
}

/// Proves VI-2, VI-3.
#[test]
fn counts_are_of_every_violation_once_and_say_what_they_lack() {
    each("violations_counts", |app: Arc<App>| async move {
        policies(&app).await;
        let ann = user(&app, "ann@acme.example", None).await;
        let attributes = |tool: &str| json!({ "tool.id": tool, "identity.user_id": ann });
        for tool in ["block", "block", "nudge", "Read"] {
            decide_one(&app, &attributes(tool)).await;
        }
        decide_one(&app, &json!({ "tool.id": "block" })).await;
        let before = grouped(&app, "policy").await;
        assert_eq!(
            (&before["groups"], &before["counts"]["groups"]),
            (&json!([]), &json!(0))
        );
        assert!(before["counts"].get("countedSince").is_none());
        // Two servers at once count as one, and a second round counts nothing.
        let (one, other) = tokio::join!(count_days(&app.kernel), count_days(&app.kernel));
        assert!(one.is_ok() && other.is_ok());
        count(&app).await;
        let none = json!({ "blocked": 0, "approved": 0, "asked": 0, "redacted": 0, "flagged": 0, "monitored": 0, "bypassed": 0 });
        let with = |outcome: &str, events: i64| {
            let mut outcomes = none.clone();
            outcomes[outcome] = json!(events);
            outcomes
        };
        let by_policy = grouped(&app, "policy").await;
        assert_eq!(
            by_policy["groups"],
            json!([
                { "policyId": "block", "events": 3, "outcomes": with("blocked", 3), "feedback": 0 },
                { "policyId": "nudge", "events": 1, "outcomes": with("flagged", 1), "feedback": 0 },
            ])
        );
        let counts = &by_policy["counts"];
        assert_eq!(
            (
                &counts["groups"],
                &counts["unnamedEvents"],
                &counts["uncountedChunks"],
                &counts["countedSince"]
            ),
            (
                &json!(2),
                &json!(0),
                &json!(0),
                &json!("2026-11-20T00:00:00.000Z")
            )
        );
        let by_subject = grouped(&app, "subject").await["groups"].clone();
        assert_eq!(by_subject[0]["subject"]["id"], ann);
        assert!(by_subject[0]["subject"]["name"].is_string());
        assert_eq!(
            (
                &by_subject[0]["events"],
                &by_subject[1]["events"],
                by_subject[1].get("subject")
            ),
            (&json!(3), &json!(1), None)
        );
        // Who has none has a name all the same, and nobody else has it.
        assert_eq!(
            (by_subject[0].get("rest"), &by_subject[1]["rest"]),
            (None, &json!("no_subject"))
        );
        let by_tool = grouped(&app, "tool&outcome=flagged").await["groups"].clone();
        assert_eq!(
            by_tool,
            json!([{ "tool": "nudge", "events": 1, "outcomes": with("flagged", 1) }])
        );
        app.advance(86_400);
        decide_one(&app, &attributes("block")).await;
        count(&app).await;
        let days = |number: i64, day: &str| json!({ "day": day, "events": number, "outcomes": with("blocked", number) });
        assert_eq!(
            grouped(&app, "day&policyId=block").await["groups"],
            json!([
                days(1, "2026-11-21T00:00:00.000Z"),
                days(3, "2026-11-20T00:00:00.000Z")
            ])
        );
        assert_eq!(
            grouped(&app, "policy&from=2026-11-21T00:00:00Z&to=2026-11-22T00:00:00Z").await["counts"]["groups"],
            1
        );
        assert_eq!(
            grouped(&app, "policy&source=elsewhere").await["groups"],
            json!([])
        );
        // A user who is deleted has no name any more, in lists and in groups.
        app.delete(&format!("/directory/users/{ann}")).await;
        let gone = json!({ "id": ann, "deleted": true });
        assert_eq!(grouped(&app, "subject").await["groups"][0]["subject"], gone);
        let one = &listed(&app, "&tool=nudge").await[0]["subject"];
        assert_eq!(one, &json!({ "kind": "user", "id": ann, "deleted": true }));
        app.kernel.stop().await;
    });
}

/// Proves VI-3.
#[test]
fn what_the_numbers_cannot_answer_is_refused_and_not_guessed() {
    each("violations_unanswered", |app: Arc<App>| async move {
        for wrong in [
            "policy&tool=block",
            "tool&subjectId=x",
            "subject&policyId=block",
            "day&policyId=block&tool=block",
            "day&deviceId=laptop-1",
            "policy&from=2026-11-21T01:00:00Z",
            "policy&to=2026-11-21T00:00:00.001Z",
            "policy&from=2026-11-21T00:00:00Z&to=2026-11-21T00:00:00Z",
            "policy&from=2026-01-01T00:00:00Z",
            "policy&source=device:dev_1",
        ] {
            let reply = app.get(&format!("{PATH}?groupBy={wrong}")).await;
            reply.refused(422, "invalid_definition");
        }
        // What all devices told is counted together, and one device's is listed.
        app.get(&format!("{PATH}?groupBy=policy&source=device"))
            .await
            .ok();
        app.get(&format!("{PATH}?source=device:dev_1")).await.ok();
        app.kernel.stop().await;
    });
}

/// Proves VI-2.
#[test]
fn what_is_gone_before_it_was_counted_is_said() {
    each("violations_gone", |app: Arc<App>| async move {
        policies(&app).await;
        decide_one(&app, &json!({ "tool.id": "block" })).await;
        count(&app).await;
        decide_one(&app, &json!({ "tool.id": "block" })).await;
        let lose = |ctx: &mut provost_kernel::OperationContext<'_>| {
            let org = ctx.org();
            ctx.execute(&LOSE, params![org]).map(drop)
        };
        app.kernel.system(app.org(), None, lose).await.unwrap();
        decide_one(&app, &json!({ "tool.id": "nudge" })).await;
        count(&app).await;
        let after = grouped(&app, "policy").await;
        assert_eq!(after["counts"]["uncountedChunks"], 1);
        assert_eq!(
            (&after["groups"][0]["events"], &after["groups"][1]["events"]),
            (&json!(1), &json!(1))
        );
        app.kernel.stop().await;
    });
}

/// Proves VI-2.
#[test]
fn a_day_names_so_many_and_the_rest_is_a_number() {
    each("violations_names", |app: Arc<App>| async move {
        let at = app.now().to_rfc3339();
        for part in ["a", "b"] {
            let line = |number: usize| {
                json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": format!("{part}{number}") },
                    "decision": { "action": "block", "policyIds": ["one"] } })
                .to_string()
            };
            let lines: Vec<String> = (0..1_200).map(line).collect();
            import(&app, "elsewhere", lines.join("\n")).await.ok();
            count(&app).await;
        }
        let tools = grouped(&app, "tool").await["counts"].clone();
        let (named, unnamed) = (&tools["groups"], &tools["unnamedEvents"]);
        assert!(named.as_i64().unwrap() <= 1_000, "{tools}");
        assert_eq!(
            named.as_i64().unwrap() + unnamed.as_i64().unwrap(),
            2_400,
            "{tools}"
        );
        let one = &grouped(&app, "policy").await["groups"];
        assert_eq!(
            (&one[0]["policyId"], &one[0]["events"]),
            (&json!("one"), &json!(2_400))
        );
        assert_eq!(grouped(&app, "day").await["groups"][0]["events"], 2_400);
        app.kernel.stop().await;
    });
}

/// Proves VI-6.
#[test]
fn whoever_was_stopped_finds_their_own_decisions_and_nobody_elses() {
    each("violations_own", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, "ann@acme.example", Some("member")).await;
        let bob = user(&app, "bob@acme.example", Some("viewer")).await;
        let of = |scope: &'static str| token(&workshop, |claims| claims["scope"] = scope.into());
        let (may, may_not) = (of("policies:feedback"), of("policies:read"));
        let (account, secret) = app.account("robot", "viewer", &["policies:feedback"]).await;
        policies(&app).await;
        let decided = async |tool: &str, whose: Value| {
            let mut attributes = json!({ "tool.id": tool, "tool.input": { "command": "a secret of hers" } });
            for (name, value) in whose.as_object().unwrap() {
                attributes[name] = value.clone();
            }
            id_of(&decide_one(&app, &attributes).await)
        };
        let own = async |token: &str, query: &str| {
            let path = format!("{PATH}/own{query}");
            app.request("GET", &path).token(token).send().await
        };
        let blocked = decided("block", json!({ "identity.user_id": ann })).await;
        decided("Read", json!({ "identity.user_id": ann })).await;
        decided("block", json!({})).await;
        decided("block", json!({ "identity.user_id": bob })).await;
        let robots = decided("block", json!({ "identity.service_account_id": account })).await;
        // What only marks a call, or is looked at alone, tells nobody which policies watch them.
        decided("nudge", json!({ "identity.user_id": ann })).await;
        let watched = json!({ "events": [call(&json!({ "tool.id": "block", "identity.user_id": ann }))], "mode": "monitor" });
        ask(&app, watched).await.ok();
        let redacted = decided("redact", json!({ "identity.user_id": "Ann@acme.example" })).await;
        let page = own(&may, "").await.ok().clone();
        let ids: Vec<&Value> = page["violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["eventId"])
            .collect();
        assert_eq!(
            (ids, &page["incomplete"]),
            (vec![&json!(redacted), &json!(blocked)], &json!(false))
        );
        let one = &page["violations"][1];
        assert_eq!(
            (&one["outcome"], &one["tool"], &one["policyIds"], &one["imported"]),
            (
                &json!("blocked"),
                &json!("block"),
                &json!(["block"]),
                &json!(false)
            )
        );
        assert!(!page.to_string().contains("secret") && !page.to_string().contains(&ann));
        let robot = own(&secret, "").await.ok().clone();
        assert_eq!(robot["violations"].as_array().unwrap().len(), 1);
        assert_eq!(robot["violations"][0]["eventId"], robots);
        own(&may_not, "").await.refused(403, "insufficient_scope");
        // Somebody else's cursor is a place, and leads to one's own alone.
        let first = own(&may, "?limit=1").await.ok().clone();
        let next = first["nextCursor"].as_str().unwrap();
        let rest = own(&may, &format!("?limit=5&cursor={next}")).await.ok().clone();
        assert_eq!(rest["violations"][0]["eventId"], blocked);
        let theirs = own(&secret, &format!("?limit=5&cursor={next}"))
            .await
            .ok()
            .clone();
        let theirs = theirs["violations"].as_array().unwrap();
        assert!(theirs.iter().all(|one| one["eventId"] == robots));
        // Nobody narrows it to somebody else.
        own(&may, &format!("?subjectId={bob}"))
            .await
            .refused(400, "unknown_parameter");
        own(&may, "?from=2026-11-21T00:00:00Z&to=2026-11-20T00:00:00Z")
            .await
            .refused(422, "invalid_definition");
        say(&app, &may, &blocked, "it was ours").await.ok();
        app.kernel.stop().await;
    });
}

/// Proves VI-4.
#[test]
fn the_subject_alone_says_something_of_a_decision_and_once() {
    each("violations_feedback", |app: Arc<App>| async move {
        let workshop = workshop(&app);
        let app = trusting(&app, &workshop);
        let ann = user(&app, "ann@acme.example", Some("viewer")).await;
        let of = |scope: &'static str| token(&workshop, |claims| claims["scope"] = scope.into());
        let (may, may_not) = (of("policies:feedback"), of("policies:read"));
        policies(&app).await;
        let decided = async |tool: &str, whose: Value| {
            let mut attributes = json!({ "tool.id": tool });
            for (name, value) in whose.as_object().unwrap() {
                attributes[name] = value.clone();
            }
            id_of(&decide_one(&app, &attributes).await)
        };
        let own = decided("block", json!({ "identity.user_id": ann })).await;
        let allowed = decided("Read", json!({ "identity.user_id": ann })).await;
        let nobodys = decided("block", json!({})).await;
        let anothers = decided("block", json!({ "identity.user_id": "bob" })).await;
        let (account, secret) = app.account("robot", "viewer", &["policies:feedback"]).await;
        let robots = decided("block", json!({ "identity.service_account_id": account })).await;
        let text = "this is our own build folder";
        say(&app, &may_not, &own, text)
            .await
            .refused(403, "insufficient_scope");
        for foreign in [
            &allowed,
            &nobodys,
            &anothers,
            &robots,
            &"hev_01kadh5j9v0000000000000000".to_owned(),
        ] {
            say(&app, &may, foreign, text).await.refused(404, "not_found");
        }
        say(&app, &secret, &own, text).await.refused(404, "not_found");
        let given = say(&app, &may, &own, text).await.ok().clone();
        assert_eq!(
            (&given["eventId"], &given["feedback"]["text"]),
            (&json!(own), &json!(text))
        );
        app.advance(5);
        assert_eq!(say(&app, &may, &own, text).await.ok(), &given);
        say(&app, &may, &own, "no, it was right")
            .await
            .refused(409, "conflict");
        say(&app, &secret, &robots, "a test of ours").await.ok();
        for wrong in [String::new(), "a\nb".to_owned(), "x".repeat(501)] {
            say(&app, &may, &own, &wrong)
                .await
                .refused(400, "invalid_request");
        }
        // What somebody imported about somebody is nobody's decision here.
        let at = app.now().to_rfc3339();
        let decision = json!({ "action": "block", "policyIds": ["block"] });
        let line = json!({ "at": at, "occasion": "pre_tool", "attributes": { "tool.id": "z", "identity.user_id": ann },
            "decision": decision });
        import(&app, "elsewhere", line.to_string()).await.ok();
        let imported = listed(&app, "&source=elsewhere").await[0].clone();
        say(&app, &may, &id_of(&imported), text)
            .await
            .refused(409, "conflict");
        // The policy has a number, the decision has the words, and the log has neither.
        count(&app).await;
        assert_eq!(grouped(&app, "policy").await["groups"][0]["feedback"], 2);
        let whole = app.get(&format!("{PATH}/{own}")).await.ok().clone();
        assert_eq!(whole["feedback"], given["feedback"]);
        assert_eq!(whole["attributes"]["tool.id"], "block");
        let entries = app.entries(&app.organization, 0).await;
        let said = |entry: &&Value| entry["action"] == "policy.violation.feedback_given";
        let said: Vec<&Value> = entries.iter().filter(said).collect();
        assert_eq!(said.len(), 2);
        assert_eq!(
            (&said[0]["actor"]["id"], &said[0]["target"]["id"]),
            (&json!(ann), &json!(own))
        );
        assert!(entries.iter().all(|entry| !entry.to_string().contains(text)));
        // It goes with the history, and counts go after a quarter.
        app.advance(401 * 86_400);
        count(&app).await;
        let kept = app.kernel.read_system(|tx| {
            tx.query(&KEPT, params![], |row| {
                Ok((row.get::<i64>(0)?, row.get::<i64>(1)?))
            })
        });
        assert_eq!(kept.await.unwrap(), [(0, 0)]);
        app.kernel.stop().await;
    });
}

/// Proves VI-5.
#[test]
fn whoever_may_read_policies_alone_reads_nothing_of_what_people_did() {
    each("violations_rights", |app: Arc<App>| async move {
        policies(&app).await;
        let event = id_of(&decide_one(&app, &json!({ "tool.id": "block", "tool.input": "a secret" })).await);
        let one = format!("{PATH}/{event}");
        let both: &[&str] = &["policies:read", "policies:history"];
        for (role, scopes, list, whole) in [
            ("admin", &both[..1], "insufficient_scope", "insufficient_scope"),
            ("admin", &both[1..], "insufficient_scope", "insufficient_scope"),
            ("admin", both, "", ""),
            ("auditor", both, "", ""),
            ("operator", both, "", "role_forbidden"),
        ] {
            let name = format!("{role} {}", scopes.join(" "));
            let (_, token) = app.account(&name, role, scopes).await;
            for (path, code) in [(PATH, list), (one.as_str(), whole)] {
                let reply = app.request("GET", path).token(&token).send().await;
                assert_eq!(reply.code(), code, "{name} {path}: {}", reply.text());
            }
        }
        let (_, viewer) = app.account("viewer", "viewer", &[]).await;
        for path in [PATH, "/policies/violations?groupBy=policy", one.as_str()] {
            let reply = app.request("GET", path).token(&viewer).send().await;
            assert_eq!(reply.status.as_u16(), 403, "{path}");
        }
        // Each look at one is an entry, and no list shows what it holds.
        let list = app.get(PATH).await;
        assert!(!list.text().contains("a secret"));
        let whole = app.get(&one).await;
        assert!(whole.text().contains("a secret"));
        let looks = app.get("/audit/events?action=getHeadlessPolicyViolation").await;
        let looks = looks.ok()["events"].as_array().unwrap().clone();
        assert!(looks.iter().any(|look| look["target"]["id"] == json!(event)));
        // An event that is none is not found, as one that is not there.
        let allowed = id_of(&decide_one(&app, &json!({ "tool.id": "Read" })).await);
        app.get(&format!("{PATH}/{allowed}"))
            .await
            .refused(404, "not_found");
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        there.get(&one).await.refused(404, "not_found");
        assert!(listed(&there, "").await.is_empty());
        app.kernel.stop().await;
    });
}
