//! The engine against a second evaluator written for clarity: row by row, column by column, and every count.
//!
//! A case is its seed, which stands in every message.

#![cfg(test)]

mod bundle;
mod case;
mod document;
mod fuzz;
mod naive;
mod past;
mod random;
mod reading;
mod rego;
mod wild;
mod words;

use case::{Case, compile, read};
use naive::{ACTIONS, Verdict};
use provost_policy::{Action, Batch, Comparison, Event, Projection, Scan, SubjectStates, Symbols};
use random::Dice;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// Returns the seeds of a test: so many from a first one, unless the environment says others.
fn seeds(first: u64, cases: u64) -> Range<u64> {
    let asked = |name: &str| std::env::var_os(name).map(|text| text.to_str().unwrap().parse().unwrap());
    let first = asked("PROVOST_TEST_SEED").unwrap_or(first);
    let cases = asked("PROVOST_TEST_CASES").unwrap_or(cases);
    println!("{cases} cases, seeds from {first}");
    first..first + cases
}

fn policies(dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let count = 1 + dice.below(14);
    (0..count)
        .map(|n| random::policy(dice, &format!("p{n}")))
        .collect()
}

/// Proves BY-2, BY-4, CH-1, CH-5, DE-1, IX-1, PJ-1.
#[test]
fn row_columns_and_naive_agree_on_random_sets_and_histories() {
    let mut unknown = 0;
    let mut actions = BTreeSet::new();
    let mut groupable = 0;
    let seeds = seeds(0, 500);
    let cases = usize::try_from(seeds.end - seeds.start).unwrap();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let policies = policies(&mut dice);
        let history = random::history(&mut dice, 80, false);
        let case = Case::new(&policies, &history);
        case.check_rows(seed);
        case.check_columns(seed, dice.pick(&[1, 7, 64, 80]));
        case.check_projection(seed);
        unknown += case.verdicts.iter().filter(|v| v.unknown).count();
        actions.extend(case.verdicts.iter().map(|v| v.action));
        groupable += usize::from(Projection::of(&[&case.set]).is_groupable());
    }
    // The cases meet everything that they are for.
    assert_eq!(actions.len(), 7);
    assert!(unknown > 2 * cases, "{unknown}");
    assert!(groupable > cases / 10, "{groupable}");
}

/// Proves TY-1.
#[test]
fn every_count_of_a_comparison_agrees() {
    for seed in seeds(10_000, 150) {
        let mut dice = Dice::new(seed);
        let (before, after) = (policies(&mut dice), policies(&mut dice));
        let history = random::history(&mut dice, 150, false);
        let (before, after) = (Case::new(&before, &history), Case::new(&after, &history));
        let projection = Projection::of(&[&before.set, &after.set]);
        let mut scans = (Scan::new(&before.set), Scan::new(&after.set));
        let mut comparison = Comparison::default();
        let mut changed = Vec::new();
        for (nth, events) in before.events.chunks(100).enumerate() {
            let batch = Batch::of(events, projection.fields()).unwrap();
            scans.0.judge(&batch, &before.symbols);
            scans.1.judge(&batch, &before.symbols);
            changed.extend(
                comparison
                    .add(&scans.0, &scans.1)
                    .into_iter()
                    .map(|row| nth * 100 + row),
            );
        }
        let pairs = || before.verdicts.iter().zip(&after.verdicts);
        let is_unknown = |(a, b): &(&Verdict, &Verdict)| a.unknown || b.unknown;
        let is_changed = |pair: &(&Verdict, &Verdict)| !is_unknown(pair) && pair.0.action != pair.1.action;
        let expected: Vec<usize> = pairs()
            .enumerate()
            .filter(|(_, p)| is_changed(p))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(changed, expected, "seed {seed}");
        assert_eq!(comparison.changed, expected.len() as u64);
        assert_eq!(comparison.unknown, pairs().filter(is_unknown).count() as u64);
        assert_eq!(
            comparison.unchanged + comparison.changed + comparison.unknown,
            comparison.evaluated
        );
        assert_eq!(
            comparison.by_change.iter().flatten().sum::<u64>(),
            comparison.changed
        );
        for (from, row) in comparison.by_change.iter().enumerate() {
            for (to, count) in row.iter().enumerate() {
                let is = |(a, b): &(&Verdict, &Verdict)| a.action == ACTIONS[from] && b.action == ACTIONS[to];
                let of = pairs().filter(is_changed).filter(is).count() as u64;
                assert_eq!(*count, of, "seed {seed}, {} to {}", ACTIONS[from], ACTIONS[to]);
            }
        }
        for (policy, count) in after.set.policies().iter().zip(&comparison.changed_by_candidate) {
            let of = pairs()
                .filter(is_changed)
                .filter(|(_, b)| b.matched.contains(policy.id()))
                .count() as u64;
            assert_eq!(*count, of, "seed {seed}, {}", policy.id());
        }
    }
}

/// Proves DE-1.
#[test]
fn batches_of_thousands_agree_with_rows() {
    let mut dice = Dice::new(77);
    let policies: Vec<_> = (0..40)
        .map(|n| random::policy(&mut dice, &format!("p{n}")))
        .collect();
    let set = compile(&policies);
    let mut symbols = Symbols::new();
    let history = random::history(&mut dice, 10_000, false);
    let events: Vec<Event> = history.iter().map(|event| read(&mut symbols, event)).collect();
    let projection = Projection::of(&[&set]);
    let (mut scan, mut chronicle) = (Scan::new(&set), SubjectStates::new());
    for events in events.chunks(4096) {
        scan.judge(&Batch::of(events, projection.fields()).unwrap(), &symbols);
        for (row, event) in events.iter().enumerate() {
            let outcome = set.judge(event, &symbols, &chronicle);
            assert_eq!(scan.decision(row), (outcome.action, outcome.unknown));
            chronicle.observe(&set, event, &symbols);
        }
    }
}

/// Proves RP-5.
#[test]
fn a_walk_that_changes_its_table_of_symbols_remembers_the_past() {
    let mut with_past = 0;
    for seed in 80_000..80_150 {
        let mut dice = Dice::new(seed);
        let policies = policies(&mut dice);
        let history = random::history(&mut dice, 80, false);
        let case = Case::new(&policies, &history);
        with_past += usize::from(case.set.has_history());
        let projection = Projection::of(&[&case.set]);
        let mut scan = Scan::new(&case.set);
        let mut symbols = Symbols::new();
        for (nth, plain) in history.chunks(9).enumerate() {
            let mut renewed = Symbols::new();
            // Other texts come first, so that every symbol is another one.
            for n in 0..nth {
                renewed.intern(&format!("other {n}"));
            }
            scan.renew(&symbols, &mut renewed);
            symbols = renewed;
            let events: Vec<Event> = plain.iter().map(|event| read(&mut symbols, event)).collect();
            scan.judge(&Batch::of(&events, projection.fields()).unwrap(), &symbols);
            for row in 0..events.len() {
                let (action, unknown) = scan.decision(row);
                let expected = &case.verdicts[nth * 9 + row];
                assert_eq!(
                    (action.word(), unknown),
                    (expected.action, expected.unknown),
                    "seed {seed}"
                );
            }
        }
    }
    assert!(with_past > 50, "{with_past}");
}

#[test]
fn words_of_actions_are_in_their_order() {
    assert_eq!(Action::ALL.map(Action::word), ACTIONS);
}
