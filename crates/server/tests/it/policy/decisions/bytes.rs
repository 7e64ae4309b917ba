//! What readers of JSON differ about is no way past a policy (BY-1 to BY-3).

use super::{call, content, decide, decide_one, policy};
use crate::policy::backtests_worker::{Worker, ended};
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

const INPUT: &str = "/attributes/tool.input";

/// Blocks a command of the tool `Bash`.
async fn guard(app: &App) {
    let change = json!({ "conditions": { "all": [
        { "field": "tool.id", "op": "eq", "value": "Bash" },
        { "field": "tool.input.command", "op": "contains", "value": "rm -rf" },
    ] } });
    policy(app, Family::Content, content("guard", "block", &change)).await;
}

fn of(tool: &str, input: &Value) -> Value {
    json!({ "tool.id": tool, "tool.input": input })
}

fn told(decision: &Value) -> (&str, bool, Vec<&str>) {
    let unreadable = decision["unreadable"].as_array().unwrap().iter();
    (
        decision["action"].as_str().unwrap(),
        decision["unknown"].as_bool().unwrap(),
        unreadable.map(|pointer| pointer.as_str().unwrap()).collect(),
    )
}

/// Texts that call `rm -rf /` to one reader of JSON or another; whether the command itself can be read.
fn doubtful() -> Vec<(&'static str, Value, bool)> {
    let deep = format!(
        "{{\"command\":\"rm -rf /\",\"deep\":{}{}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    vec![
        ("200 levels", deep.into(), true),
        (
            "a number out of range beside it",
            r#"{"command":"rm -rf /","n":1e999}"#.into(),
            true,
        ),
        (
            "a lone surrogate beside it",
            r#"{"command":"rm -rf /","s":"\ud800"}"#.into(),
            true,
        ),
        (
            "a number out of range in its place",
            r#"{"command":1e999}"#.into(),
            false,
        ),
        (
            "a lone surrogate in it",
            r#"{"command":"rm -rf /\ud800"}"#.into(),
            false,
        ),
        ("a trailing comma", r#"{"command":"rm -rf /",}"#.into(), false),
        (
            "a byte order mark",
            "\u{feff}{\"command\":\"rm -rf /\"}".into(),
            false,
        ),
        (
            "a list around it, as a text",
            r#"[{"command":"rm -rf /"}]"#.into(),
            false,
        ),
        ("a list around it", json!([{ "command": "rm -rf /" }]), false),
        (
            "a member that is there twice",
            r#"{"command":"rm -rf /","command":"ls"}"#.into(),
            false,
        ),
        (
            "and in another spelling",
            r#"{"command":"ls","c\u006fmmand":"rm -rf /"}"#.into(),
            false,
        ),
        (
            "and in the other order, deeper",
            r#"{"command":"ls","more":[{"a":1,"a":2}]}"#.into(),
            false,
        ),
        (
            "something behind its end",
            r#"{"command":"rm -rf /"} # done"#.into(),
            false,
        ),
        (
            "two of them",
            r#"{"command":"ls"}{"command":"rm -rf /"}"#.into(),
            false,
        ),
        ("no end", r#"{"command":"rm -rf /""#.into(), false),
        ("a comment", r#"{"command":"rm -rf /" /* now */}"#.into(), false),
        ("free text", "rm -rf /".into(), false),
        (
            "a text of a text",
            r#""{\"command\":\"rm -rf /\"}""#.into(),
            false,
        ),
        (
            "a list of texts and a number",
            json!({ "command": ["rm", "-rf", 1] }),
            false,
        ),
        (
            "an object",
            json!({ "command": { "argv": ["rm", "-rf"] } }),
            false,
        ),
    ]
}

/// Proves BY-2.
#[test]
fn an_input_that_cannot_be_read_for_certain_is_blocked_and_named() {
    each("decide_bytes", |app: Arc<App>| async move {
        guard(&app).await;
        for (why, input, is_known) in doubtful() {
            let decision = decide_one(&app, &of("Bash", &input)).await;
            assert_eq!(told(&decision), ("block", !is_known, vec![INPUT]), "{why}");
            let expected = if is_known { "matched" } else { "evaluation_failed" };
            assert_eq!(decision["reasons"][0]["reason"], expected, "{why}");
        }
    });
}

#[test]
fn a_policy_on_another_tool_is_not_touched_by_a_text() {
    each("decide_bytes_other", |app: Arc<App>| async move {
        guard(&app).await;
        let events: Vec<Value> = doubtful()
            .iter()
            .map(|(_, input, _)| call(&of("Read", input)))
            .collect();
        for decision in decide(&app, &events).await {
            assert_eq!(told(&decision), ("allow", false, vec![INPUT]));
            assert_eq!(decision["reasons"], json!([]));
        }
    });
}

#[test]
fn an_object_is_read_from_its_text_and_a_blank_text_is_none() {
    each("decide_bytes_fine", |app: Arc<App>| async move {
        guard(&app).await;
        for fine in [
            json!({ "command": "rm -rf /" }),
            r#"{"command":"rm -rf /"}"#.into(),
            " \n{ \"c\\u006fmmand\" : \"rm\\u0020-rf /\" }\t".into(),
            json!({ "command": ["rm", "-rf", "/"] }),
        ] {
            let decision = decide_one(&app, &of("Bash", &fine)).await;
            assert_eq!(told(&decision), ("block", false, vec![]), "{fine}");
        }
        let deep = format!(
            "{{\"command\":\"ls\",\"deep\":{}{}}}",
            "[".repeat(100),
            "]".repeat(100)
        );
        let fine = [
            Value::Null,
            "".into(),
            " \t\n\u{a0}".into(),
            json!({}),
            json!({ "command": null }),
            json!({ "command": "ls" }),
            r#"{"command":"ls","more":{"command":"rm -rf /"}}"#.into(),
            deep.into(),
        ];
        for fine in fine {
            let decision = decide_one(&app, &of("Bash", &fine)).await;
            assert_eq!(told(&decision), ("allow", false, vec![]), "{fine}");
        }
        // The whole of it is what was sent.
        let change =
            json!({ "conditions": { "field": "tool.input", "op": "starts_with", "value": "*** Begin" } });
        policy(&app, Family::Content, content("whole", "redact", &change)).await;
        let patch = decide_one(&app, &of("Edit", &"*** Begin Patch".into())).await;
        assert_eq!(told(&patch), ("redact", false, vec![INPUT]));
    });
}

/// Proves BY-3.
#[test]
fn a_declared_field_is_missing_where_the_input_cannot_say_it_exactly() {
    each("decide_bytes_fields", |app: Arc<App>| async move {
        let field = |name: &str, kind: &str| {
            json!({ "field": name, "label": "l", "valueType": kind, "sourceType": "known_schema", "toolName": "refund",
                "schemaVersionId": "v1" })
        };
        let change = json!({
            "customFields": [field("tool.input.amount", "number"), field("tool.input.order.to", "string")],
            "conditions": { "any": [
                { "field": "tool.input.amount", "op": "gt", "value": 9_007_199_254_740_992_i64 },
                { "field": "tool.input.order.to", "op": "eq", "value": "mallory" },
            ] } });
        policy(&app, Family::Content, content("guard", "block", &change)).await;
        let action = async |input: Value| {
            let decision = decide_one(&app, &of("refund", &input)).await;
            (decision["action"] == "block", decision["unknown"] == true)
        };
        let (known, unknown, allowed) = ((true, false), (true, true), (false, false));
        for (input, expected) in [
            (json!({ "amount": 5 }), allowed),
            (json!({ "amount": 1e20 }), known),
            (r#"{"amount":1e999}"#.into(), unknown),
            // Its nearest number is 2^53, which is not greater than 2^53.
            (json!({ "amount": 9_007_199_254_740_993_i64 }), unknown),
            (r#"{"amount":9007199254740993}"#.into(), unknown),
            (r#"{"amount":9007199254740992.5}"#.into(), unknown),
            (json!({ "amount": "5" }), unknown),
            (json!({ "order": { "to": "mallory" } }), known),
            (json!({ "order": { "to": "ann" } }), allowed),
            (json!({ "order": "{\"to\":\"mallory\"}" }), unknown),
            (json!({ "order": [{ "to": "mallory" }] }), unknown),
            (json!({ "order": null }), allowed),
            (json!({ "order": "" }), allowed),
            (r#"[{"amount":1e20}]"#.into(), unknown),
            ("pay mallory".into(), unknown),
            ("".into(), allowed),
        ] {
            assert_eq!(action(input.clone()).await, expected, "{input}");
        }
    });
}

#[test]
fn a_command_of_several_texts_is_judged_whole_and_word_by_word_now_and_later() {
    each("decide_bytes_line", |app: Arc<App>| async move {
        let test =
            |op: &str, value: Value| json!({ "field": "tool.input.command", "op": op, "value": value });
        let within = json!({ "within": "1h", "where": test("eq", "-rf".into()), "op": "gte", "value": 1 });
        for (id, condition) in [
            ("whole", test("eq", "rm -rf /".into())),
            ("across", test("contains", "rm -rf".into())),
            ("word", test("eq", "-rf".into())),
            ("one-of", test("in", json!(["-rf", "x"]))),
            ("pattern", test("matches", "^/$".into())),
            ("not-a-word", test("neq", "ls".into())),
            ("no-word", test("neq", "rm".into())),
            ("none-of", test("not_in", json!(["/", "x"]))),
            ("nowhere", test("contains", "rm  -rf".into())),
            ("before", json!({ "eventCount": within })),
        ] {
            let change = json!({ "conditions": condition });
            policy(&app, Family::Content, content(id, "flag_for_review", &change)).await;
        }
        let mut event = of("Bash", &json!({ "command": ["rm", "-rf", "/"] }));
        event["identity.user_id"] = "ann".into();
        event["identity.group_ids"] = json!([]);
        let found = |decision: &Value| {
            let all = decision["policyIds"].as_array().unwrap().iter();
            let mut all: Vec<String> = all.map(|id| id.as_str().unwrap().to_owned()).collect();
            all.sort_unstable();
            all
        };
        let first = decide_one(&app, &event).await;
        assert_eq!(told(&first), ("flag_for_review", false, vec![]));
        let expected = ["across", "not-a-word", "one-of", "pattern", "whole", "word"];
        assert_eq!(found(&first), expected);
        // As a text it is the same, and its words are its own.
        event["tool.input"] = r#"{"command":["rm","-rf","/"]}"#.into();
        let second = decide_one(&app, &event).await;
        assert_eq!(
            found(&second),
            [
                "across",
                "before",
                "not-a-word",
                "one-of",
                "pattern",
                "whole",
                "word"
            ]
        );
        event["tool.input"] = json!({ "command": "rm -rf /" });
        let third = decide_one(&app, &event).await;
        assert_eq!(
            found(&third),
            ["across", "before", "no-word", "none-of", "not-a-word", "whole"]
        );

        // What was recorded is judged the same.
        app.advance(1);
        let worker = Worker::start(&app);
        for (value, blocked) in [("-rf", 2), ("rm -rf /", 3), ("ls", 0)] {
            let definition = content("run", "block", &json!({ "conditions": test("eq", value.into()) }));
            let body = json!({
                "candidate": { "kind": "inline", "family": "content", "definition": definition },
                "window": { "from": app.now().plus_ms(-3_600_000), "to": app.now() },
            });
            let made = app.write("POST", "/policies/backtests", body).await;
            let run = ended(&app, made.ok()["id"].as_str().unwrap()).await;
            let count = &run["results"]["byChange"]["flag_for_review_to_block"];
            assert_eq!(count.as_u64().unwrap_or(0), blocked, "{value}: {run}");
            assert_eq!(run["results"]["unknown"], 0, "{run}");
        }
        worker.stop().await;
    });
}

/// Proves BY-2.
#[test]
fn recorded_texts_are_judged_again_and_unknown_where_they_cannot_be_read() {
    each("decide_bytes_recorded", |app: Arc<App>| async move {
        let events: Vec<Value> = doubtful()
            .iter()
            .map(|(_, input, _)| call(&of("Bash", input)))
            .collect();
        for decision in decide(&app, &events).await {
            assert_eq!(told(&decision), ("allow", false, vec![INPUT]));
        }
        app.advance(1);
        let worker = Worker::start(&app);
        let change =
            json!({ "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -rf" } });
        let body = json!({
            "candidate": { "kind": "inline", "family": "content", "definition": content("run", "block", &change) },
            "window": { "from": app.now().plus_ms(-3_600_000), "to": app.now() },
        });
        let made = app.write("POST", "/policies/backtests", body).await;
        let run = ended(&app, made.ok()["id"].as_str().unwrap()).await;
        let known = doubtful().iter().filter(|(_, _, is_known)| *is_known).count();
        let results = &run["results"];
        assert_eq!(results["byChange"], json!({ "allow_to_block": known }), "{run}");
        assert_eq!(results["unknown"], doubtful().len() - known, "{run}");
        worker.stop().await;
    });
}
