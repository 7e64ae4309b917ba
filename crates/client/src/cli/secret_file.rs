//! Secrets that are shown once.

use super::failure::Failure;
use provost_words::Secret;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes a new file that its owner alone can read.
///
/// Errors: usage, when there is such a file already or none can be made.
pub(super) fn create_private(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.map_err(|error| Failure::usage(format!("cannot make the new file {}: {error}", path.display())))
}

/// A file made before the request is sent, so that no secret is minted that cannot be kept.
///
/// It is removed again unless something was kept in it.
pub(super) struct ReservedFile {
    path: PathBuf,
    file: File,
    is_kept: bool,
}

impl ReservedFile {
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            file: create_private(path)?,
            is_kept: false,
        })
    }

    /// Writes the secret and a line's end.
    pub(super) fn keep(mut self, secret: &Secret<String>) -> io::Result<()> {
        self.file.write_all(secret.expose().as_bytes())?;
        self.keep_bytes(b"\n")
    }

    /// Writes bytes and keeps the file.
    pub(super) fn keep_bytes(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for ReservedFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Takes the secret out of an answer: the text called `token` or `secret`, however deep.
pub(super) fn take(answer: &mut Value) -> Option<Secret<String>> {
    let members = answer.as_object_mut()?;
    for name in ["token", "secret"] {
        if let Some(Value::String(_)) = members.get(name)
            && let Some(Value::String(secret)) = members.remove(name)
        {
            return Some(Secret::new(secret));
        }
    }
    members.values_mut().find_map(take)
}
