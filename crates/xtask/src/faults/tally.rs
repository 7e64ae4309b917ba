//! Counts of points and what they found.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::fault::{Fault, Point};
use super::judge::Violation;

#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    pub subjects: usize,
    /// Calls that could be killed at.
    pub calls: usize,
    pub tried: BTreeMap<Fault, usize>,
    /// Points whose call was not made again: a run differs a little from the one that was counted.
    pub missed: usize,
    pub violations: Vec<String>,
    /// Which binaries were tested.
    pub binaries: BTreeSet<u64>,
    /// Units: milliseconds.
    pub millis: u64,
}

impl Tally {
    /// Counts a point and prints what it violates at once.
    pub fn note(&mut self, subject: &str, point: Option<&Point>, hit: bool, violations: Vec<Violation>) {
        let name = point.map_or_else(
            || format!("{subject}: killed after its answer"),
            |point| point.name(subject),
        );
        match point {
            Some(point) if hit => *self.tried.entry(point.fault).or_default() += 1,
            Some(_) => self.missed += 1,
            None => {}
        }
        for violation in violations {
            println!("VIOLATION {name}: {violation}");
            self.violations.push(format!("{name}: {violation}"));
        }
    }

    pub fn add(&mut self, other: Self) {
        self.subjects += other.subjects;
        self.calls += other.calls;
        self.missed += other.missed;
        self.millis += other.millis;
        for (fault, count) in other.tried {
            *self.tried.entry(fault).or_default() += count;
        }
        self.violations.extend(other.violations);
        self.binaries.extend(other.binaries);
    }

    pub fn points(&self) -> usize {
        self.tried.values().sum()
    }

    /// The progress of one subject.
    pub fn line(&self) -> String {
        format!(
            "{} calls, {} points, {} violations, {} ms a point",
            self.calls,
            self.points(),
            self.violations.len(),
            self.millis / (self.points() as u64 + 1),
        )
    }

    /// The figures of the run.
    pub fn sentence(&self) -> String {
        let kinds: Vec<String> = self
            .tried
            .iter()
            .map(|(fault, count)| format!("{} {count}", fault.word()))
            .collect();
        format!(
            "{} subjects with {} durable calls, {} points tried ({}), {} not reached again, {} violations",
            self.subjects,
            self.calls,
            self.points(),
            kinds.join(", "),
            self.missed,
            self.violations.len()
        )
    }
}
