//! What was told is not taken for what was seen: imports say so, and who imported them (HS-10, HS-11, DE-10).

use super::{all_events, import, line, lines};
use crate::policy::backtests_worker::{Worker, ended};
use crate::policy::decisions::{call, content, decide_one, policy};
use crate::support::{App, each, fresh_key};
use provost_areas_policy::history;
use provost_policy::{Family, sha256_hex};
use serde_json::{Value, json};
use std::sync::Arc;

fn escaped(source: &str) -> String {
    let escaped = source.bytes().map(|byte| format!("%{byte:02x}"));
    escaped.collect()
}

/// Proves HS-10.
#[test]
fn no_import_has_a_name_of_the_servers_own_however_it_is_spelled() {
    each("import_reserved", |app: Arc<App>| async move {
        let body = line(&app, 1, 10).to_string();
        let reserved = [
            "decisions",
            "Decisions",
            "DECISIONS",
            "de\u{200b}cisions",
            "\u{feff}decisions",
            "deci\u{ad}sions",
            "deci\u{17f}ions",
            "otlp",
            "OTLP",
            "ot\u{2060}lp",
            "device",
            "devices",
            "device:laptop-7",
            "Device-1",
            "dev\u{200d}ice-1",
            "\u{200b}",
        ];
        for name in reserved {
            let reply = import(&app, &escaped(name), body.as_str()).await;
            // What is no name at all is refused before anybody compares it.
            assert!(
                [400, 422].contains(&reply.status.as_u16()),
                "{name:?}: {}",
                reply.text()
            );
            assert_eq!(reply.json["errors"][0]["path"], "/query/source", "{name:?}");
        }
        // Nothing was recorded, and the body is not known.
        assert!(all_events(&app, "").await.is_empty());
        for (number, name) in [
            "decision",
            "decisions-of-2025",
            "otlp-archive",
            "my-device",
            "dev",
        ]
        .into_iter()
        .enumerate()
        {
            let reply = import(&app, &escaped(name), body.as_str()).await;
            assert_eq!(reply.ok()["duplicate"], false);
            assert_eq!(all_events(&app, "").await.len(), number + 1);
        }
    });
}

/// Proves HS-10.
#[test]
fn an_event_says_who_handed_it_in_and_whether_it_was_imported() {
    each("import_says_so", |app: Arc<App>| async move {
        let (robot, token) = app.account("robot", "admin", &["policies:import_history"]).await;
        let (decider, ask) = app.account("decider", "operator", &["policies:decide"]).await;
        let body = lines(&app, 0, 3);
        let sent = app.request("POST", "/policies/history/import?source=laptops");
        let sent = sent.token(&token).content(super::NDJSON, body.into_bytes());
        sent.send().await.ok();
        let decision = app.request("POST", "/policies/decisions").token(&ask);
        let events = json!({ "events": [call(&json!({ "identity.user_id": "u", "tool.id": "tool-0" }))] });
        decision.json(events).send().await.ok();
        let at = (app.now().as_ms() * 1_000_000).to_string();
        let payload = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [
            { "eventName": "codex.tool_result", "timeUnixNano": at,
              "attributes": [{ "key": "tool_name", "value": { "stringValue": "tool-0" } }] },
        ] }] }] });
        let telemetry = app.request("POST", "/otlp/v1/logs").token(&ask);
        let telemetry = telemetry.content("application/json", payload.to_string().into_bytes());
        telemetry.send().await.ok();

        let expected = [
            ("laptops", robot.as_str(), true),
            ("decisions", decider.as_str(), false),
            ("otlp", decider.as_str(), false),
        ];
        for (source, principal, imported) in expected {
            let found = all_events(&app, &format!("&source={source}")).await;
            assert!(!found.is_empty(), "{source}");
            for event in found {
                let whole = app
                    .get(&format!(
                        "/policies/history/{}",
                        event["eventId"].as_str().unwrap()
                    ))
                    .await;
                for event in [&event, whole.ok()] {
                    assert_eq!(
                        (&event["source"], &event["principalId"], &event["imported"]),
                        (&json!(source), &json!(principal), &json!(imported))
                    );
                }
            }
        }
        // And so do the samples of a backtest.
        app.advance(1);
        let worker = Worker::start(&app);
        let definition = crate::policy::backtests::content("p", "nudge", "tool-0");
        let made = app.write(
            "POST",
            "/policies/backtests",
            json!({
                "candidate": { "kind": "inline", "family": "content", "definition": definition },
                "window": { "from": "2026-11-19T00:00:00.000Z", "to": app.now().to_rfc3339() },
            }),
        );
        let id = made.await.ok()["id"].as_str().unwrap().to_owned();
        let run = ended(&app, &id).await;
        let listed = app
            .get(&format!("/policies/backtests/{id}/samples?limit=100"))
            .await;
        for samples in [&run["results"]["samples"], &listed.ok()["samples"]] {
            let mut found: Vec<_> = samples
                .as_array()
                .unwrap()
                .iter()
                .map(|sample| {
                    let of = |member: &str| sample[member].as_str().unwrap().to_owned();
                    (
                        of("source"),
                        of("principalId"),
                        sample["imported"].as_bool().unwrap(),
                    )
                })
                .collect();
            found.sort();
            found.dedup();
            let mut expected =
                expected.map(|(source, principal, is)| (source.to_owned(), principal.to_owned(), is));
            expected.sort();
            assert_eq!(found, expected, "{run}");
        }
        worker.stop().await;
    });
}

/// Proves HS-11.
#[test]
fn imports_of_an_hour_leave_one_entry_for_each_principal_and_source() {
    each("import_told", |app: Arc<App>| async move {
        let told = async || {
            app.settle().await;
            let entries = app.entries(&app.organization, 0).await;
            let told = entries
                .into_iter()
                .filter(|entry| entry["action"] == "policy.history.imported");
            told.collect::<Vec<Value>>()
        };
        let changes = |entry: &Value| -> Value {
            let changes = entry["changes"].as_array().unwrap().iter();
            let changes = changes.map(|change| {
                (
                    change["path"].as_str().unwrap().to_owned(),
                    change["after"].clone(),
                )
            });
            Value::Object(changes.collect())
        };
        let (robot, token) = app.account("robot", "admin", &["policies:import_history"]).await;
        let bodies: Vec<String> = (0..3).map(|number| lines(&app, number * 10, 10)).collect();
        let wrong = format!("{}\nno line", bodies[2]);
        for body in [&bodies[0], &bodies[1], &bodies[0], &wrong] {
            import(&app, "laptops", body.as_str()).await.ok();
        }
        import(&app, "servers", bodies[0].as_str()).await.ok();
        let of_robot = app.request("POST", "/policies/history/import?source=laptops");
        let of_robot = of_robot
            .token(&token)
            .content(super::NDJSON, bodies[2].clone().into_bytes());
        of_robot.send().await.ok();
        // The hour is not over.
        history::tell_of_imports(&app.kernel).await.unwrap();
        assert_eq!(told().await.len(), 0);
        app.advance(3_600);
        let later = lines(&app, 50, 10);
        import(&app, "laptops", later.as_str()).await.ok();
        for _ in 0..2 {
            history::tell_of_imports(&app.kernel).await.unwrap();
        }
        let digests = |bodies: &[&String]| -> Vec<String> {
            bodies.iter().map(|body| sha256_hex(body.as_bytes())).collect()
        };
        let expected = |principal: &str, hour: &str, counts: [usize; 4], digests: Vec<String>| {
            let [bodies, lines, events, refused] = counts;
            let all = sha256_hex(digests.join("\n").as_bytes());
            json!({ "/principalId": principal, "/hour": hour, "/bodies": bodies, "/lines": lines, "/events": events,
                "/refused": refused, "/sha256": digests, "/sha256OfAll": all })
        };
        let first = "2026-11-20T03:00:00.000Z";
        let mut entries = told().await;
        entries.sort_by_key(|entry| {
            (
                entry["target"]["id"].to_string(),
                changes(entry)["/bodies"].as_i64(),
            )
        });
        let found: Vec<(&str, Value)> = entries
            .iter()
            .map(|entry| {
                assert_eq!(
                    (&entry["target"]["type"], &entry["actor"]["type"]),
                    (&json!("history_source"), &json!("system"))
                );
                let mut changes = changes(entry);
                let digests = changes["/sha256"].as_array_mut().unwrap();
                // Bodies of one millisecond stand in the order of their digests.
                digests.sort_by_key(ToString::to_string);
                (entry["target"]["id"].as_str().unwrap(), changes)
            })
            .collect();
        let mut three = digests(&[&bodies[0], &bodies[1], &wrong]);
        three.sort();
        let robots = expected(&robot, first, [1, 10, 10, 0], digests(&[&bodies[2]]));
        let admins = expected(&app.admin_id, first, [3, 31, 30, 1], three);
        let servers = expected(&app.admin_id, first, [1, 10, 10, 0], digests(&[&bodies[0]]));
        assert_eq!(
            found,
            [("laptops", robots), ("laptops", admins), ("servers", servers)]
        );
        // The next hour has its own.
        app.advance(3_600);
        history::tell_of_imports(&app.kernel).await.unwrap();
        let last = told().await.pop().unwrap();
        assert_eq!(
            changes(&last),
            expected(
                &app.admin_id,
                "2026-11-20T04:00:00.000Z",
                [1, 10, 10, 0],
                digests(&[&later])
            )
        );
        assert_eq!(told().await.len(), 4);
    });
}

/// Blocks the tool `y` for whom `x` was called within the hour.
async fn after_x(app: &App) {
    let change = json!({ "conditions": { "all": [
        { "field": "tool.id", "op": "eq", "value": "y" },
        { "hasPriorEvent": { "field": "tool.id", "op": "eq", "value": "x" } },
    ] } });
    policy(app, Family::Content, content("p", "block", &change)).await;
}

/// Asks until the past is there: one that is being made is unknown.
async fn of_y(app: &App, user: &str) -> Value {
    let asked = json!({ "identity.user_id": user, "identity.group_ids": [], "tool.id": "y" });
    for _ in 0..100 {
        let mut decision = decide_one(app, &asked).await;
        if decision["unknown"] == false {
            return decision["action"].take();
        }
    }
    panic!("the past of {user} stays unknown");
}

/// Proves DE-10.
#[test]
fn live_conditions_on_the_past_count_imports_only_where_the_organization_says_so() {
    each("import_counts", |app: Arc<App>| async move {
        after_x(&app).await;
        let event = |user: &str| {
            let attributes = json!({ "identity.user_id": user, "identity.group_ids": [], "tool.id": "x" });
            json!({ "at": app.now().plus_secs(-60).to_rfc3339(), "occasion": "pre_tool", "attributes": attributes })
        };
        import(&app, "before", event("ann").to_string()).await.ok();
        let (allow, block) = (json!("allow"), json!("block"));
        assert_eq!(of_y(&app, "ann").await, allow);
        // Nor one that comes when the past is there already.
        import(&app, "beside", event("ben").to_string()).await.ok();
        assert_eq!(of_y(&app, "ben").await, allow);
        // What was decided counts, and what an exporter told of.
        let decided = json!({ "identity.user_id": "cat", "identity.group_ids": [], "tool.id": "x" });
        decide_one(&app, &decided).await;
        let at = ((app.now().as_ms() - 60_000) * 1_000_000).to_string();
        let text = |key: &str, text: &str| json!({ "key": key, "value": { "stringValue": text } });
        let payload = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [
            { "eventName": "codex.tool_result", "timeUnixNano": at, "attributes": [text("tool_name", "x"), text("user.email", "dan")] },
        ] }] }] });
        let telemetry = app.request("POST", "/otlp/v1/logs");
        telemetry
            .content("application/json", payload.to_string().into_bytes())
            .send()
            .await
            .ok();
        for user in ["cat", "dan"] {
            assert_eq!(of_y(&app, user).await, block, "{user}");
        }

        let set = async |counts: bool| {
            let settings = json!({ "history": { "countImports": counts } });
            app.write("PUT", "/automation/settings", settings).await.ok();
        };
        set(true).await;
        for user in ["ann", "ben", "cat", "dan"] {
            assert_eq!(of_y(&app, user).await, block, "{user}");
        }
        assert_eq!(of_y(&app, "eve").await, allow);
        set(false).await;
        for user in ["ann", "ben"] {
            assert_eq!(of_y(&app, user).await, allow, "{user}");
        }
        // A backtest counts every event that it evaluates.
        app.advance(1);
        let worker = Worker::start(&app);
        let made = app.write(
            "POST",
            "/policies/backtests",
            json!({
                "candidate": { "kind": "set", "policies": [] },
                "window": { "from": "2026-11-19T00:00:00.000Z", "to": app.now().to_rfc3339() },
            }),
        );
        let id = made.await.ok()["id"].as_str().unwrap().to_owned();
        let results = ended(&app, &id).await["results"].clone();
        let of = |user: &str| {
            let all = results["bySubject"].as_array().unwrap().iter();
            let mut of_user = all.filter(|line| line["subjectId"] == user);
            of_user.next().map_or(0, |line| line["changed"].as_u64().unwrap())
        };
        // Ann asked three times and Ben too, or more often, and each time an imported event stood before.
        assert!(of("ann") >= 3 && of("ben") >= 3 && of("eve") == 0, "{results}");
        worker.stop().await;
    });
}

#[test]
#[expect(clippy::type_complexity, reason = "a table")]
fn history_is_imported_and_read_with_scopes_of_their_own() {
    each("history_scopes", |app: Arc<App>| async move {
        import(&app, "laptops", line(&app, 1, 10).to_string()).await.ok();
        let event = all_events(&app, "").await[0]["eventId"]
            .as_str()
            .unwrap()
            .to_owned();
        let reads = [
            "/policies/history".to_owned(),
            "/policies/history/status".to_owned(),
            format!("/policies/history/{event}"),
        ];
        // role, scopes, then: import, list and status, one event
        let cases: [(&str, &[&str], [Option<&str>; 3]); 11] = [
            ("admin", &[], [None, None, None]),
            (
                "admin",
                &["policies:import_history"],
                [None, Some("insufficient_scope"), Some("insufficient_scope")],
            ),
            (
                "admin",
                &["policies:history"],
                [Some("insufficient_scope"), None, None],
            ),
            (
                "admin",
                &[
                    "policies:write",
                    "policies:read",
                    "policies:decide",
                    "policies:backtest",
                ],
                [Some("insufficient_scope"); 3],
            ),
            ("auditor", &[], [Some("role_forbidden"), None, None]),
            (
                "auditor",
                &["policies:history"],
                [Some("role_forbidden"), None, None],
            ),
            (
                "auditor",
                &["policies:read"],
                [
                    Some("role_forbidden"),
                    Some("insufficient_scope"),
                    Some("insufficient_scope"),
                ],
            ),
            (
                "operator",
                &[],
                [Some("role_forbidden"), None, Some("role_forbidden")],
            ),
            (
                "operator",
                &["policies:history", "policies:import_history"],
                [Some("role_forbidden"), None, Some("role_forbidden")],
            ),
            ("viewer", &[], [Some("role_forbidden"); 3]),
            (
                "viewer",
                &["policies:read", "policies:history"],
                [Some("role_forbidden"); 3],
            ),
        ];
        for (role, scopes, expected) in cases {
            let (_, token) = app.account(&fresh_key(), role, scopes).await;
            let body = line(&app, 2, 10).to_string().into_bytes();
            let path = format!("/policies/history/import?source={}", fresh_key());
            let imported = app
                .request("POST", &path)
                .token(&token)
                .content(super::NDJSON, body)
                .send()
                .await;
            let mut replies = vec![(imported, expected[0])];
            for (path, expected) in reads.iter().zip([expected[1], expected[1], expected[2]]) {
                replies.push((app.request("GET", path).token(&token).send().await, expected));
            }
            for (reply, expected) in replies {
                match expected {
                    Some(code) => reply.refused(403, code),
                    None => drop(reply.ok()),
                }
            }
        }
    });
}
