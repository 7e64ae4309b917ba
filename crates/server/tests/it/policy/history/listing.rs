//! Lists, single events, what they show to whom.

#![expect(clippy::items_after_statements, reason = "a name for a long type")]

use super::{all_events, assert_all, external, import, lines, seal, status};
use crate::support::{App, each};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn filters_are_exact_over_chunks_and_segments() {
    each("history_filters", |app: Arc<App>| async move {
        import(&app, "one", lines(&app, 0, 4_200)).await.ok();
        seal(&app).await;
        assert_eq!(status(&app).await["segments"], 1);
        import(&app, "two", lines(&app, 4_200, 800)).await.ok();
        let from = |ago: i64| app.now().plus_secs(-ago).to_rfc3339();
        type FilterOracle = Box<dyn Fn(usize) -> bool>;
        let cases: Vec<(String, FilterOracle)> = vec![
            ("&subjectId=user-3".into(), Box::new(|n| n % 7 == 3)),
            ("&tool=tool-2".into(), Box::new(|n| n % 5 == 2)),
            ("&action=block".into(), Box::new(|n| n % 2 == 1)),
            ("&policyId=p1".into(), Box::new(|n| n % 4 == 1)),
            ("&occasion=pre_tool".into(), Box::new(|n| n % 3 == 0)),
            ("&source=two".into(), Box::new(|n| n >= 4_200)),
            ("&source=none".into(), Box::new(|_| false)),
            ("&session=session-4".into(), Box::new(|n| n % 11 == 4)),
            (
                "&session=session-4&callId=call-9".into(),
                Box::new(|n| n % 11 == 4 && n % 17 == 9),
            ),
            ("&callId=call-99".into(), Box::new(|_| false)),
            (
                "&action=block&tool=tool-1&subjectId=user-6&policyId=p3&occasion=pre_tool&source=one".into(),
                Box::new(|n| n % 2 == 1 && n % 5 == 1 && n % 7 == 6 && n % 4 == 3 && n % 3 == 0 && n < 4_200),
            ),
            // The newest of the second body is a second old, plus its milliseconds.
            (format!("&from={}", from(10)), Box::new(|n| n >= 4_990)),
            (
                format!("&to={}&source=two", from(10)),
                Box::new(|n| (4_200..4_990).contains(&n)),
            ),
        ];
        for (query, holds) in cases {
            let events = all_events(&app, &query).await;
            assert_all(&events, (0..5_000).filter(|number| holds(*number)));
        }
        assert_all(&all_events(&app, "").await, 0..5_000);
        for wrong in [
            "action=shrug",
            "occasion=lunch",
            "limit=0",
            "limit=101",
            "cursor=x",
            "from=1",
            "shoe=1",
        ] {
            app.get(&format!("/policies/history?{wrong}")).await.refused(
                400,
                if wrong == "shoe=1" {
                    "unknown_parameter"
                } else {
                    "invalid_request"
                },
            );
        }
        let (at, later) = (from(10), from(9));
        app.get(&format!("/policies/history?from={at}&to={at}"))
            .await
            .refused(422, "invalid_definition");
        app.get(&format!("/policies/history?from={later}&to={at}"))
            .await
            .refused(422, "invalid_definition");
    });
}

#[test]
fn pages_of_every_size_hold_each_event_once() {
    each("history_pages", |app: Arc<App>| async move {
        // Many events of one instant, over several chunks.
        let at = app.now().plus_secs(-5).to_rfc3339();
        let tie = |number: usize| {
            json!({ "id": format!("e{number}"), "at": at, "occasion": "prompt", "attributes": {} })
                .to_string()
        };
        for part in 0..3 {
            let body: Vec<String> = (part * 50..part * 50 + 50).map(tie).collect();
            import(&app, "ties", body.join("\n")).await.ok();
        }
        import(&app, "rest", lines(&app, 150, 50)).await.ok();
        for limit in [1, 7, 49, 50, 51, 100] {
            let (mut events, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = app
                    .get(&format!("/policies/history?limit={limit}{cursor}"))
                    .await
                    .ok()
                    .clone();
                let found = page["events"].as_array().unwrap().clone();
                assert!(found.len() <= limit);
                events.extend(found);
                let Some(next) = page["nextCursor"].as_str() else {
                    break;
                };
                cursor = format!("&cursor={next}");
            }
            assert_all(&events, 0..200);
        }
        // A cursor belongs to its organization and list.
        let page = app.get("/policies/history?limit=1").await.ok().clone();
        let cursor = page["nextCursor"].as_str().unwrap();
        app.get(&format!("/service-accounts?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        let (organization, admin) = app.other_organization("Globex").await;
        let other = app.view_of(organization, admin);
        other
            .get(&format!("/policies/history?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        assert_eq!(other.get("/policies/history").await.ok()["events"], json!([]));
    });
}

#[test]
fn an_event_comes_back_as_it_was_sent_and_the_look_is_audited() {
    each("history_event", |app: Arc<App>| async move {
        let at = app.now().plus_secs(-30).to_rfc3339();
        let attributes = json!({
            "identity.service_account_id": "sa_1",
            "mcp.tool_id": "search",
            "mcp.server_id": "wiki",
            "resource.id": "res_1",
            "classification.categories": ["b", "a"],
            "classification.has_unresolved_sensitive_content": false,
            "llm.output_tokens": 12.5,
            "tool.input": { "command": ["rm", "-rf"], "n": 1 },
            "request.prompt": "täglich \u{1F600}",
        });
        let sent = json!({
            "id": "e0", "at": at, "occasion": "pre_tool", "session": "s", "callId": "c", "missing": ["tool.id"], "attributes": attributes,
            "decision": { "action": "redact", "policyIds": ["b", "a", "b"], "mode": "monitor" },
        });
        import(&app, "agents", sent.to_string()).await.ok();
        let listed = all_events(&app, "").await.remove(0);
        let id = listed["eventId"].as_str().unwrap().to_owned();
        let mut expected = json!({
            "eventId": id, "at": at, "occasion": "pre_tool", "source": "agents", "imported": true, "principalId": app.admin_id, "externalId": "e0", "session": "s", "callId": "c",
            "subject": { "kind": "service_account", "id": "sa_1" }, "tool": "search", "resourceId": "res_1",
            "decision": { "action": "redact", "policyIds": ["a", "b"], "mode": "monitor" },
        });
        assert_eq!(listed, expected);
        // What follows from the tool's input stands beside it, and a set is sorted.
        let mut whole = attributes.clone();
        whole["classification.categories"] = json!(["a", "b"]);
        whole["tool.input.command"] = json!("rm -rf");
        expected["attributes"] = whole;
        expected["missing"] = json!(["tool.id"]);
        let path = format!("/policies/history/{id}");
        assert_eq!(app.get(&path).await.ok(), &expected);
        for (subject, count) in [("sa_1", 1), ("search", 0)] {
            assert_eq!(
                all_events(&app, &format!("&subjectId={subject}")).await.len(),
                count
            );
        }
        assert_eq!(all_events(&app, "&tool=search").await.len(), 1);
        // Operators see the list, and no attributes.
        for (role, may) in [("auditor", true), ("operator", false)] {
            let (_, token) = app.account(role, role, &["policies:history"]).await;
            app.request("GET", "/policies/history")
                .token(&token)
                .send()
                .await
                .ok();
            let look = app.request("GET", &path).token(&token).send().await;
            if may {
                assert_eq!(look.ok(), &expected);
            } else {
                look.refused(403, "role_forbidden");
            }
        }
        app.get("/policies/history/hev_01kadh5j9v0000000000000000")
            .await
            .refused(404, "not_found");
        app.get("/policies/history/nothing")
            .await
            .refused(404, "not_found");
        app.settle().await;
        let log = app
            .get("/audit/events?action=getHeadlessPolicyHistoryEvent")
            .await;
        let entries = log.ok()["events"].as_array().unwrap().clone();
        let statuses = entries
            .iter()
            .filter_map(|entry| entry["outcome"]["status"].as_i64());
        assert_eq!(
            statuses.collect::<BTreeSet<i64>>(),
            BTreeSet::from([200, 403, 404])
        );
        let looked: Vec<&Value> = entries
            .iter()
            .filter(|entry| entry["outcome"]["status"] == 200)
            .collect();
        assert!(
            !looked.is_empty() && looked.iter().all(|entry| entry["target"]["id"] == id.as_str()),
            "{looked:?}"
        );
    });
}

#[test]
fn events_of_all_tools_of_an_agent_are_found_by_their_subject() {
    each("history_subjects", |app: Arc<App>| async move {
        let at = |n: i64| app.now().plus_ms(-n).to_rfc3339();
        let event = |n: i64, attributes: Value, missing: Value| {
            json!({ "id": format!("{n}"), "at": at(n), "occasion": "prompt", "attributes": attributes, "missing": missing }).to_string()
        };
        let body = [
            event(0, json!({ "identity.user_id": "x" }), json!([])),
            event(
                1,
                json!({ "identity.service_account_id": "x", "identity.user_id": "y" }),
                json!([]),
            ),
            event(2, json!({ "identity.service_account_id": "x" }), json!([])),
            event(
                3,
                json!({ "identity.service_account_id": "x" }),
                json!(["identity.user_id"]),
            ),
            event(4, json!({ "device.id": "x" }), json!([])),
            event(
                5,
                json!({ "device.id": "x" }),
                json!(["identity.service_account_id"]),
            ),
            event(6, json!({}), json!([])),
        ];
        import(&app, "subjects", body.join("\n")).await.ok();
        // Where it is not known who it was, nobody is named.
        assert_eq!(external(&all_events(&app, "&subjectId=x").await), ["0", "2", "4"]);
        let all = all_events(&app, "").await;
        let subjects: Vec<Option<&str>> = all.iter().map(|event| event["subject"]["id"].as_str()).collect();
        assert_eq!(
            subjects,
            [Some("x"), Some("y"), Some("x"), None, Some("x"), None, None]
        );
    });
}
