//! `ends.jsonl` beside the keys: what was taken away, in the order in which it was answered (D12.9). What the lines say is
//! [`crate::ends`]'s; this is the file.
//!
//! ```text
//! {event: since, time}    what was taken away before that instant is in no line
//! {storeId, …}            one or several lines for each commit that takes away, written before it
//! ```
//!
//! Several processes may append, and one of them may put a shorter file in place: whoever appends holds the file's lock and
//! looks whether the file is still the one of its name.
//!
//! Keeps EN-1.

use super::Keys;
use super::checkpoints::{append_to, complete};
use super::folder;
use crate::durable::sync_folder;
use crate::error::{Class, Error, Result};
use crate::time::Timestamp;
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// How long the file may be replaced under somebody who appends, again and again, before that is an error.
const PATIENCE: usize = 16;

impl Keys {
    /// Makes `ends.jsonl` where it is not, and has it say from when on it is whole. Says whether it was made.
    ///
    /// Errors: those of the keys folder.
    pub fn begin_ends(&self, now: Timestamp) -> io::Result<bool> {
        match fs::metadata(folder::ends(&self.dir)) {
            Ok(file) if file.len() > 0 => return Ok(false),
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            Ok(_) | Err(_) => {}
        }
        append(&self.dir, now, &[])?;
        Ok(true)
    }

    /// Appends lines to `ends.jsonl` in one write, durably.
    ///
    /// Errors: `Unavailable`, of a class that refuses the change and leaves the store usable where there is no room or no right to
    /// write; of the class `Broken` after a failed write or sync. The change has not happened.
    pub fn append_ends(&self, now: Timestamp, lines: &[String]) -> Result<()> {
        if lines
            .iter()
            .any(|line| line.is_empty() || line.contains(['\n', '\r']))
        {
            return Err(Error::internal("a line of ends.jsonl must be one line"));
        }
        append(&self.dir, now, lines).map_err(|cause| {
            Error::unavailable(
                "what takes something away cannot be written down beside the keys now, and is not done without; try again",
            )
            .class(class_of(&cause))
            .retry_after(5)
            .caused_by(cause)
        })
    }

    /// Returns the lines of `ends.jsonl`, the oldest first; none when it is not there. A torn last line is left out.
    ///
    /// Errors: those of reading the file.
    pub fn end_lines(&self) -> io::Result<Vec<String>> {
        read(&folder::ends(&self.dir))
    }

    /// Makes `ends.jsonl` of another folder's lines, and says that it is whole from `now` on alone: between the two some may be
    /// missing.
    ///
    /// Errors: those of the keys folder.
    pub fn adopt_ends(&self, now: Timestamp, lines: &[String]) -> io::Result<()> {
        append(&self.dir, now, lines)
    }

    /// Puts a file without the lines in place that `is_kept` refuses, which says that it is whole from `from` on; returns how
    /// many went. Nothing is written where none goes.
    ///
    /// Errors: those of the keys folder; the file is as it was then.
    pub fn trim_ends(&self, from: Timestamp, is_kept: impl Fn(&str) -> bool) -> io::Result<usize> {
        let path = folder::ends(&self.dir);
        let Some(locked) = open_locked(&path, false)? else {
            return Ok(0);
        };
        let lines = read(&path)?;
        let kept: Vec<&String> = lines.iter().filter(|line| is_kept(line)).collect();
        let gone = lines.len() - kept.len();
        if gone == 0 {
            return Ok(0);
        }
        let mut content = since(from);
        content.push('\n');
        for line in kept {
            content.push_str(line);
            content.push('\n');
        }
        let temporary = self.dir.join(".ends.jsonl.tmp");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        sync_folder(&self.dir)?;
        drop(locked);
        Ok(gone)
    }
}

fn since(time: Timestamp) -> String {
    json!({ "event": "since", "time": time }).to_string()
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    // What is no text is a damaged line like another one: whoever reads the lines says so.
    let text = String::from_utf8_lossy(&content[..complete(&content)]);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Opens the file of this name and locks it; nothing where it is not there and is not made.
fn open_locked(path: &Path, is_made: bool) -> io::Result<Option<File>> {
    for _ in 0..PATIENCE {
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(is_made)
            .truncate(false)
            .mode(0o600)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound && !is_made => return Ok(None),
            Err(e) => return Err(e),
        };
        file.lock()?;
        let own = file.metadata()?;
        match fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (own.dev(), own.ino()) => return Ok(Some(file)),
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            // A shorter one was put in its place meanwhile.
            Ok(_) | Err(_) => {}
        }
    }
    Err(io::Error::other("ends.jsonl was replaced again and again"))
}

fn append(dir: &Path, now: Timestamp, lines: &[String]) -> io::Result<()> {
    let path = folder::ends(dir);
    let was_there = path.exists();
    let Some(mut file) = open_locked(&path, true)? else {
        return Err(io::Error::other("ends.jsonl cannot be made"));
    };
    let mut all = Vec::new();
    if file.metadata()?.len() == 0 {
        all.push(since(now));
    }
    all.extend_from_slice(lines);
    if all.is_empty() {
        return Ok(());
    }
    append_to(&mut file, &all.join("\n"))?;
    file.sync_all().map_err(|cause| in_doubt(&cause))?;
    if !was_there {
        sync_folder(dir).map_err(|cause| in_doubt(&cause))?;
    }
    Ok(())
}

/// A sync that failed, whatever the system called it: what it was to keep may be lost.
fn in_doubt(cause: &io::Error) -> io::Error {
    tracing::error!(%cause, "ends.jsonl in the keys folder could not be made durable");
    io::Error::from_raw_os_error(EIO)
}

/// The device's own failure, as every Unix numbers it.
const EIO: i32 = 5;

/// Room and rights may come back. After a failed write or sync nobody knows what the file holds (WK-2).
fn class_of(cause: &io::Error) -> Class {
    if cause.raw_os_error() == Some(EIO) {
        Class::Broken
    } else {
        Class::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves EN-1.
    #[test]
    fn no_room_refuses_and_a_failed_write_or_sync_breaks() {
        for kind in [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::PermissionDenied,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::IsADirectory,
        ] {
            assert_eq!(class_of(&kind.into()), Class::Refused, "{kind:?}");
        }
        assert_eq!(class_of(&io::Error::from_raw_os_error(EIO)), Class::Broken);
        // Whatever a sync failed with.
        assert_eq!(class_of(&in_doubt(&ErrorKind::StorageFull.into())), Class::Broken);
    }
}
