//! The notes that wait for their chains' writers.
//!
//! A note is in the buffer or in the hands of the one writer that owns its chain, which writes it or puts it back. Of
//! each chain the first note that comes since its writer last took some wakes the writer; the others come along.
//!
//! ```text
//! reader   add ─► "first of its chain" ─► nudge ·······┐
//! writer               take ─► write │ put back         └► take (may find that the note was taken before)
//! ```
//!
//! The bound is each chain's own: who makes notes of one, and be it a stranger, takes no room of another.
//!
//! Absent on purpose: waking anybody for what was put back. The store has just failed; the next note of the chain takes
//! it along, and the access summary asks for it within a minute.
//!
//! Keeps WK-7.

use super::sync::{Mutex, MutexGuard, PoisonError};
use crate::audit::AuditRecord;
use crate::auth::OrganizationId;
use crate::error::{Code, Error, Result};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// See the module's text.
pub(crate) struct AuditBuffer {
    /// How many notes of one chain may wait.
    bound: usize,
    waiting: Mutex<BufferedRecords>,
}

#[derive(Default)]
struct BufferedRecords {
    notes: VecDeque<AuditRecord>,
    /// How many of them are of each chain.
    counts: HashMap<OrganizationId, usize>,
    /// Chains of which a note waits, so that their writer was woken.
    chains: BTreeSet<OrganizationId>,
}

impl BufferedRecords {
    fn count(&self, organization: &OrganizationId) -> usize {
        self.counts.get(organization).copied().unwrap_or(0)
    }

    fn one_more(&mut self, organization: &OrganizationId) {
        match self.counts.get_mut(organization) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(organization.clone(), 1)),
        }
    }

    fn one_less(&mut self, organization: &OrganizationId) {
        if let Some(count) = self.counts.get_mut(organization) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(organization);
            }
        }
    }
}

impl AuditBuffer {
    /// Returns an empty buffer in which at most `bound` notes of each chain may wait.
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            waiting: Mutex::default(),
        }
    }

    /// Takes a note in; says whether it is the first of its chain to wait, so that the chain's writer must be woken.
    ///
    /// Errors: `AuditUnavailable` when too many of its chain wait.
    pub fn add(&self, note: AuditRecord) -> Result<bool> {
        let mut waiting = self.lock();
        if waiting.count(&note.organization) >= self.bound {
            return Err(
                Error::new(Code::AuditUnavailable, "the audit log cannot take this read now").retry_after(1),
            );
        }
        let is_first = !waiting.chains.contains(&note.organization);
        if is_first {
            waiting.chains.insert(note.organization.clone());
        }
        waiting.one_more(&note.organization);
        waiting.notes.push_back(note);
        Ok(is_first)
    }

    /// Returns the notes that wait for the chains a writer owns, at most `max`.
    pub fn take(&self, max: usize, owned: impl Fn(&OrganizationId) -> bool) -> Vec<AuditRecord> {
        let mut waiting = self.lock();
        waiting.chains.retain(|organization| !owned(organization));
        let mut taken = Vec::with_capacity(max.min(waiting.notes.len()));
        let mut others = Vec::new();
        while taken.len() < max {
            match waiting.notes.pop_front() {
                Some(note) if owned(&note.organization) => taken.push(note),
                Some(note) => others.push(note),
                None => break,
            }
        }
        for note in others.into_iter().rev() {
            waiting.notes.push_front(note);
        }
        for note in &taken {
            waiting.one_less(&note.organization);
        }
        taken
    }

    /// Says whether the writer falls behind with a chain, so that whoever makes notes of it should give it time.
    pub fn is_pressed(&self, organization: &OrganizationId) -> bool {
        self.lock().count(organization) > self.bound / 2
    }

    /// Puts notes back that could not be written.
    pub fn put_back(&self, notes: Vec<AuditRecord>) {
        let mut waiting = self.lock();
        for note in notes.into_iter().rev() {
            waiting.one_more(&note.organization);
            waiting.notes.push_front(note);
        }
    }

    /// Returns the chains of the notes that wait.
    pub fn chains(&self) -> BTreeSet<OrganizationId> {
        let waiting = self.lock();
        waiting.notes.iter().map(|n| n.organization.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BufferedRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
