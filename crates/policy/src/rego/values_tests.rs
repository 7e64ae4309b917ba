//! What a condition says where something in it has no value, or where nothing is found: what OPA says.

use super::*;
use serde_json::json;

/// A condition, the rules beside it, and whether it holds with members, with empty collections, and with nothing.
type Case = (&'static str, &'static str, [bool; 3]);

/// The answers are OPA's.
fn assert_as_opa(cases: &[Case]) {
    let inputs = [
        json!({"a": [1, 2], "o": {"x": 1}}),
        json!({"a": [], "o": {}}),
        json!({}),
    ];
    let mut wrong = Vec::new();
    for (condition, rules, expected) in cases {
        let source = format!(
            "package forge.content\nimport rego.v1\n{rules}\nmatch := {{\"matched\": true}} if {condition}"
        );
        let module = match Module::compile(Family::Content, &source) {
            Ok(module) => module,
            Err(refused) => {
                wrong.push(format!("{condition}: {refused:?}"));
                continue;
            }
        };
        let said = inputs
            .each_ref()
            .map(|input| module.evaluate(input).map(|answer| answer.matched));
        if said != expected.map(Ok) {
            wrong.push(format!("{condition}: {said:?}, OPA {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const DEFINED: [Case; 21] = [
    ("{ x := input.b; not x == 1 }", "", [false, false, false]),
    (
        r#"{ x := lower(input.b); not x == "a" }"#,
        "",
        [false, false, false],
    ),
    ("{ x := [input.b]; not x == [1] }", "", [false, false, false]),
    ("{ x := input.b == 1; not x }", "", [false, false, false]),
    (
        "{ x := input.b; count([1 | x == 1]) == 0 }",
        "",
        [false, false, false],
    ),
    ("count([1 | y := input.b]) == 0", "", [true, true, true]),
    (
        r#"count({k: v | some k in ["a"]; v := input.b}) == 0"#,
        "",
        [true, true, true],
    ),
    (
        "{ some x in input.a; y := input.b; not y == x }",
        "",
        [false, false, false],
    ),
    (
        "every x in input.a { y := input.b; not y == x }",
        "",
        [false, true, false],
    ),
    ("{ x := (1 in input.b); x == false }", "", [false, false, false]),
    ("{ x := (input.b in [1]); x == false }", "", [false, false, false]),
    ("count([input.b | true]) == 0", "", [true, true, true]),
    ("count({input.b | true}) == 0", "", [true, true, true]),
    ("count({input.b: 1 | true}) == 0", "", [true, true, true]),
    ("count({1: input.b | true}) == 0", "", [true, true, true]),
    (
        "count(p) == 0",
        "p[x] := input.b if some x in input.a",
        [true, true, true],
    ),
    ("count(p) == 0", "p[input.b] := 1 if true", [true, true, true]),
    ("r == 5", "r := input.b if true else := 5", [true, true, true]),
    ("f(input.b)", "f(_) := true", [false, false, false]),
    ("not f(input.b, 1)", "f(_, _) := true", [false, false, false]),
    (
        "f(input.b) == 5",
        "default f(_) := 5
f(x) := 6 if x == 1",
        [false, false, false],
    ),
];

/// `:=`, calls, `in`, members of collections and heads of rules.
///
/// Proves RG-8.
#[test]
fn what_has_no_value_ends_its_query() {
    assert_as_opa(&DEFINED);
}

const NEGATED: [Case; 30] = [
    ("not input.b", "", [true, true, true]),
    ("not input.b == 1", "", [true, true, true]),
    ("not 1 == input.b", "", [true, true, true]),
    ("not r", "r := 1 if input.b", [true, true, true]),
    ("not r == 1", "r := 1 if input.b", [true, true, true]),
    (r#"not startswith(input.b, "x")"#, "", [false, false, false]),
    ("not count(input.a) == 1", "", [true, true, false]),
    ("not input.b > 1", "", [false, false, false]),
    ("not input.b != 1", "", [false, false, false]),
    ("not input.b + 1 == 2", "", [false, false, false]),
    (r#"not "x" in input.b"#, "", [false, false, false]),
    (r#"not input.b in ["x"]"#, "", [false, false, false]),
    (
        r#"not startswith(lower(input.b), "x")"#,
        "",
        [false, false, false],
    ),
    ("not [input.b] == [1]", "", [false, false, false]),
    (r#"not {"a": input.b} == {"a": 1}"#, "", [false, false, false]),
    ("not input.o[input.b]", "", [false, false, false]),
    ("not input.o[lower(input.b)] == 1", "", [false, false, false]),
    ("not is_number(r)", "r := 1 if input.b", [false, false, false]),
    ("not r in [1]", "r := 1 if input.b", [false, false, false]),
    ("not f(input.b) == 1", "f(x) := x", [false, false, false]),
    ("not {1} & {2} == {1}", "", [true, true, true]),
    ("not {x | x := input.a[_]; x = 1} == {1}", "", [false, true, true]),
    ("not [x | x := input.a[_]; x = 1] == [1]", "", [false, true, true]),
    (
        "not input.a[count([x | x := input.a[_]; x = 1])] == 2",
        "",
        [false, true, true],
    ),
    ("not count([1 | input.a[_] == 1]) > 0", "", [false, true, true]),
    ("not 1 in {x | x := input.a[_]}", "", [false, true, true]),
    (
        "not is_ok",
        r#"is_ok if not startswith(input.b, "x")"#,
        [true, true, true],
    ),
    (
        "{ some i, x in input.a; not input.a[i] == 2; x == 1 }",
        "",
        [true, false, false],
    ),
    ("{ x = 0; not input.a[x] == 1 }", "", [false, true, true]),
    ("every x in input.a { not x > 1 }", "", [false, true, false]),
];

/// What is negated itself may have no value; what it is given may not.
///
/// Proves RG-8.
#[test]
fn under_not_operands_have_their_values_before() {
    assert_as_opa(&NEGATED);
}

const EVERY: [Case; 12] = [
    (
        r#"every k in ["x", "q"] { input.o[k] }"#,
        "",
        [false, false, false],
    ),
    (
        r#"every k in ["x", "q"] { v := input.o[k]; v == 1 }"#,
        "",
        [false, false, false],
    ),
    (
        r#"every k in ["x"] { input.o[k] == 1 }"#,
        "",
        [true, false, false],
    ),
    (
        r#"every k, v in {"q": 1} { input.o[k] == v }"#,
        "",
        [false, false, false],
    ),
    (r#"every k in ["x"] { not input.o[k] }"#, "", [false, true, true]),
    (
        r#"every k in ["q"] { count([1 | input.o[k]]) == 1 }"#,
        "",
        [false, false, false],
    ),
    ("every i in [0, 5] { input.a[i] }", "", [false, false, false]),
    ("every x in [1, 2] { x = 1 }", "", [false, false, false]),
    (
        "every x in [[1, 2]] { [y, 3] = x; y == 1 }",
        "",
        [false, false, false],
    ),
    (
        r#"every x in [1] { every k in ["q"] { input.o[k] }; x == 1 }"#,
        "",
        [false, false, false],
    ),
    (
        r#"every x in [1] { some k in ["x"]; input.o[k] == x }"#,
        "",
        [true, false, false],
    ),
    (
        "{ every x in input.o { x == input.a[0] }; not input.b }",
        "",
        [true, true, false],
    ),
];

/// Proves RG-8.
#[test]
fn the_names_of_an_every_have_their_values() {
    assert_as_opa(&EVERY);
}

const ELSE: [Case; 9] = [
    (
        "r == 2",
        "r := 1 if { input.a[_] == 77 } else := 2",
        [true, true, true],
    ),
    (
        "r == 2",
        "r := 1 if { some x in input.a; x == 77 } else := 2",
        [true, true, true],
    ),
    (
        "r == 2",
        "r := 1 if { walk(input.a, [_, 77]) } else := 2",
        [true, true, true],
    ),
    (
        "r == 3",
        "r := 1 if { input.a[_] == 77 } else := 2 if { input.a[_] == 78 } else := 3",
        [true, true, true],
    ),
    (
        "r == 2",
        "r := 1 if { some x in [] } else := 2",
        [true, true, true],
    ),
    (
        "f(5) == 9",
        "f(y) := x if { some x in input.a; x == y } else := 9",
        [true, true, true],
    ),
    (
        "f(1) == 9",
        "f(y) := x if { some x in input.a; x == y } else := 9",
        [false, true, true],
    ),
    (
        "f(5) == 1",
        "f(x) := 1 if x > 0
f(x) := 2 if { some y in [1]; y == x } else := 1",
        [true, true, true],
    ),
    (
        "not r",
        "r if { some x in input.a; x == 77 } else := false",
        [true, true, true],
    ),
];

/// Proves RG-8.
#[test]
fn an_else_is_asked_where_a_loop_found_nothing() {
    assert_as_opa(&ELSE);
}

const LOADED: [Case; 4] = [
    (
        "{ count({v: input.o | v := r}) == 0; not input.b }",
        "r := input.b if input.b",
        [true, true, true],
    ),
    (
        "{ count([input.o | r]) == 0; input.o == {} }",
        "r := input.b if input.b",
        [false, true, false],
    ),
    (
        "{ every x in [] { input.a == x }; input.a == [1, 2] }",
        "",
        [true, false, false],
    ),
    (
        "{ count([1 | r; input.a]) == 0; count(input.a) == 2 }",
        "r := input.b if input.b",
        [true, false, false],
    ),
];

/// A query inside of another one ends before it has looked at the input.
///
/// Proves RG-8.
#[test]
fn what_stands_behind_a_query_reads_the_input() {
    assert_as_opa(&LOADED);
}

/// Every place in which a negated expression would look for values: OPA calls the variable unsafe, and the machine would ask whether
/// some value is not the one.
const UNSAFE: [&str; 33] = [
    "not input.a[_] == 1",
    "not input.a[i] == 1",
    "{ some i; not input.a[i] == 1 }",
    "not input.a[_]",
    "not (input.a[_] == 1)",
    "not input.a[_] > 1",
    "not input.a[_] == input.a[_]",
    "not input[_][_] == 1",
    "not input.a[_].x[0] == 1",
    "not input.a[input.a[_]] == 1",
    "not f(input.a[_])",
    "not f(f(input.a[_])) == 1",
    r#"not startswith(input.a[_], "x")"#,
    "not count(input.a[_]) == 1",
    "not input.a[_] + 1 == 2",
    r#"not concat(",", [input.a[_]]) == "x""#,
    "not 1 in [input.a[_]]",
    "not input.a[_] in [1]",
    "not input.a[_] & {1} == {1}",
    "not {input.a[_]} == {1}",
    r#"not {"k": input.a[_]} == {"k": 1}"#,
    "not [1, 2][_] == 1",
    "not s[_]",
    "not q[x]",
    "every x in input.a { not input.a[_] == x }",
    "count([1 | not input.a[_] == 1]) > 0",
    "not x = 1",
    "not x := 1",
    "not _ = input.b",
    "not [x, 2] = input.a",
    "not [_, 2] = input.a",
    "{ not input.a[x] == 1; x = 0 }",
    "not walk(input.a, [_, 1])",
];

/// Proves RG-8.
#[test]
fn nothing_under_not_looks_for_values() {
    let rules = "f(x) := x\ns contains 1\nq[x] := 1 if some x in input.a";
    for condition in UNSAFE {
        let source = format!(
            "package forge.content\nimport rego.v1\n{rules}\nmatch := {{\"matched\": true}} if {condition}"
        );
        let refused = Module::compile(Family::Content, &source)
            .err()
            .unwrap_or_default();
        let is_said = refused
            .iter()
            .any(|said| said.line == 6 && said.message.contains("under `not`"));
        assert!(is_said, "{condition}: {refused:?}");
    }
}

#[test]
fn a_key_in_front_of_in_is_refused() {
    let source = "package forge.content\nimport rego.v1\nmatch := {\"matched\": true} if 1, 1 in input.a";
    let refused = Module::compile(Family::Content, source).err().unwrap_or_default();
    assert!(
        refused
            .iter()
            .any(|said| said.message.contains("write `collection[key] == value`")),
        "{refused:?}"
    );
}

/// A function of which only the operands are written, and bodies that stand side by side.
///
/// Proves RG-8.
#[test]
fn definitions_without_a_body_and_bodies_side_by_side_are_definitions() {
    assert_as_opa(&[
        ("f(\"a\")", "f(\"a\")", [true; 3]),
        ("f(\"b\")", "f(\"a\")", [false; 3]),
        (
            "count(p) == 2",
            "p contains x if { x := 1 } { x := 2 }",
            [true; 3],
        ),
        ("r == 1", "r := 1 if { input.b } { input.a }", [true, true, false]),
        // Behind a line end, parentheses are no operands.
        ("{ input.a\n(count(input.a) > 1) }", "", [true, false, false]),
    ]);
}

/// Proves RG-1.
#[test]
fn bodies_side_by_side_that_disagree_are_a_failure() {
    let source = "package forge.content\nimport rego.v1\nr := x if { x := 1 } { x := 2 }\nmatch := {\"matched\": true} if r == 2";
    let module = Module::compile(Family::Content, source).unwrap_or_else(|refused| panic!("{refused:?}"));
    assert!(matches!(
        module.evaluate(&json!({})),
        Err(Failure::Disagreement(_))
    ));
}

/// Patterns, texts, and whether OPA finds the one in the other: `\w` is about ASCII alone, and classes have no operations.
///
/// Proves RG-8.
#[test]
fn a_pattern_says_what_it_says_in_opa() {
    let mut wrong = Vec::new();
    let says = |pattern: &str, text: &str| {
        let source = format!(
            "package forge.content\nimport rego.v1\nmatch := {{\"matched\": true}} if regex.match(`{pattern}`, \"{text}\")"
        );
        let module =
            Module::compile(Family::Content, &source).unwrap_or_else(|refused| panic!("{refused:?}"));
        module.evaluate(&json!({})).map(|answer| answer.matched)
    };
    for (pattern, text, is_match) in [
        (r"^\w+$", "é", false),
        (r"^\d+$", "٣", false),
        (r"^\s$", r"\u00a0", false),
        (r"\bé", "aé", true),
        (r"^\W$", "é", true),
        ("(?i)^K$", "K", true),
        ("^[[:alpha:]]$", "é", false),
        (r"^\pL$", "é", true),
        (r"^[\w-]+$", "é-a", false),
        ("^.$", "é", true),
        (r"^[^\w]$", "é", true),
        (r"^[^\W]$", "é", false),
        (r"^\v$", r"\u000b", true),
        (r"\z", "a", true),
        ("^a$", r"a\n", false),
        ("^[a&&b]$", "&", true),
        ("^[[a]]$", "a]", true),
        ("(?P<n>a)", "a", true),
        ("(?<n>a)", "a", true),
        (r"^\x{e9}$", "é", true),
        ("^(?s).$", r"\n", true),
        ("^.$", r"\r", true),
        (r"\<a", "a", false),
        (r"^\-$", "-", true),
        (r"^\_$", "_", true),
        (r"^[\_]$", "_", true),
        ("]", "]", true),
        (r"^[\w-z]$", "a", true),
        (r"^[\w-.]$", "-", true),
        (r"^[\w-.]$", "+", false),
        ("^[]a]$", "]", true),
        ("^[^]a]$", "b", true),
        ("^[-a]$", "-", true),
        ("^[^-a]$", "-", false),
        ("^[a-]$", "-", true),
        ("^[a-c-e]$", "d", false),
        ("^[a-c-e]$", "-", true),
        ("^[[:word:]é]$", "é", true),
        ("^[[:^digit:]]$", "é", true),
        ("^[a~~b]$", "~", true),
        (r"^[\]]$", "]", true),
        (r"^[\\]$", r"\\", true),
        (r"^\[\w\]$", "[a]", true),
        (r"^[\s\d]+$", r"1 2\t", true),
        (r"^[\s]$", r"\u000b", false),
        (r"^\S+$", r"é\u00a0", true),
        (r"^[\S]+$", r"é\u00a0", true),
        (r"\bfoo\b", "a foo.", true),
        (r"(?i)^\w$", "K", true),
        ("(?i)^[a-z]$", "ſ", true),
        (r"^\d{1,3}(\.\d{1,3}){3}$", "10.0.0.1", true),
        (r"^:[\w][\w.-]{0,127}(/)?$", ":latest", true),
        ("^[--a]$", "a", true),
        (r"^[\d-a]$", "-", true),
        ("^[]-a]$", "^", true),
        ("^[^]-a]$", "^", false),
        ("^]$", "]", true),
    ] {
        if says(pattern, text) != Ok(is_match) {
            wrong.push(format!("{pattern} {text}"));
        }
    }
    // What is not read as Go reads it is refused, and no answer.
    for pattern in [r"\Qa.b\E", "a{,2}b", "a{", "^[!--]$", r"\B", r"^[+-\d]$"] {
        if !matches!(says(pattern, "a"), Err(Failure::Refused(_))) {
            wrong.push(pattern.to_owned());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
