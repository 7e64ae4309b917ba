//! Events for the others, and what the native policies say of them.

use super::measure::Cost;
use super::policies::{self, Policy, Reads};
use super::{Arguments, peers, world};
use provost_history::synthetic::Recording;
use provost_policy::{Event, Reason, SubjectStates, Symbols};
use std::error::Error;

/// What the others judge.
pub struct Sample {
    events: Vec<Event>,
    symbols: Symbols,
    policies: Vec<Policy>,
    /// How many policies match, over all events.
    matched: u64,
}

impl Sample {
    /// Returns the first events of a history.
    pub fn new(
        arguments: &Arguments,
        recording: &Recording,
        history: usize,
        reads: Reads,
    ) -> Result<Self, Box<dyn Error>> {
        let (_, _, growth) = arguments.histories()[history];
        let mut symbols = Symbols::new();
        let events = world::sample(recording, growth, arguments.sample, &mut symbols)?;
        let policies = super::policies_of(arguments, recording, arguments.policies, reads)?;
        let native = policies::native(&policies);
        let none = SubjectStates::new();
        let matches = events.iter().map(|event| {
            let outcome = native.judge(event, &symbols, &none);
            let matched = outcome
                .findings
                .iter()
                .filter(|finding| finding.reason == Reason::Matched);
            matched.count() as u64
        });
        let total = matches.sum();
        Ok(Self {
            events,
            symbols,
            policies,
            matched: total,
        })
    }

    /// Judges with the Rego machine.
    pub fn rego(&self, threads: usize) -> Cost {
        let module = policies::rego(&self.policies);
        let (matched, cost) = peers::rego(&module, &self.events, &self.symbols, threads);
        assert_eq!(matched, self.matched, "Rego and the native policies agree");
        cost
    }

    /// Judges with Cedar.
    #[cfg(feature = "cedar")]
    pub fn cedar(&self, threads: usize) -> Cost {
        let set = policies::cedar(&self.policies);
        let (matched, cost) = peers::cedar(&set, &self.events, &self.symbols, threads);
        assert_eq!(matched, self.matched, "Cedar and the native policies agree");
        cost
    }
}
