//! The latest instant that is known here: whoever sets a clock back makes no bundle young by it.
//!
//! ```text
//! an answer of the server ──► the present by its clock, whatever was thought before ──► the folder
//! a round without one     ──► the present by this machine's, never less than what was known and has gone by since
//! ```
//!
//! Keeps LJ-5.

use crate::folder::Folder;
use crate::trouble::{Cause, Trouble};
use provost_words::time::{Clock, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The file of the latest instant.
pub(crate) const LATEST: &str = "judging.latest.json";
/// How far a clock may be behind. Units: milliseconds.
pub(super) const SKEW_MS: i64 = 600_000;

/// An instant, and when it was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latest {
    at: Timestamp,
    /// By a clock that nobody can set.
    noted: Duration,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    at: Timestamp,
}

impl Latest {
    /// Returns that an instant is the present.
    pub fn new(at: Timestamp, clock: &dyn Clock) -> Self {
        let noted = clock.since_boot();
        Self { at, noted }
    }

    /// Returns what it is now at least.
    pub fn least(&self, clock: &dyn Clock) -> Timestamp {
        let gone = clock.since_boot().saturating_sub(self.noted);
        self.at
            .plus_ms(i64::try_from(gone.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Says whether a present is behind what it is at least, by more than clocks may differ.
pub fn is_behind(now: Timestamp, least: Timestamp) -> bool {
    now.as_ms() < least.as_ms().saturating_sub(SKEW_MS)
}

/// Returns the latest instant that was kept; nothing where none was.
///
/// Errors: folder; when it cannot be read: to go on without it would let a clock make a bundle young.
pub fn latest(folder: &Folder) -> Result<Option<Timestamp>, Trouble> {
    let Some(bytes) = folder.read(LATEST)? else {
        return Ok(None);
    };
    let kept: Result<Kept, _> = serde_json::from_slice(&bytes);
    let kept = kept.map_err(|error| {
        let line = format!("{} cannot be read: {error}", folder.file(LATEST).display());
        Trouble::new(Cause::Folder, line).fix("the next answer of the server writes it again")
    })?;
    Ok(Some(kept.at))
}

/// Keeps the latest instant.
///
/// Errors: disk.
pub fn keep_latest(folder: &Folder, at: Timestamp) -> Result<(), Trouble> {
    folder.replace(LATEST, &serde_json::to_vec(&Kept { at }).unwrap_or_default())
}
