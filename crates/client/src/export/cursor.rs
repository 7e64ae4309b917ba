//! How far an export is: a file that is replaced once what it speaks of was written out.

use crate::cli::{Exit, Failure, replace_file};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What stands in the file. Whoever repeats an export that was cut off writes some records twice, never none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cursor {
    /// The server and the organization that it is about.
    pub url: String,
    pub organization: String,
    /// The place of the last audit entry that was written out.
    #[serde(default)]
    pub audit_seq: i64,
    /// Its hash, to which the next one must be chained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_hash: Option<String>,
    /// Decisions before this instant were written out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions_until: Option<String>,
}

/// The file of a cursor.
pub struct CursorFile {
    path: PathBuf,
}

impl CursorFile {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Reads the cursor; a new one where there is no file.
    ///
    /// Errors: usage, for one of another server or organization, or one that cannot be read.
    pub fn read(&self, url: &str, organization: &str) -> Result<Cursor, Failure> {
        let shown = self.path.display();
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Cursor {
                    url: url.to_owned(),
                    organization: organization.to_owned(),
                    audit_seq: 0,
                    audit_hash: None,
                    decisions_until: None,
                });
            }
            Err(error) => {
                return Err(Failure::usage(format!(
                    "the cursor {shown} cannot be read: {error}"
                )));
            }
        };
        let cursor: Cursor = serde_json::from_slice(&text).map_err(|error| {
            Failure::usage(format!("{shown} is no cursor of an export: {error}"))
                .and("name another file, or remove this one to begin anew")
        })?;
        if cursor.url != url || cursor.organization != organization {
            return Err(Failure::usage(format!(
                "the cursor {shown} is of {} at {}, and this export is of {organization} at {url}",
                cursor.organization, cursor.url
            ))
            .and("each export has a cursor of its own: name another file"));
        }
        Ok(cursor)
    }

    /// Keeps the cursor durably.
    pub fn keep(&self, cursor: &Cursor) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(
                Exit::Output,
                format!("the cursor {} cannot be kept: {error}", self.path.display()),
            )
        };
        let mut text = serde_json::to_vec_pretty(cursor).map_err(|error| failed(&error))?;
        text.push(b'\n');
        replace_file(&self.path, &text, 0o600).map_err(|error| failed(&error))
    }
}
