//! Policies of every family, their authority, and the versions of their set.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key, with_trio};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    deleted: |app| Box::pin(deleted(app)),
    body,
    query,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

/// The paths of the collections, by the word that names their operations.
const COLLECTIONS: [(&str, &str); 4] = [
    ("ContentPolicy", "content-policies"),
    ("AccessPolicy", "access-policies"),
    ("ResourcePolicy", "resource-policies"),
    ("SkillAcl", "skill-acls"),
];

/// The collection whose policies an operation is about; content's for those about any.
fn collection(operation: &str) -> &'static str {
    let found = COLLECTIONS.iter().find(|(word, _)| operation.ends_with(word));
    found.map_or("content-policies", |(_, path)| path)
}

/// A definition of a collection that keeps every rule. A skill ACL names its skill by id or name.
pub fn definition(collection: &str, id: &str, skill: &str) -> Value {
    let condition = |field: &str, value: &str| json!({ "field": field, "op": "eq", "value": value });
    match collection {
        "content-policies" => json!({
            "id": id, "name": format!("content {id}"), "enabled": true, "action": "flag_for_review", "evaluateOn": ["pre_tool"],
            "conditions": condition("tool.id", "shell"),
        }),
        "access-policies" => json!({
            "id": id, "name": format!("access {id}"), "enabled": true, "action": "flag_for_review",
            "enforcementSurfaces": ["inline_hook"], "conditions": condition("product.id", "openai/codex"),
        }),
        "resource-policies" => json!({
            "id": id, "name": format!("resource {id}"), "enabled": true, "action": "flag_for_review",
            "conditions": condition("resource.protocol", "redis"),
        }),
        "skill-acls" => json!({
            "id": id, "skillId": skill, "enabled": true, "effect": "block", "subjects": { "everyone": true },
        }),
        other => panic!("{other} is no collection"),
    }
}

/// A skill ACL needs a skill of the registry; the nets share one.
async fn skill(app: &App) -> String {
    let found = app.get("/skill-registry?query=acl-sample").await;
    match found.ok()["items"].as_array().unwrap().first() {
        Some(item) => item["id"].as_str().unwrap().to_owned(),
        None => app.skill("acl-sample").await,
    }
}

impl App {
    /// Makes a policy of a collection with an id of its own; returns the id.
    pub async fn policy(&self, collection: &str) -> String {
        self.policy_that(collection, true).await
    }

    /// Makes one that decides nothing: a write of it has one event, its own.
    pub async fn draft(&self, collection: &str) -> String {
        self.policy_that(collection, false).await
    }

    async fn policy_that(&self, collection: &str, enabled: bool) -> String {
        let id = fresh_key();
        let skill = if collection == "skill-acls" {
            skill(self).await
        } else {
            String::new()
        };
        let mut definition = definition(collection, &id, &skill);
        definition["enabled"] = enabled.into();
        let body = json!({ "definition": definition });
        self.write("POST", &format!("/{collection}"), body).await.ok();
        id
    }
}

/// Claims a policy with an account that is deleted then: whoever may write may release it.
async fn claimed(app: &App, id: &str) {
    let (account, token) = app.account(&fresh_key(), "admin", &["policies:write"]).await;
    let body = json!({ "expectedRevision": 1, "managerId": "platform", "managerInstance": "one" });
    let claim = app
        .request("POST", &format!("/policy-authority/{id}/claim"))
        .token(&token)
        .json(with_trio(body, &fresh_key()));
    claim.send().await.ok();
    app.delete(&format!("/service-accounts/{account}")).await;
}

pub fn absent(ulid: &str) -> Ids {
    vec![
        ("policyId", format!("absent/{ulid}")),
        ("versionId", format!("psv_{ulid}")),
    ]
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    let mut ids = vec![];
    if operation == "createHeadlessSkillAcl" {
        skill(app).await;
    }
    if parameters.contains(&"policyId") {
        let id = app.policy(collection(operation)).await;
        if operation == "releaseHeadlessPolicyAuthority" {
            claimed(app, &id).await;
        }
        ids.push(("policyId", id));
    }
    if operation == "getHeadlessPolicyVersion" {
        app.policy("content-policies").await;
        let versions = app.get("/policies/versions?limit=1").await;
        let id = versions.ok()["versions"][0]["id"].as_str().unwrap().to_owned();
        ids.push(("versionId", id));
    }
    ids
}

pub async fn deleted(app: &App) -> Ids {
    let id = app.policy("content-policies").await;
    let path = format!("/content-policies/{id}?expectedRevision=1");
    assert_eq!(app.delete(&path).await.status.as_u16(), 204);
    vec![("policyId", id)]
}

pub fn body(operation: &str, target: &Target) -> Option<Value> {
    // Text that is no id names nothing; the definition beside it is a good one all the same.
    let named = target.others.get("policyId").filter(|id| !id.contains('%'));
    let named = named.map_or("sample", String::as_str);
    match operation {
        "createHeadlessContentPolicy" | "createHeadlessAccessPolicy" | "createHeadlessResourcePolicy" => {
            Some(json!({ "definition": definition(collection(operation), &fresh_key(), "") }))
        }
        "updateHeadlessContentPolicy" | "updateHeadlessAccessPolicy" | "updateHeadlessResourcePolicy" => {
            Some(json!({ "definition": definition(collection(operation), named, ""), "expectedRevision": 1 }))
        }
        "createHeadlessSkillAcl" => {
            Some(json!({ "definition": definition("skill-acls", &fresh_key(), "acl-sample") }))
        }
        "updateHeadlessSkillAcl" => Some(
            json!({ "definition": definition("skill-acls", named, "acl-sample"), "expectedRevision": 1 }),
        ),
        "validateHeadlessPolicyPlan" => Some(json!({
            "family": "content", "definition": definition("content-policies", &fresh_key(), ""), "expectedRevision": 0,
        })),
        "validateHeadlessPolicyRego" => Some(json!({
            "family": "content", "module": "package forge.content\ndefault match := {\"matched\": false}\n",
        })),
        "claimHeadlessPolicyAuthority" => {
            Some(json!({ "expectedRevision": 1, "managerId": "platform", "managerInstance": "one" }))
        }
        "releaseHeadlessPolicyAuthority" => Some(json!({ "expectedRevision": 1 })),
        _ => None,
    }
}

pub fn query(operation: &str) -> Option<&'static str> {
    if operation == "getHeadlessPolicySchema" {
        return Some("family=content");
    }
    let is_delete = operation.starts_with("deleteHeadless")
        && COLLECTIONS.iter().any(|(word, _)| operation.ends_with(word));
    is_delete.then_some("expectedRevision=1")
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let is_ours = COLLECTIONS.iter().any(|(word, _)| operation.ends_with(word))
        || operation.ends_with("PolicyAuthority");
    if !is_ours || operation.starts_with("get") {
        return None;
    }
    let collection = collection(operation);
    if operation.starts_with("create") {
        let skill = if collection == "skill-acls" {
            skill(app).await
        } else {
            String::new()
        };
        let mut definition = definition(collection, unique, &skill);
        definition["enabled"] = false.into();
        let body = json!({ "definition": definition, "expectedRevision": 0 });
        return Some(Fixture::json(
            "POST",
            format!("/{collection}"),
            body,
            Some("policy.created"),
        ));
    }
    let id = app.draft(collection).await;
    let path = format!("/{collection}/{id}");
    Some(match operation {
        "claimHeadlessPolicyAuthority" => {
            let body = json!({ "expectedRevision": 1, "managerId": unique, "managerInstance": "one" });
            Fixture::json(
                "POST",
                format!("/policy-authority/{id}/claim"),
                body,
                Some("policy.claimed"),
            )
        }
        "releaseHeadlessPolicyAuthority" => {
            claimed(app, &id).await;
            let body = json!({ "expectedRevision": 1 });
            Fixture::json(
                "POST",
                format!("/policy-authority/{id}/release"),
                body,
                Some("policy.released"),
            )
        }
        _ if operation.starts_with("delete") => Fixture::json(
            "DELETE",
            format!("{path}?expectedRevision=1"),
            json!({}),
            Some("policy.deleted"),
        ),
        _ => {
            let mut other = definition(collection, &id, "acl-sample");
            other["enabled"] = false.into();
            let body = json!({ "definition": other, "expectedRevision": 1 });
            Fixture::json("PUT", path, body, Some("policy.updated"))
        }
    })
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let is_ours = COLLECTIONS.iter().any(|(word, _)| operation.ends_with(word))
        || operation.ends_with("PolicyAuthority");
    if !is_ours {
        return None;
    }
    let mut other = body.clone();
    match member {
        "definition" => {
            let enabled = &mut other["definition"]["enabled"];
            *enabled = (*enabled == json!(false)).into();
        }
        "expectedRevision" => other[member] = 7.into(),
        _ => other[member] = "another".into(),
    }
    Some(other)
}

async fn all(app: &App, path: &str, plural: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = app.get(&format!("{path}?limit=100{cursor}")).await;
        found.extend(page.ok()[plural].as_array().unwrap().iter().cloned());
        match page.json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

pub async fn state(app: &App) -> Value {
    let latest = app.get("/policies/versions?limit=1").await;
    json!({ "policies": all(app, "/policies", "policies").await, "latest": latest.ok()["versions"] })
}
