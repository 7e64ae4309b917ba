//! The same policy natively and in Rego gives the same decisions.

use super::case::{compile, read};
use super::naive::Plain;
use super::random::{self, Dice};
use provost_policy::{Batch, PolicySet, Projection, Scan, SubjectStates, Symbols, sha256_hex};
use serde_json::{Value, json};

/// Returns a condition of the part of the language that both have, as Rego; `count` numbers its helpers.
fn rule(node: &Value, rules: &mut Vec<String>) -> String {
    let (form, inner) = node
        .as_object()
        .unwrap()
        .iter()
        .find(|(n, _)| !matches!(n.as_str(), "op" | "value"))
        .unwrap();
    let bodies: Vec<String> = match form.as_str() {
        "all" => vec![
            inner
                .as_array()
                .unwrap()
                .iter()
                .map(|n| rule(n, rules))
                .collect::<Vec<_>>()
                .join("\n  "),
        ],
        "any" => inner.as_array().unwrap().iter().map(|n| rule(n, rules)).collect(),
        "not" => vec![format!("not {}", rule(inner, rules))],
        _ => vec![predicate(node)],
    };
    let name = format!("r{}", rules.len());
    rules.push(
        bodies
            .iter()
            .map(|body| format!("{name} if {{\n  {body}\n}}"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    name
}

fn predicate(node: &Value) -> String {
    let field = format!("input.{}", node["field"].as_str().unwrap());
    let value = &node["value"];
    let set = |value: &Value| match value.as_array() {
        Some(items) if items.is_empty() => "set()".to_owned(),
        _ => format!("{{x | some x in {value}}}"),
    };
    let mine = format!("{{x | some x in {field}}}");
    let is_set = matches!(
        node["field"].as_str(),
        Some("identity.group_ids" | "event.labels")
    );
    match node["op"].as_str().unwrap() {
        "exists" => format!("is_null({field}) == false"),
        // A comprehension over nothing is an empty set: the attribute has to be there.
        "eq" if is_set => format!("is_array({field})\n  {mine} == {}", set(value)),
        "neq" if is_set => format!("is_array({field})\n  {mine} != {}", set(value)),
        "contains" if is_set => format!("{value} in {field}"),
        "contains_any" => format!("count({mine} & {}) > 0", set(value)),
        "contains_all" => format!("is_array({field})\n  count({} - {mine}) == 0", set(value)),
        "eq" => format!("{field} == {value}"),
        "neq" => format!("{field} != {value}"),
        "in" => format!("{field} in {value}"),
        "not_in" => format!("is_null({field}) == false\n  not {field} in {value}"),
        "gt" => format!("{field} > {value}"),
        "gte" => format!("{field} >= {value}"),
        "lt" => format!("{field} < {value}"),
        "lte" => format!("{field} <= {value}"),
        "contains" => format!("contains({field}, {value})"),
        "starts_with" => format!("startswith({field}, {value})"),
        "ends_with" => format!("endswith({field}, {value})"),
        _ => format!("regex.match({value}, {field})"),
    }
}

fn is_shared(node: &Value) -> bool {
    let text = node.to_string();
    let history = [
        "hasPriorEvent",
        "hasEventSequence",
        "eventCount",
        "priorDistinctValues",
        // A module sees a command of several words as one text.
        "\"tool.input",
    ];
    !history.iter().any(|name| text.contains(name))
}

/// Returns a native policy and the same one as a module.
fn twins(dice: &mut Dice) -> (Value, Value) {
    let conditions = loop {
        let depth = dice.below(4);
        let conditions = random::condition(dice, "content", false, depth);
        if is_shared(&conditions) {
            break conditions;
        }
    };
    let mut rules = Vec::new();
    let root = rule(&conditions, &mut rules);
    let module = format!(
        "package forge.content\nimport rego.v1\ndefault match := {{\"matched\": false}}\n\
         match := {{\"matched\": true, \"reasonCode\": \"twin\"}} if {root}\n{}",
        rules.join("\n")
    );
    let mut native = json!({"id": "twin", "name": "twin", "enabled": true, "acknowledgeBroadScope": true,
        "evaluateOn": ["pre_tool", "prompt"], "action": "block"});
    let mut rego = native.clone();
    native["conditions"] = conditions;
    rego["logic"] = json!({"kind": "rego", "languageVersion": "forge.rego.v1",
        "entrypoint": "data.forge.content.match", "moduleSha256": sha256_hex(module.as_bytes()), "module": module});
    (native, rego)
}

fn decisions(set: &PolicySet, history: &[Plain]) -> Vec<(provost_policy::Action, bool)> {
    let mut symbols = Symbols::new();
    let events: Vec<_> = history.iter().map(|event| read(&mut symbols, event)).collect();
    let none = SubjectStates::new();
    let rows: Vec<_> = events
        .iter()
        .map(|e| set.judge(e, &symbols, &none))
        .map(|o| (o.action, o.unknown))
        .collect();
    let mut scan = Scan::new(set);
    scan.judge(
        &Batch::of(&events, Projection::of(&[set]).fields()).unwrap(),
        &symbols,
    );
    let columns: Vec<_> = (0..events.len()).map(|row| scan.decision(row)).collect();
    assert_eq!(rows, columns);
    rows
}

#[test]
fn native_and_rego_twins_agree() {
    let mut matched = 0;
    for seed in 20_000..20_200 {
        let mut dice = Dice::new(seed);
        let (native, rego) = twins(&mut dice);
        let history = random::history(&mut dice, 40, true);
        let native_decisions = decisions(&compile(&[("content", native.clone())]), &history);
        let rego_decisions = decisions(&compile(&[("content", rego.clone())]), &history);
        assert_eq!(
            native_decisions,
            rego_decisions,
            "seed {seed}: {native}\n{}",
            rego["logic"]["module"].as_str().unwrap()
        );
        matched += native_decisions
            .iter()
            .filter(|(action, _)| action.word() == "block")
            .count();
    }
    assert!(matched > 500, "{matched}");
}

/// What an event may be where an attribute is missing: without it, or with a value.
fn completions(dice: &mut Dice, event: &Plain) -> Vec<Plain> {
    let mut all: Vec<Plain> = (0..6)
        .map(|_| {
            let mut whole = event.clone();
            whole.missing.clear();
            whole.attributes.extend(random::values(dice, &event.missing));
            whole
        })
        .collect();
    let mut bare = event.clone();
    bare.missing.clear();
    all.push(bare);
    all
}

/// Proves RG-4.
#[test]
fn a_module_that_is_not_unknown_answers_the_same_whatever_is_missing() {
    let (mut known, mut unknown, mut different) = (0, 0, 0);
    for seed in 30_000..30_200 {
        let mut dice = Dice::new(seed);
        let (_, rego) = twins(&mut dice);
        let history = random::history(&mut dice, 30, false);
        let set = compile(&[("content", rego.clone())]);
        let found = decisions(&set, &history);
        for (event, (action, is_unknown)) in history.iter().zip(found) {
            if event.missing.is_empty() || !matches!(event.occasion, "pre_tool" | "prompt") {
                continue;
            }
            let whole = decisions(&set, &completions(&mut dice, event));
            if is_unknown {
                assert_eq!(action.word(), "block", "seed {seed}");
                unknown += 1;
                different += usize::from(whole.iter().any(|decision| *decision != whole[0]));
                continue;
            }
            known += 1;
            for decision in whole {
                assert_eq!(
                    decision,
                    (action, false),
                    "seed {seed}: {event:?}\n{}",
                    rego["logic"]["module"].as_str().unwrap()
                );
            }
        }
    }
    // The rule says something: both happen, and unknown is not only said to be safe.
    assert!(
        known > 500 && unknown > 100 && different > 50,
        "{known} {unknown} {different}"
    );
}
