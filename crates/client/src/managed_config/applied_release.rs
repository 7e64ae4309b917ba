//! What this machine keeps beside FILE: the last applied release with its signature.

use super::manifest::{Manifest, Text};
use crate::cli::{Exit, Failure, replace_file};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_words::Timestamp;
use provost_words::durable::{close_to_others, folder_of};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK_WAIT: Duration = Duration::from_millis(100);
/// LIMIT: a pull is done in seconds; whoever waits longer is told so.
const LOCK_TRIES: u32 = 600;

/// The last applied release.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedRelease {
    /// The server of the first contact, for which the trusted keys are pinned.
    pub url: String,
    pub organization: String,
    pub profile_id: String,
    /// When the server last confirmed the release.
    pub confirmed_at: Timestamp,
    pub poll_interval_seconds: u64,
    pub envelope: Value,
    pub files: Vec<Text>,
}

impl AppliedRelease {
    /// Returns the file's place: `.managed-settings.json.provost.json` beside `managed-settings.json`.
    pub fn path(file: &Path) -> PathBuf {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        folder_of(file).join(format!(".{name}.provost.json"))
    }

    /// Reads what is kept for FILE.
    ///
    /// Errors: conflict, when it cannot be read: to go on without it would allow a downgrade.
    pub fn load(file: &Path) -> Result<Option<Self>, Failure> {
        let path = Self::path(file);
        let wrong = |what: String| {
            Failure::new(Exit::Conflict, format!("{}: {what}", path.display()))
                .and("it holds the last applied release; remove it only if any release may follow")
        };
        // INVARIANT DU-2: an earlier version made it open to others. Who does not own it leaves it so.
        drop(close_to_others(&path));
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Writes what is kept for FILE, for whoever pulls alone: others read FILE.
    pub fn save(&self, file: &Path) -> Result<(), Failure> {
        let path = Self::path(file);
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        let written = bytes.and_then(|bytes| replace_file(&path, &bytes, 0o600));
        written
            .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))
    }

    /// Returns the manifest without looking at its signature: who can change it here can change FILE.
    pub fn manifest(&self) -> Result<Manifest, Failure> {
        let payload = self
            .envelope
            .get("payload")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let payload = STANDARD.decode(payload).unwrap_or_default();
        Manifest::checked(&payload, &self.files)
    }
}

/// Takes FILE's place for one pull at a time; it is free again when the returned handle is dropped.
///
/// The lock is a file of whoever pulls alone: a folder that everybody can open everybody could lock as well, and so stop every release.
///
/// Errors: output, when there is no such folder; conflict, when another pull has it for a minute.
pub async fn lock(file: &Path) -> Result<File, Failure> {
    let folder = folder_of(file);
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(
            Exit::Output,
            format!("cannot use the folder {}: {error}", folder.display()),
        )
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(false).mode(0o600);
    open.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let path = folder.join(format!(".{name}.provost.lock"));
    let handle = open.open(&path).map_err(|error| cannot(&error))?;
    // One that an earlier program left open to others is shut.
    drop(close_to_others(&path));
    for _ in 0..LOCK_TRIES {
        match handle.try_lock() {
            Ok(()) => return Ok(handle),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_WAIT).await,
            Err(TryLockError::Error(error)) => return Err(cannot(&error)),
        }
    }
    Err(Failure::new(
        Exit::Conflict,
        format!("another pull is at work in {}", folder.display()),
    ))
}
