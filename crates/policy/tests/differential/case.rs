//! What the naive evaluator says of every event of a case, and whether the engine says the same.

use super::naive::{self, ACTIONS, Plain, Verdict, World};
use super::random;
use provost_policy::{
    Batch, Definition, Event, Family, Occasion, Outcome, PolicySet, Projection, Reason, Register, Scan,
    SubjectStates, Symbols, Tally,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub fn family(word: &str) -> Family {
    Family::ALL.into_iter().find(|f| f.word() == word).unwrap()
}

pub fn read(symbols: &mut Symbols, plain: &Plain) -> Event {
    let occasion = Occasion::named(family(plain.family), plain.occasion).unwrap();
    Event::read(symbols, plain.at_ms, occasion, &plain.attributes, &plain.missing)
        .unwrap_or_else(|e| panic!("{e}"))
}

pub fn compile(policies: &[(&'static str, Value)]) -> PolicySet {
    let read = policies.iter().map(|(of, policy)| {
        let definition = Definition::read(family(of), policy).unwrap_or_else(|e| panic!("{policy}: {e}"));
        assert_eq!(definition.authored(), policy);
        Arc::new(definition)
    });
    PolicySet::new(read).unwrap()
}

pub fn verdict(outcome: &Outcome) -> Verdict {
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
pub struct Case {
    pub set: PolicySet,
    pub events: Vec<Event>,
    pub symbols: Symbols,
    pub verdicts: Vec<Verdict>,
    register: Arc<Register>,
}

impl Case {
    pub fn new(policies: &[(&'static str, Value)], plain: &[Plain]) -> Self {
        Self::within(&World::default(), policies, plain)
    }

    /// The same, where words mean somebody.
    pub fn within(world: &World, policies: &[(&'static str, Value)], plain: &[Plain]) -> Self {
        let mut register = random::register(world);
        random::put_claims(&mut register, world, plain);
        let register = Arc::new(register);
        let mut symbols = Symbols::knowing(Arc::clone(&register));
        let events: Vec<Event> = plain.iter().map(|event| read(&mut symbols, event)).collect();
        Self {
            set: compile(policies),
            events,
            symbols,
            verdicts: (0..plain.len())
                .map(|at| naive::judge(world, policies, plain, at))
                .collect(),
            register,
        }
    }

    /// Returns what of the events the set can see.
    pub fn projection(&self) -> Projection {
        Projection::of(&[&self.set]).knowing(&self.register)
    }

    pub fn check_rows(&self, seed: u64) {
        let mut chronicle = SubjectStates::new();
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

    pub fn check_columns(&self, seed: u64, batch_rows: usize) {
        let projection = self.projection();
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
    pub fn check_projection(&self, seed: u64) {
        let projection = self.projection();
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
