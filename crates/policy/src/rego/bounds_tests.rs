//! Modules whose values share their parts, and others whose single instruction would work long.

use super::*;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Instant;

const START: &str = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\n";

/// Returns what a module says, which it does soon, although the clock would let it work for an hour.
#[expect(clippy::disallowed_methods, reason = "the test is about the time that passes")]
fn says(body: &str, input: &serde_json::Value) -> Result<Answer, Failure> {
    let module = Module::compile(Family::Content, &format!("{START}{body}"))
        .unwrap_or_else(|e| panic!("{body}: {e:?}"));
    let value = input::value(input);
    let start = Instant::now();
    let said = module.ask_within(Duration::from_hours(1), &value, &[]).answer;
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{body} took {:?}",
        start.elapsed()
    );
    said
}

/// Returns a rule in which each value holds the one before twice.
fn doubling(name: &str, times: usize, form: &dyn Fn(&str, &str) -> String) -> String {
    let mut rule = format!("{name} := {name}{times} if {{\n  {name}0 := input.start\n");
    for n in 1..=times {
        let before = format!("{name}{}", n - 1);
        let _ = writeln!(rule, "  {name}{n} := {}", form(&before, &format!("{name}{n}")));
    }
    rule + "}\n"
}

type Form = (&'static str, &'static dyn Fn(&str, &str) -> String);

const FORMS: [Form; 6] = [
    ("arrays", &|before, _| format!("[{before}, {before}]")),
    ("objects", &|before, _| {
        format!("{{\"a\": {before}, \"b\": {before}}}")
    }),
    ("computed members", &|before, _| {
        format!("{{input.one: {before}, input.two: {before}}}")
    }),
    ("keys", &|before, _| format!("{{{before}: {before}}}")),
    ("sets", &|before, _| format!("{{[1, {before}], [2, {before}]}}")),
    ("comprehensions", &|before, _| {
        format!("[item | some n in [1, 2]; item := [{before}, n]]")
    }),
];

/// Proves RG-7.
#[test]
fn values_that_hold_the_same_part_twice_are_stopped_whatever_is_done_with_them() {
    let input = json!({"start": [1, 2, 3], "one": "one", "two": "two"});
    for (kind, form) in FORMS {
        // A rule has so many registers; and 2^21 is beyond what may be built as well as 2^40.
        let times = if kind == "comprehensions" { 21 } else { 40 };
        let rules = doubling("x", times, form) + &doubling("y", times, form);
        for condition in [
            "x == y",
            "x != y",
            "x < y",
            "x in [y]",
            "count({x, y}) == 1",
            "{x: 1}[y] == 1",
            "count({x} & {y}) == 1",
            "count({x} - {y}) == 1",
            "count({x} | {y}) == 1",
            "object.subset({\"a\": x}, {\"a\": y})",
            "object.union({\"a\": x}, {\"a\": y}) == {}",
            "sort([x, y])[0] == x",
            "max([x, y]) == x",
            "count(json.remove({\"a\": x}, [\"a/0\"])) == 1",
            "contains(x, \"a\")",
        ] {
            let body = format!("{rules}match := {{\"matched\": true}} if {condition}");
            assert_eq!(says(&body, &input), Err(Failure::Stopped), "{kind} {condition}");
        }
        // The value alone, which nobody compares.
        let body = format!("{rules}match := {{\"matched\": true}} if count(x) == 100");
        assert_eq!(says(&body, &input), Err(Failure::Stopped), "{kind}");
    }
}

/// Proves RG-7.
#[test]
fn a_value_below_the_limit_is_compared_and_a_thousand_comparisons_of_it_are_not() {
    let input = json!({"start": [1, 2, 3], "n": (0..1000).collect::<Vec<u32>>()});
    let (x, y) = (doubling("x", 15, FORMS[0].1), doubling("y", 15, FORMS[0].1));
    let once = format!("{x}{y}match := {{\"matched\": true}} if x == y");
    assert!(says(&once, &input).is_ok_and(|answer| answer.matched));
    let often = format!("{x}{y}match := {{\"matched\": false}} if every n in input.n {{ x == y; n >= 0 }}");
    assert_eq!(says(&often, &input), Err(Failure::Stopped));
    // Sets of such values are searched step by step.
    let set = format!("{x}match := {{\"matched\": false}} if count({{[x, n] | some n in input.n}}) == 1000");
    assert_eq!(says(&set, &input), Err(Failure::Stopped));
    let keys =
        format!("{x}match := {{\"matched\": false}} if count({{[x, n]: n | some n in input.n}}) == 1000");
    assert_eq!(says(&keys, &input), Err(Failure::Stopped));
    let rules = format!(
        "{x}seen contains [x, n] if some n in input.n\nmatch := {{\"matched\": false}} if count(seen) == 1000"
    );
    assert_eq!(says(&rules, &input), Err(Failure::Stopped));
}

#[test]
fn a_value_that_is_refused_is_not_written_down() {
    // As JSON each of these is more than twice as long as the one before.
    let keys = |before: &str, _: &str| format!("{{{before}: 1}}");
    let rules = doubling("x", 60, &keys);
    for call in [
        "contains(x, \"a\")",
        "count(array.slice(x, 0, 1)) == 1",
        "sum(x) == 1",
        "max(x.a) == x",
        "abs(x) == 1",
        "bits.and(x, 1) == 1",
        "count(intersection({x})) == 1",
        "x + 1 == 2",
        "x < 1",
        "count({x} - x) == 1",
        "regex.match(x, \"a\")",
        "format_int(x, 10) == \"\"",
        "x.a.b == 1",
    ] {
        let body = format!("{rules}match := {{\"matched\": true}} if {call}");
        assert_ne!(says(&body, &json!({"start": 1})), Err(Failure::Stopped), "{call}");
    }
}

/// Proves RG-7.
#[test]
fn depth_ends_where_a_thread_s_stack_surely_does_not() {
    // Each call wraps its argument as deep as a rule's registers allow, and is called as often as a rule can say.
    let wrap = |levels: usize| {
        let mut body = String::from("f(v0) := r if {\n");
        for n in 1..=levels {
            let _ = writeln!(body, "  v{n} := [v{}]", n - 1);
        }
        let _ = writeln!(body, "  r := v{levels}\n}}");
        body
    };
    let deep = |calls: usize| {
        let mut body = wrap(20) + "x := r if {\n  x0 := 1\n";
        for n in 1..=calls {
            let _ = writeln!(body, "  x{n} := f(x{})", n - 1);
        }
        let _ = writeln!(
            body,
            "  r := x{calls}\n}}\nmatch := {{\"matched\": true}} if x == x"
        );
        body
    };
    let run = |calls: usize| {
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let body = deep(calls);
        thread
            .spawn(move || says(&body, &json!({})))
            .unwrap()
            .join()
            .unwrap()
    };
    assert!(run(10).is_ok_and(|answer| answer.matched));
    assert_eq!(run(60), Err(Failure::Stopped));
}

/// Proves RG-7.
#[test]
fn numbers_end_at_some_twenty_thousand_digits() {
    let square = |times: usize| {
        let mut body = String::from("x := r if {\n  x0 := 123456789012345678901234567890\n");
        for n in 1..=times {
            let _ = writeln!(body, "  x{n} := x{} * x{}", n - 1, n - 1);
        }
        let _ = writeln!(
            body,
            "  r := x{times}\n}}\nmatch := {{\"matched\": true}} if x > 1"
        );
        body
    };
    assert!(says(&square(9), &json!({})).is_ok_and(|answer| answer.matched));
    assert_eq!(says(&square(12), &json!({})), Err(Failure::Stopped));
    assert_eq!(says(&square(60), &json!({})), Err(Failure::Stopped));
}

/// Proves RG-7.
#[test]
fn a_built_in_that_takes_each_of_one_with_each_of_another_is_charged_for_it() {
    let words: Vec<String> = (0..20_000).map(|n| format!("{n:05}")).collect();
    let long = "a".repeat(300_000);
    let input = json!({"words": words, "others": words.iter().map(|w| format!("x{w}")).collect::<Vec<_>>(), "long": long,
        "list": vec![1; 30_000], "part": vec![1; 15_000]});
    for condition in [
        "strings.any_prefix_match(input.words, input.others)",
        "strings.any_suffix_match(input.words, input.others)",
        "trim(input.long, concat_free) == \"\"\nconcat_free := input.long",
        "count(indexof_n(input.long, input.long)) == 0",
        "object.subset([2 | some n in input.list], input.part)",
        "count(intersection({{[n, input.list]} | some n in [1, 2, 3]})) == 300",
    ] {
        let body = format!("match := {{\"matched\": true}} if {condition}");
        let said = says(&body, &input);
        // What does not end by its steps is short: `says` has looked at the clock.
        if !condition.starts_with("count(intersection") && !condition.starts_with("object.subset") {
            assert_eq!(said, Err(Failure::Stopped), "{condition}");
        }
    }
    // As in an ordinary module.
    for condition in [
        "strings.any_prefix_match(\"00012\", input.words)",
        "trim(input.long, \"a\") == \"\"",
        "contains(input.long, \"aa\")",
        "regex.match(\"^a+$\", input.long)",
        "object.subset(input.list, [1, 1])",
        "\"19999\" in input.words",
        "count({w | some w in array.slice(input.words, 0, 5000); w > \"04000\"}) == 999",
    ] {
        let body = format!("match := {{\"matched\": true}} if {condition}");
        assert!(
            says(&body, &input).is_ok_and(|answer| answer.matched),
            "{condition}"
        );
    }
}

#[test]
fn what_a_module_builds_is_as_large_as_what_it_was_built_of() {
    // The sizes that values keep are those that a count of their trees finds, however they were built.
    fn count(value: &Value) -> u64 {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Set(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.iter().map(|(key, value)| count(key) + count(value)).sum(),
            _ => 0,
        }
    }
    let start = input::value(&json!({"a": [1, {"b": [2, 3]}], "c": {"d": null}}));
    assert_eq!(start.extent().nodes, count(&start));
    assert_eq!(start.extent().depth, 5);
    let mut object = start.clone();
    let members = object.as_object_mut().unwrap();
    members.insert(Value::from("e"), start.clone());
    members.insert(Value::from("a"), Value::from(7_u64));
    members.insert(start.clone(), start.clone());
    assert_eq!(object.extent().nodes, count(&object));
    object.as_object_mut().unwrap().remove(&Value::from("e"));
    assert_eq!(object.extent().nodes, count(&object));
    *object
        .as_object_mut()
        .unwrap()
        .get_mut(&Value::from("a"))
        .unwrap() = start.clone();
    assert_eq!(object.extent().nodes, count(&object));
    for (_, value) in object.as_object_mut().unwrap().iter_mut() {
        *value = Value::Null;
    }
    assert_eq!(object.extent().nodes, count(&object));
    let mut array = Value::new_array();
    assert_eq!(array.extent().nodes, 1);
    array.as_array_mut().unwrap().push(start.clone());
    array.as_array_mut().unwrap().push(object.clone());
    assert_eq!(array.extent().nodes, count(&array));
    let shared = array.clone();
    array.as_array_mut().unwrap().push(Value::Null);
    assert_eq!(
        (array.extent().nodes, shared.extent().nodes),
        (count(&array), count(&shared))
    );
    let mut set = Value::new_set();
    assert_eq!(set.extent().nodes, 1);
    for _ in 0..2 {
        set.as_set_mut().unwrap().insert(array.clone());
    }
    assert_eq!(set.extent().nodes, count(&set));
    set.as_set_mut().unwrap().remove(&array);
    assert_eq!(set.extent().nodes, 1);
    let mut many = start;
    for _ in 0..100 {
        many = Value::from(vec![many.clone(), many]);
    }
    assert!(many.extent().nodes >= 1 << 47 && many.extent().depth == 105);
}
