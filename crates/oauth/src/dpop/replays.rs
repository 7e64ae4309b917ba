//! The proofs that were accepted a moment ago, in memory.
//!
//! ```text
//! now     iat-60 ............. iat ............. iat+60 | iat+61
//! proof   accepted once, remembered ................... | refused as expired, forgotten
//! ```
//!
//! One process remembers its own; servers that share a store each accept a proof once.

use super::{Proof, WINDOW_SECS};
use crate::error::Refusal;
use aws_lc_rs::digest::{Context, SHA256};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

type Digest = [u8; 32];

/// Remembers proofs for as long as they could be accepted.
#[derive(Debug)]
pub struct Replays {
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

impl Replays {
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
        let digest = digest(proof);
        let until = proof.issued_at.saturating_add(WINDOW_SECS);
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

/// A thumbprint has 43 characters, so that no two pairs join to the same text.
fn digest(proof: &Proof) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(proof.thumbprint.as_bytes());
    context.update(proof.id.as_bytes());
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
