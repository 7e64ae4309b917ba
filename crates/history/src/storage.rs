//! Where chunks and segments lie: named, immutable objects.
//!
//! INVARIANT HI-5: an object appears in a folder under its name whole or not at all, in this order: a sibling with
//! the suffix `.partial` is written, made durable and renamed, and the folder is made durable. Proof: in part.
//!
//! ```text
//! write x.partial ── fsync x.partial ── rename to x ── fsync folder ── answer
//!      crash: swept        crash: swept       crash: x or nothing, whole
//! ```
//!
//! Absent on purpose: a listing that readers believe (which objects belong to a history is written in the database),
//! changing an object, and awaiting: whoever reads over a network does so on a thread of its own.

use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const PARTIAL: &str = ".partial";

/// A place of immutable objects.
pub trait Storage: Send + Sync {
    /// Returns how many bytes the object has.
    ///
    /// Errors: `NotFound` when there is none.
    fn size(&self, name: &str) -> io::Result<u64>;

    /// Returns `length` bytes of the object from `offset` on.
    ///
    /// Errors: `UnexpectedEof` when it is shorter, `NotFound` when there is none.
    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes>;

    /// Makes a new object durable with the bytes that `write` writes; replaces one of the same name.
    ///
    /// Errors: those of `write` and of the storage; then the name is as it was, or has the whole object already and
    /// its durability is in doubt. Doing it anew repairs both.
    fn put(&self, name: &str, write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>) -> Result<()>;

    /// Removes the object, if there is one.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A place that holds objects of its own, and can say which.
pub trait Listable: Storage {
    /// Returns every whole object, in no order: what no history knows any more is found so, and removed.
    fn list(&self) -> io::Result<Vec<StoredObject>>;

    /// Makes a small object durable unless there is one of this name, whatever it holds; says whether it did. A crash may leave a
    /// part of it.
    fn create(&self, name: &str, content: &[u8]) -> io::Result<bool>;

    /// Makes a small object durable in the place of the one of this name, at once: whoever reads finds the one or the other.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()>;
}

/// An object as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// When it was put.
    pub modified: SystemTime,
}

/// Returns whether a name is one plain file name, which is what an object can be called.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && !name.ends_with(PARTIAL)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// A local folder as storage.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Returns the folder as it is, to be read: nothing in it is made or removed. One that is not there holds nothing.
    pub fn as_it_is(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Opens the folder, made if absent, and removes what a crash left unfinished.
    ///
    /// One process at a time writes into a folder; whoever opens it to write calls this first.
    ///
    /// Errors: those of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(PARTIAL) {
                fs::remove_file(entry.path())?;
            } else if is_plain(&name) {
                close_to_others(&entry);
            }
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Returns the path of the object with this name.
    ///
    /// Errors: `InvalidInput` when the name is not one plain file name.
    fn path_of(&self, name: &str) -> io::Result<PathBuf> {
        if is_plain(name) {
            Ok(self.path.join(name))
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }
}

impl Storage for Folder {
    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path_of(name)?)?.len())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        let file = File::open(self.path_of(name)?)?;
        // The length is believed only as far as the file goes: a damaged one must not allocate.
        let left = file.metadata()?.len().saturating_sub(offset);
        if (length as u64) > left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        read_at(&file, &mut bytes, offset)?;
        Ok(bytes.into())
    }

    fn put(&self, name: &str, write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
        let path = self.path_of(name)?;
        let partial = self.path.join(format!("{name}{PARTIAL}"));
        let written = create(&partial).map_err(Error::from).and_then(|file| {
            let mut buffered = io::BufWriter::with_capacity(1 << 20, file);
            write(&mut buffered)?;
            let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(file.sync_all()?)
        });
        if let Err(cause) = written {
            // What remains is swept at the next opening, should this fail too.
            drop(fs::remove_file(&partial));
            return Err(cause);
        }
        fs::rename(&partial, &path)?;
        File::open(&self.path)?.sync_all()?;
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path_of(name)?) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Listable for Folder {
    fn list(&self) -> io::Result<Vec<StoredObject>> {
        let mut stored = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let metadata = match entry.metadata() {
                // Removed since the folder was read.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if metadata.is_file() && is_plain(&name) {
                stored.push(StoredObject {
                    name,
                    modified: metadata.modified()?,
                });
            }
        }
        Ok(stored)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path_of(name)?;
        let partial = self.path.join(format!("{name}{PARTIAL}"));
        let mut file = create(&partial)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&partial, &path)?;
        File::open(&self.path)?.sync_all()
    }

    fn create(&self, name: &str, content: &[u8]) -> io::Result<bool> {
        let mut file = match new_file(&self.path_of(name)?) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            other => other?,
        };
        file.write_all(content)?;
        file.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        Ok(true)
    }
}

/// Takes a file away from everybody but its owner, as far as it is ours to take: copied ones may have come with other modes.
#[cfg(unix)]
fn close_to_others(entry: &fs::DirEntry) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = entry.metadata() else { return };
    let mode = metadata.permissions().mode();
    if metadata.is_file() && mode & 0o177 != 0 {
        let own = fs::Permissions::from_mode(mode & 0o600);
        drop(fs::set_permissions(entry.path(), own));
    }
}

#[cfg(not(unix))]
fn close_to_others(_: &fs::DirEntry) {}

/// Makes a file for its owner alone: events may hold what people wrote.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a file that is not there yet, for its owner alone.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}
