//! What was looked at on a disk, so that somebody can tell later whether all of it is as it was.
//!
//! Keeps IV-6.

use crate::mounts::Mounts;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a path was: nothing there, or a thing with an identity of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// Nothing, or nothing that may be looked at.
    Nothing,
    /// A folder of which only the way through it counted. What changes in it changes elsewhere in the list.
    Folder { device: u64, inode: u64, mode: u32 },
    /// Everything else, and a folder whose names counted.
    Thing {
        device: u64,
        inode: u64,
        mode: u32,
        size: u64,
        /// When its content, and when anything of it was changed. Units: seconds and nanoseconds.
        modified: (i64, i64),
        changed: (i64, i64),
    },
}

impl Stamp {
    fn of(path: &Path, is_listed: bool) -> Self {
        let Ok(found) = path.symlink_metadata() else {
            return Self::Nothing;
        };
        let (device, inode, mode) = (found.dev(), found.ino(), found.mode());
        if found.is_dir() && !is_listed {
            return Self::Folder { device, inode, mode };
        }
        Self::Thing {
            device,
            inode,
            mode,
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// What was looked at, and whether its names were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen(BTreeMap<(PathBuf, bool), Stamp>);

impl Seen {
    /// Notes what a path is now, unless it was noted before: what was read of it since may be older than what is there now.
    pub(crate) fn note(&mut self, path: &Path, is_listed: bool) {
        let place = (path.to_owned(), is_listed);
        self.0.entry(place).or_insert_with(|| Stamp::of(path, is_listed));
    }

    /// Says whether everything is as it was. What came to lie on another machine since is not, and is not touched.
    pub(crate) fn holds(&self, mounts: &Mounts) -> bool {
        let mut all = self.0.iter();
        all.all(|((path, is_listed), stamp)| {
            !mounts.is_below_elsewhere(path) && Stamp::of(path, *is_listed) == *stamp
        })
    }

    /// Returns how many things were looked at.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns when the latest change of any of it was. Units: milliseconds since 1970, by the clock of the file system.
    pub(crate) fn latest_ms(&self) -> i64 {
        let changed = self.0.values().filter_map(|stamp| match stamp {
            Stamp::Thing { changed, .. } => Some(changed.0.saturating_mul(1_000) + changed.1 / 1_000_000),
            Stamp::Nothing | Stamp::Folder { .. } => None,
        });
        changed.max().unwrap_or(i64::MIN)
    }
}
