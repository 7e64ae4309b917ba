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
use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

type Digest = [u8; 32];

/// Remembers proofs for as long as they could be accepted.
#[derive(Debug)]
pub struct ReplayCache {
    capacity: usize,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    seen: HashSet<Digest>,
    /// What may be forgotten after an instant.
    until: BTreeMap<i64, Vec<Digest>>,
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
        let digest = digest(owner, id);
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
        memory.seen.insert(digest);
        memory.until.entry(until).or_default().push(digest);
        Ok(())
    }
}

impl Memory {
    fn forget_before(&mut self, now: i64) {
        self.latest = self.latest.max(now);
        let kept = self.until.split_off(&self.latest);
        for digest in std::mem::replace(&mut self.until, kept).into_values().flatten() {
            self.seen.remove(&digest);
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
