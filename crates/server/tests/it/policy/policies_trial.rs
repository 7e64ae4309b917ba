//! Policies that are tried: examples and the starter pack come out as their cases say, nothing is recorded, and nothing is told that
//! the caller could not read.

use crate::areas::directory::user;
use crate::policy::decisions::{content, decide_one, policy};
use crate::support::{App, Reply, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

async fn tried(app: &App, body: Value) -> Reply {
    app.request("POST", "/policies/test").json(body).send().await
}

/// Returns the policies of a folder with their cases.
fn files(folder: &str) -> Vec<(String, Value, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let is_policy = |path: &&PathBuf| !path.to_str().unwrap().ends_with(".cases.json");
    let policies = paths.iter().filter(is_policy);
    policies
        .map(|path| {
            let cases = path.with_extension("cases.json");
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                read(path),
                read(&cases),
            )
        })
        .collect()
}

/// Proves DE-13.
#[test]
fn every_example_and_starter_policy_is_what_its_cases_say_and_nothing_is_recorded() {
    each("trial_files", |app: Arc<App>| async move {
        let (examples, starters) = (
            files("crates/policy/examples/language"),
            files("policies/starter"),
        );
        assert!(examples.len() >= 30 && starters.len() == 10);
        for (name, file, cases) in examples.iter().chain(&starters) {
            let family = file["family"].as_str().unwrap();
            let schema = app
                .get(&format!("/policy-contracts/schema?family={family}"))
                .await;
            let validator = jsonschema::validator_for(schema.ok()).unwrap();
            let broken: Vec<String> = validator
                .iter_errors(&file["definition"])
                .map(|error| error.to_string())
                .collect();
            assert_eq!(broken, [""; 0], "{name}");
            let body = json!({ "family": family, "definition": file["definition"], "cases": cases["cases"],
                "explain": cases["cases"].as_array().unwrap().len() <= 10 });
            let answer = tried(&app, body).await;
            let answer = answer.ok();
            for result in answer["results"].as_array().unwrap() {
                assert_eq!(result["passed"], true, "{name}: {result:#}");
            }
            assert_eq!(answer["failed"], 0);
            assert!(answer.get("warnings").is_none(), "{name}: {}", answer["warnings"]);
        }
        let status = app.get("/policies/history/status").await;
        assert_eq!(status.ok()["events"], 0, "{}", status.text());
    });
}

fn case(attributes: &Value) -> Value {
    json!({ "event": { "occasion": "pre_tool", "attributes": attributes } })
}

/// Proves DE-12.
#[test]
fn a_test_of_live_policies_needs_the_scopes_of_what_it_names_and_decides_as_a_decision_does() {
    each("trial_live", |app: Arc<App>| async move {
        let ada = user(&app, "ada@acme.test").await;
        let scope = json!({ "appliesTo": { "users": [ada] }, "acknowledgeBroadScope": null });
        policy(&app, Family::Content, content("adas", "block", &scope)).await;
        let (_, reader) = app.account("reader", "auditor", &["policies:read"]).await;
        let (_, knowing) = app
            .account("knowing", "auditor", &["policies:read", "directory:read"])
            .await;
        let ask = async |token: &str, attributes: Value| {
            let body = json!({ "cases": [case(&attributes)] });
            app.request("POST", "/policies/test")
                .token(token)
                .json(body)
                .send()
                .await
        };
        let named = json!({ "tool.id": "x", "identity.user_id": "Ada@acme.test" });
        let refused = ask(&reader, named.clone()).await;
        refused.refused(403, "insufficient_scope");
        assert!(refused.text().contains("directory:read"), "{}", refused.text());
        for (attributes, scope) in [
            (json!({ "identity.group_ids": ["g"] }), "directory:read"),
            (
                json!({ "identity.service_account_id": "sa" }),
                "service_accounts:read",
            ),
            (json!({ "skill.id": "s" }), "registry:read"),
            (json!({ "resource.id": "r" }), "resources:read"),
        ] {
            let refused = ask(&reader, attributes).await;
            refused.refused(403, "insufficient_scope");
            assert!(refused.text().contains(scope), "{scope}: {}", refused.text());
        }
        assert_eq!(
            ask(&reader, json!({ "tool.id": "x" })).await.ok()["results"][0]["action"],
            "allow"
        );
        let said = ask(&knowing, named.clone()).await;
        let decided = decide_one(&app, &named).await;
        assert_eq!(decided["action"], "block");
        let mut said = said.ok()["results"][0].clone();
        let mut decided = decided.clone();
        decided.as_object_mut().unwrap().remove("eventId");
        said.as_object_mut().unwrap().remove("passed");
        assert_eq!(said, decided);
        // Alone, a definition knows nobody: its words and those of the event are words.
        let definition = content("of-ada", "block", &json!({ "appliesTo": { "users": ["ada"] } }));
        let body = json!({ "family": "content", "definition": definition, "cases": [
            case(&json!({ "tool.id": "x", "identity.user_id": "ADA" })), case(&named),
            case(&json!({ "tool.id": "x", "identity.user_id": ada })) ] });
        let answer = app.request("POST", "/policies/test").token(&reader).json(body);
        let answer = answer.send().await;
        let actions: Vec<&Value> = answer.ok()["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["action"])
            .collect();
        assert_eq!(actions, ["block", "allow", "allow"]);
    });
}

#[test]
fn what_happened_before_is_what_the_case_says_and_no_recorded_event() {
    each("trial_past", |app: Arc<App>| async move {
        let change =
            json!({ "conditions": { "hasPriorEvent": { "field": "tool.id", "op": "eq", "value": "Read" } } });
        policy(&app, Family::Content, content("after", "block", &change)).await;
        let of = |tool: &str| json!({ "tool.id": tool, "device.id": "laptop" });
        decide_one(&app, &of("Read")).await;
        assert_eq!(decide_one(&app, &of("Bash")).await["action"], "block");
        let mut before = case(&of("Bash"));
        let alone = tried(&app, json!({ "cases": [before] })).await;
        assert_eq!(alone.ok()["results"][0]["action"], "allow", "{}", alone.text());
        before["earlier"] = json!([{ "ago": "29d", "event": case(&of("Read"))["event"] }]);
        let after = tried(&app, json!({ "cases": [before], "explain": true })).await;
        let result = &after.ok()["results"][0];
        assert_eq!(result["action"], "block");
        let parts = result["explanations"][0]["parts"].as_array().unwrap();
        assert!(
            parts.contains(&json!({ "path": "/conditions", "holds": "true" })),
            "{parts:?}"
        );
    });
}

#[test]
fn a_disabled_definition_is_judged_as_if_it_were_enabled_and_is_told_what_to_change() {
    each("trial_disabled", |app: Arc<App>| async move {
        let definition = content(
            "off",
            "block",
            &json!({ "enabled": false, "evaluateOn": ["prompt"],
            "conditions": { "any": [{ "field": "request.prompt", "op": "contains", "value": "x" },
                { "field": "tool.id", "op": "eq", "value": "y" }] } }),
        );
        let event = json!({ "event": { "occasion": "prompt", "attributes": { "request.prompt": "axb" } },
            "expect": { "action": "allow" } });
        let body =
            json!({ "family": "content", "definition": definition, "cases": [event], "explain": true });
        let answer = tried(&app, body).await;
        let result = &answer.ok()["results"][0];
        assert_eq!(
            (&result["action"], &result["passed"]),
            (&json!("block"), &json!(false))
        );
        assert_eq!(
            (&answer.json["passed"], &answer.json["failed"]),
            (&json!(0), &json!(1))
        );
        let told: Vec<(&str, &str)> = result["explanations"][0]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| (part["path"].as_str().unwrap(), part["holds"].as_str().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                ("/evaluateOn", "true"),
                ("/conditions", "true"),
                ("/conditions/any/0", "true"),
                ("/conditions/any/1", "false"),
            ]
        );
    });
}

#[test]
fn what_is_no_test_is_refused_with_its_places() {
    each("trial_refused", |app: Arc<App>| async move {
        let definition = content("p", "block", &json!({}));
        let good = case(&json!({ "tool.id": "x" }));
        let refused = async |body: Value, place: &str| {
            let reply = tried(&app, body.clone()).await;
            assert!(
                (400..=422).contains(&reply.status.as_u16()),
                "{body} {}",
                reply.text()
            );
            assert!(reply.text().contains(place), "{place}: {}", reply.text());
        };
        for (case, place) in [
            (json!({}), "/cases/1/event"),
            (
                json!({ "event": { "occasion": "never" } }),
                "/cases/1/event/occasion",
            ),
            (
                json!({ "event": { "occasion": "prompt", "at": "2026-01-01T00:00:00Z" } }),
                "/cases/1/event/at",
            ),
            (
                json!({ "event": { "occasion": "prompt", "attributes": { "nothing": 1 } } }),
                "/cases/1/event/attributes/nothing",
            ),
            (
                json!({ "event": good["event"], "expect": { "action": "stop" } }),
                "/cases/1/expect/action",
            ),
            (
                json!({ "event": good["event"], "expected": {} }),
                "/cases/1/expected",
            ),
            (
                json!({ "event": good["event"], "earlier": [{ "ago": "31d", "event": good["event"] }] }),
                "/cases/1/earlier/0/ago",
            ),
        ] {
            refused(json!({ "cases": [good, case] }), place).await;
        }
        refused(json!({ "cases": vec![good.clone(); 101] }), "/cases").await;
        refused(
            json!({ "cases": vec![good.clone(); 11], "explain": true }),
            "/cases",
        )
        .await;
        let many = json!({ "event": good["event"], "earlier": vec![json!({ "ago": "1s", "event": good["event"] }); 50] });
        refused(json!({ "cases": vec![many; 20] }), "/cases").await;
        refused(json!({ "definition": definition, "cases": [] }), "/family").await;
        refused(json!({ "family": "content", "cases": [] }), "/definition").await;
        let wrong = content("p", "stop", &json!({}));
        refused(
            json!({ "family": "content", "definition": wrong, "cases": [] }),
            "/definition/action",
        )
        .await;
        assert_eq!(
            tried(&app, json!({ "cases": [] })).await.ok()["results"],
            json!([])
        );
    });
}

#[test]
fn the_schema_says_how_long_ago_something_may_have_been() {
    each("trial_ago", |app: Arc<App>| async move {
        let document: Value =
            serde_json::from_str(include_str!("../../../../../openapi/headless-v1.json")).unwrap();
        let schema = document
            .pointer(
                "/paths/~1api~1headless~1v1~1organizations~1{organizationId}~1policies~1test/post/requestBody/content\
                 /application~1json/schema/properties/cases/items/properties/earlier/items/properties/ago",
            )
            .unwrap();
        let schema = jsonschema::validator_for(schema).unwrap();
        for (ago, is_taken) in [
            ("1s", true),
            ("999999s", true),
            ("2592000s", true),
            ("2592001s", false),
            ("10000000s", false),
            ("43200m", true),
            ("43201m", false),
            ("720h", true),
            ("721h", false),
            ("30d", true),
            ("31d", false),
            ("0d", false),
            ("01d", false),
            ("100000000000000000000000000000d", false),
            ("1w", false),
            (" 1d", false),
        ] {
            let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": "Bash" } });
            let body = json!({ "cases": [{ "event": event, "earlier": [{ "ago": ago, "event": event }] }] });
            let reply = tried(&app, body).await;
            assert_eq!(
                reply.status,
                if is_taken { 200 } else { 400 },
                "{ago}: {}",
                reply.text()
            );
            assert_eq!(schema.is_valid(&json!(ago)), is_taken, "{ago}");
        }
    });
}
