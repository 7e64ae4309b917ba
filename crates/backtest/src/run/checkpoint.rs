//! What a run has done so far, as bytes from which it goes on after a crash.
//!
//! ```text
//!   64 digits: SHA-256 of the rest · JSON { engine, run, done, atMs, lost, totals }
//! ```
//!
//! Bytes that are damaged, of another engine, other sets, another question or other sources do not fit: the run
//! starts over.

use super::totals::{StoredTotals, Totals};
use super::{ENGINE_VERSION, Engine};
use provost_policy::sha256_hex;
use serde::{Deserialize, Serialize};

/// What is done.
pub(super) struct Progress {
    /// Which stripes.
    pub done: Vec<bool>,
    /// The instant of the newest counted event, of a run in the order of time.
    pub at_ms: Option<i64>,
    /// The units that could not be read in the order of time, by source and row group: they are counted already.
    pub lost: Vec<(usize, usize)>,
    pub totals: Totals,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Checkpoint {
    engine: String,
    /// The digest of everything that the run is about.
    run: String,
    done: Vec<bool>,
    at_ms: Option<i64>,
    lost: Vec<(usize, usize)>,
    totals: StoredTotals,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            done: Vec::new(),
            at_ms: None,
            lost: Vec::new(),
            totals: Totals::new(),
        }
    }
}

impl Engine<'_> {
    /// Returns the bytes of a checkpoint.
    pub(super) fn encode(&self, progress: &Progress) -> Vec<u8> {
        let checkpoint = Checkpoint {
            engine: ENGINE_VERSION.to_owned(),
            run: self.identity.clone(),
            done: progress.done.clone(),
            at_ms: progress.at_ms,
            lost: progress.lost.clone(),
            totals: (&progress.totals).into(),
        };
        // Numbers, texts and lists: there is nothing that JSON cannot say. Empty bytes would start over.
        let body = serde_json::to_vec(&checkpoint).unwrap_or_default();
        let mut bytes = sha256_hex(&body).into_bytes();
        bytes.extend(body);
        bytes
    }

    /// Returns what a checkpoint says, if it is one of this run.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<Progress> {
        let (digest, body) = bytes.split_at_checked(64)?;
        if sha256_hex(body).as_bytes() != digest {
            return None;
        }
        let checkpoint: Checkpoint = serde_json::from_slice(body).ok()?;
        if checkpoint.engine != ENGINE_VERSION || checkpoint.run != self.identity {
            return None;
        }
        Some(Progress {
            done: checkpoint.done,
            at_ms: checkpoint.at_ms,
            lost: checkpoint.lost,
            totals: checkpoint.totals.into(),
        })
    }
}
