//! The file that a managed client reads: what stands in its place, and putting the right one there.

use super::manifest::{FileEntry, Manifest, Text};
use crate::cli::sha256_hex;
use crate::cli::{Exit, Failure, replace_file};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What stands in a file's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    Nothing,
    /// A regular file.
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// A link, a folder or anything else that a managed file is not.
    Other,
}

impl FileState {
    /// Looks at the place itself, not through a link.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        let cannot =
            |error: io::Error| Failure::new(Exit::Output, format!("cannot read {}: {error}", path.display()));
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(cannot(error)),
        };
        if !metadata.is_file() {
            return Ok(Self::Other);
        }
        let mode = metadata.mode() & 0o7777;
        let bytes = fs::read(path).map_err(cannot)?;
        Ok(Self::File { bytes, mode })
    }

    /// Says whether this is the file of the manifest.
    pub fn is(&self, entry: &FileEntry) -> bool {
        match self {
            Self::File { bytes, mode } => {
                sha256_hex(bytes) == entry.sha256 && entry.permissions().is_ok_and(|wanted| wanted == *mode)
            }
            Self::Nothing | Self::Other => false,
        }
    }

    /// Returns the digest to report: the release's own for its enforced file, else that of the bytes found.
    pub fn digest(&self, manifest: Option<&Manifest>) -> String {
        match self {
            Self::File { bytes, .. } => {
                let found = sha256_hex(bytes);
                match manifest.and_then(|m| m.file("enforced").map(|file| (m, file))) {
                    Some((manifest, file)) if file.sha256 == found => manifest.content_digest.clone(),
                    _ => format!("sha256:{found}"),
                }
            }
            Self::Nothing | Self::Other => format!("sha256:{}", "0".repeat(64)),
        }
    }
}

/// Puts a file of the manifest into its place and reads it back.
///
/// Errors: output, when it cannot be written, or is not there afterwards.
pub fn put(path: &Path, entry: &FileEntry, contents: &[Text]) -> Result<(), Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::new(Exit::Output, format!("cannot write {}: {what}", path.display()))
    };
    let content = contents.iter().find(|content| content.name == entry.name);
    let content = content.ok_or_else(|| wrong(&"the release does not hold it"))?;
    replace_file(path, content.content.as_bytes(), entry.permissions()?).map_err(|error| wrong(&error))?;
    if FileState::at(path)?.is(entry) {
        return Ok(());
    }
    Err(wrong(&"it was changed at once"))
}
