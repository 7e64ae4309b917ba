//! How a word, a document or a number is written is no way past a policy (BY-4, BY-5, MK-2, NW-2).

use super::{ask, call, content, decide, decide_one, policy, rego};
use crate::access::oauth;
use crate::areas::directory;
use crate::areas::history::NDJSON;
use crate::policy::backtests_worker::{Worker, ended};
use crate::support::{App, each, fresh_key};
use provost_kernel::db::{Access, Conn};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

fn action(decision: &Value) -> (&str, bool) {
    (
        decision["action"].as_str().unwrap(),
        decision["unknown"].as_bool().unwrap(),
    )
}

const BLOCKED: (&str, bool) = ("block", false);
const DOUBTFUL: (&str, bool) = ("block", true);
const ALLOWED: (&str, bool) = ("allow", false);

/// Proves DE-7, NW-2.
#[test]
fn a_version_of_any_form_takes_no_guard_from_a_skill() {
    each("spelling_versions", |app: Arc<App>| async move {
        let item = app.skill("deploy").await;
        let acl =
            json!({ "id": "acl", "skillId": "deploy", "subjects": { "everyone": true }, "effect": "block" });
        policy(&app, Family::SkillAcl, acl).await;
        let (_, person) = app.account("a person", "viewer", &[]).await;
        let receipt = app.install(&person, &item, "laptop").await;
        let gateway = receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned();
        for word in [
            "deploy@feature/x".to_owned(),
            "deploy@sha512-a/b==".to_owned(),
            "Deploy@1/@2".to_owned(),
            format!("{item}@x/y"),
            format!("{item}@1.0.0"),
        ] {
            let event = json!({ "occasion": "skill", "attributes": { "skill.id": word } });
            let found = decide(&app, std::slice::from_ref(&event)).await.remove(0);
            assert_eq!(action(&found), BLOCKED, "{word}");
            let asked = app.request("POST", "/policies/decisions").token(&gateway);
            let reply = asked.json(json!({ "events": [event] })).send().await;
            assert_eq!(action(&reply.ok()["decisions"][0]), BLOCKED, "{word}");
        }
        // Another skill is another skill, whatever its version is called.
        for word in ["deployment@deploy/x", "x@deploy", "@acme/deploy@1"] {
            let event = json!({ "occasion": "skill", "attributes": { "skill.id": word } });
            let found = decide(&app, std::slice::from_ref(&event)).await.remove(0);
            assert_eq!(action(&found), ALLOWED, "{word}");
            let asked = app.request("POST", "/policies/decisions").token(&gateway);
            let reply = asked.json(json!({ "events": [event] })).send().await;
            reply.refused(403, "insufficient_scope");
        }
    });
}

/// The spellings of a document, live, in one batch, imported and in a backtest.
/// Proves BY-4.
#[test]
fn no_spelling_of_a_document_passes_a_policy_by() {
    each("spelling_documents", |app: Arc<App>| async move {
        let condition =
            |field: &str, op: &str, value: &str| json!({ "field": field, "op": op, "value": value });
        for (id, asked) in [
            ("text", condition("tool.input", "contains", "rm -rf")),
            (
                "quotes",
                condition("tool.input", "contains", "DROP TABLE \"users\""),
            ),
            ("equal", condition("tool.result", "eq", r#"{"a":1,"b":2}"#)),
            ("pattern", condition("tool.result", "matches", r"rm\s+-rf")),
        ] {
            let change = json!({ "conditions": asked });
            policy(&app, Family::Content, content(id, "block", &change)).await;
        }
        let input = |sent: Value| call(&json!({ "tool.id": "t", "tool.input": sent }));
        let result = |sent: Value| call(&json!({ "tool.id": "t", "tool.result": sent }));
        let events = vec![
            input(json!(r#"{"command":"rm\u0020-rf"}"#)),
            input(json!({ "sql": "DROP TABLE \"users\"" })),
            result(json!(r#"{"b":2,"a":1.0}"#)),
            result(json!({ "b": 2, "a": 1 })),
            result(json!({ "c": "rm\n-rf" })),
        ];
        for event in &events {
            let found = decide(&app, std::slice::from_ref(event)).await.remove(0);
            assert_eq!(action(&found), BLOCKED, "{event}");
        }
        for (found, event) in decide(&app, &events).await.iter().zip(&events) {
            assert_eq!(action(found), BLOCKED, "{event}");
        }
        for allowed in [
            input(json!({ "sql": "DROP TABLE users" })),
            input(json!({ "a": "rm", "b": "-rf" })),
            result(json!(r#"{"b":2,"a":1.5}"#)),
            result(json!("[INFO] done")),
        ] {
            let found = decide(&app, std::slice::from_ref(&allowed)).await.remove(0);
            assert_eq!(action(&found), ALLOWED, "{allowed}");
        }
        // As somebody else's past.
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        assert_eq!(imported(&app, &lines).await, [5, 5, 0]);
    });
}

/// Imports events, and returns how many a backtest of the live policies judges, stops and does not know.
async fn imported(app: &App, lines: &[String]) -> [u64; 3] {
    app.advance(60);
    let at = app.now();
    let stamp = format!("\"at\":\"{}\",", at.to_rfc3339());
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.replacen('{', &format!("{{{stamp}"), 1))
        .collect();
    let call = app.request("POST", "/policies/history/import?source=elsewhere");
    let reply = call.content(NDJSON, lines.join("\n").into_bytes()).send().await;
    assert_eq!(reply.ok()["accepted"], lines.len(), "{}", reply.text());
    app.advance(60);
    let worker = Worker::start(app);
    let body = json!({
        "candidate": { "kind": "set", "policies": [] },
        "window": { "from": at.to_rfc3339(), "to": at.plus_secs(1).to_rfc3339() },
    });
    let made = app.write("POST", "/policies/backtests", body).await;
    let run = ended(app, made.ok()["id"].as_str().unwrap()).await;
    worker.stop().await;
    let results = &run["results"];
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{run}"));
    [
        count(&results["eventsEvaluated"]),
        results["byChange"].get("block_to_allow").map_or(0, count),
        count(&results["unknown"]),
    ]
}

/// Proves MK-2.
#[test]
fn what_nobody_sees_makes_no_other_name() {
    each("spelling_unseen", |app: Arc<App>| async move {
        directory::user(&app, "ada@acme.test").await;
        let users = json!({ "appliesTo": { "users": ["ada@acme.test"] }, "acknowledgeBroadScope": null });
        policy(&app, Family::Content, content("ada", "block", &users)).await;
        let tool = json!({ "conditions": { "field": "tool.id", "op": "eq", "value": "Bash" } });
        policy(&app, Family::Content, content("bash", "block", &tool)).await;
        for unseen in [
            '\0', '\u{7}', '\u{1f}', '\u{7f}', '\u{9c}', '\u{2800}', '\u{fff9}', '\u{fffc}', '\u{600}',
            '\u{b}',
        ] {
            for word in [format!("ada@acme.test{unseen}"), format!("a{unseen}da@acme.test")] {
                let found = decide_one(&app, &json!({ "tool.id": "Read", "identity.user_id": word })).await;
                assert_eq!(action(&found), BLOCKED, "{word:?}");
            }
            let found = decide_one(&app, &json!({ "tool.id": format!("B{unseen}ash") })).await;
            assert_eq!(action(&found), BLOCKED, "{unseen:?}");
            // A name of which nothing can be seen is missing.
            let found = decide_one(&app, &json!({ "tool.id": unseen.to_string() })).await;
            assert_eq!(action(&found), DOUBTFUL, "{unseen:?}");
        }
        for seen in ["Bas", "B ash", "Bash.", "B\tash"] {
            let found = decide_one(&app, &json!({ "tool.id": seen })).await;
            assert_eq!(action(&found), ALLOWED, "{seen:?}");
        }
    });
}

/// Proves WD-2.
#[test]
fn keys_of_an_earlier_version_are_written_anew_at_the_start() {
    each("spelling_keys", |app: Arc<App>| async move {
        let ada = directory::user(&app, "ada@acme.test").await;
        let gone = directory::user(&app, "gone@acme.test").await;
        let users = json!({ "appliesTo": { "users": [ada, gone] }, "acknowledgeBroadScope": null });
        policy(&app, Family::Content, content("both", "block", &users)).await;
        app.delete(&format!("/directory/users/{gone}")).await.ok();
        let by = |word: &str| json!({ "tool.id": "t", "identity.user_id": word });
        let old = |app: &App, fact: &'static str| {
            let location = app.location();
            let write = move || {
                let mut conn = Conn::open(&location, Access::Write).unwrap();
                for statement in [
                    "UPDATE directory_users SET login_match = 'of before'",
                    "UPDATE ended_words SET match_key = 'of before' WHERE word = 'gone@acme.test'",
                    fact,
                ] {
                    conn.batch(statement).unwrap();
                }
            };
            std::thread::spawn(write).join().unwrap();
        };
        let fold = |app: &App| {
            let location = app.location();
            let fold = move || {
                let mut conn = Conn::open(&location, Access::Write).unwrap();
                provost_areas_identity::words::fold(&mut conn).unwrap();
            };
            std::thread::spawn(fold).join().unwrap();
        };
        // Of the same version nothing is looked at.
        fold(&app);
        old(&app, "DELETE FROM installation WHERE name = 'nothing'");
        fold(&app);
        for word in ["ada@acme.test", "gone@acme.test"] {
            assert_eq!(action(&decide_one(&app, &by(word)).await), ALLOWED, "{word}");
        }
        // A store of before the keys had a version, and one of another version.
        for fact in [
            "DELETE FROM installation WHERE name = 'match_keys'",
            "UPDATE installation SET value = '1' WHERE name = 'match_keys'",
        ] {
            old(&app, fact);
            fold(&app);
            for word in ["ada@acme.test", "ADA@acme.test\0", "gone@acme.test"] {
                assert_eq!(action(&decide_one(&app, &by(word)).await), BLOCKED, "{word:?}");
            }
        }
    });
}

/// Proves RG-5.
#[test]
fn a_module_judges_every_name_in_every_spelling() {
    each("spelling_modules", |app: Arc<App>| async move {
        let module = |condition: &str| {
            format!("package forge.content\nimport rego.v1\nmatch := {{\"matched\": true}} if {condition}\n")
        };
        for (id, condition) in [
            ("curl", "input.tool.id == \"Curl\""),
            ("start", "startswith(input.mcp.server_id, \"jira\")"),
            ("model", "input.llm.model in {\"GPT-5\"}"),
            (
                "listed",
                "{ input.mcp.tool_id; not input.mcp.tool_id in {\"Read\", \"List\"} }",
            ),
        ] {
            policy(&app, Family::Content, rego(id, &module(condition))).await;
        }
        for (name, spelt) in [
            ("tool.id", "curl"),
            ("tool.id", "Curl "),
            ("tool.id", "CU\u{200b}RL"),
            ("mcp.server_id", "Jira-1"),
            ("llm.model", "gpt-5"),
            ("mcp.tool_id", "Write"),
        ] {
            let found = decide_one(&app, &json!({ name: spelt })).await;
            assert_eq!(action(&found), BLOCKED, "{name} {spelt:?}");
        }
        // What a module lets pass by its name, passes.
        for (name, other) in [
            ("tool.id", "wget"),
            ("mcp.server_id", "wiki"),
            ("llm.model", "gpt-4"),
            ("mcp.tool_id", "Read"),
        ] {
            let found = decide_one(&app, &json!({ name: other })).await;
            assert_eq!(action(&found), ALLOWED, "{name} {other}");
        }
    });
}

/// Proves RG-6.
#[test]
fn a_word_that_no_match_key_is_is_warned_of() {
    each("spelling_warnings", |app: Arc<App>| async move {
        let module = "package forge.content\nimport rego.v1\nmatch := {\"matched\": true} if \"Ada@Acme.test\" in input.identity.user_words\n";
        let body = json!({ "module": module, "family": "content" });
        let reply = app
            .request("POST", "/policy-code/rego/validate")
            .json(body)
            .send()
            .await;
        let warnings = reply.ok()["warnings"].as_array().unwrap().clone();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let message = warnings[0]["message"].as_str().unwrap();
        assert!(message.contains("write \"ada@acme.test\""), "{message}");
        let body = json!({ "module": module.replace("Ada@Acme", "ada@acme"), "family": "content" });
        let reply = app
            .request("POST", "/policy-code/rego/validate")
            .json(body)
            .send()
            .await;
        assert_eq!(reply.ok().get("warnings"), None);
    });
}

/// A number that no double is, beside the nearest one.
const INEXACT: &str = "9007199254740993.5";
const NEAREST: &str = "9007199254740994";

/// Proves BY-5.
#[test]
fn a_number_that_would_be_rounded_is_missing_by_every_door() {
    each("spelling_numbers", |app: Arc<App>| async move {
        let fields = json!([{ "field": "tool.input.amount", "label": "amount", "valueType": "number", "sourceType": "known_schema",
            "toolName": "pay", "schemaVersionId": "1" }]);
        let condition = json!({ "field": "tool.input.amount", "op": "eq", "value": 1 });
        let change = json!({ "customFields": fields, "conditions": condition });
        policy(&app, Family::Content, content("amount", "block", &change)).await;
        let tokens = json!({ "conditions": { "field": "llm.input_tokens", "op": "gt", "value": 1e18 } });
        policy(&app, Family::Content, content("tokens", "block", &tokens)).await;
        let event = |attributes: &str| {
            format!("{{\"events\":[{{\"occasion\":\"pre_tool\",\"attributes\":{{{attributes}}}}}]}}")
        };
        let send = async |attributes: &str| {
            let call = app
                .request("POST", "/policies/decisions")
                .bytes(event(attributes));
            call.send().await.ok()["decisions"][0].clone()
        };
        let of_input =
            |number: &str| format!("\"tool.id\":\"pay\",\"tool.input\":{{\"amount\":{number},\"n\":1.5}}");
        let found = send(&of_input(INEXACT)).await;
        assert_eq!(action(&found), DOUBTFUL);
        assert_eq!(found["unreadable"], json!(["/attributes/tool.input"]));
        let found = send(&of_input(NEAREST)).await;
        assert_eq!((action(&found), &found["unreadable"]), (ALLOWED, &json!([])));
        assert_eq!(action(&send(&of_input("1.0")).await), BLOCKED);
        assert_eq!(
            action(&send(&format!("\"llm.input_tokens\":{INEXACT}")).await),
            DOUBTFUL
        );
        assert_eq!(
            action(&send(&format!("\"llm.input_tokens\":{NEAREST}")).await),
            ALLOWED
        );
        // As a tool of MCP.
        let events = event(&of_input(INEXACT));
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"createHeadlessPolicyDecisions\",\"arguments\":{events}}}}}"
        );
        let request = http::Request::post("/mcp?toolsets=policies")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", app.admin))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(axum::body::Body::from(body))
            .unwrap();
        let reply = oauth::answer(&app, request).await;
        let text = reply.text();
        assert_eq!(reply.status.as_u16(), 200, "{text}");
        assert!(
            text.contains("/attributes/tool.input") && text.contains("block"),
            "{text}"
        );
        // As somebody else's past.
        let line = format!(
            "{{\"occasion\":\"pre_tool\",\"attributes\":{{{}}}}}",
            of_input(INEXACT)
        );
        let [events, _, unknown] = imported(&app, &[line]).await;
        assert_eq!((events, unknown), (1, 1));
    });
}

/// Proves BY-5.
#[test]
fn a_policy_with_a_number_that_would_be_rounded_is_refused() {
    each("spelling_policies", |app: Arc<App>| async move {
        for number in [INEXACT, "9007199254740993", "0.10000000000000000555"] {
            let condition = json!({ "field": "llm.input_tokens", "op": "gte", "value": "NUMBER" });
            let definition = content("numbers", "block", &json!({ "conditions": condition }));
            let body = json!({ "definition": definition, "reason": "a test", "idempotencyKey": fresh_key() });
            let body = body.to_string().replace("\"NUMBER\"", number);
            let reply = app.request("POST", "/content-policies").bytes(body).send().await;
            reply.refused(422, "invalid_definition");
            let text = reply.text();
            assert!(
                text.contains("/definition/conditions/value") && text.contains("64-bit"),
                "{text}"
            );
        }
        let condition =
            json!({ "field": "llm.input_tokens", "op": "gte", "value": 9_007_199_254_740_992_i64 });
        policy(
            &app,
            Family::Content,
            content("numbers", "block", &json!({ "conditions": condition })),
        )
        .await;
        ask(
            &app,
            json!({ "events": [call(&json!({ "llm.input_tokens": 0.1 }))] }),
        )
        .await
        .ok();
    });
}

#[test]
fn a_blank_member_beside_an_input_does_not_speak_for_it() {
    each("spelling_blank", |app: Arc<App>| async move {
        let asked = json!({ "field": "tool.input.command", "op": "contains", "value": "rm -rf" });
        policy(
            &app,
            Family::Content,
            content("rm", "block", &json!({ "conditions": asked })),
        )
        .await;
        for blank in ["", " ", "\u{200b}"] {
            let attributes = json!({ "tool.id": "Bash", "tool.input": { "command": "rm -rf /" }, "tool.input.command": blank });
            assert_eq!(action(&decide_one(&app, &attributes).await), BLOCKED, "{blank:?}");
        }
    });
}
