//! A bounded number of things, by their digests: those with the smallest.
//!
//! The threshold only falls, so what it once refused never comes back, and what is kept at the end was kept all along:
//! its counts are whole, in whatever order and by however many threads they were made.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A digest, the same on every machine and in every run.
pub(super) type Fingerprint = u128;

/// What is kept.
#[derive(Clone, Debug)]
pub(super) struct CheckpointState<V> {
    limit: usize,
    /// The largest digest that is still taken.
    most: Fingerprint,
    all: HashMap<Fingerprint, V>,
}

impl<V> CheckpointState<V> {
    /// Returns nothing, with room for so many.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            most: Fingerprint::MAX,
            all: HashMap::new(),
        }
    }

    /// Returns whether some were refused or dropped.
    pub fn is_capped(&self) -> bool {
        self.most != Fingerprint::MAX || self.all.len() > self.limit
    }

    /// Returns what is kept under a digest, or where it would be; nothing when it is refused.
    pub fn entry(
        &mut self,
        mark: Fingerprint,
    ) -> Option<std::collections::hash_map::Entry<'_, Fingerprint, V>> {
        (mark <= self.most).then(|| self.all.entry(mark))
    }

    pub fn get(&self, mark: Fingerprint) -> Option<&V> {
        self.all.get(&mark)
    }

    pub fn get_mut(&mut self, mark: Fingerprint) -> Option<&mut V> {
        self.all.get_mut(&mark)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Fingerprint, &V)> {
        self.all.iter().map(|(mark, value)| (*mark, value))
    }

    pub fn drain(&mut self) -> impl Iterator<Item = (Fingerprint, V)> + '_ {
        self.all.drain()
    }

    /// Returns nothing, which refuses what this one refuses.
    pub fn beside(&self) -> Self {
        Self {
            limit: self.limit,
            most: self.most,
            all: HashMap::new(),
        }
    }

    /// Takes over all of another one where nothing is kept yet.
    pub fn start(&mut self, other: &mut Self) {
        self.narrow(other);
        if self.all.is_empty() {
            std::mem::swap(&mut self.all, &mut other.all);
            self.refuse();
        }
    }

    /// Takes over what was refused elsewhere.
    pub fn narrow(&mut self, other: &Self) {
        if other.most < self.most {
            self.most = other.most;
            self.refuse();
        }
    }

    fn refuse(&mut self) {
        let most = self.most;
        if most != Fingerprint::MAX {
            self.all.retain(|mark, _| *mark <= most);
        }
    }

    /// Drops what is too much, once it is twice as much as there is room for.
    pub fn trim(&mut self) {
        if self.all.len() >= 2 * self.limit {
            self.cut();
        }
    }

    /// Drops what is too much.
    pub fn cut(&mut self) {
        if self.all.len() <= self.limit {
            return;
        }
        let mut marks: Vec<Fingerprint> = self.all.keys().copied().collect();
        let (_, last, _) = marks.select_nth_unstable(self.limit - 1);
        self.most = *last;
        self.refuse();
    }
}

/// The form in which it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredCheckpoint<V> {
    most: Fingerprint,
    all: Vec<(Fingerprint, V)>,
}

impl<V: Clone> CheckpointState<V> {
    pub fn store(&self) -> StoredCheckpoint<V> {
        StoredCheckpoint {
            most: self.most,
            all: self
                .all
                .iter()
                .map(|(mark, value)| (*mark, value.clone()))
                .collect(),
        }
    }

    pub fn restore(limit: usize, stored: StoredCheckpoint<V>) -> Self {
        Self {
            limit,
            most: stored.most,
            all: stored.all.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kept: &mut CheckpointState<u64>, mark: Fingerprint) {
        if let Some(entry) = kept.entry(mark) {
            *entry.or_default() += 1;
        }
        kept.trim();
    }

    /// Proves RP-5.
    #[test]
    fn the_smallest_are_kept_with_whole_counts_in_every_order_and_however_they_are_joined() {
        // 300 digests, of which number n occurs n % 5 + 1 times.
        let all: Vec<Fingerprint> = (0_u128..300)
            .flat_map(|n| {
                vec![n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835); (n % 5 + 1) as usize]
            })
            .collect();
        let mut expected: Vec<(Fingerprint, u64)> = Vec::new();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        for mark in sorted {
            match expected.last_mut() {
                Some((last, count)) if *last == mark => *count += 1,
                _ => expected.push((mark, 1)),
            }
        }
        expected.truncate(20);
        for step in [1, 7, 11, 101] {
            let mut parts = [
                CheckpointState::new(20),
                CheckpointState::new(20),
                CheckpointState::new(20),
            ];
            for nth in 0..all.len() {
                count(&mut parts[nth % 3], all[nth * step % all.len()]);
            }
            let [mut whole, others @ ..] = parts;
            for mut part in others {
                whole.start(&mut part);
                for (mark, value) in part.drain() {
                    if let Some(entry) = whole.entry(mark) {
                        *entry.or_default() += value;
                    }
                }
                whole.trim();
            }
            whole.cut();
            let mut found: Vec<(Fingerprint, u64)> =
                whole.iter().map(|(mark, value)| (mark, *value)).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "step {step}");
            assert!(whole.is_capped());
        }
    }
}
