//! What a gateway token may ask (DE-7).

use super::policy;
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// Proves DE-7.
#[test]
fn a_gateway_token_asks_about_its_own_skill_as_its_own_principal() {
    each("decide_gateway", |app: Arc<App>| async move {
        let (owner, person) = app.account("a person", "viewer", &[]).await;
        let item = app.skill("reading").await;
        let other = app.skill("writing").await;
        let receipt = app.install(&person, &item, "laptop").await;
        let token = receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned();
        let everyone =
            json!({ "id": "acl", "skillId": item, "subjects": { "everyone": true }, "effect": "block" });
        policy(&app, Family::SkillAcl, everyone).await;
        let ask = async |event: Value| {
            let call = app.request("POST", "/policies/decisions").token(&token);
            call.json(json!({ "events": [event] })).send().await
        };
        let skill = |attributes: Value| json!({ "occasion": "skill", "attributes": attributes });
        for allowed in [
            skill(json!({ "skill.id": item })),
            skill(json!({ "skill.id": "reading" })),
            skill(json!({ "skill.id": item, "identity.service_account_id": owner })),
        ] {
            assert_eq!(ask(allowed).await.ok()["decisions"][0]["action"], "block");
        }
        let tool = json!({ "occasion": "pre_tool", "attributes": { "skill.id": item, "tool.id": "t" } });
        assert_eq!(ask(tool).await.ok()["decisions"][0]["action"], "allow");
        for refused in [
            skill(json!({ "skill.id": other })),
            skill(json!({ "skill.id": "writing" })),
            skill(json!({ "skill.id": "nothing" })),
            skill(json!({})),
            json!({ "occasion": "skill", "missing": ["skill.id"] }),
            skill(json!({ "skill.id": item, "identity.user_id": "somebody" })),
            skill(json!({ "skill.id": item, "identity.group_ids": ["g"] })),
            skill(json!({ "skill.id": item, "device.id": "d" })),
            skill(json!({ "skill.id": item, "identity.service_account_id": app.admin_id })),
            json!({ "occasion": "skill", "attributes": { "skill.id": item }, "missing": ["identity.user_id"] }),
            json!({ "occasion": "skill", "attributes": { "skill.id": item }, "missing": ["identity.service_account_id"] }),
            json!({ "occasion": "pre_tool", "attributes": { "tool.id": "t" } }),
            json!({ "occasion": "resource", "attributes": { "resource.id": "r" } }),
            json!({ "occasion": "provider", "attributes": { "skill.id": item } }),
        ] {
            ask(refused).await.refused(403, "insufficient_scope");
        }
        // One such event among its own refuses them all.
        let events = json!([
            skill(json!({ "skill.id": item })),
            skill(json!({ "skill.id": other }))
        ]);
        let call = app.request("POST", "/policies/decisions").token(&token);
        call.json(json!({ "events": events }))
            .send()
            .await
            .refused(403, "insufficient_scope");
    });
}

#[test]
fn deciding_is_a_scope_that_nothing_implies() {
    each("decide_scope", |app: Arc<App>| async move {
        let body = json!({ "events": [{ "occasion": "prompt" }] });
        let ask = async |token: &str| {
            let call = app.request("POST", "/policies/decisions").token(token);
            call.json(body.clone()).send().await
        };
        let (_, writer) = app
            .account("writer", "admin", &["policies:write", "policies:backtest"])
            .await;
        ask(&writer).await.refused(403, "insufficient_scope");
        let (_, hook) = app.account("hook", "operator", &["policies:decide"]).await;
        ask(&hook).await.ok();
        for role in ["auditor", "viewer"] {
            let (_, token) = app.account(role, role, &[]).await;
            ask(&token).await.refused(403, "role_forbidden");
        }
    });
}
