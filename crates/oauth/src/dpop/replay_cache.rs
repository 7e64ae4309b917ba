//! The proofs that were accepted a moment ago, in memory.
//!
//! ```text
//! now     iat-60 ............. iat ............. iat+60 | iat+61
//! proof   accepted once, remembered ................... | refused as expired, forgotten
//! ```
//!
//! One process remembers its own; servers that share a store each accept a proof once.
//!
//! INVARIANT OA-7: a proof serves once; a full memory refuses.

use super::{Proof, WINDOW_SECS};
use crate::error::Refusal;
use aws_lc_rs::digest::{Context, SHA256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

type Digest = [u8; 32];
/// What is remembered, and of which group it is.
type Remembered = (Digest, Option<Arc<str>>);

/// Remembers proofs for as long as they could be accepted.
#[derive(Debug)]
pub struct ReplayCache {
    capacity: usize,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    seen: HashSet<Digest>,
    /// How many of them are of each group.
    groups: HashMap<Arc<str>, usize>,
    /// What may be forgotten after an instant.
    until: BTreeMap<i64, Vec<Remembered>>,
    /// The latest instant seen: what was forgotten before it stays refused when the clock is set back.
    latest: i64,
}

impl ReplayCache {
    /// Makes a memory for `capacity` proofs, about 100 bytes each.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            memory: Mutex::default(),
        }
    }

    /// Accepts a proof the first time.
    ///
    /// Errors: `Replayed`, `Expired` when it could have been forgotten, `Busy` when the memory is full.
    pub fn admit(&self, proof: &Proof, now: i64) -> Result<(), Refusal> {
        let until = proof.issued_at.saturating_add(WINDOW_SECS);
        self.admit_until(&proof.thumbprint, &proof.id, until, now)
    }

    /// Accepts what `owner` calls `id` the first time, and remembers it through the second `until`, in which it could
    /// still be accepted; for clients' assertions too.
    ///
    /// Errors: as [`ReplayCache::admit`].
    pub fn admit_until(&self, owner: &str, id: &str, until: i64, now: i64) -> Result<(), Refusal> {
        self.remember(digest(owner, id), None, until, now)
    }

    /// Accepts a proof of a group the first time. No group has more remembered than is free, so that however many have as much as
    /// they may, one that has little finds room.
    ///
    /// Errors: as [`ReplayCache::admit`]; `Busy` too when the group has as much as is free.
    pub fn admit_of(&self, group: &str, proof: &Proof, now: i64) -> Result<(), Refusal> {
        let until = proof.issued_at.saturating_add(WINDOW_SECS);
        self.remember(digest(&proof.thumbprint, &proof.id), Some(group), until, now)
    }

    fn remember(&self, digest: Digest, group: Option<&str>, until: i64, now: i64) -> Result<(), Refusal> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.forget_before(now);
        if until < memory.latest {
            return Err(Refusal::Expired);
        }
        if memory.seen.contains(&digest) {
            return Err(Refusal::Replayed);
        }
        // INVARIANT OA-7: nothing that could still be accepted makes room for another.
        if memory.seen.len() >= self.capacity {
            return Err(Refusal::Busy);
        }
        let group = match group {
            Some(group) => Some(memory.take_place(group, self.capacity)?),
            None => None,
        };
        memory.seen.insert(digest);
        memory.until.entry(until).or_default().push((digest, group));
        Ok(())
    }
}

impl Memory {
    fn forget_before(&mut self, now: i64) {
        self.latest = self.latest.max(now);
        let kept = self.until.split_off(&self.latest);
        for (digest, group) in std::mem::replace(&mut self.until, kept).into_values().flatten() {
            self.seen.remove(&digest);
            if let Some(group) = group {
                self.leave_place(&group);
            }
        }
    }

    /// Counts one more of a group.
    fn take_place(&mut self, group: &str, capacity: usize) -> Result<Arc<str>, Refusal> {
        let free = capacity.saturating_sub(self.seen.len());
        let group = match self.groups.get_key_value(group) {
            Some((known, _)) => known.clone(),
            None => Arc::from(group),
        };
        let count = self.groups.entry(group.clone()).or_default();
        if *count >= free {
            return Err(Refusal::Busy);
        }
        *count += 1;
        Ok(group)
    }

    fn leave_place(&mut self, group: &Arc<str>) {
        if let Some(count) = self.groups.get_mut(group) {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(group);
            }
        }
    }
}

/// The length of the first keeps two pairs from joining to the same bytes.
fn digest(owner: &str, id: &str) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(&owner.len().to_le_bytes());
    context.update(owner.as_bytes());
    context.update(id.as_bytes());
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
