//! Every action, and every combination of them, with what comes along (D9.10).

use super::{ask, call, content, decide, decide_one, policy, words};
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// One policy for each action; an event names those that match it.
async fn one_of_each(app: &App) {
    for action in words() {
        let change = json!({
            "conditions": { "field": "classification.categories", "op": "contains", "value": action },
            "message": format!("about {action}"),
        });
        policy(app, Family::Content, content(action, action, &change)).await;
    }
}

#[test]
fn the_strongest_of_every_combination_of_actions_is_decided() {
    each("decide_combinations", |app: Arc<App>| async move {
        one_of_each(&app).await;
        let words = words();
        let combinations: Vec<Vec<&str>> = (0..1 << words.len())
            .map(|bits: usize| {
                let named = words.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                named.map(|(_, word)| *word).collect()
            })
            .collect();
        let events: Vec<Value> = combinations
            .iter()
            .map(|named| call(&json!({ "tool.id": "t", "classification.categories": named })))
            .collect();
        let decisions = decide(&app, &events).await;
        for (named, decision) in combinations.iter().zip(&decisions) {
            let strongest = named.last().copied().unwrap_or("allow");
            assert_eq!(decision["action"], strongest, "{named:?}");
            assert_eq!(decision["unknown"], false);
            let deciding: Vec<&str> = named.last().copied().into_iter().collect();
            assert_eq!(decision["policyIds"], json!(deciding), "{named:?}");
            let reasons = decision["reasons"].as_array().unwrap();
            let mut sorted = named.clone();
            sorted.sort_unstable();
            let ids: Vec<&str> = reasons
                .iter()
                .map(|one| one["policyId"].as_str().unwrap())
                .collect();
            assert_eq!(ids, sorted);
            for reason in reasons {
                assert_eq!(reason["reason"], "matched");
                assert_eq!(reason["enforced"], true);
                assert_eq!(reason["family"], "content");
                assert_eq!(reason["action"], reason["policyId"]);
                assert_eq!(reason["decides"], reason["policyId"] == strongest);
            }
            let is_blocked = strongest == "block";
            let of = |word: &&&str| ["filter", "redact"].contains(*word) && !is_blocked;
            let owed: Vec<&str> = sorted.iter().filter(of).copied().collect();
            let obligations = decision["obligations"].as_array().unwrap();
            let ids: Vec<&str> = obligations
                .iter()
                .map(|one| one["policyId"].as_str().unwrap())
                .collect();
            assert_eq!(ids, owed, "{named:?}");
            let told: Vec<String> = if is_blocked {
                vec!["about block".to_owned()]
            } else {
                sorted.iter().map(|word| format!("about {word}")).collect()
            };
            assert_eq!(decision["messages"], json!(told), "{named:?}");
            assert_eq!(
                decision.get("approval").is_some(),
                strongest == "require_approval"
            );
        }
        let ids: std::collections::BTreeSet<&str> = decisions
            .iter()
            .map(|one| one["eventId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), 128);
        assert!(ids.iter().all(|id| id.starts_with("hev_")));
        assert!(decisions.is_sorted_by_key(|one| one["eventId"].as_str().unwrap().to_owned()));
    });
}

#[test]
fn obligations_come_as_they_were_authored() {
    each("decide_obligations", |app: Arc<App>| async move {
        one_of_each(&app).await;
        let event = json!({ "tool.id": "t", "classification.categories": ["filter", "redact"] });
        let decision = decide_one(&app, &event).await;
        assert_eq!(
            decision["obligations"],
            json!([
                { "policyId": "filter", "kind": "filter", "definition": { "collectionPath": "$.rows", "onUnavailable": "block",
                    "removeWhere": { "path": "$.a", "op": "eq", "value": 1 } } },
                { "policyId": "redact", "kind": "redaction", "definition": { "strategy": "nullify", "paths": ["$.secret"] } },
            ])
        );
        let resource = crate::areas::resources::make_resource(&app).await;
        let definition = json!({
            "id": "masked", "name": "masked", "action": "redact", "appliesTo": { "resources": [resource] },
            "dataTarget": "http_response_body", "redaction": { "strategy": "nullify", "paths": ["$.card"] },
            "conditions": { "field": "request.http.method", "op": "eq", "value": "GET" },
        });
        policy(&app, Family::Resource, definition).await;
        let event = json!({ "occasion": "resource", "attributes": { "resource.id": resource, "request.http.method": "GET" } });
        let decision = decide(&app, &[event]).await.remove(0);
        assert_eq!(
            decision["obligations"],
            json!([{ "policyId": "masked", "kind": "redaction",
                "definition": { "strategy": "nullify", "paths": ["$.card"], "dataTarget": "http_response_body" } }])
        );
    });
}

#[test]
fn the_approval_that_is_hardest_to_get_is_named() {
    each("decide_approval", |app: Arc<App>| async move {
        let auto = |is: bool| json!({ "approval": { "autoApproveOnRequest": is } });
        policy(
            &app,
            Family::Content,
            content("a-easy", "require_approval", &auto(true)),
        )
        .await;
        let alone = decide_one(&app, &json!({ "tool.id": "t" })).await;
        assert_eq!(
            alone["approval"],
            json!({ "policyId": "a-easy", "autoApproveOnRequest": true, "selfServe": true })
        );
        policy(
            &app,
            Family::Content,
            content("b-hard", "require_approval", &auto(false)),
        )
        .await;
        let both = decide_one(&app, &json!({ "tool.id": "t" })).await;
        assert_eq!(
            both["approval"],
            json!({ "policyId": "b-hard", "autoApproveOnRequest": false, "selfServe": false, "refused": "call_not_certain" })
        );
        assert_eq!(both["policyIds"], json!(["a-easy", "b-hard"]));
        let access = |id: &str, approval: Value| {
            let mut definition = json!({ "id": id, "name": id, "action": "require_approval", "enforcementSurfaces": ["provider"],
                "acknowledgeBroadScope": true, "conditions": { "field": "product.id", "op": "exists" } });
            if !approval.is_null() {
                definition["approval"] = approval;
            }
            definition
        };
        policy(
            &app,
            Family::Access,
            access("c-self", json!({ "mode": "self_serve" })),
        )
        .await;
        let event = json!({ "occasion": "provider", "attributes": { "product.id": "p" } });
        let own = decide(&app, std::slice::from_ref(&event)).await.remove(0);
        assert_eq!(
            own["approval"],
            json!({ "policyId": "c-self", "mode": "self_serve", "selfServe": true })
        );
        policy(&app, Family::Access, access("d-admin", Value::Null)).await;
        let admin = decide(&app, &[event]).await.remove(0);
        assert_eq!(
            admin["approval"],
            json!({ "policyId": "d-admin", "mode": "admin_approval", "selfServe": false, "refused": "not_a_tool_call" })
        );
    });
}

#[test]
fn a_policy_in_monitor_mode_is_reported_and_decides_nothing() {
    each("decide_monitored", |app: Arc<App>| async move {
        let definition = json!({ "id": "watched", "name": "watched", "action": "block", "enforcement": "monitor",
            "acknowledgeBroadScope": true, "message": "not told",
            "conditions": { "field": "request.http.method", "op": "eq", "value": "DELETE" } });
        policy(&app, Family::Resource, definition).await;
        let event = |attributes: Value, missing: Value| json!({ "occasion": "resource", "attributes": attributes, "missing": missing });
        let known = event(json!({ "request.http.method": "DELETE" }), json!([]));
        let unknown = event(json!({}), json!(["request.http.method"]));
        let other = event(json!({ "request.http.method": "GET" }), json!([]));
        let decisions = decide(&app, &[known, unknown, other]).await;
        let nothing = (&decisions[2]["basis"], &decisions[2]["reasons"]);
        assert_eq!(nothing, (&json!("no_policy_matched"), &json!([])));
        for (decision, reason) in decisions.iter().zip(["matched", "evaluation_failed"]) {
            assert_eq!(
                (&decision["action"], &decision["basis"]),
                (&json!("allow"), &json!("policies"))
            );
            assert_eq!(decision["unknown"], false);
            assert_eq!(
                (&decision["policyIds"], &decision["messages"]),
                (&json!([]), &json!([]))
            );
            let mut expected = json!({ "policyId": "watched", "family": "resource", "action": "block", "reason": reason,
                "enforced": false, "decides": false });
            if reason == "evaluation_failed" {
                expected["missing"] = json!(["/attributes/request.http.method"]);
            }
            assert_eq!(decision["reasons"], json!([expected]));
        }
    });
}

#[test]
fn a_caller_that_only_watches_gets_the_same_judgement() {
    each("decide_monitor_mode", |app: Arc<App>| async move {
        policy(&app, Family::Content, content("p", "block", &json!({}))).await;
        let event = call(&json!({ "tool.id": "t" }));
        for mode in ["enforce", "monitor"] {
            let reply = ask(&app, json!({ "events": [event], "mode": mode })).await;
            assert_eq!(reply.ok()["mode"], mode);
            assert_eq!(reply.json["recorded"], true);
            assert_eq!(reply.json["decisions"][0]["action"], "block");
        }
        let reply = ask(&app, json!({ "events": [event], "record": "buffered" })).await;
        assert_eq!(reply.ok()["recorded"], false);
        assert_eq!(reply.json["mode"], "enforce");
    });
}

/// Proves DE-5.
#[test]
fn what_cannot_be_evaluated_counts_as_matched() {
    each("decide_unknown", |app: Arc<App>| async move {
        let change = json!({ "conditions": { "field": "mcp.server_id", "op": "eq", "value": "s" } });
        policy(&app, Family::Content, content("p", "redact", &change)).await;
        let event =
            json!({ "occasion": "pre_tool", "attributes": { "tool.id": "t" }, "missing": ["mcp.server_id"] });
        let decision = decide(&app, &[event]).await.remove(0);
        assert_eq!(
            (&decision["action"], &decision["unknown"]),
            (&json!("redact"), &json!(true))
        );
        assert_eq!(decision["reasons"][0]["reason"], "evaluation_failed");
        assert_eq!(
            decision["reasons"][0]["missing"],
            json!(["/attributes/mcp.server_id"])
        );
        assert_eq!(decision["policyIds"], json!(["p"]));
        // What is said to be missing is, whatever else is said of it.
        let attributes = json!({ "tool.id": "t", "mcp.server_id": "another" });
        let both = json!({ "occasion": "pre_tool", "attributes": attributes, "missing": ["mcp.server_id"] });
        assert_eq!(decide(&app, &[both]).await[0]["unknown"], true);
        assert_eq!(decision["obligations"].as_array().unwrap().len(), 1);
        assert_eq!(
            decide_one(&app, &json!({ "tool.id": "t" })).await["action"],
            "allow"
        );
    });
}

/// Proves DE-4.
#[test]
fn an_event_that_cannot_be_read_refuses_the_whole_request() {
    each("decide_refusals", |app: Arc<App>| async move {
        let good = call(&json!({ "tool.id": "t" }));
        let cases = [
            (json!({ "occasion": "never" }), "/events/1/occasion"),
            (json!({ "attributes": {} }), "/events/1/occasion"),
            (
                json!({ "occasion": "prompt", "attributes": { "tool.id": 5 } }),
                "/events/1/attributes/tool.id",
            ),
            (
                json!({ "occasion": "prompt", "attributes": { "no.such": "x" } }),
                "/events/1/attributes/no.such",
            ),
            // Left out of the judgement, and read all the same.
            (
                json!({ "occasion": "prompt", "attributes": { "identity.group_ids": "g" } }),
                "/events/1/attributes/identity.group_ids",
            ),
            (
                json!({ "occasion": "prompt", "attributes": { "identity.user_id": "u", "identity.group_ids": [5] } }),
                "/events/1/attributes/identity.group_ids",
            ),
            (
                json!({ "occasion": "prompt", "attributes": { "tool.id": 5 }, "missing": ["tool.id"] }),
                "/events/1/attributes/tool.id",
            ),
            (
                json!({ "occasion": "prompt", "missing": ["tool.id", "no.such"] }),
                "/events/1/missing/1",
            ),
            (
                json!({ "occasion": "prompt", "session": "" }),
                "/events/1/session",
            ),
            (json!({ "occasion": "prompt", "more": 1 }), "/events/1/more"),
            (
                json!({ "occasion": "prompt", "at": "2026-11-20T03:15:00.000Z" }),
                "/events/1/at",
            ),
            (json!({ "occasion": "prompt", "id": "mine" }), "/events/1/id"),
            (
                json!({ "occasion": "prompt", "decision": { "action": "allow" } }),
                "/events/1/decision",
            ),
            (json!(7), "/events/1"),
        ];
        for (bad, path) in cases {
            let reply = ask(&app, json!({ "events": [good, bad, good] })).await;
            reply.refused(400, "invalid_request");
            assert_eq!(reply.json["errors"][0]["path"], path, "{bad}");
        }
        for body in [
            json!({ "events": [] }),
            json!({ "events": vec![good.clone(); 1001] }),
            json!({ "events": [good], "mode": "ask" }),
            json!({ "events": [good], "record": "never" }),
            json!({ "events": [good], "reason": "none is taken" }),
            json!({}),
        ] {
            ask(&app, body).await.refused(400, "invalid_request");
        }
        assert_eq!(decide(&app, &vec![good; 1000]).await.len(), 1000);
    });
}
