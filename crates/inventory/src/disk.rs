//! Reading files behind a fence: only regular files, only so many bytes, no link that leaves.
//!
//! ```text
//! each part: a mount of another machine? a link? ──► below the fence? ──► each folder opened without following links
//!     ──► regular? small? ──► opened, asked again, read
//! ```
//! A link that is put into the way after the first step is met by the third, which follows none.

use crate::mounts::Mounts;
use crate::seen::Seen;
use aws_lc_rs::digest::{Context, SHA256};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// LIMIT: one file. Ours.
pub(crate) const MAX_FILE: u64 = 2 << 20;
/// Of a large file so much is held at a time. Units: bytes.
const PIECE: usize = 64 << 10;
/// LIMIT: files of a scan. Ours.
const MAX_FILES: usize = 5_000;
/// LIMIT: files of a project, and their bytes: hashing so much is a tenth of a second of a core. Ours.
const MAX_OF_PROJECT: (usize, u64) = (500, 128 << 20);
/// LIMIT: entries of a folder that are looked at. Ours.
const MAX_ENTRIES: usize = 2_000;
/// LIMIT: links on the way to a file: the kernel's.
const MAX_LINKS: usize = 40;

/// Why something was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Fault {
    /// It is no regular file, or the system could not read it.
    Unreadable,
    /// It has more bytes than are read.
    TooLarge,
    /// It is not what its client reads, or a member has another type.
    Malformed,
    /// The system refuses it, or it lies behind a link that leaves the fence, or on another machine.
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

/// A file by its content.
pub(crate) struct FileDigest {
    /// SHA-256, hexadecimal.
    pub(crate) hex: String,
    pub(crate) length: u64,
    /// Whether it names the program that reads it.
    pub(crate) is_script: bool,
    /// The bits of its permissions.
    pub(crate) mode: u32,
}

/// What is read, and how much was.
pub(crate) struct Disk<'a> {
    stop: &'a dyn Fn() -> bool,
    /// Told of each file before it is opened; says whether it is read.
    watch: &'a dyn Fn(&Path) -> bool,
    files: Cell<usize>,
    /// The files and bytes that may still be read of a project; nothing before the first.
    left: Cell<Option<(usize, u64)>>,
    mounts: Mounts,
    /// What was looked at; nothing where nobody wants to know.
    seen: Option<RefCell<Seen>>,
}

impl<'a> Disk<'a> {
    pub(crate) fn new(stop: &'a dyn Fn() -> bool, watch: &'a dyn Fn(&Path) -> bool, mounts: Mounts) -> Self {
        Self {
            stop,
            watch,
            files: Cell::new(0),
            left: Cell::new(None),
            mounts,
            seen: None,
        }
    }

    /// Returns the same, which notes what is looked at, each thing as it is before anything of it is read.
    pub(crate) fn noting(self) -> Self {
        Self {
            seen: Some(RefCell::default()),
            ..self
        }
    }

    /// Returns what was looked at since it is noted.
    pub(crate) fn seen(self) -> Seen {
        self.seen.map(RefCell::into_inner).unwrap_or_default()
    }

    fn see(&self, path: &Path, is_listed: bool) {
        if let Some(seen) = &self.seen {
            seen.borrow_mut().note(path, is_listed);
        }
    }

    /// Begins to read a project, which takes no more than its part of files and time.
    pub(crate) fn begin_project(&self) {
        self.left.set(Some(MAX_OF_PROJECT));
    }

    /// Takes a file out of what may be read of a project.
    fn take(&self, bytes: u64) -> Result<(), Fault> {
        let Some((files, left)) = self.left.get() else {
            return Ok(());
        };
        let (Some(files), Some(left)) = (files.checked_sub(1), left.checked_sub(bytes)) else {
            return Err(Fault::Truncated);
        };
        self.left.set(Some((files, left)));
        Ok(())
    }

    /// Says whether time is up.
    pub(crate) fn is_over(&self) -> bool {
        (self.stop)()
    }

    /// Returns where a path leads; `None` where there is nothing. No part of it is touched before it is known that it lies on no other
    /// machine.
    pub(crate) fn resolved(&self, path: &Path) -> Result<Option<PathBuf>, Fault> {
        let not_a_link = rustix::io::Errno::INVAL.raw_os_error();
        let path = std::path::absolute(path).map_err(|error| fault(&error))?;
        let mut waiting = parts(&path);
        let (mut at, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = waiting.pop() {
            let next = match Path::new(&part).components().next() {
                Some(Component::RootDir) => PathBuf::from("/"),
                Some(Component::ParentDir) => at.parent().unwrap_or(&at).to_owned(),
                Some(Component::Normal(name)) => at.join(name),
                _ => continue,
            };
            if self.mounts.lies_elsewhere(&next) {
                return Err(Fault::NotPermitted);
            }
            self.see(&next, false);
            match std::fs::read_link(&next) {
                Ok(_) if links == MAX_LINKS => return Err(Fault::Unreadable),
                Ok(target) => {
                    links += 1;
                    waiting.extend(parts(&target));
                }
                Err(error) if error.raw_os_error() == Some(not_a_link) => at = next,
                Err(error) if is_nothing(&error) => return Ok(None),
                Err(error) => return Err(fault(&error)),
            }
        }
        Ok(Some(at))
    }

    /// Returns what is at a path itself, also if it is a link.
    pub(crate) fn kind(&self, path: &Path) -> Result<std::fs::FileType, Fault> {
        if self.mounts.lies_elsewhere(path) {
            return Err(Fault::NotPermitted);
        }
        self.see(path, false);
        let kind = path.symlink_metadata().map_err(|error| fault(&error))?;
        Ok(kind.file_type())
    }

    /// Says whether something may be at a path, also a link; what cannot be looked at may be there.
    pub(crate) fn has(&self, path: &Path) -> bool {
        if self.mounts.lies_elsewhere(path) {
            return true;
        }
        self.see(path, false);
        let found = path.symlink_metadata();
        found.err().is_none_or(|error| !is_nothing(&error))
    }

    fn behind(&self, path: &Path, fence: &Path) -> Result<Option<PathBuf>, Fault> {
        match self.resolved(path)? {
            Some(path) if !path.starts_with(fence) => Err(Fault::NotPermitted),
            path => Ok(path),
        }
    }

    /// Opens a file: the one way to the content of any.
    fn open(&self, path: &Path, fence: &Path, max: u64) -> Result<Option<(File, u32)>, Fault> {
        let Some(path) = self.behind(path, fence)? else {
            return Ok(None);
        };
        if self.is_over() || self.files.replace(self.files.get() + 1) >= MAX_FILES {
            return Err(Fault::Truncated);
        }
        if !(self.watch)(&path) {
            return Err(Fault::Truncated);
        }
        let (file, stat) = opened(&path, fence)?;
        if stat.st_size.cast_unsigned() > max {
            return Err(Fault::TooLarge);
        }
        self.take(stat.st_size.cast_unsigned())?;
        Ok(Some((File::from(file), stat.st_mode & 0o777)))
    }

    /// Returns the digest of a file behind a fence, whose path is canonical; `None` where there is none. It may be a large one, which is
    /// never held as a whole.
    pub(crate) fn digest(&self, path: &Path, fence: &Path, max: u64) -> Result<Option<FileDigest>, Fault> {
        let Some((mut file, mode)) = self.open(path, fence, max)? else {
            return Ok(None);
        };
        let (mut context, mut piece) = (Context::new(&SHA256), vec![0; PIECE]);
        let (mut length, mut is_script) = (0, false);
        loop {
            let count = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Fault::Unreadable),
            };
            is_script |= length == 0 && piece[..count].starts_with(b"#!");
            length += count as u64;
            if length > max {
                return Err(Fault::TooLarge);
            }
            if self.is_over() {
                return Err(Fault::Truncated);
            }
            context.update(&piece[..count]);
        }
        let mut hex = String::with_capacity(64);
        for byte in context.finish().as_ref() {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Ok(Some(FileDigest {
            hex,
            length,
            is_script,
            mode,
        }))
    }

    /// Returns a file behind a fence, whose path is canonical; `None` where there is none.
    pub(crate) fn read(&self, path: &Path, fence: &Path, max: u64) -> Result<Option<Content>, Fault> {
        let Some((file, mode)) = self.open(path, fence, max)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let limit = max.saturating_add(1);
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|_| Fault::Unreadable)?;
        if bytes.len() as u64 > max {
            return Err(Fault::TooLarge);
        }
        Ok(Some(Content { bytes, mode }))
    }

    /// Returns the names in a folder behind a fence, in their order; none where there is no folder. A name that is no UTF-8 is left
    /// out: no client writes one.
    pub(crate) fn names(&self, folder: &Path, fence: &Path) -> Result<Vec<String>, Fault> {
        let entries = self.entries(folder, fence)?;
        Ok(entries
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect())
    }

    /// Returns the names in a folder as [`Self::names`] does, where each can be written in a line.
    ///
    /// Errors: `Malformed` for one that is no UTF-8 or has a line feed.
    pub(crate) fn every_name(&self, folder: &Path, fence: &Path) -> Result<Vec<String>, Fault> {
        let entries = self.entries(folder, fence)?;
        let written = |name: OsString| name.into_string().ok().filter(|name| !name.contains('\n'));
        let names: Option<Vec<String>> = entries.into_iter().map(written).collect();
        names.ok_or(Fault::Malformed)
    }

    fn entries(&self, folder: &Path, fence: &Path) -> Result<Vec<OsString>, Fault> {
        let Some(folder) = self.behind(folder, fence)? else {
            return Ok(Vec::new());
        };
        if self.is_over() {
            return Err(Fault::Truncated);
        }
        self.see(&folder, true);
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
            names.push(entry.file_name());
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

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns the parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts.map(|part| part.as_os_str().to_owned()).collect()
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

/// Says whether a file lies on another machine: reading it would connect. The list of mounts was asked before; this meets what was
/// mounted since.
#[cfg(target_os = "linux")]
fn lies_elsewhere(file: &OwnedFd) -> bool {
    /// NFS, SMB, CIFS, SMB 2, AFS, Coda, Ceph, 9P, FUSE, autofs (`linux/magic.h`).
    const NETWORKS: [u32; 10] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x7375_7245,
        0x00c3_6400,
        0x0102_1997,
        0x6573_5546,
        0x0187,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves IV-1.
    #[test]
    fn what_lies_on_another_machine_is_not_touched() {
        let place = std::env::temp_dir().join(format!("provost-inventory-mounts-{}", std::process::id()));
        std::fs::create_dir_all(place.join("far/below")).unwrap();
        std::fs::write(place.join("far/below/file"), "x").unwrap();
        let place = place.canonicalize().unwrap();
        std::os::unix::fs::symlink("far/below", place.join("link")).unwrap();
        let list = format!("1 0 0:1 / {}/far rw - nfs4 server:/ rw\n", place.display());
        let disk = Disk::new(&|| false, &|_| true, Mounts::listed(list.as_bytes()));
        for path in [
            "far",
            "far/below",
            "far/below/file",
            "far/none",
            "link",
            "link/file",
        ] {
            let path = place.join(path);
            let refused = Some(Fault::NotPermitted);
            assert_eq!(disk.resolved(&path).err(), refused, "{path:?}");
            assert_eq!(disk.names(&path, &place).err(), refused, "{path:?}");
            assert_eq!(disk.read(&path, &place, 9).err(), refused, "{path:?}");
        }
        assert_eq!(disk.kind(&place.join("far")).err(), Some(Fault::NotPermitted));
        let plain = Disk::new(&|| false, &|_| true, Mounts::listed(b""));
        for path in ["link/file", "link/../below/./file", "far/below/file"] {
            let (path, wanted) = (place.join(path), place.join("far/below/file"));
            assert_eq!(plain.resolved(&path), Ok(Some(wanted)), "{path:?}");
        }
        assert_eq!(plain.resolved(&place.join("link/file/none")), Ok(None));
        let large = place.join("large");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let bytes = vec![b'x'; length];
            std::fs::write(&large, &bytes).unwrap();
            let digest = plain.digest(&large, &place, 4 << 20).unwrap().unwrap();
            assert_eq!(digest.hex, provost_words::digest::sha256_hex(&bytes), "{length}");
            assert_eq!(digest.length, length as u64);
        }
        let most = 3 * PIECE as u64;
        assert_eq!(plain.digest(&large, &place, most).err(), Some(Fault::TooLarge));
        std::os::unix::fs::symlink("circle", place.join("circle")).unwrap();
        assert_eq!(plain.resolved(&place.join("circle")), Err(Fault::Unreadable));
        std::fs::remove_dir_all(&place).unwrap();
    }
}
