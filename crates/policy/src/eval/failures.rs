//! Why policies could not say whether they match, over batches.

use super::batch::Batch;
use super::mask::{Bits, WORDS, count, each, put, rows};
use super::scan::Scan;
use crate::catalogue::{FIELDS, Field};
use crate::event::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a policy could not say whether it matches an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The event has the attribute, which the policy reads, and nobody can say its value. An event may lack several.
    Missing(Field),
    /// No attribute is missing: its module ended without an answer.
    Module,
    /// No attribute is missing: a name means several records, or what happened before is not known.
    Undecided,
}

impl Scan<'_> {
    /// Returns what the enforced policies could not say of the last batch: the place of each, why, and of how many events,
    /// where row `r` stands for `weights[r]` of them. What only observes decides nothing and is left out.
    ///
    /// Cost: one look at every rule of the set where all could be said.
    pub fn failures(&self, batch: &Batch, weights: &[u64]) -> Vec<(usize, FailureCause, u64)> {
        let is_each_one = weights.iter().all(|weight| *weight == 1);
        let weigh = |bits: &Bits| {
            if is_each_one {
                count(bits)
            } else {
                rows(bits).map(|row| weights.get(row).copied().unwrap_or(0)).sum()
            }
        };
        let mut missing: Vec<Option<Bits>> = vec![None; FIELDS];
        let mut found = Vec::new();
        for (at, mut open) in self.undecided() {
            let Some(policy) = self.set().policies().get(at) else {
                continue;
            };
            let read: Vec<Field> = if policy.is_rego() {
                Field::all().collect()
            } else {
                policy.fields()
            };
            let all = open;
            for field in read {
                let mut lacking = *missing[field.index()].get_or_insert_with(|| missing_rows(batch, field));
                each(&mut lacking, &all, |a, b| a & b);
                each(&mut open, &lacking, |a, b| a & !b);
                found.push((at, FailureCause::Missing(field), weigh(&lacking)));
            }
            let rest = if policy.is_rego() {
                FailureCause::Module
            } else {
                FailureCause::Undecided
            };
            found.push((at, rest, weigh(&open)));
        }
        found.retain(|(_, _, events)| *events > 0);
        found
    }

    /// Returns the rows of which enforced policies could not say whether they match, by the places of the policies.
    fn undecided(&self) -> BTreeMap<usize, Bits> {
        let mut all: BTreeMap<usize, Bits> = BTreeMap::new();
        for rule in self.set().rules.iter().filter(|rule| !rule.monitored) {
            let Some(open) = self.open_rows(rule.verdict) else {
                continue;
            };
            for at in &rule.policies {
                let known = all.entry(*at as usize).or_insert([0; WORDS]);
                each(known, &open, |a, b| a | b);
            }
        }
        all
    }
}

/// Returns the rows in which an attribute is missing.
fn missing_rows(batch: &Batch, field: Field) -> Bits {
    let mut bits = [0; WORDS];
    let Some(column) = batch.column(field) else {
        return bits;
    };
    let is_missing: Vec<bool> = column
        .dictionary
        .iter()
        .map(|value| *value == Value::Missing)
        .collect();
    if is_missing.contains(&true) {
        for (row, code) in column.codes.iter().enumerate() {
            if is_missing.get(usize::from(*code)) == Some(&true) {
                put(&mut bits, row);
            }
        }
    }
    bits
}
