//! Random sets and events: what is answered is what the engine decides, history conditions included.

use super::{ask, compile, policy};
use crate::support::{App, Dice, each};
use provost_policy::{Event, Family, Occasion, PolicySet, Reason, SubjectStates, Symbols};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const FIELDS: [&str; 4] = ["tool.id", "mcp.server_id", "llm.model", "event.kind"];
const VALUES: [&str; 4] = ["a", "b", "c", "d"];

fn pick<T: Copy>(dice: &mut Dice, list: &[T]) -> T {
    list[dice.below(list.len())]
}

fn condition(dice: &mut Dice, depth: usize) -> Value {
    let leaf = |dice: &mut Dice| {
        let field = pick(dice, &FIELDS);
        match dice.below(4) {
            0 => json!({ "field": field, "op": "exists" }),
            1 => json!({ "field": field, "op": "in", "value": [pick(dice, &VALUES), pick(dice, &VALUES)] }),
            2 => json!({ "field": field, "op": "neq", "value": pick(dice, &VALUES) }),
            _ => json!({ "field": field, "op": "eq", "value": pick(dice, &VALUES) }),
        }
    };
    if depth == 0 {
        return leaf(dice);
    }
    match dice.below(8) {
        0 => json!({ "all": [condition(dice, depth - 1), condition(dice, depth - 1)] }),
        1 => json!({ "any": [condition(dice, depth - 1), condition(dice, depth - 1)] }),
        2 => json!({ "not": condition(dice, depth - 1) }),
        3 => json!({ "hasPriorEvent": condition(dice, depth - 1) }),
        4 => {
            json!({ "eventCount": { "within": pick(dice, &["5m", "1h", "2d"]), "where": condition(dice, depth - 1),
            "op": pick(dice, &["eq", "gt", "gte", "lt", "lte"]), "value": dice.below(4) } })
        }
        5 => {
            json!({ "priorDistinctValues": { "within": "1h", "field": pick(dice, &FIELDS), "op": "gte", "value": 1 + dice.below(3) } })
        }
        6 => {
            json!({ "hasEventSequence": { "within": "2d", "ordered": dice.below(2) == 0, "events": [leaf(dice), leaf(dice)] } })
        }
        _ => leaf(dice),
    }
}

fn definition(dice: &mut Dice, n: usize) -> Value {
    let action = pick(
        dice,
        &["allow", "block", "flag_for_review", "nudge", "require_approval"],
    );
    let mut definition = json!({ "id": format!("p{n}"), "name": "p", "action": action, "acknowledgeBroadScope": true,
        "evaluateOn": ["prompt", "pre_tool"], "conditions": condition(dice, 3) });
    if dice.below(3) == 0 {
        definition["exceptions"] =
            json!([{ "id": "x", "reason": "a test", "conditions": condition(dice, 1) }]);
    }
    definition
}

fn event(dice: &mut Dice) -> Value {
    let mut attributes = Map::new();
    let mut missing = Vec::new();
    for field in FIELDS {
        match dice.below(8) {
            0 => missing.push(field),
            1..4 => drop(attributes.insert(field.to_owned(), pick(dice, &VALUES).into())),
            _ => {}
        }
    }
    match dice.below(6) {
        0 => {}
        1 => missing.push("identity.user_id"),
        2 => drop(attributes.insert("device.id".to_owned(), pick(dice, &VALUES).into())),
        _ => {
            attributes.insert("identity.user_id".to_owned(), pick(dice, &VALUES).into());
            attributes.insert("identity.group_ids".to_owned(), json!([]));
        }
    }
    json!({ "occasion": pick(dice, &["prompt", "pre_tool"]), "attributes": attributes, "missing": missing })
}

struct Judge {
    set: Arc<PolicySet>,
    symbols: Symbols,
    chronicle: SubjectStates,
}

impl Judge {
    /// Returns what has to be answered about an event, and remembers it.
    fn expect(&mut self, at_ms: i64, event: &Value) -> Value {
        let occasion = Occasion::named(Family::Content, event["occasion"].as_str().unwrap()).unwrap();
        let missing: Vec<&str> = event["missing"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m.as_str().unwrap())
            .collect();
        let attributes = event["attributes"].as_object().unwrap();
        let event = Event::read(&mut self.symbols, at_ms, occasion, attributes, &missing).unwrap();
        let outcome = self.set.judge(&event, &self.symbols, &self.chronicle);
        self.chronicle.observe(&self.set, &event, &self.symbols);
        let reasons = outcome.findings.iter().map(|finding| {
            let reason = match finding.reason {
                Reason::Matched => "matched",
                Reason::NotAllowed => "not_allowed",
                Reason::EvaluationFailed => "evaluation_failed",
            };
            json!([finding.policy.id(), reason, finding.decides])
        });
        json!({ "action": outcome.action.word(), "unknown": outcome.unknown, "reasons": reasons.collect::<Vec<_>>() })
    }
}

fn told(decision: &Value) -> Value {
    let reasons = decision["reasons"].as_array().unwrap().iter();
    let reasons = reasons.map(|one| json!([one["policyId"], one["reason"], one["decides"]]));
    json!({ "action": decision["action"], "unknown": decision["unknown"], "reasons": reasons.collect::<Vec<_>>() })
}

/// Proves DE-2.
#[test]
fn answers_are_those_of_the_engine_on_random_sets_and_events() {
    each("decide_equal", |app: Arc<App>| async move {
        let mut dice = Dice::new("decide_equal");
        let (mut with_history, mut strong) = (0, 0);
        for case in 0..8 {
            let (organization, admin) = app.other_organization(&format!("Case {case}")).await;
            let app = app.view_of(organization, admin);
            let definitions: Vec<_> = (0..10)
                .map(|n| (Family::Content, definition(&mut dice, n)))
                .collect();
            for (family, definition) in &definitions {
                policy(&app, *family, definition.clone()).await;
            }
            let mut judge = Judge {
                set: compile(&definitions),
                symbols: Symbols::new(),
                chronicle: SubjectStates::new(),
            };
            with_history += usize::from(judge.set.has_history());
            for request in 0..12 {
                app.advance(60 + dice.below(3_600) as u64);
                let events: Vec<Value> = (0..=dice.below(6)).map(|_| event(&mut dice)).collect();
                let reply = ask(&app, json!({ "events": events })).await;
                let at_ms = app.now().as_ms();
                let decisions = reply.ok()["decisions"].as_array().unwrap();
                for (at, (event, decision)) in events.iter().zip(decisions).enumerate() {
                    let expected = judge.expect(at_ms, event);
                    assert_eq!(
                        told(decision),
                        expected,
                        "case {case}, request {request}, event {at}: {event}"
                    );
                    strong += usize::from(expected["action"] != "allow");
                }
            }
        }
        assert!(with_history >= 4 && strong > 20, "{with_history} {strong}");
    });
}
