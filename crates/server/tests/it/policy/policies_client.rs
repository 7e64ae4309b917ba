//! What the family's published client says about policies, byte for byte, over a socket (client contract §1.2, §3).

use crate::access::resource_client::Client;
use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;

/// Plans and applies as the client does; returns the item.
async fn apply(client: &mut Client, collection: &str, family: &str, body: &Value) -> Value {
    let expected = body["expectedRevision"].as_i64().unwrap();
    let plan = json!({
        "family": family, "definition": body["definition"], "sourceRef": body["sourceRef"], "expectedRevision": expected,
    });
    // The client sends the mutation metadata's headers with this question as well.
    let plan = client
        .write("POST", "/policy-plans/validate", Some(&plan))
        .await
        .is(200);
    assert_eq!(plan["valid"], true);
    assert_eq!(plan["schemaVersion"], "forge.policy.families.v1");
    let expires = plan["expiresAt"].as_str().unwrap();
    assert!(
        expires.starts_with("2026-11-20T03:25:00."),
        "ten minutes: {expires}"
    );
    for digest in [
        "definitionSha256",
        "referenceBindingFingerprint",
        "compilerFingerprint",
    ] {
        let text = plan[digest].as_str().unwrap();
        assert!(
            text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            "{digest}"
        );
    }
    let mut write = body.clone();
    write["validationToken"] = plan["validationToken"].clone();
    let (method, path, status) = if expected == 0 {
        ("POST", format!("/{collection}"), 201)
    } else {
        let id = body["definition"]["id"].as_str().unwrap();
        ("PUT", format!("/{collection}/{id}"), 200)
    };
    let key = client.key();
    let done = client.write_as(&key, method, &path, Some(&write)).await;
    let item = done.is(status)["item"].clone();
    // The retry of a lost answer.
    let again = client.write_as(&key, method, &path, Some(&write)).await;
    assert_eq!((again.status, &again.body), (status, &done.body));
    assert!(again.head.contains("idempotent-replayed: true"));
    assert_eq!(item["definitionSha256"], plan["definitionSha256"]);
    assert_eq!(item["currentRevision"], expected + 1);
    assert_eq!(item["definition"], body["definition"], "value-identical");
    assert_eq!(item["sourceRef"], body["sourceRef"]);
    assert_eq!(item["family"], family);
    assert_eq!(item["managementMode"], "terraform");
    assert_eq!(item["managerId"], "platform-team");
    assert_eq!(item["managerInstance"], "production");
    item
}

fn source(resource: &str, id: &str, selectors: &Value) -> Value {
    json!({ "tool": "terraform", "resource": format!("{resource}.{id}"), "selectors": selectors })
}

/// Proves PO-4, PO-7.
#[test]
fn the_familys_client_manages_policies_unchanged() {
    each("policy_client", |app: Arc<App>| async move {
        let scopes = ["policies:read", "policies:write"];
        let (_, token) = app.account("terraform", "admin", &scopes).await;
        let skill = app.skill("pdf-filler").await;
        let served = app.serve().await;
        let mut client = Client::of(&app, served.address, &token).await;
        capabilities(&mut client).await;
        rego(&mut client).await;
        content(&mut client).await;
        others(&mut client, &skill).await;
        authority(&app, &mut client).await;
        slashes(&mut client).await;
        served.stop().await;
    });
}

async fn capabilities(client: &mut Client) {
    let found = client.read("/policy-contracts/capabilities").await.is(200);
    assert_eq!(found["policySchemaVersion"], "forge.policy.families.v1");
    assert_eq!(found["regoLanguageVersion"], "forge.rego.v1");
    assert_eq!(found["terraformPolicyProtocol"], "forge.terraform.policy.v1");
    assert_eq!(
        found["terraformGatewayProtocol"],
        "forge.terraform.llm-gateway-plan.v1"
    );
    assert_eq!(found["terraformOwnershipBinding"], "service_account_principal");
    assert_eq!(found["regoCompilerFingerprint"].as_str().unwrap().len(), 64);
}

const MODULE: &str = "package forge.content\n\ndefault match := {\"matched\": false}\n\nmatch := {\"matched\": true, \
                      \"reasonCode\": \"shell\"} if input.tool.id == \"shell\"\n";

async fn rego(client: &mut Client) {
    let path = "/policy-code/rego/validate";
    let body = json!({ "family": "content", "module": MODULE, "evaluateOn": ["post_tool", "pre_tool"] });
    let found = client.write("POST", path, Some(&body)).await.is(200);
    assert_eq!(
        (&found["valid"], &found["diagnostics"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(found["languageVersion"], "forge.rego.v1");
    assert_eq!(
        found["sourceSha256"],
        provost_policy::sha256_hex(MODULE.as_bytes())
    );
    assert_eq!(found["artifactFingerprint"].as_str().unwrap().len(), 64);
    assert!(found["opaVersion"].is_string() && found.get("result").is_none());
    let mut asked = body.clone();
    for (tool, result) in [
        ("shell", json!({ "matched": true, "reasonCode": "shell" })),
        ("browser", json!({ "matched": false })),
    ] {
        asked["input"] = json!({ "stage": "pre_tool", "tool": { "id": tool } });
        let found = client.write("POST", path, Some(&asked)).await.is(200);
        assert_eq!(found["result"], result);
    }
    // What does not compile is refused with its place: the client shows an error's text, and no diagnostics.
    let broken = json!({ "family": "content", "module": "package forge.content\n\nmatch := {" });
    let refused = client.write("POST", path, Some(&broken)).await.is(422);
    assert_eq!(refused["code"], "invalid_definition");
    let told = refused["message"].as_str().unwrap();
    assert!(
        told.starts_with("the module does not compile: line 3, column "),
        "{told}"
    );
    assert_eq!(refused["errors"][0]["path"], "/module");
    let other = json!({ "family": "access", "module": MODULE });
    client.write("POST", path, Some(&other)).await.is(422);
    let none = json!({ "family": "skill_acl", "module": MODULE });
    client.write("POST", path, Some(&none)).await.is(400);
    // A module that never ends is stopped, and a policy with it would match.
    let endless = "package forge.content\nnumbers := [n | some a in input.l; some b in input.l; some c in input.l; n := a + b + c]\n\
                   match := {\"matched\": false} if sum(numbers) < 0\n";
    let list: Vec<u32> = (0..200).collect();
    let body = json!({ "family": "content", "module": endless, "input": { "l": list } });
    let found = client.write("POST", path, Some(&body)).await.is(200);
    assert_eq!(
        (&found["valid"], &found["result"]["matched"]),
        (&json!(true), &json!(true)),
        "{found}"
    );
    assert_eq!(found["result"]["evaluationFailed"], true);
}

async fn content(client: &mut Client) {
    let definition = json!({
        "id": "no-shell", "name": "No shell", "description": "Keeps \"shells\" out — всегда 🚫", "enabled": true,
        "labels": ["b", "a"], "useCases": ["Runtime Safety"], "appliesTo": { "products": ["openai/codex"] },
        "action": "block", "message": "Ask first.", "evaluateOn": ["pre_tool", "prompt"], "acknowledgeBroadScope": false,
        "conditions": { "all": [
            { "field": "tool.id", "op": "in", "value": ["shell", "bash"] },
            { "not": { "field": "llm.input_tokens", "op": "gte", "value": 1e2 } },
        ] },
        "exceptions": [{ "id": "e1", "reason": "for a while", "expiresAt": "2027-01-01T00:00:00Z",
            "conditions": { "field": "tool.input.workdir", "op": "starts_with", "value": "/tmp/" } }],
    });
    let body = json!({
        "definition": definition, "expectedRevision": 0,
        "sourceRef": source("forge_content_policy", "no-shell", &json!({ "appliesTo": { "products": ["openai/codex"] }, "enforcedBy": null })),
    });
    let made = apply(client, "content-policies", "content", &body).await;
    let path = "/content-policies/no-shell";
    assert_eq!(client.read(path).await.is(200)["item"], made);
    // Nothing is written without a plan, with a plan of somebody else's making, or to a policy at another revision.
    let mut unplanned = body.clone();
    unplanned["expectedRevision"] = 1.into();
    client.write("PUT", path, Some(&unplanned)).await.is(409);
    unplanned["validationToken"] = "AAAA".into();
    client.write("PUT", path, Some(&unplanned)).await.is(409);
    let stale =
        json!({ "family": "content", "definition": definition, "sourceRef": {}, "expectedRevision": 0 });
    client
        .write("POST", "/policy-plans/validate", Some(&stale))
        .await
        .is(409);
    let mut stale = stale;
    stale["expectedRevision"] = 2.into();
    client
        .write("POST", "/policy-plans/validate", Some(&stale))
        .await
        .is(409);
    let mut second = body.clone();
    second["expectedRevision"] = 1.into();
    second["definition"]["conditions"]["all"][0]["value"] = json!(["shell", "bash", "zsh"]);
    let changed = apply(client, "content-policies", "content", &second).await;
    assert_ne!(changed["definitionSha256"], made["definitionSha256"]);
    // A definition that breaks a rule is told where, in the plan.
    let mut broken = stale.clone();
    broken["definition"]["conditions"]["all"][0]["op"] = "like".into();
    broken["definition"]["id"] = "other".into();
    let refused = client
        .write("POST", "/policy-plans/validate", Some(&broken))
        .await
        .is(422);
    assert_eq!(refused["code"], "invalid_definition");
    assert_eq!(refused["errors"][0]["path"], "/definition/conditions/all/0/op");
    // Another workspace, and another credential with the same headers.
    client.instance = "staging";
    client
        .write("DELETE", &format!("{path}?expectedRevision=2"), None)
        .await
        .is(409);
    client.instance = "production";
    client.write("DELETE", path, None).await.is(400);
    client
        .write("DELETE", &format!("{path}?expectedRevision=1"), None)
        .await
        .is(409);
    assert_eq!(
        client
            .write("DELETE", &format!("{path}?expectedRevision=2"), None)
            .await
            .status,
        204
    );
    client.read(path).await.is(404);
    client.read("/policy-authority/no-shell").await.is(404);
    client
        .write("DELETE", &format!("{path}?expectedRevision=2"), None)
        .await
        .is(404);
    // Its owner brings it back as the next revision.
    let plan = json!({ "family": "content", "definition": definition, "sourceRef": body["sourceRef"], "expectedRevision": 0 });
    let plan = client
        .write("POST", "/policy-plans/validate", Some(&plan))
        .await
        .is(200);
    let mut revived = body.clone();
    revived["validationToken"] = plan["validationToken"].clone();
    let revived = client
        .write("POST", "/content-policies", Some(&revived))
        .await
        .is(201);
    assert_eq!(revived["item"]["currentRevision"], 3);
    assert_eq!(client.read(path).await.is(200), revived);
}

async fn others(client: &mut Client, skill: &str) {
    let access = json!({
        "id": "no-codex", "name": "No Codex", "enabled": true, "action": "require_approval", "severity": "high",
        "enforcementSurfaces": ["endpoint_route", "inline_hook"], "approval": { "mode": "self_serve" }, "acknowledgeBroadScope": true,
        "enforcedBy": ["CrowdStrike"],
        "runtime": { "candidateMode": "enhanced_runtime_hold", "detectionLatencyMs": 400, "confidenceThreshold": 0.95 },
        "notification": { "message": "why", "notifyUser": true, "adminAudience": "security_admins" },
        "remediation": { "triggerPhase": "post_block_cleanup", "actions": [{ "surface": "local_runtime", "action": "clearCookies" }] },
        "conditions": { "field": "product.id", "op": "eq", "value": "openai/codex" },
    });
    let body = json!({ "definition": access, "expectedRevision": 0, "sourceRef": source("forge_access_policy", "no-codex", &json!({})) });
    apply(client, "access-policies", "access", &body).await;
    let rego = "package forge.resource\ndefault match := {\"matched\": false}\nmatch := {\"matched\": true} if input.request.postgres.command == \"DROP\"\n";
    let resource = json!({
        "id": "no-drop", "name": "No drop", "enabled": false, "action": "block", "enforcement": "monitor",
        "logic": { "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.resource.match",
            "module": rego, "moduleSha256": provost_policy::sha256_hex(rego.as_bytes()) },
    });
    let body = json!({ "definition": resource, "expectedRevision": 0, "sourceRef": source("forge_resource_policy", "no-drop", &json!({})) });
    apply(client, "resource-policies", "resource", &body).await;
    let acl = json!({ "id": "acl", "skillId": "pdf-filler", "enabled": true, "subjects": { "everyone": true }, "effect": "allow" });
    let body = json!({ "definition": acl, "expectedRevision": 0,
        "sourceRef": source("forge_skill_acl", "acl", &json!({ "skillId": "pdf-filler", "subjects": { "everyone": true } })) });
    let made = apply(client, "skill-acls", "skill_acl", &body).await;
    assert_eq!(
        made["definition"]["skillId"], "pdf-filler",
        "as authored, whatever it was resolved to: {skill}"
    );
    // An id names one policy, whatever the family; a policy of another family is not there.
    client.read("/content-policies/acl").await.is(404);
    let taken = json!({ "family": "access", "definition": { "id": "acl", "name": "x", "action": "allow",
        "enforcementSurfaces": ["provider"], "conditions": access["conditions"] }, "sourceRef": {}, "expectedRevision": 0 });
    client
        .write("POST", "/policy-plans/validate", Some(&taken))
        .await
        .is(409);
}

/// The principal is the boundary; labels coordinate (client contract §3.12).
async fn authority(app: &App, client: &mut Client) {
    let own = client.read("/policy-authority/no-codex").await.is(200);
    let expected = json!({ "item": { "id": "no-codex", "currentRevision": 1, "managementMode": "terraform",
        "managerId": "platform-team", "managerInstance": "production" } });
    assert_eq!(own, expected);
    let read = client.read("/access-policies/no-codex").await.is(200);
    let definition = read["item"]["definition"].clone();
    let write = json!({ "definition": definition, "expectedRevision": 1 });
    // An ordinary writer, and another principal under the same labels.
    let path = "/access-policies/no-codex";
    app.write("PUT", path, write.clone())
        .await
        .refused(409, "conflict");
    let owner = std::mem::replace(&mut client.token, app.admin.clone());
    let plan =
        json!({ "family": "access", "definition": definition, "sourceRef": {}, "expectedRevision": 1 });
    client
        .write("POST", "/policy-plans/validate", Some(&plan))
        .await
        .is(409);
    client
        .write("DELETE", &format!("{path}?expectedRevision=1"), None)
        .await
        .is(409);
    client
        .write(
            "POST",
            "/policy-authority/no-codex/release",
            Some(&json!({ "expectedRevision": 1 })),
        )
        .await
        .is(409);
    client.token = owner;
    hand_over(app, client, &own, &plan, write).await;
}

/// Released, a policy is the service's; claimed, it is theirs again. Neither is a revision.
async fn hand_over(app: &App, client: &mut Client, own: &Value, plan: &Value, write: Value) {
    let path = "/access-policies/no-codex";
    client
        .write(
            "POST",
            "/policy-authority/no-codex/release",
            Some(&json!({ "expectedRevision": 7 })),
        )
        .await
        .is(409);
    let released = client
        .write(
            "POST",
            "/policy-authority/no-codex/release",
            Some(&json!({ "expectedRevision": 1 })),
        )
        .await;
    assert_eq!((released.status, released.body.len()), (204, 0));
    client
        .write(
            "POST",
            "/policy-authority/no-codex/release",
            Some(&json!({ "expectedRevision": 1 })),
        )
        .await
        .is(409);
    let free = client.read("/policy-authority/no-codex").await.is(200);
    assert_eq!(
        free,
        json!({ "item": { "id": "no-codex", "currentRevision": 1, "managementMode": "forge" } })
    );
    client
        .write("POST", "/policy-plans/validate", Some(plan))
        .await
        .is(409);
    let claim = |revision: i64, instance: &str| json!({ "expectedRevision": revision, "managerId": "platform-team", "managerInstance": instance });
    client
        .write(
            "POST",
            "/policy-authority/no-codex/claim",
            Some(&claim(2, "production")),
        )
        .await
        .is(409);
    client
        .write(
            "POST",
            "/policy-authority/no-codex/claim",
            Some(&claim(1, "staging")),
        )
        .await
        .is(409);
    let claimed = client
        .write(
            "POST",
            "/policy-authority/no-codex/claim",
            Some(&claim(1, "production")),
        )
        .await
        .is(200);
    assert_eq!(claimed, *own);
    client
        .write(
            "POST",
            "/policy-authority/no-codex/claim",
            Some(&claim(1, "production")),
        )
        .await
        .is(409);
    app.write("PUT", path, write).await.refused(409, "conflict");
    client
        .write(
            "POST",
            "/policy-authority/nothing/claim",
            Some(&claim(1, "production")),
        )
        .await
        .is(404);
}

/// The client writes slashes as they are: ids reach the server as more segments (client contract §1.1).
async fn slashes(client: &mut Client) {
    for id in ["team/eu:prod@2026.1-x", "a/claim", "claim", "release/release"] {
        let definition = json!({
            "id": id, "name": id, "enabled": true, "action": "nudge", "evaluateOn": ["prompt"], "acknowledgeBroadScope": true,
            "conditions": { "field": "request.prompt", "op": "contains", "value": "secret" },
        });
        let body = json!({ "definition": definition, "expectedRevision": 0, "sourceRef": source("forge_content_policy", id, &json!({})) });
        let made = apply(client, "content-policies", "content", &body).await;
        assert_eq!(
            client.read(&format!("/content-policies/{id}")).await.is(200)["item"],
            made
        );
        let encoded = id.replace('/', "%2F").replace(':', "%3A").replace('@', "%40");
        assert_eq!(
            client.read(&format!("/content-policies/{encoded}")).await.is(200)["item"],
            made
        );
        assert_eq!(
            client.read(&format!("/policy-authority/{id}")).await.is(200)["item"]["id"],
            id
        );
        let release = json!({ "expectedRevision": 1 });
        let released = client
            .write("POST", &format!("/policy-authority/{id}/release"), Some(&release))
            .await;
        assert_eq!(released.status, 204, "{id}");
        let claim =
            json!({ "expectedRevision": 1, "managerId": "platform-team", "managerInstance": "production" });
        let claimed = client
            .write(
                "POST",
                &format!("/policy-authority/{encoded}/claim"),
                Some(&claim),
            )
            .await;
        assert_eq!(claimed.is(200)["item"]["id"], id);
        let gone = client
            .write(
                "DELETE",
                &format!("/content-policies/{id}?expectedRevision=1"),
                None,
            )
            .await;
        assert_eq!(gone.status, 204);
    }
}
