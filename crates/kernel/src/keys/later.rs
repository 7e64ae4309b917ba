//! Keys that come while a process runs: they check at once, and make nothing before they are adopted.
//!
//! ```text
//! keys rotate     a key and its mark that it waits   → each process reads it: it checks and opens
//! keys activate   the mark goes                      → each process writes the key's check value to its store, and adopts it
//! ```
//!
//! A process reads the folder again now and then, and at once, at most once in five seconds, when something comes with an id,
//! or a keyed hash, that no known key explains.
//!
//! INVARIANT KY-1: a key that a process finds later than its start makes nothing before it is adopted, and what
//! another process made with it is accepted; a key that the store names and that is missing is a 503, neither a
//! refused token nor a broken store nor a row without proof.
//! INVARIANT KY-2: a key is adopted once its mark is gone and the store knows it, as the same key.

use super::key::{Key, Purpose, parse_id};
use super::ring::Ring;
use super::{Keys, check_value, folder, setup};
use crate::entropy::Entropy;
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::time::Timestamp;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// How often the folder is read again for what nobody knows.
const PAUSE: Duration = Duration::from_secs(5);

/// What the folder says of keys that a process does not use yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The ids of those that wait.
    pub pending: Vec<String>,
    /// Label and check value of those that may be adopted, one of a purpose at most.
    pub activated: Vec<(String, [u8; 32])>,
}

impl Keys {
    /// Makes the next key of `purpose` (any but `request`), which waits, and returns its id.
    ///
    /// Running servers read it and use it once it is activated. The older keys stay. The `request` key does not rotate: what was
    /// hashed with it is looked up by that hash.
    ///
    /// Errors: `Internal` with a public sentence when one waits already.
    pub fn prepare_next(dir: &Path, purpose: &str, now: Timestamp, entropy: &dyn Entropy) -> Result<String> {
        let purpose = rotating(purpose)?;
        let _lock = folder::lock(dir)?;
        let ring = Self::open(dir)?.ring();
        if let Some(waiting) = ring.of_purpose(purpose).find(|key| ring.waits(key)) {
            return Err(setup(format!(
                "the key {} waits already; use it with `provost keys activate {}`",
                waiting.id,
                purpose.as_str()
            )));
        }
        let key = next(&ring, purpose, now, entropy);
        // The mark is there before the key: no process ever sees the key without it.
        folder::mark_pending(dir, &key.id)?;
        folder::add(dir, &key)?;
        Ok(key.id)
    }

    /// Makes the next key of `purpose` (any but `request`), to be used at once, and returns its id.
    pub fn rotate(dir: &Path, purpose: &str, now: Timestamp, entropy: &dyn Entropy) -> Result<String> {
        let purpose = rotating(purpose)?;
        let _lock = folder::lock(dir)?;
        let key = next(&Self::open(dir)?.ring(), purpose, now, entropy);
        // What an interrupted call left would make it wait.
        folder::unmark_pending(dir, &key.id)?;
        folder::add(dir, &key)?;
        Ok(key.id)
    }

    /// Returns the id of the key of `purpose` that waits.
    ///
    /// Errors: `Internal` with a public sentence when none does.
    pub fn pending_of(&self, purpose: &str) -> Result<String> {
        let purpose = rotating(purpose)?;
        let ring = self.ring();
        let waiting = ring.of_purpose(purpose).rev().find(|key| ring.waits(key));
        waiting.map(|key| key.id.clone()).ok_or_else(|| {
            setup(format!(
                "no {0} key waits; make one with `provost keys rotate {0}`",
                purpose.as_str()
            ))
        })
    }

    /// Takes the mark off a key, durably: every process that uses the folder adopts it.
    pub fn activate(&self, id: &str) -> Result<()> {
        folder::unmark_pending(&self.dir, id)
    }

    /// Reads the folder again and says what is new in it.
    ///
    /// Errors: `Internal` when the folder cannot be read.
    pub fn news(&self) -> Result<News> {
        self.read_again(&self.looked())?;
        let (there, marked) = folder::key_names_and_marks(&self.dir)?;
        let ring = self.ring();
        let is_there = |key: &Key| {
            there
                .iter()
                .any(|name| name.strip_suffix(".key") == Some(&key.id))
        };
        let waiting = ring.keys().iter().filter(|key| ring.waits(key) && is_there(key));
        let (pending, free): (Vec<_>, Vec<_>) = waiting.partition(|key| marked.contains(&key.id));
        let newest = |key: &&&Arc<Key>| {
            !free
                .iter()
                .any(|other| other.purpose == key.purpose && other.number > key.number)
        };
        Ok(News {
            pending: pending.into_iter().map(|key| key.id.clone()).collect(),
            activated: free
                .iter()
                .filter(newest)
                .map(|key| (key.label(), check_value(key)))
                .collect(),
        })
    }

    /// Makes new things with the key of a label and a check value from now on. The store knows both by then (KY-2).
    pub fn adopt(&self, label: &str, value: &[u8; 32]) {
        let looked = self.looked();
        let ring = self.ring();
        let key = ring.keys().iter().find(|key| key.label() == label);
        if let Some(key) = key.filter(|key| ring.waits(key) && check_value(key) == *value) {
            tracing::info!(key = key.id, "the key is used for what is new from now on");
            self.replace(ring.using(key.purpose, key.number));
        }
        drop(looked);
    }

    /// Returns the fingerprint of every key that was read by now.
    pub fn fingerprints(&self) -> Vec<String> {
        self.ring().keys().iter().map(|key| fingerprint(key)).collect()
    }

    /// Returns the fingerprint of the key of an id, if it was read: its id and the beginning of its check value. One that was
    /// given up and another of its name have two.
    pub fn fingerprint(&self, id: &str) -> Option<String> {
        let ring = self.ring();
        let key = ring.keys().iter().find(|key| key.id == id)?;
        Some(fingerprint(key))
    }

    /// Says whether the key of a label, such as `audit/audit-2`, is here.
    pub fn has(&self, label: &str) -> bool {
        let Some((purpose, id)) = label.split_once('/') else {
            return false;
        };
        Purpose::parse(purpose).is_some_and(|purpose| self.find(purpose, id).is_some())
    }

    /// Returns a number that changes with the keys: what is made from them is made anew then.
    pub fn version(&self) -> u64 {
        self.ring().version
    }

    /// Returns the key of an id, looking for it if need be.
    pub(super) fn find(&self, purpose: Purpose, id: &str) -> Option<Arc<Key>> {
        if let Some(key) = self.ring().find(purpose, id) {
            return Some(key.clone());
        }
        // A text that no key can have as its id is not looked for.
        parse_id(id).filter(|(of, _)| *of == purpose)?;
        self.look();
        self.ring().find(purpose, id).cloned()
    }

    /// Reads the folder again, unless it was just read for the same. Others wait for it meanwhile, and find what was read.
    pub fn look(&self) {
        let mut looked = self.looked();
        let now = self.clock.monotonic();
        if looked.is_some_and(|at| now.saturating_sub(at) < PAUSE) {
            return;
        }
        *looked = Some(now);
        if let Err(error) = self.read_again(&looked) {
            tracing::error!(cause = ?error.private(), "the keys folder cannot be read again: {error}");
        }
    }

    fn looked(&self) -> MutexGuard<'_, Option<Duration>> {
        self.shared
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the keys that are not known yet, and those that wait: one may have been given up for another of its name. Whoever
    /// holds the guard is alone in changing the ring.
    fn read_again(&self, _alone: &MutexGuard<'_, Option<Duration>>) -> Result<()> {
        let ring = self.ring();
        let mut found = Vec::new();
        for name in folder::key_names(&self.dir)? {
            let id = name.strip_suffix(".key").unwrap_or(&name);
            let known = ring.keys().iter().find(|key| key.id == id);
            if known.is_some_and(|key| !ring.waits(key)) {
                continue;
            }
            match folder::read(&self.dir, &name) {
                Ok(key) if known.is_some_and(|known| check_value(known) == check_value(&key)) => {}
                Ok(key) => {
                    tracing::info!(key = id, "a key that another process made was read");
                    found.push(key);
                }
                Err(error) => {
                    tracing::error!(cause = ?error.private(), "a key that another process made cannot be read: {error}");
                }
            }
        }
        if !found.is_empty() {
            self.replace(ring.with(found));
        }
        Ok(())
    }

    /// Returns the keys as they are known now.
    pub(super) fn ring(&self) -> Arc<Ring> {
        let ring = self.shared.ring.read();
        ring.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, ring: Ring) {
        let mut place = self.shared.ring.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(ring);
    }
}

fn fingerprint(key: &Key) -> String {
    format!("{} {}", key.id, hex(&check_value(key)[..8]))
}

fn rotating(purpose: &str) -> Result<Purpose> {
    let purpose = Purpose::parse(purpose).filter(|purpose| *purpose != Purpose::Request);
    purpose.ok_or_else(|| setup("only pepper, sealing, audit, checkpoint and signing keys can be rotated"))
}

fn next(ring: &Ring, purpose: Purpose, now: Timestamp, entropy: &dyn Entropy) -> Key {
    let newest = ring.of_purpose(purpose).next_back().map_or(0, |key| key.number);
    Key::new(purpose, newest + 1, now, entropy.seed())
}

/// Returns the refusal of what needs a key that this process does not have, though the store names it.
pub fn missing(id: &str) -> Error {
    Error::unavailable(
        "this was made with a key that the server does not have yet; try again, and see that every server has the same keys",
    )
    .retry_after(5)
    .caused_by(format!("the key {id} is not in the keys folder"))
}

/// Returns the id and the seed of the key for access tokens that belongs to a signing key.
pub(super) fn access_token_seed(key: &Key) -> (String, Zeroizing<[u8; 32]>) {
    let seed = super::derive::expand::<32>(key.bytes(), &[], b"provost/oauth/access-token/v1");
    (format!("oauth-{}", key.number), seed)
}
