//! What names a record that is deleted: it is said before, it is answered, and it is shown afterwards.

use crate::areas::directory::{chunk, end, group, import, run_jobs, user};
use crate::areas::policies::definition;
use crate::areas::resources::{credential_body, make_credential, make_resource};
use crate::support::{App, Reply, each, fresh_key};
use serde_json::{Value, json};
use std::sync::Arc;

async fn unconfirmed(app: &App, method: &str, path: &str) -> Reply {
    app.request(method, path)
        .header("idempotency-key", &fresh_key())
        .header("x-reason", "a test")
        .send()
        .await
}

async fn policy(app: &App, id: &str, scope: Value, enabled: bool) {
    let mut wanted = definition("resource-policies", id, "");
    wanted["appliesTo"] = scope;
    wanted["enabled"] = enabled.into();
    let body = json!({ "definition": wanted });
    app.write("POST", "/resource-policies", body).await.ok();
}

/// Returns the ids of policies that a list shows with lost references, with those.
async fn shown(app: &App) -> Vec<(String, Value)> {
    let page = app.get("/policies?limit=100").await;
    let policies = page.ok()["policies"].as_array().unwrap().iter();
    let lost = policies.filter_map(|policy| {
        let lost = policy.get("lostReferences")?.clone();
        Some((policy["id"].as_str().unwrap().to_owned(), lost))
    });
    lost.collect()
}

async fn lost_events(app: &App) -> Vec<(String, String)> {
    let events = app.events(0).await.into_iter();
    let lost = events.filter(|(kind, _)| kind == "policy.reference_lost");
    let text = |data: &Value, member: &str| data[member].as_str().unwrap().to_owned();
    lost.map(|(_, data)| (text(&data, "policyId"), text(&data, "id")))
        .collect()
}

fn policies(lost: &Value) -> Vec<&str> {
    lost.as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["policyId"].as_str())
        .collect()
}

/// Proves DI-13.
#[test]
fn deleting_what_a_policy_names_says_so_and_the_list_shows_it() {
    each("lost_references", |app: Arc<App>| async move {
        let resource = make_resource(&app).await;
        let (account, _) = app.account("deployer", "viewer", &["policies:read"]).await;
        let skill = app.skill("pdf-filler").await;
        let records = [
            ("users", user(&app, "ada").await, "/directory/users", "DELETE"),
            ("groups", group(&app, "Dev").await, "/directory/groups", "DELETE"),
            ("serviceAccounts", account, "/service-accounts", "DELETE"),
            ("resources", resource, "/resources", "DELETE"),
        ];
        for (member, id, collection, method) in records {
            let path = format!("{collection}/{id}");
            policy(&app, &format!("live-{member}"), json!({ member: [id] }), true).await;
            policy(&app, &format!("draft-{member}"), json!({ member: [id] }), false).await;
            let refused = unconfirmed(&app, method, &path).await;
            refused.refused(400, "confirmation_required");
            let expected = [format!("live-{member}"), format!("draft-{member}")];
            assert_eq!(policies(&refused.json["lostReferences"]), expected);
            assert_eq!(
                refused.json["lostReferences"][0]["places"],
                json!([format!("/appliesTo/{member}/0")])
            );
            assert_eq!(shown(&app).await.len() % 2, 0);
            app.get(&path).await.ok();
            let done = app.delete(&path).await;
            assert_eq!(done.status.as_u16(), 200, "{}", done.text());
            assert_eq!(policies(&done.json["lostReferences"]), expected);
            let lost = shown(&app).await;
            let newest: Vec<&str> = lost.iter().rev().take(2).map(|(id, _)| id.as_str()).collect();
            assert_eq!(newest, [expected[1].as_str(), expected[0].as_str()]);
            assert_eq!(lost.last().unwrap().1[0]["id"], id.as_str());
            let events = lost_events(&app).await;
            assert_eq!(
                events[events.len() - 2..],
                expected.map(|policy| (policy, id.clone()))
            );
            unconfirmed(&app, method, &path).await.refused(404, "not_found");
        }
        // A skill is withdrawn, not deleted.
        let acl = definition("skill-acls", "acl", &skill);
        app.write("POST", "/skill-acls", json!({ "definition": acl }))
            .await
            .ok();
        let path = format!("/skill-registry/{skill}/withdraw");
        let refused = app.write("POST", &path, json!({})).await;
        refused.refused(400, "confirmation_required");
        assert_eq!(policies(&refused.json["lostReferences"]), ["acl"]);
        let done = app
            .write("POST", &path, json!({ "confirm": true }))
            .await
            .ok()
            .clone();
        assert_eq!(policies(&done["lostReferences"]), ["acl"]);
        let again = app
            .write("POST", &path, json!({ "confirm": true }))
            .await
            .ok()
            .clone();
        assert_eq!(again.get("lostReferences"), None);
        assert_eq!(shown(&app).await.last().unwrap().0, "acl");
    });
}

#[test]
fn what_nothing_names_goes_as_before() {
    each("lost_nothing", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, "ada").await, user(&app, "bob").await);
        policy(&app, "guard", json!({ "users": [bob] }), true).await;
        let path = format!("/directory/users/{ada}");
        let refused = unconfirmed(&app, "DELETE", &path).await;
        refused.refused(400, "confirmation_required");
        assert_eq!(refused.json["lostReferences"], json!([]));
        let done = app.delete(&path).await;
        assert_eq!((done.status.as_u16(), done.bytes.len()), (204, 0));
        assert_eq!(lost_events(&app).await, []);
        assert_eq!(shown(&app).await, []);
    });
}

/// Proves DI-13.
#[test]
fn words_modules_and_assignments_are_references_too() {
    each("lost_words", |app: Arc<App>| async move {
        // The policy was written before she was in the directory, so that it holds her name.
        let mut early = definition("content-policies", "early", "");
        early["conditions"] = json!({ "field": "identity.user_id", "op": "eq", "value": "Ada@acme.test" });
        app.write("POST", "/content-policies", json!({ "definition": early }))
            .await
            .ok();
        let made = json!({ "loginName": "ada", "email": "ada@acme.test" });
        let made = app.write("POST", "/directory/users", made).await;
        let ada = made.ok()["user"]["id"].as_str().unwrap().to_owned();
        let resource = make_resource(&app).await;
        let credential = make_credential(&app, &resource).await;
        let mut assigned = credential_body();
        assigned["assignedTo"] = json!({ "users": [ada], "groups": [], "serviceAccounts": [] });
        let path = format!("/resources/{resource}/credentials/{credential}");
        app.write("PUT", &path, assigned).await.ok();
        let refused = unconfirmed(&app, "DELETE", &format!("/directory/users/{ada}")).await;
        refused.refused(400, "confirmation_required");
        let lost = &refused.json["lostReferences"];
        assert_eq!(policies(lost), ["early"]);
        assert_eq!(lost[0]["places"], json!(["/conditions/value"]));
        assert_eq!(
            lost[1],
            json!({ "by": "credential", "credentialId": credential, "kind": "user", "id": ada })
        );
    });
}

/// INVARIANT DI-16.
/// Proves DI-16.
#[test]
fn who_may_not_read_what_names_a_record_is_told_how_many_there_are() {
    each("lost_counts", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, "ada").await, user(&app, "bob").await);
        let resource = make_resource(&app).await;
        let mut credentials = Vec::new();
        for id in ["one", "two"] {
            policy(&app, id, json!({ "users": [ada] }), true).await;
            let credential = make_credential(&app, &resource).await;
            let mut assigned = credential_body();
            assigned["name"] = id.into();
            assigned["assignedTo"] = json!({ "users": [ada, bob], "groups": [], "serviceAccounts": [] });
            let path = format!("/resources/{resource}/credentials/{credential}");
            app.write("PUT", &path, assigned).await.ok();
            credentials.push(credential);
        }
        let rights: [&[&str]; 4] = [
            &["directory:write"],
            &["directory:write", "policies:read"],
            &["directory:write", "resource_credentials:read"],
            &["directory:write", "policies:read", "resource_credentials:read"],
        ];
        let path = format!("/directory/users/{ada}");
        for scopes in rights {
            let (_, token) = app.account(&fresh_key(), "admin", scopes).await;
            let call = app.request("DELETE", &path).token(&token);
            let call = call
                .header("idempotency-key", &fresh_key())
                .header("x-reason", "a test");
            let refused = call.send().await;
            refused.refused(400, "confirmation_required");
            let lost = &refused.json["lostReferences"];
            let of = |by: &str| {
                let all = lost.as_array().unwrap().iter();
                all.filter(|one| one["by"] == by).cloned().collect::<Vec<Value>>()
            };
            let text = refused.text();
            if scopes.contains(&"policies:read") {
                assert_eq!(policies(lost), ["one", "two"]);
            } else {
                assert_eq!(
                    of("policy"),
                    [json!({ "by": "policy", "count": 2, "kind": "user", "id": ada })]
                );
                assert!(!text.contains("\"one\""), "{text}");
            }
            if scopes.contains(&"resource_credentials:read") {
                assert_eq!(of("credential").len(), 2);
            } else {
                let counted = json!({ "by": "credential", "count": 2, "kind": "user", "id": ada });
                assert_eq!(of("credential"), [counted]);
                assert!(credentials.iter().all(|id| !text.contains(id.as_str())), "{text}");
            }
        }
        // The answer says no more than the refusal, and the audit log has all of it for its overseers.
        let (_, token) = app.account(&fresh_key(), "admin", &["directory:write"]).await;
        let call = app
            .request("DELETE", &format!("/directory/users/{bob}"))
            .token(&token);
        let call = call
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "a test");
        let done = call.header("x-confirm", "true").send().await;
        assert_eq!(done.status.as_u16(), 200, "{}", done.text());
        assert!(
            credentials.iter().all(|id| !done.text().contains(id.as_str())),
            "{}",
            done.text()
        );
        app.settle().await;
        let entries = json!(app.entries(&app.organization, 0).await).to_string();
        let named = format!("\"credentialId\":\"{}\"", credentials[0]);
        assert!(entries.contains(&named), "{entries}");
    });
}

/// Proves DI-13.
#[test]
fn an_import_tells_of_what_it_takes_and_a_record_that_comes_back_is_guarded_again() {
    each("lost_import", |app: Arc<App>| async move {
        let (ada, dev) = (user(&app, "ada").await, group(&app, "Dev").await);
        policy(&app, "guard", json!({ "users": [ada], "groups": [dev] }), true).await;
        app.advance(1);
        let id = import(&app, json!({ "format": "jsonl", "mode": "replace" })).await;
        app.advance(1);
        chunk(&app, &id, 1, r#"{"type":"user","loginName":"new"}"#)
            .await
            .ok();
        let before = app
            .get(&format!("/directory/imports/{id}/removals"))
            .await
            .ok()
            .clone();
        assert_eq!(policies(&before["lostReferences"]), ["guard", "guard"]);
        end(&app, &id, "apply").await.ok();
        run_jobs(&app).await;
        let events = lost_events(&app).await;
        assert_eq!(
            events,
            [
                ("guard".to_owned(), ada.clone()),
                ("guard".to_owned(), dev.clone())
            ]
        );
        let gone = json!([{ "kind": "user", "id": ada }, { "kind": "group", "id": dev }]);
        assert_eq!(shown(&app).await, [("guard".to_owned(), gone)]);
        let id = import(&app, json!({ "format": "jsonl", "mode": "merge" })).await;
        let back = "{\"type\":\"user\",\"loginName\":\"ADA\"}\n{\"type\":\"group\",\"name\":\"dev\"}";
        chunk(&app, &id, 1, back).await.ok();
        end(&app, &id, "apply").await.ok();
        assert_eq!(shown(&app).await, []);
    });
}
