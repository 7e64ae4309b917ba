//! References of policies and the inventory: what is found by name, and that no report and no standing changes a verdict (ADR 0113).

use super::inventory::{decide, in_days, of_key};
use crate::areas::fleet::Machine;
use crate::areas::inventory::server;
use crate::policy::decisions;
use crate::support::{App, Reply, each};
use serde_json::{Value, json};
use std::sync::Arc;

async fn resolve(app: &App, query: &str) -> Reply {
    app.get(&format!("/policy-references/resolve?{query}")).await
}

/// Proves IN-10.
#[test]
fn a_server_is_referred_to_by_what_no_device_chooses() {
    each("inventory_references", |app: Arc<App>| async move {
        let (laptop, hostile) = (Machine::new(&app).await, Machine::new(&app).await);
        laptop
            .has(&app, "ada", &json!([server("github", "npm:github", false)]))
            .await
            .ok();
        let github = of_key(&app, "npm:github").await;
        let id = github["id"].as_str().unwrap();
        let item = |selector: &str| json!({ "item": { "kind": "mcp_server", "id": id, "selector": selector, "qualifier": "npm:github" } });
        for selector in [id, "npm:github"] {
            let found = resolve(&app, &format!("kind=mcp_server&selector={selector}")).await;
            assert_eq!(found.ok(), &item(selector));
        }
        // A name that a device says is nobody's, also where somebody decided about the server that has it.
        let by_name = "kind=mcp_server&selector=github";
        resolve(&app, by_name).await.refused(404, "not_found");
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 2) });
        decide(&app, &github, approve).await.ok();
        resolve(&app, by_name).await.refused(404, "not_found");
        hostile
            .has(
                &app,
                "eve",
                &json!([
                    server("npm:github", "npm:evil", false),
                    server(id, "npm:evil", false)
                ]),
            )
            .await
            .ok();
        for selector in [id, "npm:github"] {
            let found = resolve(&app, &format!("kind=mcp_server&selector={selector}")).await;
            assert_eq!(found.ok(), &item(selector));
        }
        let qualified = format!("kind=mcp_server&selector={id}&qualifier=npm:github");
        resolve(&app, &qualified).await.ok();
        let other = format!("kind=mcp_server&selector={id}&qualifier=npm:evil");
        resolve(&app, &other).await.refused(404, "not_found");
        for (query, status, code) in [
            ("kind=mcp_server&selector=unheard", 404, "not_found"),
            ("kind=mcp_server&selector=%E2%80%8B", 404, "not_found"),
            // What cannot be a name is refused as one, of every kind.
            ("kind=mcp_server&selector=", 400, "invalid_request"),
            ("kind=mcp_server&selector=github%00", 400, "invalid_request"),
            ("kind=user&selector=github%00", 400, "invalid_request"),
            ("kind=mcp_server&selector=github&parentId=x", 404, "not_found"),
            ("kind=mcp_tool&selector=read", 400, "invalid_request"),
            ("kind=agent&selector=x", 404, "not_found"),
            ("kind=integration&selector=x", 404, "not_found"),
            ("kind=ai_product&selector=x", 404, "not_found"),
        ] {
            resolve(&app, query).await.refused(status, code);
        }
        resolve(&app, &format!("kind=mcp_tool&selector=read&parentId={id}"))
            .await
            .refused(404, "not_found");
        for selector in ["openai/codex", "Codex", "CODEX"] {
            let found = resolve(&app, &format!("kind=ai_product&selector={selector}")).await;
            assert_eq!(found.ok()["item"]["id"], "openai/codex", "{selector}");
        }
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        for selector in [id, "npm:github"] {
            resolve(&there, &format!("kind=mcp_server&selector={selector}"))
                .await
                .refused(404, "not_found");
        }
        app.kernel.stop().await;
    });
}

/// Proves IN-10.
#[test]
fn no_report_and_no_standing_changes_what_a_policy_means() {
    each("inventory_verdicts", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        laptop
            .has(&app, "ada", &json!([server("github", "npm:github", false)]))
            .await
            .ok();
        let github = of_key(&app, "npm:github").await;
        let id = github["id"].as_str().unwrap();
        let on = |op: &str, value: Value| json!({ "field": "mcp.server_id", "op": op, "value": value });
        let policies = [
            ("by-name", json!({ "conditions": on("eq", json!("github")) })),
            (
                "all-but",
                json!({ "conditions": on("not_in", json!(["github", "docs"])) }),
            ),
            ("excepted", json!({ "except": on("eq", json!("github")) })),
            ("by-id", json!({ "conditions": on("eq", json!(id)) })),
            ("by-key", json!({ "conditions": on("in", json!(["npm:github"])) })),
        ];
        for (policy, change) in &policies {
            let definition = decisions::content(policy, "block", change);
            decisions::policy(&app, provost_policy::Family::Content, definition).await;
        }
        let calls: Vec<Value> = ["github", "evil", "docs", "GitHub", "npm:github", id]
            .iter()
            .map(|name| decisions::call(&json!({ "tool.id": "read", "mcp.server_id": name })))
            .collect();
        let verdicts = async || -> Vec<Value> {
            let decided = decisions::decide(&app, &calls).await;
            decided
                .into_iter()
                .map(|mut decision| {
                    decision.as_object_mut().unwrap().remove("eventId");
                    decision
                })
                .collect()
        };
        let plan = async || -> Value {
            let definition = decisions::content("planned", "block", &policies[0].1);
            let body = json!({ "family": "content", "definition": definition, "expectedRevision": 0 });
            let planned = app
                .request("POST", "/policy-plans/validate")
                .json(body)
                .send()
                .await;
            planned.ok().clone()
        };
        let (before, planned) = (verdicts().await, plan().await);
        assert!(!planned.to_string().contains("id_of_inventory"), "{planned}");
        assert!(
            before.iter().any(|decision| decision["action"] == "block"),
            "{before:?}"
        );
        // A device says every name of another server, and every server of this name; an admin decides one way and the other.
        let hostile = Machine::new(&app).await;
        let names = json!([
            server("github", "npm:evil", false),
            server("evil", "npm:github", false),
            server("docs", "npm:github", false),
            server(id, "npm:evil", false),
            server("npm:github", "npm:evil", false),
        ]);
        hostile.has(&app, "eve", &names).await.ok();
        assert_eq!(
            (verdicts().await, plan().await),
            (before.clone(), planned.clone())
        );
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 2) });
        decide(&app, &github, approve).await.ok();
        let evil = of_key(&app, "npm:evil").await;
        decide(&app, &evil, json!({ "standing": "denied" })).await.ok();
        assert_eq!(
            (verdicts().await, plan().await),
            (before.clone(), planned.clone())
        );
        decide(&app, &github, json!({ "standing": "denied" })).await.ok();
        assert_eq!((verdicts().await, plan().await), (before, planned));
        // Who writes an id of the inventory believes that something is guarded which is not.
        let definition = decisions::content("by-id-again", "block", &policies[3].1);
        let body = json!({ "family": "content", "definition": definition, "expectedRevision": 0 });
        let told = app
            .request("POST", "/policy-plans/validate")
            .json(body)
            .send()
            .await;
        let warnings = told.ok()["warnings"].as_array().unwrap().clone();
        let warned = warnings.iter().find(|one| one["code"] == "id_of_inventory");
        assert_eq!(warned.unwrap()["path"], "/definition/conditions/value");
        app.kernel.stop().await;
    });
}
