use super::*;
use serde_json::json;

fn module(body: &str) -> Result<Module, Vec<Diagnostic>> {
    Module::compile(
        Family::Content,
        &format!("package forge.content\nimport rego.v1\n{body}"),
    )
}

fn says(body: &str, input: &serde_json::Value) -> Result<Answer, Failure> {
    module(body)
        .unwrap_or_else(|e| panic!("{body}: {e:?}"))
        .evaluate(input)
}

const MATCHED: Result<Answer, Failure> = Ok(Answer {
    matched: true,
    reason_code: None,
});
const NOT_MATCHED: Result<Answer, Failure> = Ok(Answer {
    matched: false,
    reason_code: None,
});

const SHELL: &str = r#"default match := {"matched": false}
match := {"matched": true, "reasonCode": "shell"} if input.tool.id == "shell""#;

#[test]
fn a_module_answers_with_its_reason() {
    let yes = says(SHELL, &json!({"tool": {"id": "shell"}})).unwrap();
    assert_eq!((yes.matched, yes.reason_code.as_deref()), (true, Some("shell")));
    assert_eq!(says(SHELL, &json!({"tool": {"id": "mail"}})), NOT_MATCHED);
    assert_eq!(says(SHELL, &json!({})), NOT_MATCHED);
    assert_eq!(
        says("match := {\"matched\": true} if input.x", &json!({})),
        NOT_MATCHED
    );
}

/// Proves RG-1.
#[test]
fn what_is_no_answer_is_a_failure() {
    for body in [
        "match := true",
        "match := {}",
        "match := {\"matched\": \"yes\"}",
        "match := {\"matched\": true, \"reasonCode\": 1}",
    ] {
        assert_eq!(says(body, &json!({})), Err(Failure::NoAnswer), "{body}");
    }
}

fn disagrees(body: &str, input: &serde_json::Value) -> bool {
    matches!(says(body, input), Err(Failure::Disagreement(_)))
}

/// Proves RG-1.
#[test]
fn rules_that_disagree_are_a_failure() {
    let input = json!({"a": 1, "b": 1});
    let own = "match := {\"matched\": true} if input.a\nmatch := {\"matched\": false} if input.b";
    assert!(disagrees(own, &input));
    assert_eq!(says(own, &json!({"a": 1})), MATCHED);
    assert_eq!(says(own, &json!({"b": 1})), NOT_MATCHED);
    let start = "default match := {\"matched\": false}\nmatch := {\"matched\": true} if";
    let two = "x := 1 if input.a\nx := 2 if input.b";
    assert!(disagrees(&format!("{start} x == 1\n{two}"), &input));
    // Neither `not` nor a default takes care of a contradiction.
    assert!(disagrees(&format!("{start} {{ not x; false }}\n{two}"), &input));
    assert!(disagrees(
        &format!("{start} x == 1\ndefault x := 3\n{two}"),
        &input
    ));
    assert!(disagrees(
        &format!("{start} y == 1\ndefault y := 3\ny := x\n{two}"),
        &input
    ));
    let function = format!("{start} f(1) == 1\nf(_) := 1 if input.a\nf(_) := 2 if input.b");
    assert!(disagrees(&function, &input));
    assert_eq!(says(&function, &json!({"a": 1})), MATCHED);
}

#[test]
fn one_definition_can_disagree_with_itself() {
    let start = "default match := {\"matched\": false}\nmatch := {\"matched\": true} if";
    for (rules, two, one) in [
        (
            "x == 1\nx := v if some v in input.n",
            json!([2, 3]),
            json!([2, 2]),
        ),
        (
            "x[1] == 1\nx[k] := v if some k, v in {1: 2, 3: 4}",
            json!([]),
            json!([]),
        ),
        (
            "x.a == 1\nx[\"a\"] := v if some v in input.n",
            json!([2, 3]),
            json!([2, 2]),
        ),
        (
            "x.a == 1\nx := {\"a\": v | some v in input.n}",
            json!([2, 3]),
            json!([2, 2]),
        ),
    ] {
        let body = format!("{start} {rules}");
        let Ok(module) = module(&body) else {
            // Members with constant names are not spoken by the machine.
            continue;
        };
        if two != one {
            let found = module.evaluate(&json!({"n": two}));
            assert!(matches!(found, Err(Failure::Disagreement(_))), "{body} {found:?}");
        }
        assert_eq!(module.evaluate(&json!({"n": one})), NOT_MATCHED, "{body}");
    }
}

/// Proves RG-1.
#[test]
fn a_module_that_loops_is_stopped() {
    let many: Vec<u32> = (0..400).collect();
    let body = "match := {\"matched\": false} if { some a in input.n; some b in input.n; some c in input.n; a + b + c < 0 }";
    assert_eq!(says(body, &json!({"n": many})), Err(Failure::Stopped));
}

/// Returns what a module was refused.
fn refused(body: &str, input: &serde_json::Value) -> Diagnostic {
    match says(body, input) {
        Err(Failure::Refused(place)) => place,
        other => panic!("{body} {other:?}"),
    }
}

const START: &str = "default match := {\"matched\": false}\nmatch := {\"matched\": true} if";

/// Proves RG-3.
#[test]
fn what_a_builtin_or_reference_refuses_is_never_no_match() {
    let text = json!({"tool": {"input": "rm -rf /"}, "n": 5, "t": "5", "z": 0, "bad": "(", "list": [1, "a"], "null": null,
        "is": true});
    let mut wrong = Vec::new();
    for (condition, at_fault) in [
        // Wrong types of operands, of built-ins and of operators.
        ("count(input.n) > 1", "operand 1, `input.n`, which is a number"),
        (
            "contains(input.tool, \"rm -rf\")",
            "operand 1, `input.tool`, which is an object",
        ),
        (
            "contains(\"rm\", input.n)",
            "operand 2, `input.n`, which is a number",
        ),
        (
            "startswith(input.null, \"a\")",
            "operand 1, `input.null`, which is null",
        ),
        (
            "strings.any_prefix_match(\"a\", input.is)",
            "operand 2, `input.is`, which is a boolean",
        ),
        ("strings.count(\"a\", input.n) == 1", "operand 2, `input.n`"),
        ("array.slice(input.list, 0, 1.5) == []", "operand 3, `1.5`"),
        ("substring(input.t, input.n - 6, 1) == \"\"", "operand 2"),
        ("format_int(5, input.n) == \"\"", "operand 2, `input.n`"),
        ("bits.and(input.n, 1.5) == 1", "operand 2, `1.5`"),
        ("sum(input.list) > 1", "operand 1, `input.list`"),
        ("count(input.list & {1}) > 0", "&"),
        ("count({1} | input.n) > 0", "|"),
        (
            "input.t + 1 == 6",
            "+ refuses operand 1, `input.t`, which is a string",
        ),
        ("1 - input.t == 6", "- refuses operand 2, `input.t`"),
        (
            "count({1} - input.list) == 1",
            "- refuses operand 2, `input.list`, which is an array",
        ),
        ("input.n * input.t == 6", "* refuses operand 2, `input.t`"),
        ("input.t / 2 == 6", "/ refuses operand 1"),
        ("5.5 % 2 == 1", "%"),
        // Division by zero.
        (
            "input.n / input.z == 1",
            "/ divides by operand 2, `input.z`, which is 0",
        ),
        ("input.n % input.z == 1", "% divides by operand 2"),
        // A bad pattern out of the input.
        (
            "regex.match(input.bad, \"a\")",
            "regex.match refuses operand 1, `input.bad`",
        ),
        (
            "count(regex.split(input.bad, \"a\")) > 5",
            "operand 1, `input.bad`",
        ),
        ("glob.match(\"[\", [], \"a\")", "glob.match refuses operand 1"),
        ("glob.match(\"a\", [], \"a\\u0000\")", "glob.match"),
        // References into what is no collection.
        (
            "input.tool.input.command == \"x\"",
            "`input.tool.input.command` looks for the member \"command\" in a string",
        ),
        (
            "input.n[0] == 1",
            "`input.n[0]` looks for the member 0 in a number",
        ),
        ("input.n.x.y == 1", "\"x\" in a number"),
        ("input.null.x == 1", "in null"),
        ("{ k := input.t; input.is[k] == 1 }", "in a boolean"),
        ("{ x := input.tool; x.input.command == 1 }", "in a string"),
        (
            "{ some x in input.tool.input; x == 1 }",
            "operand 1, `input.tool.input` is a string",
        ),
        ("input.tool.input[_] == 1", "`input.tool.input` is a string"),
        ("{ some i; input.n[i] == 1 }", "`input.n` is a number"),
        (
            "{ every x in input.tool.input { x == 1 } }",
            "`input.tool.input` is a string",
        ),
        (
            "\"rm\" in input.tool.input",
            "operand 2, `input.tool.input` is a string",
        ),
        ("count([x | some x in input.n]) > 0", "`input.n` is a number"),
        (
            "{ {\"command\": c} := input.tool.input; c == 1 }",
            "\"command\" in a string",
        ),
    ] {
        let body = format!("{START} {condition}");
        let place = refused(&body, &text);
        let is_right = place.message.contains(at_fault)
            && (place.line, place.column > 30) == (4, true)
            // The sentence repeats nothing of what was sent.
            && !place.message.contains("rm -rf /");
        if !is_right {
            wrong.push(format!("{condition}: {place:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Proves RG-3.
#[test]
fn a_refusal_counts_wherever_it_is() {
    let text = json!({"x": 5, "list": [1, "rm"]});
    for body in [
        // In a helper, a function, a set, an object, a comprehension, an else, an iteration, the head, a default of match.
        "a\na if contains(input.x, \"rm\")",
        "a\na if b\nb if contains(input.x, \"rm\")",
        "f(input.x)\nf(x) if contains(x, \"rm\")",
        "count(a) > 0\na contains 1 if contains(input.x, \"rm\")",
        "count(a) > 0\na[k] := 1 if { some k in [1]; contains(input.x, \"rm\") }",
        "count([1 | contains(input.x, \"rm\")]) > 0",
        "a == 2\na := 1 if contains(input.x, \"rm\") else := 3",
        "{ some x in input.list; contains(x, \"no\") }",
        "a == 2\na := count(input.x)",
        // Once under `not`, and once again outside: the second time is not forgiven, though the value was kept.
        "{ not a; a }\na if contains(input.x, \"rm\")",
        "{ not a; b }\nb if a\na if contains(input.x, \"rm\")",
        // What is negated is given something that was refused.
        "not input.x + \"a\" == 1",
        "not count(input.x) == 1",
        "not startswith(input.x.y, \"a\")",
        "not f(input.x.y)\nf(x) if x",
        "not input.x.y in [1]",
        "not [input.x.y] == [1]",
        "not input.list[input.x.y] == 1",
        // Of two reasons the one that is not forgiven.
        "{ not contains(input.x, \"rm\"); contains(input.x, \"rm\") }",
    ] {
        let place = refused(&format!("{START} {body}"), &text);
        assert!(place.line >= 4, "{body} {place:?}");
    }
    refused("match := {\"matched\": contains(input.x, \"rm\")}", &text);
    refused(
        "match := {\"matched\": false} if not contains(input.x, \"rm\")\nmatch := {\"matched\": true} if contains(input.x, \"rm\")",
        &text,
    );
}

/// Proves RG-3.
#[test]
fn not_and_a_default_take_care_of_a_refusal() {
    let text = json!({"x": 5, "list": [1, "rm"]});
    for (body, is_match) in [
        ("not contains(input.x, \"rm\")", true),
        ("not input.x.y == 1", true),
        ("not input.x < 1 + 1", true),
        ("not input.x + \"a\"", true),
        ("not a\na if contains(input.x, \"rm\")", true),
        ("{ not a; false }\na if contains(input.x, \"rm\")", false),
        (
            "a\ndefault a := true\na := false if contains(input.x, \"rm\")",
            true,
        ),
        ("a\ndefault a := false\na if contains(input.x, \"rm\")", false),
        (
            "a\ndefault a := false\na if b\nb if contains(input.x, \"rm\")",
            false,
        ),
        (
            "f(1)\ndefault f(_) := false\nf(x) if contains(input.x, \"rm\")",
            false,
        ),
        (
            "{ a; false }\ndefault a := true\na := false if contains(input.x, \"rm\")",
            false,
        ),
    ] {
        let body = format!("{START} {body}");
        let expected = if is_match { MATCHED } else { NOT_MATCHED };
        assert_eq!(says(&body, &text), expected, "{body}");
    }
}

#[test]
fn a_function_has_the_default_that_it_was_given() {
    let body = format!("{START} risky(input.x)\ndefault risky(_) := true\nrisky(x) := false if x == \"ok\"");
    for (input, expected) in [
        (json!({"x": "ok"}), NOT_MATCHED),
        (json!({"x": "bad"}), MATCHED),
        (json!({"x": 5}), MATCHED),
        // A call with an operand that has no value has none.
        (json!({}), NOT_MATCHED),
    ] {
        assert_eq!(says(&body, &input), expected, "{input}");
    }
}

#[test]
fn a_condition_in_a_comprehension_ends_the_comprehension_alone() {
    let input = json!({"x": 5, "list": [1, 2, 3], "more": [[1], [2, 3]]});
    for (condition, is_match) in [
        // Without a loop in it, and then another condition.
        ("{ count([1 | input.x == 6]) == 0; input.x == 5 }", true),
        ("{ count([1 | input.x == 6]) == 0; input.x == 6 }", false),
        ("{ count([1 | input.x == 5]) == 1; input.x == 5 }", true),
        (
            "{ count([1 | input.no == 5]) == 0; count({1 | input.x == 6}) == 0; count({1: 1 | input.x == 6}) == 0 }",
            true,
        ),
        // In a loop, whose turn it does not end.
        ("{ some n in input.list; count([1 | n == 9]) == 0; n == 3 }", true),
        ("{ some n in input.list; count([1 | n == 9]) == 1 }", false),
        (
            "{ some n in input.list; count([m | some m in input.list; m > n]) == 2; n == 1 }",
            true,
        ),
        (
            "{ some n in input.list; count([m | some m in input.list; m > 9]) == 0; n == 3 }",
            true,
        ),
        ("{ every n in input.list { count([1 | n == 9]) == 0 } }", true),
        ("{ every n in input.list { count([1 | n == 1]) == 0 } }", false),
        // In another one, and in a set.
        (
            "count([l | some l in input.more; count([1 | some n in l; n == 3]) == 0]) == 1",
            true,
        ),
        (
            "count([l | some l in input.more; count([1 | l == 1]) == 0]) == 2",
            true,
        ),
        (
            "count(a) == 2\na contains n if { some n in input.list; count([1 | n == 2]) == 0 }",
            true,
        ),
        (
            "not a\na if { count([1 | input.x == 6]) == 0; input.x == 6 }",
            true,
        ),
    ] {
        let expected = if is_match { MATCHED } else { NOT_MATCHED };
        assert_eq!(
            says(&format!("{START} {condition}"), &input),
            expected,
            "{condition}"
        );
    }
}

#[test]
fn a_module_that_asks_for_the_type_first_is_refused_nothing() {
    let body = format!(
        "{START} {{ is_string(input.x); contains(input.x, \"rm\") }}\n\
         match := {{\"matched\": true}} if {{ is_object(input.x); contains(input.x.command, \"rm\") }}\n\
         match := {{\"matched\": true}} if {{ some v in input.list; is_string(v); contains(v, \"rm\") }}"
    );
    for (input, is_match) in [
        (json!({"x": "rm"}), true),
        (json!({"x": "ls"}), false),
        (json!({"x": {"command": "rm"}}), true),
        (json!({"x": {"command": "ls"}}), false),
        (json!({"x": 5, "list": [1, {}, "ls"]}), false),
        (json!({"x": 5, "list": [1, {}, "rm"]}), true),
        (json!({}), false),
    ] {
        let expected = if is_match { MATCHED } else { NOT_MATCHED };
        assert_eq!(says(&body, &input), expected, "{input}");
    }
}

/// Proves RG-3.
#[test]
fn a_match_that_was_found_stands() {
    for order in [
        ["input.x == 5", "contains(input.x, \"rm\")"],
        ["contains(input.x, \"rm\")", "input.x == 5"],
    ] {
        let bodies: Vec<_> = order
            .iter()
            .map(|condition| {
                format!("match := {{\"matched\": true, \"reasonCode\": input.r}} if {condition}")
            })
            .collect();
        let body = format!("default match := {{\"matched\": false}}\n{}", bodies.join("\n"));
        let found = says(&body, &json!({"x": 5, "r": "five"})).unwrap();
        assert_eq!(
            (found.matched, found.reason_code.as_deref()),
            (true, Some("five"))
        );
        refused(&body, &json!({"x": 6, "r": "five"}));
    }
}

#[test]
fn what_has_no_value_is_refused_nothing() {
    // Absent attributes, values of other types that only compare, empty collections.
    let input = json!({"n": "5", "list": [], "object": {}});
    for condition in [
        "count(input.no) > 1",
        "contains(input.no, \"a\")",
        "input.no.no.no == 1",
        "input.no + 1 == 1",
        "{ some x in input.no; x == 1 }",
        "{ some x in input.list; x == 1 }",
        "\"a\" in input.no",
        "input.list.name == 1",
        "input.list[7] == 1",
        "input.object.name.more == 1",
        "max(input.list) == 1",
        "data.no.no == 1",
        "{ [a, b] := input.list; a == b }",
        "5 > \"a\"",
        "strings.count(\"aa\", \"\") == 2",
    ] {
        assert_eq!(
            says(&format!("{START} {condition}"), &input),
            NOT_MATCHED,
            "{condition}"
        );
    }
    // Values of different types have an order in Rego.
    assert_eq!(says(&format!("{START} input.n > 1"), &input), MATCHED);
    assert_eq!(
        says(&format!("{START} strings.count(\"aa\", \"\") == 3"), &input),
        MATCHED
    );
}

/// Returns whether a module's answer is worth nothing on an input of which these paths are missing.
fn is_unknown(body: &str, input: &serde_json::Value, missing: &[&str]) -> bool {
    let module = module(body).unwrap_or_else(|e| panic!("{body}: {e:?}"));
    let missing: Vec<Vec<&str>> = missing.iter().map(|path| path.split('.').collect()).collect();
    let input = input::value(input);
    assert!(!module.ask(&input, &[]).has_read_missing, "{body}");
    module.ask(&input, &missing).has_read_missing
}

/// Proves RG-4.
#[test]
fn a_module_is_unknown_only_for_what_it_reads() {
    let input = json!({"stage": "pre_tool", "tool": {"id": "Bash", "input": {"command": "ls", "list": [1, 2]}},
        "identity": {"user_id": "ada", "device_id": "tool"}});
    let missing = ["identity.group_ids", "llm.model", "tool.result"];
    for (condition, reads) in [
        // What it does not read.
        ("input.tool.id == \"Bash\"", false),
        ("input.tool.input.command == \"ls\"", false),
        ("input[\"tool\"][\"id\"] == \"Bash\"", false),
        ("input.identity.user_id == \"ada\"", false),
        ("input.stage == \"pre_tool\"", false),
        ("{ x := input; y := x.tool; y.id == \"Bash\" }", false),
        ("f(input.tool)\nf(x) if x.id == \"Bash\"", false),
        (
            "f(input)\nf(x) if { {\"tool\": {\"id\": id}} := x; id == \"Bash\" }",
            false,
        ),
        ("tool.id == \"Bash\"\ntool := input.tool", false),
        ("{ some x in input.tool.input.list; x == 2 }", false),
        ("input.tool.input.list[_] == 2", false),
        ("input.tool.input.list[1] == 2", false),
        ("count(input.tool.input) == 2", false),
        ("input.tool.input == {}", false),
        ("input.agent.id == \"x\"", false),
        ("input.tool", false),
        ("not input.tool", false),
        ("{ names := {\"Bash\": 1}; names[input.tool.id] == 1 }", false),
        // A missing attribute itself, and what leads to it or away from it.
        ("input.identity.group_ids == []", true),
        ("not input.identity.group_ids", true),
        ("input.identity.group_ids[0] == 1", true),
        ("\"a\" in input.identity.group_ids", true),
        ("input.llm.model == \"x\"", true),
        ("input.llm.model.more == \"x\"", true),
        ("input.llm == {}", true),
        ("not input.llm", true),
        ("input.llm.input_tokens == 1", true),
        ("{ x := input; x.identity.group_ids == [] }", true),
        ("f(input.identity)\nf(x) if x.group_ids == []", true),
        ("{ {\"group_ids\": g} := input.identity; g == [] }", true),
        // A default and `not` take care of failures, and not of what is unknown.
        ("a == 1\ndefault a := 1\na := 2 if input.identity.group_ids", true),
        // What holds something missing, as a whole.
        ("input == {}", true),
        ("input.identity == {}", true),
        ("input.tool != {}", true),
        ("count(input.identity) == 2", true),
        ("object.get(input, \"tool\", 1) == 1", true),
        ("json.remove(input, [\"a\"]) == {}", true),
        ("{ some k, v in input.identity; k == v }", true),
        ("{ every x in input { x } }", true),
        ("input.identity[_] == \"ada\"", true),
        ("\"ada\" in input.identity", true),
        ("[input.identity] == []", true),
        ("count({input.identity}) == 2", true),
        ("count({\"a\": input.identity}) == 2", true),
        ("count({\"a\": input.identity | true}) == 2", true),
        ("[input.identity | true] == []", true),
        ("count(a) == 9\na contains input.identity", true),
        ("count(a) == 9\na[k] := input.identity if some k in [1]", true),
        ("input.identity in [1]", true),
        ("is_object(input.identity)", true),
        (
            "a.user_id == 1\na := input.identity if input.tool\na := input.identity if input.stage",
            true,
        ),
        // A computed key may be any.
        ("input[input.identity.device_id].id == \"Bash\"", true),
        ("input.tool[input.stage] == 1", true),
        ("{ k := \"command\"; input.tool.input[k] == \"ls\" }", true),
        ("{ k := \"tool\"; input[k].id == \"Bash\" }", true),
    ] {
        let body = format!("{START} {condition}");
        assert_eq!(is_unknown(&body, &input, &missing), reads, "{condition}");
    }
    assert!(is_unknown("match := input.identity", &input, &missing));
    let walks = |what: &str| format!("{START} {{ walk({what}, [p, v]); v == 1 }}");
    assert!(is_unknown(&walks("input"), &input, &missing));
    assert!(is_unknown(&walks("input.identity"), &input, &missing));
    assert!(!is_unknown(&walks("input.tool.input"), &input, &missing));
}

#[test]
fn what_lies_below_a_text_is_unknown_and_the_text_is_not() {
    let input = json!({"tool": {"id": "Bash", "input": "{\"command\": 1e999}"}});
    let missing = ["tool.input.command", "tool.input.url"];
    for (condition, reads) in [
        ("input.tool.input.command == \"rm\"", true),
        ("not input.tool.input.command", true),
        ("input.tool.input.other == 1", true),
        ("input.tool.input[_] == 1", true),
        ("{ x := input.tool.input; x.command == 1 }", true),
        ("contains(input.tool.input, \"rm\")", false),
        ("input.tool.input == \"rm\"", false),
        ("is_string(input.tool.input)", false),
        ("input.tool.id == \"Bash\"", false),
        ("input.tool == {}", true),
    ] {
        let body = format!("{START} {condition}");
        assert_eq!(is_unknown(&body, &input, &missing), reads, "{condition}");
    }
}

#[test]
fn what_is_read_depends_on_the_evaluation() {
    let body = format!("{START} {{ input.tool.id == \"Bash\"; input.identity.user_id == \"ada\" }}");
    assert!(is_unknown(
        &body,
        &json!({"tool": {"id": "Bash"}}),
        &["identity.user_id"]
    ));
    assert!(!is_unknown(
        &body,
        &json!({"tool": {"id": "Read"}}),
        &["identity.user_id"]
    ));
}

#[test]
fn a_module_that_doubles_a_number_is_stopped() {
    let doubling: Vec<_> = (1..31)
        .map(|n| format!("x{n} := x{} * x{}", n - 1, n - 1))
        .collect();
    let doubling = doubling.join("\n");
    let body = format!("match := {{\"matched\": x30 > 1}}\nx0 := 7777777777\n{doubling}");
    assert_eq!(says(&body, &json!({})), Err(Failure::Stopped));
}

#[test]
fn builtins_that_shift_or_reach_out_are_refused() {
    for call in [
        "time.now_ns() > 1",
        "http.send({}).x == 1",
        "rand.intn(\"a\", 5) > 1",
        "opa.runtime().x == 1",
        "bits.lsh(1, 1000000000) > 1",
        "count(numbers.range_step(1, 1000000000, 1)) > 1",
        "strings.replace_n({\"a\": \"b\"}, \"a\") != \"\"",
        "product([2, 3]) > 1",
    ] {
        let body = format!("match := {{\"matched\": true}} if {call}");
        let refused = module(&body).map(|m| m.evaluate(&json!({})));
        assert!(refused.is_err(), "{call} {refused:?}");
    }
}

#[test]
fn faults_have_their_place() {
    let faults = module("match := {\"matched\": ").unwrap_err();
    assert!(faults[0].line >= 3 && !faults[0].message.is_empty(), "{faults:?}");
    assert!(module("match := {\"matched\": unknown_function(1)}").is_err());
    assert!(Module::compile(Family::Access, "package forge.content\nmatch := 1").is_err());
    assert!(Module::compile(Family::SkillAcl, "package x").is_err());
    assert!(Module::compile(Family::Content, "").is_err());
    assert!(module("other := 1").is_err());
}

#[test]
fn deep_brackets_are_refused_before_they_are_parsed() {
    let body = |open: &str, close: &str, n: usize| {
        format!(
            "x := {}1{}\nmatch := {{\"matched\": true}}",
            open.repeat(n),
            close.repeat(n)
        )
    };
    for (open, close) in [("[", "]"), ("{", "}"), ("{1: ", "}")] {
        assert!(module(&body(open, close, 10)).is_ok(), "{open}");
        for n in [11, 60, 100_000] {
            assert!(module(&body(open, close, n)).is_err(), "{open}");
        }
    }
    assert!(module(&body("(", ")", 20)).is_ok());
    assert!(module(&body("(", ")", 100_000)).is_err());
    // Brackets in texts and comments are none.
    assert!(
        module("# [[[[[[[[[[[[[[[[\nmatch := {\"matched\": \"[[[[[[[[[[[\\\"[[\" == `{{{{{{{{{{{`}").is_ok()
    );
    // A long list in many brackets would be read a thousand times.
    let list = vec!["1"; 5000].join(",");
    assert!(
        module(&format!(
            "x := {}{list}{}\nmatch := {{\"matched\": true}}",
            "[".repeat(10),
            "]".repeat(10)
        ))
        .is_err()
    );
    assert!(module(&format!("x := {{{list}}}\nmatch := {{\"matched\": true}}")).is_ok());
}

#[test]
fn length_ends_at_262144_characters() {
    let start = "package forge.content\nmatch := {\"matched\": true}\n#";
    let long = |n: usize| format!("{start}{}", "x".repeat(n - start.len()));
    assert!(Module::compile(Family::Content, &long(MODULE_LIMIT_CHARS)).is_ok());
    assert!(Module::compile(Family::Content, &long(MODULE_LIMIT_CHARS + 1)).is_err());
}

#[test]
fn fingerprints_tell_modules_apart() {
    let (a, b) = (
        module(SHELL).unwrap(),
        module("match := {\"matched\": true}").unwrap(),
    );
    assert_eq!(compiler_fingerprint().len(), 64);
    assert_ne!(a.artifact_fingerprint(), b.artifact_fingerprint());
    assert_eq!(
        a.artifact_fingerprint(),
        module(SHELL).unwrap().artifact_fingerprint()
    );
}

/// Half of what the threads of the tests, and of the product, have.
fn with_little_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    std::thread::scope(|scope| thread.spawn_scoped(scope, work).unwrap().join().unwrap())
}

/// Proves RG-2.
#[test]
fn rules_that_call_themselves_are_refused() {
    for body in [
        "f(x) := f(x)\nmatch := {\"matched\": true} if f(1)",
        "a if b\nb if not a\nmatch := {\"matched\": true} if a",
        "f(x) := g(x)\ng(x) := [y | y := f(x)]\nmatch := {\"matched\": true} if f(1)",
        "a contains x if { some x in a }\nmatch := {\"matched\": count(a) > 0}",
        "match := {\"matched\": true} if data.forge.content[input.rule]",
    ] {
        assert!(with_little_stack(|| module(body).is_err()), "{body}");
    }
}

/// Proves RG-2.
#[test]
fn calls_end_at_32_rules() {
    let chain = |rules: usize, call: &dyn Fn(usize) -> String, start: &str| {
        let all: Vec<_> = (1..rules).map(call).collect();
        format!("{start}\n{}", all.join("\n"))
    };
    for (call, start, end) in [
        (
            (&|n: usize| format!("r{n} := r{}", n - 1)) as &dyn Fn(usize) -> String,
            "r0 := 1",
            "",
        ),
        (
            &|n: usize| format!("r{n}(x) := r{}(x)", n - 1),
            "r0(x) := x",
            "(1)",
        ),
        // Two values to choose from: the interpreter answers as well.
        (
            &|n: usize| format!("r{n} := r{} if input\nr{n} := 2 if input.no", n - 1),
            "r0 := 0",
            "",
        ),
    ] {
        for (rules, is_fine) in [(31, true), (32, false)] {
            let answer = format!("match := {{\"matched\": r{}{end} == 1}}", rules - 1);
            let body = format!("{}\n{answer}", chain(rules, call, start));
            let found = with_little_stack(|| module(&body).map(|m| m.evaluate(&json!({})).is_ok()));
            assert_eq!(found.is_ok_and(|answered| answered), is_fine, "{rules} {body}");
        }
    }
}

/// Proves RG-2.
#[test]
fn expressions_end_at_128_operators() {
    let chain =
        |part: &str, n: usize, end: &str| format!("match := {{\"matched\": 1 == {}{end}}}", part.repeat(n));
    for (part, end) in [
        ("1+", "1"),
        ("1 +\n", "1"),
        ("1\n+", "1"),
        ("1|", "2"),
        ("(1)-", "1"),
        ("1*1+", "1"),
    ] {
        for (n, is_fine) in [(40, true), (129, false), (60_000, false)] {
            let body = chain(part, n, end);
            let found = with_little_stack(|| module(&body).map(|m| m.evaluate(&json!({})).is_ok()));
            assert_eq!(found.is_ok(), is_fine, "{part:?} {n} {found:?}");
        }
    }
    for part in ["[0]", ".a", "[\"a\"]", "[0].a", "+1"] {
        let body = |n: usize| format!("match := {{\"matched\": input{} == 1}}", part.repeat(n));
        assert!(with_little_stack(|| module(&body(20)).is_ok()), "{part}");
        assert!(with_little_stack(|| module(&body(40_000)).is_err()), "{part}");
    }
    for n in [2, 120, 60_000] {
        assert!(with_little_stack(|| module(&chain("-", n, "1")).is_err()));
    }
    // Many expressions are fine, and so are operators in texts and remarks.
    let mut many = "default match := {\"matched\": false}\n".to_owned();
    for n in 0..100 {
        let (plus, minus) = ("+".repeat(300), "-".repeat(300));
        let rule = format!("r{n} if {{\n  input.a.b[0] == {n} # {plus}\n  input.c != \"{minus}\"\n}}\n");
        many.push_str(&rule);
    }
    many.push_str("list := [");
    many.push_str(&"1 + 1, ".repeat(300));
    many.push_str("2]\n");
    assert!(module(&many).is_ok());
}

#[test]
fn a_document_that_pretends_to_be_a_number_hides_nothing() {
    for number in ["x", "1", "1e4000000000"] {
        let input = json!({"tool": {"id": "shell"}, "event": {"$serde_json::private::Number": number}});
        assert!(says(SHELL, &input).unwrap().matched, "{number}");
        let seen =
            format!("match := {{\"matched\": input.event[\"$serde_json::private::Number\"] == {number:?}}}");
        assert_eq!(says(&seen, &input), MATCHED);
    }
}

#[test]
fn exponents_end_at_three_digits() {
    for (number, is_fine) in [
        ("1e308", true),
        ("1.5e-10", true),
        ("0e1000", false),
        ("1.5e+33720368", false),
        ("1e0000000001", false),
        ("1e1_0000000", false),
    ] {
        let found = module(&format!("match := {{\"matched\": 1 == {number}}}"));
        assert_eq!(found.is_ok(), is_fine, "{number} {found:?}");
    }
    let free = "a1e99999 := \"1e99999\" # 1e99999\nmatch := {\"matched\": a1e99999 == `2e88888`}";
    assert_eq!(says(free, &json!({})), NOT_MATCHED);
}

/// Returns the places and texts that a module is warned of, and the member that each is told.
fn warned(body: &str) -> Vec<(u32, String, String)> {
    let module = module(body).unwrap_or_else(|e| panic!("{body}: {e:?}"));
    let found = module.warnings().into_iter().map(|found| {
        let text = found.message.split('"').nth(1).unwrap().to_owned();
        let (_, told) = found.message.split_once("ask ").unwrap();
        (found.line, text, told.split(',').next().unwrap().to_owned())
    });
    found.collect()
}

const ID: &str = "usr_01m7w5ws2557r5efywan1hf0t3";

/// Proves RG-6.
#[test]
fn a_text_that_meets_an_id_is_warned_of_however_it_meets_it() {
    let bodies = [
        r#"match := {"matched": true} if input.identity.user_id == "ada""#,
        r#"match := {"matched": true} if "ada" != input.identity.user_id"#,
        r#"match := {"matched": true} if input["identity"]["user_id"] = `ada`"#,
        r#"match := {"matched": true} if input.identity.user_id in {"ada", "bob"}"#,
        r#"match := {"matched": true} if not input.identity.user_id in ["ada", "bob"]"#,
        r#"match := {"matched": true} if startswith(input.identity.user_id, "ada")"#,
        r#"match := {"matched": true} if regex.match("^ada", input.identity.user_id)"#,
        r#"match := {"matched": true} if contains(lower(input.identity.user_id), "ada")"#,
        r#"match := {"matched": true} if split(input.identity.user_id, "@")[0] == "ada""#,
        r#"match := {"matched": true} if strings.any_prefix_match(input.identity.user_id, ["ada"])"#,
        r#"match := {"matched": true} if object.get(input.identity, "user_id", "") == "ada""#,
        r#"match := {"matched": true} if object.get(input, ["identity", "user_id"], "") == "ada""#,
        r#"match := {"matched": true} if { some who in ["ada"]; who == input.identity.user_id }"#,
        r#"match := {"matched": true} if { who := input.identity; who.user_id == "ada" }"#,
        r#"match := {"matched": true} if { some name, value in input.identity; value == "ada" }"#,
        r#"match := {"matched": true} if { some part; input[part].user_id == "ada" }"#,
        r#"match := {"matched": true} if { x := [input.identity.user_id, 1]; x[0] == "ada" }"#,
        r#"match := {"matched": true} if { [x, _] := [input.identity.user_id, 1]; x == "ada" }"#,
        r#"match := {"matched": true} if count({x | x := input.identity.user_id} & {"ada"}) > 0"#,
        r#"match := {"matched": true} if every x in [input.identity.user_id] { x == "ada" }"#,
        "match := {\"matched\": true} if admins[input.identity.user_id]\nadmins := {\"ada\", \"bob\"}",
        "match := {\"matched\": true} if admins[input.identity.user_id] == 1\nadmins := {\"ada\": 1}",
        "match := {\"matched\": true} if input.identity.user_id in data.forge.content.admins\nadmins contains \"ada\"",
        "match := {\"matched\": true} if some_body(input.identity.user_id)\nsome_body(x) if x == \"ada\"",
        "match := {\"matched\": true} if data.forge.content.same(\"ada\", input.identity.user_id)\nsame(x, y) if x == y",
        "match := {\"matched\": true} if who == \"ada\"\nwho := input.identity.user_id",
        "match := {\"matched\": true} if who == input.identity.user_id\ndefault who := \"nobody\"\nwho := \"ada\" if input.x",
        "match := {\"matched\": true} if seen.ada\nseen contains input.identity.user_id",
        "match := {\"matched\": true} if it({\"who\": input.identity.user_id})\nit(x) if x.who == \"ada\"",
    ];
    for body in bodies {
        let found = warned(body);
        let is_told = |text: &str| {
            let mut all = found.iter();
            all.any(|(_, of, member)| of == text && member == "input.identity.user_words")
        };
        assert!(is_told("ada") || is_told("^ada"), "{body} {found:?}");
    }
    let import = "import input.identity as who\nmatch := {\"matched\": true} if who.user_id == \"ada\"";
    assert_eq!(warned(import).len(), 1);
    // Each attribute has a member of its own.
    for (id, words) in [
        ("identity.user_id", "identity.user_words"),
        ("identity.service_account_id", "identity.account_words"),
        ("skill.id", "skill.words"),
        ("resource.id", "resource.words"),
    ] {
        let body = format!("match := {{\"matched\": true}} if {{\n  input.{id} == \"x\"\n}}");
        assert_eq!(warned(&body), [(4, "x".to_owned(), format!("input.{words}"))]);
    }
    for condition in [
        "\"x\" in input.identity.group_ids",
        "input.identity.group_ids[_] == \"x\"",
        "count({g | some g in input.identity.group_ids} & {\"x\"}) > 0",
        "input.identity.group_ids == [\"x\"]",
    ] {
        let body = format!("match := {{\"matched\": true}} if {condition}");
        let told = "input.identity.group_words".to_owned();
        assert_eq!(warned(&body), [(3, "x".to_owned(), told)], "{condition}");
    }
}

/// Proves RG-6.
#[test]
fn what_is_an_id_or_meets_none_is_not_warned_of() {
    for condition in [
        format!("input.identity.user_id == \"{ID}\""),
        format!("not input.identity.user_id in {{\"{ID}\"}}"),
        format!("regex.match(\"^{ID}$\", input.identity.user_id)"),
        "startswith(input.identity.user_id, \"usr_\")".to_owned(),
        "input.identity.user_id != \"\"".to_owned(),
        "object.get(input.identity, \"user_id\", \"\") != \"\"".to_owned(),
        "type_name(input.identity.user_id) == \"string\"".to_owned(),
        "count(input.identity.group_ids) > 3".to_owned(),
        "input.identity.user_words[_] == \"ada\"".to_owned(),
        "\"ada\" in input.identity.user_words".to_owned(),
        "input.identity.device_id == \"laptop\"".to_owned(),
        "{ input.tool.id == \"Bash\"; input.identity.user_id != input.resource.id }".to_owned(),
        "{ input.tool.id in {\"Bash\", \"Write\"}; contains(input.tool.input.command, \"rm -rf\") }"
            .to_owned(),
        "input.identity.user_id == input.tool.input.owner".to_owned(),
    ] {
        let body = format!("match := {{\"matched\": true, \"reasonCode\": \"who\"}} if {condition}");
        assert_eq!(warned(&body), [], "{condition}");
    }
    assert_eq!(warned(SHELL), []);
    // One that only looks like an id is none.
    let body = "match := {\"matched\": true} if input.identity.user_id == \"usr_bob\"";
    assert_eq!(warned(body).len(), 1);
}

#[test]
fn a_module_that_compares_an_id_with_a_text_is_asked_with_every_word_that_an_input_names() {
    let input = json!({"identity": {"user_id": ID, "user_words": ["ada", "ada@acme.test", ID],
        "group_ids": ["grp_1"], "group_words": ["contractors", "grp_1"]}, "skill": {"id": "Deploy@1.0.0"}});
    let holds = |condition: &str| says(&format!("{START} {condition}"), &input);
    for condition in [
        "input.identity.user_id == \"ada\"",
        "input.identity.user_id == \"ADA@acme.test \"",
        "input.identity.user_id in {\"bob\", \"Ada\"}",
        "endswith(input.identity.user_id, \"@acme.test\")",
        "\"Contractors\" in input.identity.group_ids",
        "every g in input.identity.group_ids { g in {\"contractors\", \"dev\"} }",
        "{ input.identity.user_id == \"ada\"; \"contractors\" in input.identity.group_ids }",
        "input.skill.id == \"deploy\"",
        // As before: a text that the id is not.
        "input.identity.user_id != \"ada\"",
        "not input.identity.user_id in {\"ada\"}",
    ] {
        assert_eq!(holds(condition), MATCHED, "{condition}");
    }
    for condition in [
        "input.identity.user_id == \"bob\"",
        "startswith(input.identity.user_id, \"acme\")",
        "\"dev\" in input.identity.group_ids",
        "input.skill.id == \"undeploy\"",
    ] {
        assert_eq!(holds(condition), NOT_MATCHED, "{condition}");
    }
    // One that fails for some word and matches for none has failed.
    let failing = format!("{START} {{ input.identity.user_id == \"ada\"; input.skill.id.x == 1 }}");
    assert!(matches!(says(&failing, &input), Err(Failure::Refused(_))));
}
