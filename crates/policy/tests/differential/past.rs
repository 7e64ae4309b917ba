//! The live past against the naive evaluator: every event in a table of its own, and memory that is always compacted.

use crate::case::verdict;
use crate::random::{self, Dice};
use crate::{compile, naive, policies, read};
use provost_policy::{Action, EventWindow, PolicySet, Reason, SubjectStates, Symbols};
use serde_json::{Value, json};
use std::sync::Arc;

const MINUTE: i64 = 60_000;

/// Proves CH-2.
#[test]
fn what_is_recalled_gives_the_decisions_of_the_naive_evaluator() {
    let mut with_history = 0;
    for seed in 20_000..20_200 {
        let mut dice = Dice::new(seed);
        let policies = policies(&mut dice);
        let history = random::history(&mut dice, 80, false);
        let set = Arc::new(compile(&policies));
        with_history += usize::from(set.has_history());
        // A weight of nothing: whatever can be forgotten is, after every event.
        let mut past = EventWindow::weighing(Arc::clone(&set), dice.pick(&[0, 1 << 20]));
        for (at, plain) in history.iter().enumerate() {
            let mut symbols = Symbols::new();
            symbols.intern("a text that no event has, so that no two tables agree");
            let event = read(&mut symbols, plain);
            let chronicle = past.recall(std::slice::from_ref(&event), &mut symbols);
            let outcome = set.judge(&event, &symbols, &chronicle);
            assert_eq!(
                verdict(&outcome),
                naive::judge(&naive::World::default(), &policies, &history, at),
                "seed {seed}, event {at}"
            );
            assert!(past.observe(&event, &symbols));
        }
    }
    assert!(with_history > 50, "{with_history}");
}

/// Proves CH-2.
#[test]
fn events_of_one_request_see_those_before_them() {
    for seed in 30_000..30_100 {
        let mut dice = Dice::new(seed);
        let policies = policies(&mut dice);
        let history = random::history(&mut dice, 60, false);
        let set = Arc::new(compile(&policies));
        let mut past = EventWindow::new(Arc::clone(&set));
        let request = dice.pick(&[2, 7, 30]);
        for (nth, plain) in history.chunks(request).enumerate() {
            let mut symbols = Symbols::new();
            let events: Vec<_> = plain.iter().map(|plain| read(&mut symbols, plain)).collect();
            let mut chronicle = past.recall(&events, &mut symbols);
            for (at, event) in events.iter().enumerate() {
                let outcome = set.judge(event, &symbols, &chronicle);
                let expected =
                    naive::judge(&naive::World::default(), &policies, &history, nth * request + at);
                assert_eq!(
                    verdict(&outcome),
                    expected,
                    "seed {seed}, request {nth}, event {at}"
                );
                chronicle.observe(&set, event, &symbols);
            }
            for event in &events {
                past.observe(event, &symbols);
            }
        }
    }
}

/// Blocks a tool call of somebody who called the tool `x` before, within the hour.
fn after_x() -> PolicySet {
    compile(&[(
        "content",
        json!({"id": "p", "name": "p", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": {"all": [{"field": "tool.id", "op": "eq", "value": "y"},
                {"eventCount": {"within": "1h", "where": {"field": "tool.id", "op": "eq", "value": "x"}, "op": "gte", "value": 1}}]}}),
    )])
}

fn call(user: &str, tool: &str, at_ms: i64) -> naive::Plain {
    let attributes = json!({"identity.user_id": user, "tool.id": tool, "tool.input": format!("{at_ms}")});
    naive::Plain {
        at_ms,
        family: "content",
        occasion: "pre_tool",
        attributes: match attributes {
            Value::Object(attributes) => attributes,
            _ => unreachable!(),
        },
        missing: Vec::new(),
    }
}

fn observe(past: &mut EventWindow, user: &str, tool: &str, at_ms: i64) -> bool {
    let mut symbols = Symbols::new();
    let event = read(&mut symbols, &call(user, tool, at_ms));
    past.observe(&event, &symbols)
}

fn judged(set: &PolicySet, past: &EventWindow, user: &str, at_ms: i64) -> (Action, bool) {
    let mut symbols = Symbols::new();
    let event = read(&mut symbols, &call(user, "y", at_ms));
    let chronicle = past.recall(std::slice::from_ref(&event), &mut symbols);
    let outcome = set.judge(&event, &symbols, &chronicle);
    (outcome.action, outcome.unknown)
}

#[test]
fn an_unknown_past_counts_as_matched_for_everybody_who_has_one() {
    let set = after_x();
    let judge = |plain: &naive::Plain| {
        let mut symbols = Symbols::new();
        let event = read(&mut symbols, plain);
        set.judge(&event, &symbols, &SubjectStates::unknown())
    };
    let outcome = judge(&call("u", "y", 0));
    assert_eq!((outcome.action, outcome.unknown), (Action::Block, true));
    assert_eq!(outcome.findings[0].reason, Reason::EvaluationFailed);
    assert_eq!(judge(&call("u", "x", 0)).action, Action::Allow);
    let mut nobody = call("u", "y", 0);
    nobody.attributes.remove("identity.user_id");
    assert_eq!(judge(&nobody).action, Action::Allow);
}

#[test]
fn an_event_that_is_a_little_late_counts_with_the_newest_one() {
    let set = Arc::new(after_x());
    let mut past = EventWindow::new(Arc::clone(&set));
    assert!(observe(&mut past, "u", "z", 10 * MINUTE));
    assert!(observe(&mut past, "u", "x", 6 * MINUTE));
    assert_eq!(judged(&set, &past, "u", 69 * MINUTE), (Action::Block, false));
    assert_eq!(judged(&set, &past, "u", 71 * MINUTE), (Action::Allow, false));
}

/// Proves CH-2.
#[test]
fn an_event_that_is_too_late_puts_its_subject_alone_in_doubt() {
    let set = Arc::new(after_x());
    let mut past = EventWindow::new(Arc::clone(&set));
    for user in ["u", "v"] {
        assert!(observe(&mut past, user, "z", 100 * MINUTE));
    }
    // What no condition looks at changes nothing.
    assert!(observe(&mut past, "u", "z", MINUTE));
    assert_eq!(judged(&set, &past, "u", 101 * MINUTE), (Action::Allow, false));
    assert!(!observe(&mut past, "u", "x", 50 * MINUTE));
    assert_eq!(judged(&set, &past, "u", 101 * MINUTE), (Action::Block, true));
    assert_eq!(judged(&set, &past, "v", 101 * MINUTE), (Action::Allow, false));
    // Nothing that comes later makes it certain again.
    observe(&mut past, "u", "x", 102 * MINUTE);
    assert_eq!(judged(&set, &past, "u", 103 * MINUTE), (Action::Block, true));
}

/// Proves CH-3.
#[test]
fn memory_is_bounded_by_what_can_be_asked_about() {
    let set = Arc::new(after_x());
    let floor = 64 * 1024;
    let mut past = EventWindow::weighing(Arc::clone(&set), floor);
    let mut heaviest = 0;
    for n in 0..50_000 {
        // Every call has an input and a user that were never seen before; every tenth calls the tool that counts.
        let tool = if n % 10 == 0 { "x" } else { "z" };
        observe(&mut past, &format!("user {n}"), tool, n * 30 * MINUTE);
        heaviest = heaviest.max(past.weight());
    }
    // 30 days hold 1 440 events, 144 of which count.
    assert!(heaviest < 2 * floor, "{heaviest}");
    assert_eq!(
        judged(&set, &past, "user 49990", 49_991 * 30 * MINUTE).0,
        Action::Block
    );
}
