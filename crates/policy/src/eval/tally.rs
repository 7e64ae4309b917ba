//! Counts over batches: of one set, and of two that are compared.
//!
//! INVARIANT TY-1: in a comparison, unchanged, changed and unknown add up to all events, and the changes to
//! `changed`.

use super::mask::{Bits, WORDS, count, each, first, rows};
use super::scan::Scan;
use crate::action::Action;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// For each policy of the baseline, the events that it matched for sure.
    pub matched_by_baseline: Vec<u64>,
    /// For each policy of the candidate, the events that it matched for sure.
    pub matched_by_candidate: Vec<u64>,
    /// For each policy of the baseline, the changed events that it matched.
    pub changed_by_baseline: Vec<u64>,
    /// For each policy of the candidate, the changed events that it matched.
    pub changed_by_candidate: Vec<u64>,
}

impl Comparison {
    /// Adds the last batch of two walks over the same events; returns the rows that changed, ascending.
    pub fn add(&mut self, baseline: &Scan<'_>, candidate: &Scan<'_>) -> Vec<usize> {
        let all = first(baseline.judged.rows);
        self.add_rows(baseline, candidate, &all, count)
    }

    /// The same, where row `r` stands for `weights[r]` equal events; one with the weight 0 is not there.
    pub fn add_weighted(&mut self, baseline: &Scan<'_>, candidate: &Scan<'_>, weights: &[u64]) -> Vec<usize> {
        let mut counted: Bits = [0; WORDS];
        for (row, weight) in weights.iter().enumerate().take(baseline.judged.rows) {
            counted[row / 64] |= u64::from(*weight > 0) << (row % 64);
        }
        let weigh = |bits: &Bits| rows(bits).map(|row| weights[row]).sum();
        self.add_rows(baseline, candidate, &counted, weigh)
    }

    fn add_rows(
        &mut self,
        baseline: &Scan<'_>,
        candidate: &Scan<'_>,
        counted: &Bits,
        weigh: impl Fn(&Bits) -> u64,
    ) -> Vec<usize> {
        let (before, after) = (&baseline.judged, &candidate.judged);
        let mut unknown = before.unknown;
        each(&mut unknown, &after.unknown, |a, b| a | b);
        each(&mut unknown, counted, |a, b| a & b);
        let mut changed: Bits = [0; WORDS];
        let is_some = |bits: &Bits| bits.iter().any(|word| *word != 0);
        let decided: Vec<(usize, &Bits)> = after
            .actions
            .iter()
            .enumerate()
            .filter(|(_, bits)| is_some(bits))
            .collect();
        for (from, left) in before
            .actions
            .iter()
            .enumerate()
            .filter(|(_, bits)| is_some(bits))
        {
            for (to, right) in decided.iter().filter(|(to, _)| *to != from) {
                let mut rows = *left;
                each(&mut rows, right, |a, b| a & b);
                each(&mut rows, &unknown, |a, b| a & !b);
                each(&mut rows, counted, |a, b| a & b);
                self.by_change[from][*to] += weigh(&rows);
                each(&mut changed, &rows, |a, b| a | b);
            }
        }
        let (total, differing, unclear) = (weigh(counted), weigh(&changed), weigh(&unknown));
        self.evaluated += total;
        self.changed += differing;
        self.unknown += unclear;
        // INVARIANT TY-1: what is neither changed nor unknown is unchanged.
        self.unchanged += total - differing - unclear;
        let sums = [
            (&mut self.matched_by_baseline, &before.matched, counted),
            (&mut self.matched_by_candidate, &after.matched, counted),
            (&mut self.changed_by_baseline, &before.matched, &changed),
            (&mut self.changed_by_candidate, &after.matched, &changed),
        ];
        for (sums, matched, of) in sums {
            sums.resize(matched.len(), 0);
            for (sum, bits) in sums.iter_mut().zip(matched) {
                if let Some(bits) = bits {
                    let mut both = **bits;
                    each(&mut both, of, |a, b| a & b);
                    *sum += weigh(&both);
                }
            }
        }
        rows(&changed).collect()
    }

    /// Adds what was counted elsewhere, of the same two sets.
    pub fn join(&mut self, other: &Self) {
        let sum = |left: &mut u64, right: &u64| *left += right;
        sum(&mut self.evaluated, &other.evaluated);
        sum(&mut self.unchanged, &other.unchanged);
        sum(&mut self.changed, &other.changed);
        sum(&mut self.unknown, &other.unknown);
        let ours = self.by_change.iter_mut().flatten();
        ours.zip(other.by_change.iter().flatten())
            .for_each(|(left, right)| sum(left, right));
        let lists = [
            (&mut self.matched_by_baseline, &other.matched_by_baseline),
            (&mut self.matched_by_candidate, &other.matched_by_candidate),
            (&mut self.changed_by_baseline, &other.changed_by_baseline),
            (&mut self.changed_by_candidate, &other.changed_by_candidate),
        ];
        for (left, right) in lists {
            left.resize(left.len().max(right.len()), 0);
            left.iter_mut()
                .zip(right)
                .for_each(|(left, right)| sum(left, right));
        }
    }
}
