//! The engine against a second evaluator written for clarity: row by row, column by column, and every count.
//!
//! A case is its seed, which stands in every message.

#![cfg(test)]

mod naive;
mod past;
mod random;
mod rego;
mod wild;

use naive::{ACTIONS, Plain, Verdict};
use provost_policy::{
    Action, Batch, Chronicle, Comparison, Definition, Event, Family, Occasion, Outcome, PolicySet,
    Projection, Reason, Scan, Symbols, Tally,
};
use random::Dice;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

const CASES: u64 = 500;

fn family(word: &str) -> Family {
    Family::ALL.into_iter().find(|f| f.word() == word).unwrap()
}

fn read(symbols: &mut Symbols, plain: &Plain) -> Event {
    let occasion = Occasion::named(family(plain.family), plain.occasion).unwrap();
    Event::read(symbols, plain.at_ms, occasion, &plain.attributes, &plain.missing)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn compile(policies: &[(&'static str, Value)]) -> PolicySet {
    let read = policies.iter().map(|(of, policy)| {
        let definition = Definition::read(family(of), policy).unwrap_or_else(|e| panic!("{policy}: {e}"));
        assert_eq!(definition.authored(), policy);
        Arc::new(definition)
    });
    PolicySet::new(read).unwrap()
}

fn verdict(outcome: &Outcome) -> Verdict {
    let word = |reason| match reason {
        Reason::Matched => "matched",
        Reason::NotAllowed => "not_allowed",
        Reason::EvaluationFailed => "evaluation_failed",
    };
    let id = |finding: &provost_policy::Finding| finding.policy.id().to_owned();
    Verdict {
        action: outcome.action.word(),
        unknown: outcome.unknown,
        matched: outcome
            .findings
            .iter()
            .filter(|f| f.reason == Reason::Matched)
            .map(id)
            .collect(),
        findings: outcome.findings.iter().map(|f| (id(f), word(f.reason))).collect(),
    }
}

/// What every evaluator says of every event of a case.
struct Case {
    set: PolicySet,
    events: Vec<Event>,
    symbols: Symbols,
    verdicts: Vec<Verdict>,
}

impl Case {
    fn new(policies: &[(&'static str, Value)], plain: &[Plain]) -> Self {
        let mut symbols = Symbols::new();
        let events: Vec<Event> = plain.iter().map(|event| read(&mut symbols, event)).collect();
        Self {
            set: compile(policies),
            events,
            symbols,
            verdicts: (0..plain.len())
                .map(|at| naive::judge(policies, plain, at))
                .collect(),
        }
    }

    fn check_rows(&self, seed: u64) {
        let mut chronicle = Chronicle::new();
        for (at, event) in self.events.iter().enumerate() {
            assert!(event.fits(&self.symbols));
            let outcome = self.set.judge(event, &self.symbols, &chronicle);
            assert_eq!(
                verdict(&outcome),
                self.verdicts[at],
                "row, seed {seed}, event {at}: {event:?}"
            );
            chronicle.observe(&self.set, event, &self.symbols);
        }
    }

    fn check_columns(&self, seed: u64, batch_rows: usize) {
        let projection = Projection::of(&[&self.set]);
        let mut scan = Scan::new(&self.set);
        let mut tally = Tally::default();
        for (nth, events) in self.events.chunks(batch_rows).enumerate() {
            let batch = Batch::of(events, projection.fields()).unwrap();
            scan.judge(&batch, &self.symbols);
            tally.add(&scan);
            for row in 0..events.len() {
                let at = nth * batch_rows + row;
                let (action, unknown) = scan.decision(row);
                let matched: BTreeSet<String> = scan
                    .matched(row)
                    .map(|at| self.set.policies()[at].id().to_owned())
                    .collect();
                let expected = &self.verdicts[at];
                let told = format!("columns of {batch_rows}, seed {seed}, event {at}");
                assert_eq!(
                    (action.word(), unknown),
                    (expected.action, expected.unknown),
                    "{told}"
                );
                assert_eq!(matched, expected.matched, "{told}");
            }
        }
        assert_eq!(tally, self.tally(), "seed {seed}");
    }

    fn tally(&self) -> Tally {
        let count = |is: &dyn Fn(&Verdict) -> bool| self.verdicts.iter().filter(|v| is(v)).count() as u64;
        let mut by_action = [0; 7];
        for (sum, action) in by_action.iter_mut().zip(ACTIONS) {
            *sum = count(&|v| v.action == action);
        }
        Tally {
            evaluated: self.verdicts.len() as u64,
            by_action,
            unknown: count(&|v| v.unknown),
            matched: self
                .set
                .policies()
                .iter()
                .map(|p| count(&|v| v.matched.contains(p.id())))
                .collect(),
        }
    }

    /// Equal projections have equal outcomes, and equal digests.
    fn check_projection(&self, seed: u64) {
        let projection = Projection::of(&[&self.set]);
        if !projection.is_groupable() {
            return;
        }
        let mut firsts: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut digests: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (at, event) in self.events.iter().enumerate() {
            let key = projection.key(event);
            let digest = projection.digest(event, &self.symbols);
            let first = *firsts.entry(key.clone()).or_insert(at);
            assert_eq!(
                self.verdicts[first], self.verdicts[at],
                "seed {seed}, events {first} and {at}"
            );
            assert_eq!(digests.entry(digest).or_insert_with(|| key.clone()), &key);
        }
        assert_eq!(firsts.len(), digests.len());
    }
}

fn policies(dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let count = 1 + dice.below(14);
    (0..count)
        .map(|n| random::policy(dice, &format!("p{n}")))
        .collect()
}

#[test]
fn row_columns_and_naive_agree_on_random_sets_and_histories() {
    let mut unknown = 0;
    let mut actions = BTreeSet::new();
    let mut groupable = 0;
    for seed in 0..CASES {
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
    assert!(unknown > 1000, "{unknown}");
    assert!(groupable > 50, "{groupable}");
}

#[test]
fn every_count_of_a_comparison_agrees() {
    for seed in 10_000..10_150 {
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
    let (mut scan, mut chronicle) = (Scan::new(&set), Chronicle::new());
    for events in events.chunks(4096) {
        scan.judge(&Batch::of(events, projection.fields()).unwrap(), &symbols);
        for (row, event) in events.iter().enumerate() {
            let outcome = set.judge(event, &symbols, &chronicle);
            assert_eq!(scan.decision(row), (outcome.action, outcome.unknown));
            chronicle.observe(&set, event, &symbols);
        }
    }
}

#[test]
fn words_of_actions_are_in_their_order() {
    assert_eq!(Action::ALL.map(Action::word), ACTIONS);
}
