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
fn the_builtins_are_sorted() {
    assert!(BUILTINS.is_sorted());
}

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

#[test]
fn rules_that_disagree_are_a_failure() {
    let input = json!({"a": 1, "b": 1});
    let own = "match := {\"matched\": true} if input.a\nmatch := {\"matched\": false} if input.b";
    assert_eq!(says(own, &input), Err(Failure::Failed));
    assert_eq!(says(own, &json!({"a": 1})), MATCHED);
    assert_eq!(says(own, &json!({"b": 1})), NOT_MATCHED);
    let start = "default match := {\"matched\": false}\nmatch := {\"matched\": true} if";
    assert_eq!(
        says(
            &format!("{start} x == 1\nx := 1 if input.a\nx := 2 if input.b"),
            &input
        ),
        Err(Failure::Failed)
    );
    let function = format!("{start} f(1) == 1\nf(_) := 1 if input.a\nf(_) := 2 if input.b");
    assert_eq!(says(&function, &input), Err(Failure::Failed));
    assert_eq!(says(&function, &json!({"a": 1})), MATCHED);
}

#[test]
fn the_interpreter_is_stopped_too() {
    let many: Vec<u32> = (0..400).collect();
    let body = "match := {\"matched\": false}\nx := 1 if input.a\nx := 2 if input.b\n\
        match := {\"matched\": true} if { x == 1; some a in input.n; some b in input.n; some c in input.n; a + b + c < 0 }";
    assert_eq!(says(body, &json!({"n": many, "a": 1})), Err(Failure::Stopped));
}

#[test]
fn a_module_that_loops_is_stopped() {
    let many: Vec<u32> = (0..400).collect();
    let body = "match := {\"matched\": false} if { some a in input.n; some b in input.n; some c in input.n; a + b + c < 0 }";
    assert_eq!(says(body, &json!({"n": many})), Err(Failure::Stopped));
}

#[test]
fn an_error_of_a_builtin_is_undefined_as_in_opa() {
    let body = "default match := {\"matched\": false}\nmatch := {\"matched\": true} if count(input.n) > 1";
    assert_eq!(says(body, &json!({"n": [1, 2]})), MATCHED);
    assert_eq!(says(body, &json!({"n": 5})), NOT_MATCHED);
    assert_eq!(
        says(
            "match := {\"matched\": true} if not count(input.n) > 1",
            &json!({"n": 5})
        ),
        MATCHED
    );
    // Values of different types have an order in Rego.
    assert_eq!(
        says("match := {\"matched\": true} if input.n > 1", &json!({"n": "5"})),
        MATCHED
    );
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
fn builtins_that_grow_or_reach_out_are_refused() {
    for call in [
        "count(numbers.range(1, 1000000000)) > 1",
        "time.now_ns() > 1",
        "http.send({}).x == 1",
        "rand.intn(\"a\", 5) > 1",
        "sprintf(\"%9999999d\", [1]) != \"\"",
        "replace(\"a\", \"a\", \"b\") != \"\"",
        "opa.runtime().x == 1",
        "concat(\",\", [\"a\", \"b\"]) != \"\"",
        "bits.lsh(1, 1000000000) > 1",
        "json.unmarshal(input.x) == 1",
        "json.is_valid(input.x)",
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
