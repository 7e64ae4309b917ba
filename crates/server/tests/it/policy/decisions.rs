//! Decisions through HTTP: what is decided, by which version, and who may ask (D9.10, D9.11).

mod actions;
mod bytes;
mod claims;
mod equal;
mod event_windows;
mod gateway;
mod limits;
mod modules;
mod names;
mod recorded;
mod skill_names;
mod spelling;
mod versions;
mod words;

use crate::support::{App, Reply};
use provost_policy::{Action, Definition, Family, PolicySet};
use serde_json::{Value, json};
use std::sync::Arc;

/// Makes a policy.
pub async fn policy(app: &App, family: Family, definition: Value) {
    let collection = match family {
        Family::Content => "/content-policies",
        Family::Access => "/access-policies",
        Family::Resource => "/resource-policies",
        Family::SkillAcl => "/skill-acls",
    };
    app.write("POST", collection, json!({ "definition": definition }))
        .await
        .ok();
}

/// Returns a content policy that judges tool calls; `change` replaces members.
pub fn content(id: &str, action: &str, change: &Value) -> Value {
    let mut definition = json!({
        "id": id, "name": id, "action": action, "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "exists" },
    });
    match action {
        "redact" => definition["redaction"] = json!({ "strategy": "nullify", "paths": ["$.secret"] }),
        "filter" => {
            definition["filter"] = json!({ "collectionPath": "$.rows", "onUnavailable": "block",
                "removeWhere": { "path": "$.a", "op": "eq", "value": 1 } });
        }
        _ => {}
    }
    for (name, value) in change.as_object().unwrap() {
        definition[name] = value.clone();
        if value.is_null() {
            definition.as_object_mut().unwrap().remove(name);
        }
    }
    definition
}

/// Returns a policy that blocks tool calls which this module matches.
pub fn rego(id: &str, module: &str) -> Value {
    let logic = json!({ "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
        "module": module, "moduleSha256": provost_policy::sha256_hex(module.as_bytes()) });
    content(id, "block", &json!({ "conditions": null, "logic": logic }))
}

pub fn call(attributes: &Value) -> Value {
    json!({ "occasion": "pre_tool", "attributes": attributes })
}

/// Asks as the first admin.
pub async fn ask(app: &App, body: Value) -> Reply {
    app.request("POST", "/policies/decisions").json(body).send().await
}

/// Asks about events and returns the decisions.
pub async fn decide(app: &App, events: &[Value]) -> Vec<Value> {
    let reply = ask(app, json!({ "events": events })).await;
    let decisions = reply.ok()["decisions"].as_array().unwrap().clone();
    assert_eq!(decisions.len(), events.len());
    decisions
}

/// Asks about one tool call and returns the decision.
pub async fn decide_one(app: &App, attributes: &Value) -> Value {
    decide(app, &[call(attributes)]).await.remove(0)
}

pub fn compile(definitions: &[(Family, Value)]) -> Arc<PolicySet> {
    let read = definitions.iter().map(|(family, definition)| {
        Arc::new(Definition::read(*family, definition).unwrap_or_else(|e| panic!("{definition}: {e}")))
    });
    Arc::new(PolicySet::new(read).unwrap())
}

pub fn words() -> Vec<&'static str> {
    Action::ALL.map(Action::word).to_vec()
}
