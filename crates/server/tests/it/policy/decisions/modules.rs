//! What a module is worth: it is unknown for what it reads, and a failure is never "no match".

use super::{call, decide, decide_one, policy, rego};
use crate::areas::directory;
use crate::policy::backtests_worker::{Worker, ended};
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

const START: &str = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\nmatch := {\"matched\": true} if";

/// Action, whether it is unknown, and the reason of the one policy.
fn verdict(decision: &Value) -> (&str, bool, Option<&str>) {
    (
        decision["action"].as_str().unwrap(),
        decision["unknown"].as_bool().unwrap(),
        decision["reasons"][0]["reason"].as_str(),
    )
}

const ALLOWED: (&str, bool, Option<&str>) = ("allow", false, None);
const MATCHED: (&str, bool, Option<&str>) = ("block", false, Some("matched"));
const UNKNOWN: (&str, bool, Option<&str>) = ("block", true, Some("evaluation_failed"));

/// Proves RG-4.
#[test]
fn a_module_is_judged_where_it_does_not_read_what_is_missing() {
    each("decide_module_reads", |app: Arc<App>| async move {
        policy(
            &app,
            Family::Content,
            rego("r", &format!("{START} input.tool.id == \"Bash\"")),
        )
        .await;
        // The directory does not know this user, so that nobody knows the groups.
        let by = |tool: &str| json!({ "tool.id": tool, "identity.user_id": "okta|17" });
        assert_eq!(verdict(&decide_one(&app, &by("Read")).await), ALLOWED);
        assert_eq!(verdict(&decide_one(&app, &by("Bash")).await), MATCHED);
        let many: Vec<Value> = ["Read", "Bash", "Edit", "Read"]
            .map(|tool| call(&by(tool)))
            .to_vec();
        let found = decide(&app, &many).await;
        let actions: Vec<&str> = found.iter().map(|decision| verdict(decision).0).collect();
        assert_eq!(actions, ["allow", "block", "allow", "allow"]);
        // What the caller does not know is unknown for who reads it, and for nobody else.
        let mut event = call(&json!({ "identity.user_id": "okta|17", "identity.group_ids": [] }));
        event["missing"] = json!(["tool.id"]);
        assert_eq!(verdict(&decide(&app, &[event.clone()]).await[0]), UNKNOWN);
        event["attributes"]["tool.id"] = "Read".into();
        event["missing"] = json!(["llm.model", "tool.result"]);
        assert_eq!(verdict(&decide(&app, &[event]).await[0]), ALLOWED);
    });
}

#[test]
fn a_module_is_unknown_where_it_reads_what_is_missing() {
    each("decide_module_unknown", |app: Arc<App>| async move {
        for (id, condition) in [
            ("itself", "\"grp_x\" in input.identity.group_ids"),
            ("negated", "{ not input.identity.group_ids; false }"),
            ("whole", "count(input.identity) == 9"),
            ("root", "input == {}"),
            ("key", "input.identity[input.stage] == 1"),
        ] {
            policy(&app, Family::Content, rego(id, &format!("{START} {condition}"))).await;
        }
        let stranger = decide_one(&app, &json!({ "tool.id": "t", "identity.user_id": "okta|17" })).await;
        assert_eq!(verdict(&stranger), UNKNOWN);
        assert_eq!(stranger["reasons"].as_array().unwrap().len(), 5, "{stranger}");
        // What a stranger claims is nothing that a module could rest on.
        let claimed = json!({ "tool.id": "t", "identity.user_id": "okta|17", "identity.group_ids": ["a"] });
        assert_eq!(verdict(&decide_one(&app, &claimed).await), UNKNOWN);
        let group = directory::group(&app, "a").await;
        let known = directory::user(&app, "ada").await;
        let member = format!("/directory/groups/{group}/members/{known}");
        app.write("PUT", &member, json!({})).await.ok();
        let known = json!({ "tool.id": "t", "identity.user_id": known });
        assert_eq!(verdict(&decide_one(&app, &known).await), ALLOWED);
    });
}

/// Proves RG-3.
#[test]
fn a_module_whose_built_in_or_reference_failed_is_never_no_match() {
    each("decide_module_refused", |app: Arc<App>| async move {
        let object = json!({ "tool.id": "Bash", "tool.input": { "command": "rm -rf /", "n": "5", "zero": 0, "bad": "(" } });
        let text = json!({ "tool.id": "Bash", "tool.input": "rm -rf /" });
        for (condition, on_object, on_text) in [
            ("contains(input.tool.input, \"rm -rf\")", UNKNOWN, MATCHED),
            (
                "helper\nhelper if contains(input.tool.input, \"rm -rf\")",
                UNKNOWN,
                MATCHED,
            ),
            ("input.tool.input.command == \"ls\"", ALLOWED, UNKNOWN),
            ("input.tool.input.n + 1 == 6", UNKNOWN, UNKNOWN),
            ("1 / input.tool.input.zero == 6", UNKNOWN, UNKNOWN),
            ("regex.match(input.tool.input.bad, \"rm\")", UNKNOWN, UNKNOWN),
            // Where the author said what then holds.
            (
                "{ is_string(input.tool.input); contains(input.tool.input, \"ls\") }",
                ALLOWED,
                ALLOWED,
            ),
            ("not contains(input.tool.input, \"rm -rf\")", MATCHED, ALLOWED),
            (
                "helper\ndefault helper := false\nhelper if contains(input.tool.input, \"rm -rf\")",
                ALLOWED,
                MATCHED,
            ),
            // A match that was found stands.
            (
                "contains(input.tool.input, \"x\")\nmatch := {\"matched\": true} if input.tool.id == \"Bash\"",
                MATCHED,
                MATCHED,
            ),
        ] {
            policy(&app, Family::Content, rego("r", &format!("{START} {condition}"))).await;
            assert_eq!(
                verdict(&decide_one(&app, &object).await),
                on_object,
                "{condition}"
            );
            assert_eq!(verdict(&decide_one(&app, &text).await), on_text, "{condition}");
            let stored = app.get("/content-policies/r").await;
            let revision = &stored.ok()["item"]["currentRevision"];
            let path = format!("/content-policies/r?expectedRevision={revision}");
            assert!(app.delete(&path).await.status.is_success());
        }
    });
}

#[test]
fn a_check_of_a_module_names_line_column_and_operand() {
    each("check_module_refused", |app: Arc<App>| async move {
        let check = async |condition: &str, input: Value| {
            let module = format!("{START} {{\n  input.tool.id == \"Bash\"\n  {condition}\n}}");
            let body = json!({ "family": "content", "module": module, "input": input });
            let call = app.request("POST", "/policy-code/rego/validate");
            call.json(body).send().await.ok().clone()
        };
        let input = json!({ "tool": { "id": "Bash", "input": { "command": "rm -rf /" } } });
        let found = check("contains(input.tool.input, \"rm -rf\")", input.clone()).await;
        assert_eq!(
            found["result"],
            json!({ "matched": true, "evaluationFailed": true }),
            "{found}"
        );
        let place = &found["diagnostics"][0];
        assert_eq!(
            (&place["line"], &place["column"]),
            (&json!(6), &json!(3)),
            "{found}"
        );
        let message = place["message"].as_str().unwrap();
        assert!(
            message.contains("contains refuses operand 1, `input.tool.input`, which is an object"),
            "{message}"
        );
        let found = check("input.tool.id.name == \"x\"", input.clone()).await;
        let place = &found["diagnostics"][0];
        assert_eq!(
            (&place["line"], &place["column"]),
            (&json!(6), &json!(3)),
            "{found}"
        );
        let message = place["message"].as_str().unwrap();
        assert!(
            message.contains("`input.tool.id.name` looks for the member \"name\" in a string"),
            "{message}"
        );
        // What is not reached, and what was taken care of, is no failure.
        let other = json!({ "tool": { "id": "Read", "input": {} } });
        let found = check("contains(input.tool.input, \"rm -rf\")", other).await;
        assert_eq!(
            (&found["result"], &found["diagnostics"]),
            (&json!({ "matched": false }), &json!([]))
        );
        let found = check("not contains(input.tool.input, \"rm -rf\")", input).await;
        assert_eq!(
            (&found["result"], &found["diagnostics"]),
            (&json!({ "matched": true }), &json!([]))
        );
    });
}

/// Somebody with an address, in a group; an account, a skill.
async fn people(app: &App) -> String {
    let body = json!({ "loginName": "Ada@acme.test", "email": "ada.lovelace@acme.test" });
    let made = app.write("POST", "/directory/users", body).await;
    let ada = made.ok()["user"]["id"].as_str().unwrap().to_owned();
    let group = directory::group(app, "Contractors").await;
    let path = format!("/directory/groups/{group}/members/{ada}");
    app.write("PUT", &path, json!({})).await.ok();
    directory::user(app, "bob@acme.test").await;
    app.account("Build Robot", "viewer", &[]).await;
    ada
}

/// Proves RG-5.
#[test]
fn a_module_that_compares_an_id_with_a_word_holds_until_it_is_changed() {
    each("module_words", |app: Arc<App>| async move {
        let ada = people(&app).await;
        let user = |condition: &str| format!("{START} {condition}");
        for condition in [
            "input.identity.user_id == \"ada@acme.test\"",
            "input.identity.user_id == \"ADA.lovelace@acme.test \"",
            "{ some who in {\"eve@acme.test\", \"ada@acme.test\"}; input.identity.user_id == who }",
            "startswith(input.identity.user_id, \"ada.\")",
            "regex.match(\"^Ada@\", input.identity.user_id)",
            "input.identity.user_id in admins\nadmins := {\"ada@acme.test\"}",
            "\"Contractors\" in input.identity.group_ids",
            "count({g | some g in input.identity.group_ids} & {\"contractors\"}) == 1",
            "{ input.identity.user_id == \"ada@acme.test\"; \"contractors\" in input.identity.group_ids }",
            // A word in place of the id makes no match go away.
            "not input.identity.user_id == \"ada@acme.test\"",
        ] {
            policy(&app, Family::Content, rego("r", &user(condition))).await;
            for word in ["ada@acme.test", " ADA.Lovelace@acme.test", ada.as_str()] {
                let found = decide_one(&app, &json!({ "tool.id": "t", "identity.user_id": word })).await;
                assert_eq!(verdict(&found), MATCHED, "{word} {condition}");
            }
            if !condition.starts_with("not") {
                let bob = json!({ "tool.id": "t", "identity.user_id": "bob@acme.test" });
                assert_eq!(verdict(&decide_one(&app, &bob).await), ALLOWED, "{condition}");
            }
            drop_policy(&app, "r").await;
        }
        // Who is suspended, and who has no record, is called by words as well.
        let condition = "input.identity.user_id in {\"ada@acme.test\", \"Eve\"}";
        policy(&app, Family::Content, rego("r", &user(condition))).await;
        app.write("POST", &format!("/directory/users/{ada}/suspend"), json!({}))
            .await
            .ok();
        for word in ["ada.lovelace@acme.test", "EVE "] {
            let found = decide_one(&app, &json!({ "tool.id": "t", "identity.user_id": word })).await;
            assert_eq!(verdict(&found), MATCHED, "{word}");
        }
        // An account is not a user of that name.
        let robot = json!({ "tool.id": "t", "identity.service_account_id": "Build Robot" });
        assert_eq!(verdict(&decide_one(&app, &robot).await), ALLOWED);
        drop_policy(&app, "r").await;
        let condition = "input.identity.service_account_id == \"build robot\"";
        policy(&app, Family::Content, rego("r", &user(condition))).await;
        assert_eq!(verdict(&decide_one(&app, &robot).await), MATCHED);
        // Two who have the word: nobody can say.
        let body = json!({ "loginName": "ada@acme.test", "directoryId": "other" });
        app.write("POST", "/directory/users", body).await.ok();
        drop_policy(&app, "r").await;
        let condition = "input.identity.user_id == \"bob@acme.test\"";
        policy(&app, Family::Content, rego("r", &user(condition))).await;
        let both = json!({ "tool.id": "t", "identity.user_id": "ada@acme.test" });
        assert_eq!(verdict(&decide_one(&app, &both).await), UNKNOWN);
    });
}

async fn drop_policy(app: &App, id: &str) {
    let stored = app.get(&format!("/content-policies/{id}")).await;
    let revision = &stored.ok()["item"]["currentRevision"];
    let path = format!("/content-policies/{id}?expectedRevision={revision}");
    assert!(app.delete(&path).await.status.is_success());
}

#[test]
fn a_skill_is_called_by_its_name_in_a_module_that_compares_its_id() {
    each("module_skill", |app: Arc<App>| async move {
        let skill = app.skill("deploy").await;
        let module = format!("{START} input.skill.id == \"Deploy@1.0.0\"");
        let body = json!({ "definition": rego("r", &module) });
        let made = app.write("POST", "/content-policies", body).await;
        let message = made.ok()["warnings"][0]["message"].as_str().unwrap();
        assert!(message.contains("input.skill.words"), "{message}");
        for word in ["deploy", "DEPLOY@2", skill.as_str()] {
            let found = decide_one(&app, &json!({ "tool.id": "t", "skill.id": word })).await;
            assert_eq!(verdict(&found), MATCHED, "{word}");
        }
        let other = decide_one(&app, &json!({ "tool.id": "t", "skill.id": "undeploy" })).await;
        assert_eq!(verdict(&other), ALLOWED);
    });
}

/// Proves RG-5.
#[test]
fn a_backtest_judges_a_module_that_compares_an_id_with_a_word_as_a_decision_does() {
    each("module_backtest", |app: Arc<App>| async move {
        people(&app).await;
        for word in ["ada@acme.test", "ADA.lovelace@acme.test", "bob@acme.test", "eve"] {
            decide_one(&app, &json!({ "tool.id": "t", "identity.user_id": word })).await;
        }
        app.advance(1);
        let worker = Worker::start(&app);
        for (condition, changed) in [
            ("input.identity.user_id == \"ADA@acme.test\"", 2),
            ("endswith(input.identity.user_id, \"acme.test\")", 3),
            ("\"contractors\" in input.identity.group_ids", 2),
            ("input.identity.user_id == \"Eve\"", 1),
        ] {
            let definition = rego(
                "run",
                &format!("{START} {{ input.tool.id == \"t\"; {condition} }}"),
            );
            let body = json!({
                "candidate": { "kind": "inline", "family": "content", "definition": definition },
                "window": { "from": app.now().plus_ms(-3_600_000), "to": app.now() },
            });
            let made = app.write("POST", "/policies/backtests", body).await;
            let run = ended(&app, made.ok()["id"].as_str().unwrap()).await;
            let count = &run["results"]["byChange"]["allow_to_block"];
            assert_eq!(count.as_u64().unwrap_or(0), changed, "{condition} {run}");
        }
        worker.stop().await;
    });
}

/// Proves RG-6.
#[test]
fn a_text_that_a_module_compares_with_an_id_is_a_warning_of_every_write_and_check() {
    each("module_warnings", |app: Arc<App>| async move {
        people(&app).await;
        let module = format!("{START} {{\n  input.identity.user_id == \"ada@acme.test\"\n}}");
        let definition = rego("r", &module);
        let place = |one: &Value| (one["line"].as_u64(), one["column"].as_u64());
        let is_told = |warnings: &Value| {
            assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
            assert_eq!(place(&warnings[0]), (Some(5), Some(29)), "{warnings}");
            let message = warnings[0]["message"].as_str().unwrap();
            assert!(message.contains("ask input.identity.user_words"), "{message}");
        };
        let query = async |path: &str, body: Value| {
            let call = app.request("POST", path).json(body);
            call.send().await.ok().clone()
        };
        let plan = json!({ "family": "content", "definition": definition, "expectedRevision": 0 });
        is_told(&query("/policy-plans/validate", plan).await["warnings"]);
        let made = app
            .write("POST", "/content-policies", json!({ "definition": definition }))
            .await;
        is_told(&made.ok()["warnings"]);
        assert_eq!(made.json["warnings"][0]["code"], "text_compared_with_id");
        assert_eq!(made.json["warnings"][0]["path"], "/definition/logic/module");
        let mut renamed = definition.clone();
        renamed["name"] = "renamed".into();
        let body = json!({ "definition": renamed, "expectedRevision": 1 });
        is_told(&app.write("PUT", "/content-policies/r", body).await.ok()["warnings"]);

        // A check says it too, and asks as a decision does.
        let check = async |module: &str, words: Value| {
            let input =
                json!({ "identity": { "user_id": "usr_01m7w5ws2557r5efywan1hf0t3", "user_words": words } });
            let body = json!({ "family": "content", "module": module, "input": input });
            query("/policy-code/rego/validate", body).await
        };
        let found = check(&module, json!(["ada@acme.test"])).await;
        is_told(&found["warnings"]);
        assert_eq!(found["result"]["matched"], true);
        assert_eq!(
            check(&module, json!(["bob@acme.test"])).await["result"]["matched"],
            false
        );

        // What asks the words, or an id, is not warned of.
        for condition in [
            "\"ada@acme.test\" in input.identity.user_words",
            "input.identity.user_id == \"usr_01m7w5ws2557r5efywan1hf0t3\"",
            "input.tool.id == \"Bash\"",
        ] {
            let good = format!("{START} {condition}");
            let found = check(&good, json!(["ada@acme.test"])).await;
            assert_eq!(found.get("warnings"), None, "{condition}");
            let body = json!({ "definition": rego("good", &good) });
            let made = app.write("POST", "/content-policies", body).await;
            assert_eq!(made.ok().get("warnings"), None, "{condition}");
            drop_policy(&app, "good").await;
        }
    });
}
