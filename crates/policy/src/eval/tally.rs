//! Counts over batches: of one set, and of two that are compared.
//!
//! INVARIANT TY-1: unchanged + changed + unknown = evaluated, and the sum over all changes is `changed`.

use super::mask::{Bits, WORDS, count, each, rows};
use super::scan::{Scan, both};
use crate::action::Action;

/// What one set decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that were judged.
    pub evaluated: u64,
    /// Events by their decision, weakest action first.
    pub by_action: [u64; Action::ALL.len()],
    /// Events with an enforced policy that could not be evaluated.
    pub unknown: u64,
    /// For each policy of the set, the events that it matched for sure.
    pub matched: Vec<u64>,
}

impl Tally {
    /// Adds the last batch of a walk.
    pub fn add(&mut self, scan: &Scan<'_>) {
        let judged = &scan.judged;
        self.evaluated += judged.rows as u64;
        self.unknown += count(&judged.unknown);
        for (sum, bits) in self.by_action.iter_mut().zip(&judged.actions) {
            *sum += count(bits);
        }
        self.matched.resize(judged.matched.len(), 0);
        for (sum, bits) in self.matched.iter_mut().zip(&judged.matched) {
            *sum += bits.as_ref().map_or(0, |bits| count(bits));
        }
    }
}

/// What two sets decided on the same events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Events that both judged.
    pub evaluated: u64,
    /// Events with the same decision.
    pub unchanged: u64,
    /// Events with different decisions.
    pub changed: u64,
    /// Events that one of the two could not judge.
    pub unknown: u64,
    /// Changed events by the baseline's decision and then the candidate's, weakest action first.
    pub by_change: [[u64; Action::ALL.len()]; Action::ALL.len()],
    /// For each policy of the baseline, the changed events that it matched.
    pub changed_by_baseline: Vec<u64>,
    /// For each policy of the candidate, the changed events that it matched.
    pub changed_by_candidate: Vec<u64>,
}

impl Comparison {
    /// Adds the last batch of two walks over the same events; returns the rows that changed, ascending.
    pub fn add(&mut self, baseline: &Scan<'_>, candidate: &Scan<'_>) -> Vec<usize> {
        let (before, after) = (&baseline.judged, &candidate.judged);
        let mut unknown = before.unknown;
        each(&mut unknown, &after.unknown, |a, b| a | b);
        let mut changed: Bits = [0; WORDS];
        for (from, left) in before.actions.iter().enumerate() {
            for (to, right) in after.actions.iter().enumerate().filter(|(to, _)| *to != from) {
                let mut rows = *left;
                each(&mut rows, right, |a, b| a & b);
                each(&mut rows, &unknown, |a, b| a & !b);
                self.by_change[from][to] += count(&rows);
                each(&mut changed, &rows, |a, b| a | b);
            }
        }
        let (total, differing, unclear) = (before.rows as u64, count(&changed), count(&unknown));
        self.evaluated += total;
        self.changed += differing;
        self.unknown += unclear;
        // INVARIANT TY-1: what is neither changed nor unknown is unchanged.
        self.unchanged += total - differing - unclear;
        let sums = [
            (&mut self.changed_by_baseline, &before.matched),
            (&mut self.changed_by_candidate, &after.matched),
        ];
        for (sums, matched) in sums {
            sums.resize(matched.len(), 0);
            for (sum, bits) in sums.iter_mut().zip(matched) {
                *sum += bits.as_ref().map_or(0, |bits| both(bits, &changed));
            }
        }
        rows(&changed).collect()
    }
}
