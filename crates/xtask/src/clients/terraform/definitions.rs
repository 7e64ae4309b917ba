//! Policies as the provider writes them, of every family.

use serde_json::{Value, json};

/// A policy as the provider writes it.
pub struct Policy {
    pub collection: &'static str,
    pub family: &'static str,
    pub definition: Value,
    pub selectors: Value,
    /// What the second apply changes.
    pub change: (&'static str, Value),
}

/// One policy of each type of resource, by the name of the type.
pub fn all() -> Vec<(&'static str, Policy)> {
    let content = json!({
        "id": "team/no-shell", "name": "No shell", "description": "Keeps \"shells\" out — всегда 🚫", "enabled": true,
        "labels": ["b", "a"], "useCases": ["Runtime Safety"], "appliesTo": { "products": ["openai/codex"] },
        "action": "block", "message": "Ask first.", "evaluateOn": ["pre_tool", "prompt"], "acknowledgeBroadScope": false,
        "conditions": { "all": [
            { "field": "tool.id", "op": "in", "value": ["shell", "bash"] },
            { "not": { "field": "llm.input_tokens", "op": "gte", "value": 1.5 } },
        ] },
        "exceptions": [{ "id": "e1", "reason": "for a while", "expiresAt": "2999-01-01T00:00:00Z",
            "conditions": { "field": "tool.input.workdir", "op": "starts_with", "value": "/tmp/" } }],
    });
    let access = json!({
        "id": "no-codex", "name": "No Codex", "enabled": true, "action": "require_approval", "severity": "high",
        "enforcementSurfaces": ["endpoint_route", "inline_hook"], "approval": { "mode": "self_serve" },
        "acknowledgeBroadScope": true, "enforcedBy": ["CrowdStrike"],
        "runtime": { "candidateMode": "enhanced_runtime_hold", "detectionLatencyMs": 400, "confidenceThreshold": 0.95 },
        "notification": { "message": "why", "notifyUser": true, "adminAudience": "security_admins" },
        "remediation": { "triggerPhase": "post_block_cleanup", "actions": [{ "surface": "local_runtime", "action": "clearCookies" }] },
        "conditions": { "field": "product.id", "op": "eq", "value": "openai/codex" },
    });
    let rego = "package forge.resource\ndefault match := {\"matched\": false}\nmatch := {\"matched\": true} if \
                input.request.postgres.command == \"DROP\"\n";
    let digest = provost_words::digest::sha256_hex(rego.as_bytes());
    let resource = json!({
        "id": "no-drop", "name": "No drop", "enabled": false, "action": "block", "enforcement": "monitor",
        "logic": { "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.resource.match",
            "module": rego, "moduleSha256": digest },
    });
    let person = "ada@acme.example";
    let mcp = json!({
        "id": "mcp-acl", "name": "No deletions", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
        "appliesTo": { "users": [person] }, "conditions": { "all": [
            { "field": "mcp.server_id", "op": "eq", "value": "Payments" },
            { "field": "mcp.tool_id", "op": "in", "value": ["delete", "refund"] },
        ] },
    });
    let of_mcp =
        json!({ "server": "Payments", "tools": ["delete", "refund"], "appliesTo": { "users": [person] } });
    let skill = json!({ "id": "acl", "skillId": "provost-cli", "enabled": true, "subjects": { "everyone": true }, "effect": "allow" });
    let of_skill = json!({ "skillId": "provost-cli", "subjects": { "everyone": true } });
    let policy = |collection, family, definition, selectors, change| Policy {
        collection,
        family,
        definition,
        selectors,
        change,
    };
    let none = || json!({});
    let name = || ("/name", json!("Renamed"));
    vec![
        (
            "content policy",
            policy(
                "content-policies",
                "content",
                content,
                none(),
                ("/message", json!("No.")),
            ),
        ),
        (
            "access policy",
            policy(
                "access-policies",
                "access",
                access,
                none(),
                ("/severity", json!("low")),
            ),
        ),
        (
            "resource policy, in Rego",
            policy("resource-policies", "resource", resource, none(), name()),
        ),
        (
            "MCP ACL",
            policy("content-policies", "content", mcp, of_mcp, name()),
        ),
        (
            "skill ACL",
            policy(
                "skill-acls",
                "skill_acl",
                skill,
                of_skill,
                ("/effect", json!("block")),
            ),
        ),
    ]
}
