#![forbid(unsafe_code)]
//! A skill as a package: a folder with `SKILL.md` in the agent-skills format, validated, in memory.
//!
//! A package comes from a folder, a tar.gz or a zip. Whatever it comes from, the same rules judge it, and what goes on
//! is never the archive that somebody sent but one made anew from what was understood. So a reader that would
//! understand the sent bytes differently never sees them.
//!
//! **Digest.** SHA-256 over a listing in UTF-8, written `sha256:` and 64 hex digits. The listing is the line
//! `provost-skill 1`, then one line for each file in the order of the paths' bytes: `0755` or `0644`, a space, the
//! SHA-256 of the content as 64 hex digits, a space, the path. Every line ends with a line feed; no path holds one.
//!
//! INVARIANT SP-1: a path of a package is relative, and lies below the folder it is unpacked to on every system.
//! INVARIANT SP-2: no archive takes more memory or files than the limits, whatever its headers claim.
//! INVARIANT SP-3: the same content has the same digest, and under the same name the same archive from the same program,
//! whatever it was read from.
//! INVARIANT SP-4: unpacking leaves the whole folder or nothing. Proof: in part.
//!
//! Absent on purpose: empty folders, times, owners, and every mode but "executable"; they are not part of a skill.

mod archive;
mod draft;
mod folder;
mod front_matter;
mod manifest;
mod names;
mod path;
mod unpack;

#[cfg(test)]
mod tests;

pub use manifest::{Manifest, ManifestFile, digest_of, is_valid_name, sha256};
pub use names::Names;

use draft::Draft;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// LIMIT: 20 MiB (D1.10).
pub const MAX_ARCHIVE_BYTES: usize = 20 << 20;
/// LIMIT: all files of a package together, counted while they are expanded.
pub const MAX_EXPANDED_BYTES: u64 = 50 << 20;
/// LIMIT: one file of a package.
pub const MAX_FILE_BYTES: u64 = 5 << 20;
/// LIMIT: files of a package.
pub const MAX_FILES: usize = 1_000;
/// LIMIT: names in a path.
pub const MAX_DEPTH: usize = 16;
/// LIMIT: a path, inside of the package.
pub const MAX_PATH_BYTES: usize = 255;

/// The media types of the archives that [`Package::from_archive`] reads: tar.gz and zip.
pub const MEDIA_TYPES: [&str; 2] = ["application/gzip", "application/zip"];

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// One thing that is wrong with a folder or an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path inside of the package, shortened and without control characters; empty for the whole.
    pub path: String,
    /// What is wrong, as a sentence for who made it.
    pub message: String,
}

/// Removes what an interrupted [`Package::unpack`] left beside `to`.
pub fn remove_draft(to: &Path) -> io::Result<()> {
    unpack::remove_draft(to)
}

/// Says whether a package could hold a file at this path.
pub fn is_valid_path(path: &str) -> bool {
    path::checked(path.as_bytes(), false).is_ok_and(|checked| checked == path) && path.len() <= MAX_PATH_BYTES
}

/// A validated skill, in memory. Two are equal if what they hold is, and what the registry calls it.
#[derive(Clone, Debug)]
pub struct Package {
    manifest: Manifest,
    files: BTreeMap<String, File>,
    names: Names,
    warnings: Vec<String>,
}

impl PartialEq for Package {
    fn eq(&self, other: &Self) -> bool {
        self.manifest == other.manifest && self.files == other.files
    }
}

impl Eq for Package {}

/// One file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    executable: bool,
    bytes: Vec<u8>,
}

impl Package {
    /// Reads an archive of one of the [`MEDIA_TYPES`]: `SKILL.md` at its root, or one folder that holds everything.
    ///
    /// Errors: everything that was found wrong, at most 100 faults.
    pub fn from_archive(media_type: &str, bytes: &[u8]) -> Result<Self, Vec<Fault>> {
        Self::from_archive_named(media_type, bytes, None)
    }

    /// Reads an archive as [`Package::from_archive`] does; `given` names a skill whose own names do not fit.
    ///
    /// Errors: everything that was found wrong, at most 100 faults.
    pub fn from_archive_named(
        media_type: &str,
        bytes: &[u8],
        given: Option<&str>,
    ) -> Result<Self, Vec<Fault>> {
        let mut draft = Draft::default();
        if bytes.len() > MAX_ARCHIVE_BYTES {
            return Err(vec![Fault {
                path: String::new(),
                message: format!("the archive has more than {MAX_ARCHIVE_BYTES} bytes"),
            }]);
        }
        let read = match media_type {
            "application/gzip" => archive::read_tar_gz(bytes, &mut draft),
            "application/zip" => archive::read_zip(bytes, &mut draft),
            _ => Err(Fault {
                path: String::new(),
                message: format!("the archive must be one of {}", MEDIA_TYPES.join(", ")),
            }),
        };
        draft.stopped(read);
        draft.finish(None, given)
    }

    /// Reads a folder.
    ///
    /// Errors: everything that was found wrong, at most 100 faults.
    pub fn from_folder(folder: &Path) -> Result<Self, Vec<Fault>> {
        Self::from_folder_named(folder, None)
    }

    /// Reads a folder; `given` names a skill whose own names do not fit.
    ///
    /// Errors: everything that was found wrong, at most 100 faults.
    pub fn from_folder_named(folder: &Path, given: Option<&str>) -> Result<Self, Vec<Fault>> {
        let mut draft = Draft::default();
        let read = folder::read(folder, &mut draft);
        draft.stopped(read);
        draft.finish(folder::name_of(folder), given)
    }

    /// Returns the package under the name that the registry has for it, if `SKILL.md` leaves that open. Content is kept
    /// once, in an archive whose folder has the name of whichever skill came first.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        if !self.names.is_settled() && is_valid_name(name) {
            name.clone_into(&mut self.manifest.name);
        }
        self
    }

    /// The names that it came with.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What is not as the format says, and does no harm.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the package is and holds; it follows from the files alone.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns one file's bytes.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// Returns the package as tar.gz, in a folder with the skill's name. The same content gives the same bytes.
    pub fn to_archive(&self) -> Vec<u8> {
        archive::write_tar_gz(self)
    }

    /// Writes the package as the new folder `to`, all of it or nothing.
    ///
    /// A folder beside it, `.<name>.provost-new`, is where it is prepared; one that an interrupted run left is
    /// removed first. Two unpackings to the same place must not run at once.
    ///
    /// Errors: `AlreadyExists` when there is something at `to`, and what the file system says.
    pub fn unpack(&self, to: &Path) -> io::Result<()> {
        unpack::unpack(self, to)
    }
}
