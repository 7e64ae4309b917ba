//! What a fuzzer asks of the engine: functions of any bytes that panic where a promise is broken.
//!
//! ```text
//!   documents   a letter, then a definition (c a r s) or a bare condition (C A R), in JSON
//!   policies    the choices of the generator of random policies and histories, one byte each
//!   inputs      an input of a tool (see `reading`)
//!   modules     a Rego module, the byte 0xFF (which no UTF-8 has), its input in JSON
//! ```
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpora; the tests here replay these.

use super::case::{Case, read};
use super::random::{self, CUSTOM, Dice};
use provost_policy::rego::{Answer, Failure, Module};
use provost_policy::{
    Action, Batch, Definition, Event, Family, Field, Occasion, PolicySet, Projection, Reason, Scan,
    SubjectStates, Symbols, VIOLATIONS_KEPT, contract, sha256_hex,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// What a module may take however busy the machine is: far above the engine's limit, far below for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Any document is read without a panic; what is accepted comes back as it was and can be judged.
pub fn documents(data: &[u8]) {
    let Some((letter, text)) = data.split_first() else {
        return;
    };
    let Ok(document) = serde_json::from_slice::<Value>(text) else {
        return;
    };
    let family = match letter.to_ascii_lowercase() {
        b'a' => Family::Access,
        b'r' => Family::Resource,
        b's' => Family::SkillAcl,
        _ => Family::Content,
    };
    let document = if letter.is_ascii_uppercase() {
        around(family, document)
    } else {
        document
    };
    match Definition::read(family, &document) {
        Err(faults) => {
            assert!(!faults.is_empty() && faults.kept().len() <= VIOLATIONS_KEPT);
            for fault in faults.kept() {
                let parent = fault.path.rsplit_once('/').map_or("", |(parent, _)| parent);
                assert!(document.pointer(parent).is_some(), "{} in {document}", fault.path);
            }
        }
        Ok(definition) => {
            assert_eq!(definition.authored(), &document);
            let stored: Value = serde_json::from_str(&document.to_string()).unwrap();
            assert_eq!(
                stored, document,
                "stored as a text, it comes back as another value"
            );
            let again = Definition::read(family, &stored).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(again.sha256(), definition.sha256());
            judged_alike(definition);
        }
    }
}

/// Returns a policy with this condition.
fn around(family: Family, condition: Value) -> Value {
    let mut policy = json!({"id": "p", "name": "fuzz", "action": "block", "acknowledgeBroadScope": true});
    match family {
        Family::Content => {
            policy["evaluateOn"] = json!(["prompt", "pre_tool", "post_tool", "response"]);
            policy["customFields"] = CUSTOM.iter().map(random::declared).collect();
        }
        Family::Access => {
            policy["enforcementSurfaces"] = json!(["inline_hook", "endpoint_route", "provider"]);
        }
        Family::Resource | Family::SkillAcl => policy["enforcement"] = json!("enforce"),
    }
    policy["conditions"] = condition;
    policy
}

/// Checks that rows, columns and projections give one answer on some events.
fn judged_alike(definition: Definition) {
    static EVENTS: LazyLock<(Vec<Event>, Symbols)> = LazyLock::new(|| {
        let mut symbols = Symbols::new();
        let history = random::history(&mut Dice::new(42_000), 40, false);
        let events = history.iter().map(|event| read(&mut symbols, event)).collect();
        (events, symbols)
    });
    let (events, symbols) = &*EVENTS;
    let Ok(set) = PolicySet::new([Arc::new(definition)]) else {
        panic!("one policy is no duplicate");
    };
    let projection = Projection::of(&[&set]);
    let batch = Batch::of(events, projection.fields()).unwrap();
    let mut scan = Scan::new(&set);
    scan.judge(&batch, symbols);
    let mut chronicle = SubjectStates::new();
    let mut seen = HashMap::new();
    for (row, event) in events.iter().enumerate() {
        let outcome = set.judge(event, symbols, &chronicle);
        let decision = (outcome.action, outcome.unknown);
        assert_eq!(scan.decision(row), decision);
        if projection.is_groupable() {
            let first = *seen.entry(projection.key(event)).or_insert(decision);
            assert_eq!(first, decision);
        }
        chronicle.observe(&set, event, symbols);
    }
}

/// Policies and histories of the generator, whatever it is told: the engine says what the naive evaluator says.
pub fn policies(data: &[u8]) {
    let mut dice = Dice::told(data);
    let count = 1 + dice.below(4);
    let policies: Vec<_> = (0..count)
        .map(|n| random::policy(&mut dice, &format!("p{n}")))
        .collect();
    let (events, rows) = (1 + dice.below(24), 1 + dice.below(24));
    let history = random::history(&mut dice, events, false);
    let case = Case::new(&policies, &history);
    case.check_rows(0);
    case.check_columns(0, rows);
    case.check_projection(0);
}

/// Matches where its input is seen at all.
static PROBE: LazyLock<Module> = LazyLock::new(|| {
    let source = "package forge.content\nimport rego.v1\nmatch := {\"matched\": input.is_seen}";
    Module::compile(Family::Content, source).unwrap()
});

/// Any module on any input ends, and a failure is matched and never passed over in silence.
pub fn modules(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == 0xff).unwrap_or(data.len());
    let source = String::from_utf8_lossy(&data[..at]);
    let input = data.get(at + 1..).unwrap_or_default();
    let input = serde_json::from_slice(input).unwrap_or_else(|_| json!(String::from_utf8_lossy(input)));
    let family = [Family::Access, Family::Resource]
        .into_iter()
        .find(|family| contract::rego_package(*family).is_some_and(|package| source.contains(package)))
        .unwrap_or(Family::Content);
    let source = if source.contains("package") {
        source.into_owned()
    } else {
        format!("package forge.content\nimport rego.v1\n{source}")
    };
    // Whatever stands in the input, the rest of it is seen (RG-1).
    let seen = PROBE.evaluate(&json!({"is_seen": true, "rest": input}));
    assert!(seen.is_ok_and(|answer| answer.matched));
    let began = now();
    let compiled = Module::compile(family, &source);
    assert!(began.elapsed() < PATIENCE, "compiling took {:?}", began.elapsed());
    let Ok(module) = compiled else {
        return;
    };
    let began = now();
    let _ = module.evaluate(&input);
    assert!(
        began.elapsed() < PATIENCE,
        "evaluating took {:?}",
        began.elapsed()
    );
    decided(family, &source, &module, &input);
}

/// Checks what a policy with this module decides on an event with what of the input are attributes.
fn decided(family: Family, source: &str, module: &Module, input: &Value) {
    let mut symbols = Symbols::new();
    let occasion = match family {
        Family::Access => Occasion::InlineHook,
        Family::Resource => Occasion::Resource,
        _ => Occasion::PreTool,
    };
    let mut event = Event::new(random::START_MS, occasion);
    for (name, value) in input.as_object().into_iter().flatten() {
        let one = Map::from_iter([(name.clone(), value.clone())]);
        if let (Some(field), Ok(read)) = (
            Field::named(name),
            Event::read(&mut symbols, random::START_MS, occasion, &one, &[]),
        ) {
            event.set(field, read.get(field));
        }
    }
    let mut policy = around(family, Value::Null);
    let members = policy.as_object_mut().unwrap();
    members.remove("conditions");
    members.remove("customFields");
    policy["logic"] = json!({"kind": "rego", "languageVersion": contract::REGO_LANGUAGE_VERSION, "module": source,
        "entrypoint": contract::rego_entrypoint(family), "moduleSha256": sha256_hex(source.as_bytes())});
    let definition = Definition::read(family, &policy).unwrap_or_else(|e| panic!("{e}"));
    let set = PolicySet::new([Arc::new(definition)]).unwrap();
    let began = now();
    let answer = module.evaluate(&event.nested(&symbols));
    let outcome = set.judge(&event, &symbols, &SubjectStates::new());
    let mut scan = Scan::new(&set);
    let batch = Batch::of(std::slice::from_ref(&event), Projection::of(&[&set]).fields()).unwrap();
    scan.judge(&batch, &symbols);
    let columns = scan.decision(0);
    assert!(began.elapsed() < PATIENCE, "deciding took {:?}", began.elapsed());
    // INVARIANT RG-1, in each of the ways in which a decision is made.
    let found = outcome.findings.first().map(|finding| finding.reason);
    match answer {
        // Time decides as well, which is another one each time.
        Err(Failure::Stopped) => {}
        Err(_) => {
            assert_eq!(found, Some(Reason::EvaluationFailed));
            assert_eq!((outcome.action, outcome.unknown), (Action::Block, true));
            assert_eq!(columns, (Action::Block, true));
        }
        Ok(Answer { matched, .. }) => {
            let expected = if matched {
                (Action::Block, false)
            } else {
                (Action::Allow, false)
            };
            for decision in [(outcome.action, outcome.unknown), columns] {
                assert!(
                    decision == expected || decision == (Action::Block, true),
                    "{decision:?}"
                );
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a limit on time is what is tested")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a function on every input of a corpus.
fn replay(target: &str, least: usize, run: fn(&[u8])) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/");
    let mut names: Vec<_> = std::fs::read_dir(format!("{folder}{target}"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() >= least, "{target} has {} inputs", names.len());
    for name in names {
        println!("{}", name.display());
        run(&std::fs::read(name).unwrap());
    }
}

#[test]
fn the_corpus_of_documents_keeps_its_promises() {
    replay("documents", 10, documents);
}

#[test]
fn the_corpus_of_policies_keeps_its_promises() {
    replay("policies", 10, policies);
}

#[test]
fn the_corpus_of_inputs_keeps_its_promises() {
    replay("inputs", 10, super::reading::inputs);
}

/// Proves RG-2.
#[test]
fn the_corpus_of_modules_keeps_its_promises() {
    replay("modules", 10, modules);
}
