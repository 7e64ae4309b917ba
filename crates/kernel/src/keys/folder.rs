//! The folder: names, modes and durable, private, never overwriting writes.

use super::key::{Key, KeyFile, parse_id};
use super::setup;
use crate::durable::{make_folder, sync_folder};
use crate::entropy::{Entropy, SystemEntropy};
use crate::error::{Class, Code, Error, Result};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// LIMIT: a key file has some 130 bytes; what is larger is something else.
const FILE_LIMIT: u64 = 4096;

/// What the name of the mark of a key that waits ends with.
const PENDING: &str = ".pending";

/// Creates the folder for its owner alone, or checks the one that is there.
pub(super) fn make(dir: &Path) -> Result<()> {
    make_folder(dir).map_err(|e| setup("the keys folder cannot be created").caused_by(e))?;
    check(dir)
}

/// Checks that the folder is there and private.
pub(super) fn check(dir: &Path) -> Result<()> {
    let metadata = match fs::metadata(dir) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(setup("the keys folder is missing").caused_by(e));
        }
        Err(e) => return Err(setup("the keys folder cannot be read").caused_by(e)),
    };
    if !metadata.is_dir() {
        return Err(setup("the keys folder is not a folder"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(setup("the keys folder is open to others; give it mode 0700"));
    }
    Ok(())
}

/// Waits until no other process makes keys in the folder, and keeps others out until it is dropped.
pub(super) fn lock(dir: &Path) -> Result<File> {
    let locked = File::open(dir).and_then(|folder| folder.lock().map(|()| folder));
    locked.map_err(|e| setup("the keys folder cannot be locked").caused_by(e))
}

/// Returns the names of the long-lived keys' files, sorted.
pub(super) fn key_names(dir: &Path) -> Result<Vec<String>> {
    let names = names(dir)?.into_iter();
    Ok(names
        .filter(|name| name.strip_suffix(".key").is_some_and(|id| parse_id(id).is_some()))
        .collect())
}

/// Returns the names of everything in the folder, sorted.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let listed = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let listed = listed.map_err(|e| setup("the keys folder cannot be read").caused_by(e))?;
    let mut names: Vec<_> = listed
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Reads the long-lived key in a file of this name.
pub(super) fn read(dir: &Path, name: &str) -> Result<Key> {
    let id = name.strip_suffix(".key").unwrap_or(name);
    let Some(content) = read_private(dir, name)? else {
        return Err(setup(format!("the key {id} is missing from the keys folder")));
    };
    let file: KeyFile = serde_json::from_slice(&content)
        // The parser's words may quote the file, so they are not kept.
        .map_err(|_| setup(format!("the key {id} in the keys folder is malformed")))?;
    if file.id != id {
        return Err(setup(format!(
            "the key {id} in the keys folder says that it is another key"
        )));
    }
    Key::from_file(&file)
}

/// Adds a long-lived key. One that is there is never overwritten.
pub(super) fn add(dir: &Path, key: &Key) -> Result<()> {
    let mut content = Zeroizing::new(Vec::with_capacity(256));
    serde_json::to_writer(&mut *content, &key.to_file()).map_err(crate::Error::internal)?;
    content.push(b'\n');
    if create_private(dir, &format!("{}.key", key.id), &content)? {
        return Ok(());
    }
    Err(setup(format!("the key {} is already in the keys folder", key.id)))
}

/// Returns the names of the long-lived keys' files, and the ids that are marked as waiting.
///
/// ```text
/// rotate      mark, then key       the second look at the marks sees it
/// give up     key, then mark away  the first look saw the mark, or the key is gone
/// activate    mark away            neither look sees it
/// ```
pub(super) fn key_names_and_marks(dir: &Path) -> Result<(Vec<String>, BTreeSet<String>)> {
    let mut marked = pending(dir)?;
    let names = key_names(dir)?;
    marked.extend(pending(dir)?);
    Ok((names, marked))
}

/// Returns the ids that are marked as waiting. A mark without its key means nothing.
fn pending(dir: &Path) -> Result<BTreeSet<String>> {
    let names = names(dir)?.into_iter();
    let marked = |name: String| name.strip_suffix(PENDING).map(str::to_owned);
    Ok(names
        .filter_map(marked)
        .filter(|id| parse_id(id).is_some())
        .collect())
}

/// Marks a key as waiting, durably.
pub(super) fn mark_pending(dir: &Path, id: &str) -> Result<()> {
    let mark = format!("{id}{PENDING}");
    create_private(dir, &mark, b"This key waits for `provost keys activate`.\n").map(drop)
}

/// Takes the mark off a key, durably. One that has none is fine.
pub(super) fn unmark_pending(dir: &Path, id: &str) -> Result<()> {
    let removed = match fs::remove_file(dir.join(format!("{id}{PENDING}"))) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => sync_folder(dir),
    };
    removed.map_err(|e| {
        setup(format!(
            "the mark of the key {id} in the keys folder cannot be taken away"
        ))
        .caused_by(e)
    })
}

/// Returns the content of a file that only its owner may read, or `None` when it is not there.
pub(super) fn read_private(dir: &Path, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let id = name.strip_suffix(".key").unwrap_or(name);
    let unreadable = |e| setup(format!("the key {id} in the keys folder cannot be read")).caused_by(e);
    let file = match File::open(dir.join(name)) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.mode() & 0o077 != 0 {
        return Err(setup(format!(
            "the key {id} in the keys folder is open to others; give it mode 0600"
        )));
    }
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return Err(setup(format!("the key {id} in the keys folder is malformed")));
    }
    let mut content = Zeroizing::new(Vec::with_capacity(8192));
    file.take(FILE_LIMIT)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    Ok(Some(content))
}

/// Creates a private file, durable and complete or not at all; returns whether it was this call.
///
/// ```text
/// temporary name, 0600, O_EXCL → write → fsync → link to the name → unlink the temporary name → fsync folder
/// ```
///
/// `link` instead of `rename`, because it refuses a name that is taken: of two processes that make the
/// same day's key, one wins and the other reads the winner's.
pub(super) fn create_private(dir: &Path, name: &str, content: &[u8]) -> Result<bool> {
    let temporary = dir.join(temporary_name(name));
    let outcome =
        write_temporary(&temporary, content).and_then(|()| fs::hard_link(&temporary, dir.join(name)));
    let removed = fs::remove_file(&temporary);
    // Once the name is there, what fails leaves open whether it lasts: that is no matter of room any more.
    let created = match outcome {
        Ok(()) => removed.map(|()| true).map_err(io::Error::other),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => removed.map(|()| false).map_err(io::Error::other),
        Err(e) => Err(e),
    };
    // The loser of a race also waits until the winner's name is durable before it uses the key.
    created
        .and_then(|created| sync_folder(dir).map(|()| created).map_err(io::Error::other))
        .map_err(unwritable)
}

/// Writes a file to the folder and removes it again.
///
/// Errors: as [`create_private`]; a folder that can only be read says so.
pub(super) fn try_to_write(dir: &Path) -> Result<()> {
    let temporary = dir.join(temporary_name("writable"));
    let written = write_temporary(&temporary, b"provost");
    let removed = fs::remove_file(&temporary);
    match written.and(removed) {
        Ok(()) => Ok(()),
        Err(e) if matches!(e.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            Err(setup(
                "the keys folder cannot be written to; a server makes a key in it each day: mount it for writing, for its owner \
                 alone",
            )
            .caused_by(e))
        }
        Err(e) => Err(unwritable(e)),
    }
}

/// Refuses what needs the key. Where there is no room nothing was made and nothing is in doubt; whoever asks again when there is
/// room is served.
pub(super) fn unwritable(error: io::Error) -> Error {
    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        return Error::unavailable("the keys folder is full; an operator must make room on its disk")
            .class(Class::Refused)
            .retry_after(30)
            .caused_by(error);
    }
    setup("a key cannot be written to the keys folder").caused_by(error)
}

/// Says whether an error is that of a folder without room.
pub(super) fn is_full(error: &Error) -> bool {
    error.code() == Code::Unavailable
}

fn write_temporary(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Returns `.<name>.<random>.tmp`; the random part keeps processes and machines apart.
fn temporary_name(name: &str) -> String {
    let seed = SystemEntropy.seed();
    let random = u64::from_le_bytes([
        seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6], seed[7],
    ]);
    format!(".{name}.{random:016x}.tmp")
}

/// Overwrites a file with zeros, durably, and unlinks it. A file that is gone already is fine.
///
/// On a copy-on-write file system the old blocks outlive the overwriting; the unlinking still holds.
pub(super) fn destroy(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let zeros = vec![0; usize::try_from(file.metadata()?.len().min(FILE_LIMIT)).unwrap_or(0)];
    file.write_all(&zeros)?;
    file.sync_all()?;
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Returns the path of `checkpoints.jsonl`.
pub(super) fn checkpoints(dir: &Path) -> PathBuf {
    dir.join("checkpoints.jsonl")
}

/// Returns the path of `ends.jsonl`.
pub(super) fn ends(dir: &Path) -> PathBuf {
    dir.join("ends.jsonl")
}
