//! No control is silent: a value that nothing has, and a policy that matches nothing, are told when the policy is planned and written.

use crate::policy::decisions::{call, content, decide};
use crate::support::{App, each, fresh_key, with_trio};
use provost_areas_policy::history::count_values;
use serde_json::{Value, json};
use std::sync::Arc;

/// Proves HS-15.
#[test]
fn a_value_that_no_event_had_is_told_with_what_is_near_and_changes_nothing_else() {
    each("unseen_values", |app: Arc<App>| async move {
        let events: Vec<Value> = [("Bash", 5), ("Read", 3)]
            .into_iter()
            .flat_map(|(tool, count)| vec![call(&json!({ "tool.id": tool, "llm.model": "m" })); count])
            .collect();
        decide(&app, &events).await;
        let wanted = content(
            "near",
            "flag_for_review",
            &json!({ "conditions": {
            "all": [{ "field": "tool.id", "op": "in", "value": ["Bsah", "bash", "Unheard"] }, { "field": "mcp.server_id", "op": "eq", "value": "x" }] } }),
        );
        let plan = |token: Option<String>| {
            let (app, wanted) = (app.clone(), wanted.clone());
            async move {
                let body = json!({ "family": "content", "definition": wanted, "expectedRevision": 0 });
                let call = app.request("POST", "/policy-plans/validate").json(body);
                let call = match &token {
                    Some(token) => call.token(token),
                    None => call,
                };
                call.send().await.ok().clone()
            }
        };
        // Nothing was counted yet: nothing is known to be unheard of.
        let blind = plan(None).await;
        let of_values = |answer: &Value| -> Vec<Value> {
            let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
            warnings
                .into_iter()
                .filter(|one| one["code"] == "value_never_seen")
                .collect()
        };
        assert_eq!(of_values(&blind), [] as [Value; 0]);
        count_values(&app.kernel).await.unwrap();
        count_values(&app.kernel).await.unwrap();
        let (_, writer) = app
            .account("writer", "admin", &["policies:read", "policies:write"])
            .await;
        let (all, some) = (plan(None).await, plan(Some(writer.clone())).await);
        let found = of_values(&all);
        assert_eq!(found.len(), 2, "{all}");
        assert_eq!(found[0]["path"], "/definition/conditions/all/0/value/0");
        assert_eq!(found[0]["near"], json!([{ "value": "Bash", "events": 5 }]));
        assert_eq!(
            (&found[1]["path"], found[1].get("near")),
            (&json!("/definition/conditions/all/0/value/2"), None)
        );
        // Figures are for those who may read the history; what is near is not.
        assert_eq!(of_values(&some)[0]["near"], json!([{ "value": "Bash" }]));
        // A plan is the same plan, and a write answers the same warnings and keeps the same record.
        assert_eq!(all["validationToken"], blind["validationToken"]);
        let body = json!({ "definition": wanted, "validationToken": blind["validationToken"] });
        let body = with_trio(body, &fresh_key());
        let write = || app.request("POST", "/content-policies").json(body.clone());
        let (made, again) = (write().send().await, write().send().await);
        assert_eq!(of_values(made.ok()), found);
        assert_eq!(made.json, again.json);
        let read = app.get("/content-policies/near").await;
        assert!(read.ok().get("warnings").is_none());
        assert_eq!(read.json["item"]["definition"], wanted);
        let update = json!({ "definition": wanted, "expectedRevision": 1 });
        let updated = app.write("PUT", "/content-policies/near", update).await;
        assert_eq!(of_values(updated.ok()), found);
        // Who may only read policies learns nothing of what was recorded.
        let (_, reader) = app.account("reader", "auditor", &["policies:read"]).await;
        let body = json!({ "family": "content", "definition": wanted, "cases": [] });
        let tried = app.request("POST", "/policies/test").token(&reader).json(body);
        assert_eq!(of_values(tried.send().await.ok()), [] as [Value; 0]);
    });
}

#[test]
fn values_of_days_that_are_over_are_forgotten_and_other_organizations_have_their_own() {
    each("seen_days", |app: Arc<App>| async move {
        decide(&app, &[call(&json!({ "tool.id": "Old" }))]).await;
        count_values(&app.kernel).await.unwrap();
        let (organization, admin) = app.other_organization("Globex").await;
        let other = app.view_of(organization, admin);
        decide(&other, &[call(&json!({ "tool.id": "Theirs" }))]).await;
        count_values(&app.kernel).await.unwrap();
        let near = async |app: &App, tool: &str| {
            let wanted = content(
                &fresh_key(),
                "flag_for_review",
                &json!({ "conditions": { "field": "tool.id", "op": "eq", "value": tool } }),
            );
            let body = json!({ "family": "content", "definition": wanted, "expectedRevision": 0 });
            let answer = app
                .request("POST", "/policy-plans/validate")
                .json(body)
                .send()
                .await;
            answer.ok()["warnings"][0]["near"].clone()
        };
        assert_eq!(near(&app, "Odl").await, json!([{ "value": "Old", "events": 1 }]));
        assert_eq!(near(&app, "Theris").await, Value::Null);
        assert_eq!(
            near(&other, "Theris").await,
            json!([{ "value": "Theirs", "events": 1 }])
        );
        app.advance(32 * 24 * 3_600);
        decide(&app, &[call(&json!({ "tool.id": "New" }))]).await;
        count_values(&app.kernel).await.unwrap();
        assert_eq!(near(&app, "Odl").await, Value::Null);
        assert_eq!(near(&app, "Nwe").await, json!([{ "value": "New", "events": 1 }]));
    });
}

#[test]
fn a_policy_that_can_never_match_is_told() {
    each("never_matches", |app: Arc<App>| async move {
        let never = content("never", "flag_for_review", &json!({ "evaluateOn": ["prompt"] }));
        let made = app
            .write("POST", "/content-policies", json!({ "definition": never }))
            .await;
        assert_eq!(
            made.ok()["warnings"][0]["code"],
            "never_matches",
            "{}",
            made.text()
        );
        let fine = content("fine", "flag_for_review", &json!({}));
        let made = app
            .write("POST", "/content-policies", json!({ "definition": fine }))
            .await;
        assert!(made.ok().get("warnings").is_none());
    });
}
