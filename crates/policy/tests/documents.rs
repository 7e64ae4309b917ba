//! Documents and words whose spelling says nothing: they are judged by what they say (BY-4, MK-2).

#![cfg(test)]

use provost_policy::{
    Action, Batch, Definition, Event, Family, Field, Occasion, PolicySet, Projection, Scan, SubjectStates,
    Symbols,
};
use serde_json::{Value, json};
use std::sync::Arc;

const MATCHED: (Action, bool) = (Action::Block, false);
const DOUBTFUL: (Action, bool) = (Action::Block, true);
const PASSED: (Action, bool) = (Action::Allow, false);

/// What a guard with this condition says of an event with these attributes, alone and in a batch.
fn of_family(family: Family, occasion: Occasion, condition: &Value, attributes: &Value) -> (Action, bool) {
    let mut policy = json!({ "id": "p", "name": "p", "action": "block", "acknowledgeBroadScope": true,
        "conditions": condition });
    match family {
        Family::Content => policy["evaluateOn"] = json!([occasion.word()]),
        Family::Access => policy["enforcementSurfaces"] = json!([occasion.word()]),
        _ => {}
    }
    let definition = Definition::read(family, &policy).unwrap_or_else(|e| panic!("{policy}: {e}"));
    let set = PolicySet::new([Arc::new(definition)]).unwrap();
    let mut symbols = Symbols::new();
    let attributes = attributes.as_object().unwrap();
    let event = Event::read(&mut symbols, 0, occasion, attributes, &[]).unwrap_or_else(|e| panic!("{e}"));
    let outcome = set.judge(&event, &symbols, &SubjectStates::new());
    let mut scan = Scan::new(&set);
    let batch = Batch::of(&[event], Projection::of(&[&set]).fields()).unwrap();
    scan.judge(&batch, &symbols);
    assert_eq!(
        scan.decision(0),
        (outcome.action, outcome.unknown),
        "{condition} {attributes:?}"
    );
    (outcome.action, outcome.unknown)
}

fn call(condition: &Value, attributes: &Value) -> (Action, bool) {
    of_family(Family::Content, Occasion::PreTool, condition, attributes)
}

fn asks(field: &str, op: &str, value: &str) -> Value {
    json!({ "field": field, "op": op, "value": value })
}

/// Proves BY-4.
#[test]
fn a_document_is_judged_by_what_it_says_however_it_is_spelt() {
    for (field, op, value, sent) in [
        (
            "tool.input",
            "contains",
            "rm -rf",
            json!(r#"{"command":"rm\u0020-rf"}"#),
        ),
        (
            "tool.input",
            "contains",
            "rm -rf",
            json!(r#" { "rm\u0020-rf" : 1 } "#),
        ),
        (
            "tool.input",
            "contains",
            r#""command":"rm"#,
            json!(r#"{"x":1, "command" : "rm"}"#),
        ),
        (
            "tool.result",
            "eq",
            r#"{"a":1,"b":2}"#,
            json!(r#"{"b": 2.0, "a": 1}"#),
        ),
        (
            "tool.result",
            "eq",
            r#"{ "b": 2, "a": 1 }"#,
            json!({ "a": 1, "b": 2 }),
        ),
        ("tool.result", "eq", r#"["\u0061"]"#, json!(["a"])),
        (
            "tool.input",
            "contains",
            r#"DROP TABLE "users""#,
            json!({ "sql": r#"DROP TABLE "users""# }),
        ),
        (
            "tool.input",
            "contains",
            r#"DROP TABLE "users""#,
            json!([{ "sql": r#"DROP TABLE "users";"# }]),
        ),
        ("tool.input", "matches", r"rm\s+-rf", json!({ "c": "rm\n-rf" })),
        (
            "tool.input",
            "matches",
            r"rm\s+-rf",
            json!("{\"c\":\"rm\\u000a-rf\"}"),
        ),
        ("tool.input", "matches", r"C:\\temp", json!({ "c": r"C:\temp" })),
        (
            "tool.input.env",
            "contains",
            r#"a"b"#,
            json!({ "env": { "A": r#"a"b"# } }),
        ),
        (
            "request.prompt",
            "contains",
            "rm -rf",
            json!(r#"{"text":"rm\u0020-rf"}"#),
        ),
        ("response.content", "eq", r#"{"a":1}"#, json!(r#"{ "a" : 1 }"#)),
    ] {
        let name = if field == "tool.input.env" {
            "tool.input"
        } else {
            field
        };
        let attributes = json!({ name: sent });
        assert_eq!(
            call(&asks(field, op, value), &attributes),
            MATCHED,
            "{field} {op} {value} {sent}"
        );
        let not = json!({ "not": asks(field, op, value) });
        assert_eq!(call(&not, &attributes), PASSED, "not {field} {op} {value} {sent}");
    }
    let not_equal = asks("tool.result", "neq", r#"{"a":1,"b":2}"#);
    assert_eq!(
        call(&not_equal, &json!({ "tool.result": r#"{"b":2,"a":1}"# })),
        PASSED
    );
    assert_eq!(
        call(&not_equal, &json!({ "tool.result": { "a": 1, "b": 3 } })),
        MATCHED
    );
}

/// Proves BY-4.
#[test]
fn what_a_document_does_not_say_is_not_found_in_it() {
    for (op, value, sent) in [
        ("contains", "rm -rf", json!({ "c": "rm", "d": "-rf" })),
        ("eq", "rm", json!({ "c": "rm" })),
        ("eq", r#"{"a":1}"#, json!({ "a": 1, "b": 2 })),
        ("eq", r#"{"a":"1"}"#, json!({ "a": 1 })),
        ("eq", "[1,2]", json!([2, 1])),
        ("contains", "AKIA", json!("[INFO] done, nothing found")),
        ("starts_with", "AKIA", json!("[INFO] done")),
        ("matches", "rm -rf", json!({ "c": "ls" })),
    ] {
        let attributes = json!({ "tool.result": sent });
        let found = call(&asks("tool.result", op, value), &attributes);
        assert_eq!(found, PASSED, "{op} {value} {sent}");
    }
}

/// A member that somebody adds must not meet the negation of a condition on the whole.
/// Proves BY-4.
#[test]
fn what_holds_of_a_part_alone_is_unknown_and_so_is_its_negation() {
    for (op, value) in [
        ("starts_with", "/safe"),
        ("ends_with", "safe/x"),
        ("matches", "^/safe"),
    ] {
        let attributes = json!({ "tool.input": { "note": "/safe/x", "path": "/etc" } });
        let condition = asks("tool.input", op, value);
        assert_eq!(call(&condition, &attributes), DOUBTFUL, "{op}");
        assert_eq!(
            call(&json!({ "not": condition }), &attributes),
            DOUBTFUL,
            "not {op}"
        );
    }
}

/// Proves BY-4.
#[test]
fn what_cannot_be_read_and_may_hold_what_is_asked_is_unknown() {
    let asked = asks("tool.result", "contains", "rm -rf");
    for (sent, answer) in [
        (r#"{"c":"rm -rf",}"#, MATCHED),
        (r#"{"c":"rm\u0020-rf",}"#, DOUBTFUL),
        (r#"{"c":"rm\u0020-r","c":"x"}"#, DOUBTFUL),
        (r#"{"c":"ls","d":1e999}"#, DOUBTFUL),
        (r#"{"c":"ls","d":"\ud800"}"#, DOUBTFUL),
        (r#"{"c":"ls",}"#, PASSED),
        ("rm\\u0020-rf", PASSED),
    ] {
        assert_eq!(call(&asked, &json!({ "tool.result": sent })), answer, "{sent}");
    }
    let equal = asks("tool.result", "eq", r#"{"c":"ls"}"#);
    assert_eq!(
        call(&equal, &json!({ "tool.result": r#"{"c":"ls",}"# })),
        DOUBTFUL
    );
    assert_eq!(
        call(
            &asks("tool.result", "eq", "ls"),
            &json!({ "tool.result": "{ls}" })
        ),
        PASSED
    );
    // A prompt that begins like a document is a prompt.
    let prompt = asks("request.prompt", "contains", "rm -rf");
    assert_eq!(
        call(&prompt, &json!({ "request.prompt": "[URGENT] C:\\new" })),
        PASSED
    );
}

/// Proves BY-2.
#[test]
fn a_blank_attribute_beside_the_input_does_not_hide_what_the_input_says() {
    let asked = asks("tool.input.command", "contains", "rm -rf");
    for blank in ["", "  ", "\u{200b}", "\n\t", "\u{1}"] {
        let attributes = json!({ "tool.input": { "command": "rm -rf /" }, "tool.input.command": blank });
        assert_eq!(call(&asked, &attributes), MATCHED, "{blank:?}");
    }
    // What is said beside it is the caller's reading still.
    let attributes = json!({ "tool.input": { "command": "rm -rf /" }, "tool.input.command": "ls" });
    assert_eq!(call(&asked, &attributes), PASSED);
}

/// Proves NW-3.
#[test]
fn words_that_standards_compare_in_any_case_are_compared_so() {
    let (content, access, resource) = (
        (Family::Content, Occasion::PreTool),
        (Family::Access, Occasion::Provider),
        (Family::Resource, Occasion::Resource),
    );
    for ((family, occasion), field, value, sent) in [
        (content, "llm.provider", "openai", "OpenAI"),
        (content, "llm.model", "GPT-5", " gpt-5"),
        (access, "destination.domain", "Api.OpenAI.com", "api.openai.com."),
        (access, "destination.domain", "api.openai.com.", "API.OPENAI.COM"),
        (access, "destination.protocol", "tcp", "TCP"),
        (access, "classification.state", "known_ai", "Known_AI "),
        (access, "browser.account_domain", "acme.test", "ACME.test."),
        (resource, "request.http.method", "DELETE", "delete"),
        (resource, "request.postgres.command", "drop", "DROP"),
        (resource, "request.mysql.command", "DROP", "drop"),
        (resource, "request.redis.command", "FLUSHALL", "flushall"),
        (resource, "resource.protocol", "postgres", "Postgres"),
    ] {
        let attributes = json!({ field: sent });
        let ask = |condition: &Value| of_family(family, occasion, condition, &attributes);
        assert_eq!(ask(&asks(field, "eq", value)), MATCHED, "{field} {sent}");
        assert_eq!(
            ask(&json!({ "field": field, "op": "in", "value": [value] })),
            MATCHED,
            "{field} {sent}"
        );
        assert_eq!(ask(&asks(field, "neq", value)), PASSED, "{field} {sent}");
    }
    let tables = json!({ "field": "request.postgres.tables", "op": "contains", "value": "users" });
    let sent = json!({ "request.postgres.tables": ["Users"] });
    assert_eq!(
        of_family(Family::Resource, Occasion::Resource, &tables, &sent),
        MATCHED
    );
    let ends = asks("destination.domain", "ends_with", ".acme.test.");
    let domain = |name: &str| {
        of_family(
            Family::Access,
            Occasion::Provider,
            &ends,
            &json!({ "destination.domain": name }),
        )
    };
    assert_eq!(domain("X.Acme.test"), MATCHED);
    assert_eq!(domain("x.acme.test.."), PASSED);
    assert_eq!(domain("xacme.test"), PASSED);
}

/// Proves NW-3.
#[test]
fn a_word_that_is_none_of_a_closed_list_is_missing_and_never_absent() {
    for (family, occasion, field, value) in [
        (
            Family::Resource,
            Occasion::Resource,
            "resource.protocol",
            "postgres",
        ),
        (Family::Access, Occasion::Provider, "destination.protocol", "tcp"),
        (
            Family::Access,
            Occasion::Provider,
            "classification.state",
            "known_ai",
        ),
    ] {
        for strange in ["postgresql", "x", "", "tcp6"] {
            for op in ["eq", "neq"] {
                let found = of_family(
                    family,
                    occasion,
                    &asks(field, op, value),
                    &json!({ field: strange }),
                );
                assert_eq!(found, DOUBTFUL, "{field} {op} {strange:?}");
            }
        }
        // What is not said is absent as ever.
        assert_eq!(
            of_family(family, occasion, &asks(field, "eq", value), &json!({})),
            PASSED
        );
    }
}

/// Proves NW-3.
#[test]
fn patterns_on_names_are_asked_in_any_case() {
    let asked = asks("tool.id", "matches", "^(PowerShell|Zsh)$");
    for name in ["PowerShell", "powershell", "POWERSHELL", " zSH", "z\u{200b}sh"] {
        assert_eq!(call(&asked, &json!({ "tool.id": name })), MATCHED, "{name:?}");
    }
    for name in ["powershell2", "bash", "power shell"] {
        assert_eq!(call(&asked, &json!({ "tool.id": name })), PASSED, "{name:?}");
    }
    // A pattern on what is no name keeps its case.
    let plain = asks("tool.input.command", "matches", "^RM$");
    assert_eq!(call(&plain, &json!({ "tool.input.command": "rm" })), PASSED);
}

#[test]
fn a_number_that_no_double_is_is_missing() {
    let inexact = json!({ provost_policy::INEXACT: "0.1000000000000000055511151231257827" });
    let mut symbols = Symbols::new();
    let attributes = json!({ "tool.input": { "amount": inexact, "to": "x" }, "llm.input_tokens": inexact });
    let event = Event::read(
        &mut symbols,
        0,
        Occasion::PreTool,
        attributes.as_object().unwrap(),
        &[],
    )
    .unwrap();
    assert_eq!(
        event.get(Field::named("llm.input_tokens").unwrap()),
        provost_policy::Value::Missing
    );
    assert_eq!(event.unreadable(&symbols), [Field::TOOL_INPUT]);
    let lost: Vec<String> = event
        .lost(&symbols)
        .iter()
        .map(|lost| lost.path.join("."))
        .collect();
    assert_eq!(lost, ["llm.input_tokens", "tool.input.amount"]);
    assert_eq!(event.nested(&symbols)["tool"]["input"], json!({ "to": "x" }));
}
