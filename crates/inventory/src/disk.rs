//! Reading files behind a fence: only regular files, only so many bytes, no link that leaves.
//!
//! ```text
//! canonical path ──► below the fence? ──► each folder opened without following links ──► regular? small? ──► opened, asked again, read
//! ```
//! A link that is put into the way after the first step is met by the third, which follows none.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use serde::Serialize;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// LIMIT: one file. Ours.
pub(crate) const MAX_FILE: u64 = 2 << 20;
/// LIMIT: files of a scan. Ours.
const MAX_FILES: usize = 5_000;
/// LIMIT: entries of a folder that are looked at. Ours.
const MAX_ENTRIES: usize = 2_000;

/// Why something was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It is no regular file, or the system could not read it.
    Unreadable,
    /// It has more bytes than are read.
    TooLarge,
    /// It is not what its client reads, or a member has another type.
    Malformed,
    /// The system refuses it, or it lies behind a link that leaves the fence.
    NotPermitted,
    /// A limit of the scan stopped it.
    Truncated,
}

/// A file that was read.
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// The bits of its permissions.
    pub(crate) mode: u32,
}

/// What is read, and how much was.
pub(crate) struct Disk<'a> {
    stop: &'a dyn Fn() -> bool,
    files: Cell<usize>,
}

impl<'a> Disk<'a> {
    pub(crate) fn new(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            stop,
            files: Cell::new(0),
        }
    }

    /// Returns a file behind a fence, whose path is canonical; `None` where there is none.
    pub(crate) fn read(&self, path: &Path, fence: &Path, max: u64) -> Result<Option<Content>, Fault> {
        let Some(path) = behind(path, fence)? else {
            return Ok(None);
        };
        if (self.stop)() || self.files.replace(self.files.get() + 1) >= MAX_FILES {
            return Err(Fault::Truncated);
        }
        let (file, stat) = opened(&path, fence)?;
        if stat.st_size.cast_unsigned() > max {
            return Err(Fault::TooLarge);
        }
        let mut bytes = Vec::new();
        let limit = max.saturating_add(1);
        File::from(file)
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|_| Fault::Unreadable)?;
        if bytes.len() as u64 > max {
            return Err(Fault::TooLarge);
        }
        let mode = stat.st_mode & 0o777;
        Ok(Some(Content { bytes, mode }))
    }

    /// Returns the names in a folder behind a fence, in their order; none where there is no folder. A name that is no UTF-8 is left
    /// out: no client writes one.
    pub(crate) fn names(&self, folder: &Path, fence: &Path) -> Result<Vec<String>, Fault> {
        let Some(folder) = behind(folder, fence)? else {
            return Ok(Vec::new());
        };
        if (self.stop)() {
            return Err(Fault::Truncated);
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Vec::new()),
            Err(error) => return Err(fault(&error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            if names.len() == MAX_ENTRIES {
                return Err(Fault::Truncated);
            }
            let entry = entry.map_err(|error| fault(&error))?;
            names.extend(entry.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }
}

fn fault(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::PermissionDenied => Fault::NotPermitted,
        _ => Fault::Unreadable,
    }
}

/// Returns where a path leads; `None` where there is nothing.
fn behind(path: &Path, fence: &Path) -> Result<Option<PathBuf>, Fault> {
    match path.canonicalize() {
        Ok(path) if path.starts_with(fence) => Ok(Some(path)),
        Ok(_) => Err(Fault::NotPermitted),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(fault(&error)),
    }
}

/// Opens a regular file, following no link below the fence.
fn opened(path: &Path, fence: &Path) -> Result<(OwnedFd, Stat), Fault> {
    let refused = |error: rustix::io::Errno| fault(&io::Error::from(error));
    let below = path.strip_prefix(fence).map_err(|_| Fault::NotPermitted)?;
    let name = below.file_name().ok_or(Fault::Unreadable)?;
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = open(fence, folder, Mode::empty()).map_err(refused)?;
    for part in below.parent().into_iter().flat_map(Path::components) {
        at = openat(&at, part.as_os_str(), folder, Mode::empty()).map_err(refused)?;
    }
    let is_regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    // A pipe or a device is not even opened: opening one can wake who waits at the other end.
    if !is_regular(&statat(&at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(refused)?) {
        return Err(Fault::Unreadable);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&at, name, flags, Mode::empty()).map_err(refused)?;
    let stat = fstat(&file).map_err(refused)?;
    if !is_regular(&stat) {
        return Err(Fault::Unreadable);
    }
    if lies_elsewhere(&file) {
        return Err(Fault::NotPermitted);
    }
    Ok((file, stat))
}

/// Says whether a file lies on another machine: reading it would connect.
#[cfg(target_os = "linux")]
fn lies_elsewhere(file: &OwnedFd) -> bool {
    /// NFS, SMB, CIFS, SMB 2, AFS, Coda, Ceph (`linux/magic.h`).
    const NETWORKS: [u32; 7] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x7375_7245,
        0x00c3_6400,
    ];
    let kind = rustix::fs::fstatfs(file).map(|stat| stat.f_type);
    // The kernel's numbers have 32 bits; the type of the member differs by architecture.
    kind.is_ok_and(|kind| {
        NETWORKS
            .iter()
            .any(|network| i128::from(kind) & 0xffff_ffff == i128::from(*network))
    })
}

#[cfg(not(target_os = "linux"))]
fn lies_elsewhere(_: &OwnedFd) -> bool {
    false
}
