//! Documents that nobody would write: reading them never panics, and what is accepted can be compiled and judged.

use super::case::{family, read};
use super::random::{self, Dice};
use provost_policy::{
    Batch, Definition, Event, PolicySet, Projection, Scan, SubjectStates, Symbols, VIOLATIONS_KEPT,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const NAMES: [&str; 26] = [
    "all",
    "any",
    "not",
    "field",
    "op",
    "value",
    "within",
    "where",
    "events",
    "ordered",
    "hasPriorEvent",
    "hasEventSequence",
    "eventCount",
    "priorDistinctValues",
    "conditions",
    "exceptions",
    "expiresAt",
    "appliesTo",
    "users",
    "action",
    "redaction",
    "filter",
    "logic",
    "module",
    "customFields",
    "odd",
];
const TEXTS: [&str; 14] = [
    "",
    "a",
    "tool.id",
    "tool.input.a[0]",
    "eq",
    "matches",
    "exists",
    "[[",
    "(?P<",
    "30d",
    "0d",
    "block",
    "é\u{0}",
    "$.a[",
];

fn wild(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => json!(i64::MIN),
        3 => json!(dice.pick(&[0.5, -0.0, 1e308, 1024.0, 18_446_744_073_709_551_615.0])),
        4 | 5 => dice.pick(&TEXTS).into(),
        6 => json!(
            (0..dice.below(4))
                .map(|_| wild(dice, depth - 1))
                .collect::<Vec<_>>()
        ),
        _ => {
            let mut members = Map::new();
            for _ in 0..dice.below(4) {
                members.insert(dice.pick(&NAMES).into(), wild(dice, depth - 1));
            }
            Value::Object(members)
        }
    }
}

/// Puts something wild somewhere.
fn damage(dice: &mut Dice, value: &mut Value) {
    if dice.one_in(4) {
        *value = wild(dice, 3);
        return;
    }
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            damage(dice, &mut items[at]);
        }
        Value::Object(members) if !members.is_empty() => {
            let at = dice.below(members.len());
            if dice.one_in(6) {
                members.insert(dice.pick(&NAMES).into(), wild(dice, 2));
            } else if let Some(inner) = members.values_mut().nth(at) {
                damage(dice, inner);
            }
        }
        other => *other = wild(dice, 2),
    }
}

#[test]
fn no_document_panics_and_what_is_accepted_works() {
    let mut dice = Dice::new(40_000);
    let history = random::history(&mut dice, 30, false);
    let mut symbols = Symbols::new();
    let events: Vec<Event> = history.iter().map(|event| read(&mut symbols, event)).collect();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..4000 {
        let (of, mut policy) = random::policy(&mut dice, "p");
        for _ in 0..dice.below(3) {
            damage(&mut dice, &mut policy);
        }
        match Definition::read(family(of), &policy) {
            Err(faults) => {
                refused += 1;
                assert!(!faults.is_empty() && faults.kept().len() <= VIOLATIONS_KEPT);
                // Every place but a missing or unknown member is one of the document.
                for fault in faults.kept() {
                    let parent = fault.path.rsplit_once('/').map_or("", |(parent, _)| parent);
                    assert!(policy.pointer(parent).is_some(), "{} in {policy}", fault.path);
                }
            }
            Ok(definition) => {
                accepted += 1;
                let set = PolicySet::new([Arc::new(definition)]).unwrap();
                let mut scan = Scan::new(&set);
                scan.judge(
                    &Batch::of(&events, Projection::of(&[&set]).fields()).unwrap(),
                    &symbols,
                );
                let mut chronicle = SubjectStates::new();
                for (row, event) in events.iter().enumerate() {
                    let outcome = set.judge(event, &symbols, &chronicle);
                    assert_eq!(scan.decision(row), (outcome.action, outcome.unknown), "{policy}");
                    chronicle.observe(&set, event, &symbols);
                }
            }
        }
    }
    assert!(accepted > 200 && refused > 1000, "{accepted} {refused}");
}

#[test]
fn no_module_panics() {
    let whole = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\n\
        match := {\"matched\": true, \"reasonCode\": \"x\"} if {\n some g in input.identity.group_ids\n g == \"eng\"\n \
        not input.tool.id in {\"a\", \"b\"}\n count([x | some x in input.event.labels; x != \"pii\"]) > 1\n}\n";
    let parts = [
        "{", "}", "(", "[", "]", "\"", "\n", ":=", "if", "some", "input", "é", "\u{0}", "0", "1e9",
        "default ", "`",
    ];
    let mut dice = Dice::new(41_000);
    let mut accepted = 0;
    for _ in 0..1500 {
        let mut chars: Vec<char> = whole.chars().collect();
        for _ in 0..=dice.below(3) {
            let at = dice.below(chars.len());
            let end = (at + dice.below(6)).min(chars.len());
            let part = dice.pick(&parts);
            chars.splice(at..end, part.chars());
        }
        let source: String = chars.into_iter().collect();
        if let Ok(module) = provost_policy::rego::Module::compile(provost_policy::Family::Content, &source) {
            accepted += 1;
            let _ = module
                .evaluate(&json!({"identity": {"group_ids": ["eng"]}, "event": {"labels": ["a", "b"]}}));
        }
    }
    assert!(accepted > 20, "{accepted}");
}
