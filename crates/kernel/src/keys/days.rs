//! Replay cells and the day keys that end them (D4.8).
//!
//! A day key is made at the first use of its day and destroyed 48 h after it; every copy of a cell that
//! was sealed on that day, in a WAL, a replica or a backup, is unreadable from then on. Day keys are read
//! from the folder each time, so that a destroyed one is gone for every process that shares the folder.
//!
//! A request meets these functions, so their errors say nothing of the folder in public.
//!
//! Keeps ID-3.

use super::folder::{self, is_full};
use super::sealing::{RecordKey, open, record_key, seal};
use super::{Keys, setup};
use crate::doubt::SureTime;
use crate::durable::sync_folder;
use crate::entropy::{Entropy, SystemEntropy};
use crate::error::{Class, Error, Result};
use crate::secret::Secret;
use zeroize::Zeroizing;

const INFO: &[u8] = b"provost/replay-cell/v1";

impl Keys {
    /// Encrypts the secret of a stored answer so that only the same idempotency key opens it (D4.8).
    ///
    /// `day` counts days since the Unix epoch; `salt` is random and kept beside the cell; `aad` names
    /// organization, principal, operation, account and token.
    pub fn seal_cell(
        &self,
        day: i64,
        salt: &[u8; 16],
        aad: &[&[u8]],
        raw_idempotency_key: &str,
        plaintext: &[u8],
    ) -> Result<Vec<u8>> {
        let day_key = match self.day_key(day)? {
            Some(key) => key,
            None => self.make_day_key(day)?,
        };
        seal(
            &cell_key(&day_key, salt, aad, raw_idempotency_key),
            aad,
            plaintext,
        )
    }

    /// Decrypts a replay cell; `None` when its day's key is destroyed or the cell does not open.
    pub fn open_cell(
        &self,
        day: i64,
        salt: &[u8; 16],
        aad: &[&[u8]],
        raw_idempotency_key: &str,
        sealed: &[u8],
    ) -> Result<Option<Secret<String>>> {
        let Some(day_key) = self.day_key(day)? else {
            return Ok(None);
        };
        let Some(plaintext) = open(&cell_key(&day_key, salt, aad, raw_idempotency_key), aad, sealed) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(plaintext.expose())
            .map_err(|_| Error::internal("a replay cell holds something that is not text"))?;
        Ok(Some(Secret::new(text.to_owned())))
    }

    /// Destroys the keys of all days that ended two days ago or earlier, and returns how many there were: the last cell of a
    /// day has ended by itself by then.
    pub fn destroy_day_keys(&self, now: SureTime) -> Result<usize> {
        let older_than_day = now.day() - 2;
        let mut destroyed = 0;
        for name in folder::names(&self.dir).map_err(Error::internal)? {
            // A crash while a key was being made may have left its temporary file.
            let bare = name.strip_prefix('.').unwrap_or(&name);
            if day_of(bare).is_none_or(|day| day >= older_than_day) {
                continue;
            }
            folder::destroy(&self.dir.join(&name)).map_err(Error::internal)?;
            destroyed += usize::from(bare.len() == name.len());
        }
        sync_folder(&self.dir).map_err(Error::internal)?;
        Ok(destroyed)
    }

    /// Checks at a start that the folder can be written, and that every day key in it can be read: a request would meet what is
    /// wrong with them much later.
    ///
    /// Errors: `Internal` with a public sentence. A folder that is full is none: what needs a key is refused until there is room.
    pub fn check_days(&self) -> Result<()> {
        if let Err(error) = folder::try_to_write(&self.dir) {
            if !is_full(&error) {
                return Err(error);
            }
            tracing::error!("the keys folder is full: what needs a new key is refused until there is room");
        }
        for name in folder::names(&self.dir)? {
            if let Some(day) = day_of(&name).filter(|_| !name.starts_with('.')) {
                self.day_key(day).map_err(|error| {
                    setup(format!(
                        "the key of day {day} in the keys folder cannot be used; take the file {name} away: answers of that day \
                         are repeated without their secrets then"
                    ))
                    .caused_by(error)
                })?;
            }
        }
        Ok(())
    }

    fn day_key(&self, day: i64) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let read = folder::read_private(&self.dir, &file_name(day)).map_err(Error::internal)?;
        let Some(key) = read else {
            return Ok(None);
        };
        // All zeros: another process is destroying it and has not unlinked it yet.
        if key.len() == 32 && key.iter().any(|byte| *byte != 0) {
            return Ok(Some(key));
        }
        if key.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        Err(Error::internal(format!(
            "the key of day {day} in the keys folder is malformed"
        )))
    }

    fn make_day_key(&self, day: i64) -> Result<Zeroizing<Vec<u8>>> {
        let fresh = Zeroizing::new(SystemEntropy.seed());
        // INVARIANT WK-2: after a failed fsync nobody knows whether the key, or its name, outlives a loss of power.
        folder::create_private(&self.dir, &file_name(day), fresh.as_slice()).map_err(|e| {
            if is_full(&e) {
                e
            } else {
                Error::internal(e).class(Class::Broken)
            }
        })?;
        self.day_key(day)?.ok_or_else(|| {
            Error::internal(format!(
                "the key of day {day} was destroyed while it was being made"
            ))
        })
    }
}

fn cell_key(day_key: &[u8], salt: &[u8], aad: &[&[u8]], raw_idempotency_key: &str) -> RecordKey {
    let parts: Vec<&[u8]> = aad
        .iter()
        .copied()
        .chain([raw_idempotency_key.as_bytes()])
        .collect();
    record_key(day_key, salt, INFO, &parts)
}

fn file_name(day: i64) -> String {
    format!("day-{day}.key")
}

/// Returns the day that a file name such as `day-20777.key` or `day-20777.key.….tmp` belongs to.
fn day_of(name: &str) -> Option<i64> {
    name.strip_prefix("day-")?.split_once(".key")?.0.parse().ok()
}
