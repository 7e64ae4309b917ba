//! What is written down before a token is rotated, so that a lost answer is asked for again under the same key.
//!
//! ```text
//! note written ─► asked, key K ─► answer lost          the command is repeated, an hour or a restart later:
//!                                                      note read ─► asked, key K ─► the same new token
//! note written ─► asked, key K ─► answer ─► token replaced ─► note removed
//! ```

use super::super::consent::{Consent, sha256_hex};
use super::super::failure::{Exit, Failure};
use super::super::whole_file::replace_file;
use provost_words::Secret;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A rotation that may be under way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rotation {
    /// The digest of the token that is to be replaced: the note is about no other one.
    pub(super) token_sha256: String,
    pub(super) url: String,
    pub(super) organization: String,
    pub(super) service_account_id: String,
    pub(super) idempotency_key: String,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grace_period_seconds: Option<i64>,
}

impl Rotation {
    /// Returns a rotation under a new key.
    pub(super) fn begin(
        token: &Secret<String>,
        (url, organization, account): (&str, &str, &str),
        reason: &str,
        grace_period_seconds: Option<i64>,
    ) -> Self {
        Self {
            token_sha256: digest(token),
            url: url.to_owned(),
            organization: organization.to_owned(),
            service_account_id: account.to_owned(),
            idempotency_key: Consent::new(reason).key,
            reason: reason.to_owned(),
            grace_period_seconds,
        }
    }
}

fn digest(token: &Secret<String>) -> String {
    sha256_hex(token.expose().as_bytes())
}

/// The file of the note.
pub(super) struct NoteFile(pub(super) PathBuf);

impl NoteFile {
    /// Returns the file beside what holds the token.
    pub(super) fn beside(holder: &Path, name: &str) -> Self {
        Self(holder.with_file_name(format!(".{name}.rotation.json")))
    }

    /// Returns the rotation of this token at this server that may be under way.
    ///
    /// Errors: usage, when there is a note that cannot be read.
    pub(super) fn of(&self, token: &Secret<String>, url: &str) -> Result<Option<Rotation>, Failure> {
        let shown = self.0.display();
        let bytes = match fs::read(&self.0) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {shown}: {error}"))),
        };
        let rotation: Rotation = serde_json::from_slice(&bytes).map_err(|_| {
            Failure::usage(format!("{shown} is no note of a rotation"))
                .and("if no rotation was interrupted, remove it")
        })?;
        Ok((rotation.token_sha256 == digest(token) && rotation.url == url).then_some(rotation))
    }

    /// Writes the note down.
    ///
    /// Errors: output, when the folder takes no file; then the new token could not be kept either.
    pub(super) fn write(&self, rotation: &Rotation) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(rotation).map_err(io::Error::other);
        let written = bytes.and_then(|bytes| replace_file(&self.0, &bytes, 0o600));
        written.map_err(|error| {
            let line = format!("cannot write {}: {error}", self.0.display());
            Failure::new(Exit::Output, line).and("nothing was sent; the old token still works")
        })
    }

    /// Removes the note. One that stays is about a token that is gone, and counts for nothing.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }
}
