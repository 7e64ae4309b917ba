//! The places of a machine at which a client looks for its settings.
//!
//! Only what is not there counts as absent. What cannot be looked at might hold everything that guards the machine.

use crate::cli::{Exit, Failure};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The folder below which the files of a machine lie.
pub struct Root(PathBuf);

impl Root {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Says whether this is the root of another machine, a mounted disk or an unpacked image for example.
    pub fn is_another(&self) -> bool {
        self.0 != Path::new("/")
    }

    /// Returns the path of a place, whatever stands there.
    pub fn path(&self, place: &str) -> PathBuf {
        self.0.join(place)
    }

    /// Returns the path of a place; `None` when nothing stands there.
    ///
    /// Errors: usage, when it cannot be looked at; a conflict, when a link leads to it below the root of another machine: the
    /// link means the files of that machine, and would be followed to those of this one.
    pub fn find(&self, place: impl AsRef<Path>) -> Result<Option<PathBuf>, Failure> {
        let whole = self.0.join(&place);
        if !self.is_another() {
            return Ok(look(&whole)?.map(|_| whole));
        }
        let mut path = self.0.clone();
        for component in place.as_ref() {
            path.push(component);
            let Some(metadata) = look(&path)? else {
                return Ok(None);
            };
            if metadata.is_symlink() {
                let (shown, top) = (path.display(), self.0.display());
                let line = format!("{shown} is a link, and links below {top} are not followed");
                return Err(Failure::new(Exit::Conflict, line));
            }
        }
        Ok(Some(whole))
    }
}

/// Looks at a path itself, not through a link; `None` when nothing stands there.
pub fn look(path: &Path) -> Result<Option<Metadata>, Failure> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Refuses what is no regular file; a pipe would be waited for.
pub fn must_be_regular(path: &Path) -> Result<(), Failure> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if found.is_file() {
        return Ok(());
    }
    let line = format!("{} is no regular file; nothing was read", path.display());
    Err(Failure::new(Exit::Conflict, line))
}

/// Returns how many entries a folder has.
pub fn count(folder: &Path) -> Result<usize, Failure> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    entries
        .map(|entries| entries.len())
        .map_err(|error| unreadable(folder, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}
