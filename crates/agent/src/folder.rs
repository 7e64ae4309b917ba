//! The folder of the agent, and files in it.
//!
//! Keeps AG-4.

use crate::device::DeviceFile;
use crate::trouble::{Cause, ENROL, Trouble};
use crate::units::systemctl;
use provost_words::durable::{make_folder, sync_folder};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// LIMIT: bytes of a file of the agent that is no report. Ours.
const MAX_FILE: u64 = 1 << 20;

/// A folder that was looked at.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Held while one process works in the folder.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Folder {
    /// Takes a folder that is there.
    ///
    /// Errors: folder, when it is not there, a link, somebody else's or open to others.
    pub fn open(path: &Path) -> Result<Self, Trouble> {
        let shown = path.display();
        let found = fs::symlink_metadata(path).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                Trouble::new(
                    Cause::Enrolment,
                    format!("{shown} is not there: this machine is not enrolled"),
                )
                .fix(ENROL)
            } else {
                disk(path, "look at", &error)
            }
        })?;
        if !found.is_dir() {
            let what = if found.is_symlink() { "a link" } else { "no folder" };
            return Err(Trouble::new(
                Cause::Folder,
                format!("{shown} is {what}, and the agent keeps its key in a folder alone"),
            )
            .fix(format!("move it away: mv {shown} {shown}.old")));
        }
        check(path, &found)?;
        Ok(Self(path.to_owned()))
    }

    /// Takes a folder, which is made for its owner alone where it is missing.
    ///
    /// Errors: as for [`Self::open`], and disk.
    pub fn make(path: &Path) -> Result<Self, Trouble> {
        if let Err(error) = fs::symlink_metadata(path)
            && error.kind() == ErrorKind::NotFound
        {
            make_folder(path).map_err(|error| disk(path, "make", &error))?;
        }
        Self::open(path)
    }

    /// Returns the folder inside, made where it is missing.
    ///
    /// Errors: as for [`Self::make`].
    pub fn below(&self, name: &str) -> Result<Self, Trouble> {
        Self::make(&self.0.join(name))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns what a file holds; `None` where there is none.
    ///
    /// Errors: folder, for a link, another's file, one that others can read, or one that is too long; disk.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Trouble> {
        self.read_up_to(name, MAX_FILE)
    }

    pub(crate) fn read_up_to(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Trouble> {
        let path = self.file(name);
        let Some(file) = open(&path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| disk(&path, "read", &error))?;
        if bytes.len() as u64 > most {
            let line = format!(
                "{} has more than {most} bytes, which no file of the agent has",
                path.display()
            );
            return Err(Trouble::new(Cause::Folder, line));
        }
        Ok(Some(bytes))
    }

    /// Makes a file that is whole when it has its name.
    ///
    /// Errors: disk, and `AlreadyExists` among them when there is such a file.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        // A link to a whole draft is made or refused at once; an exclusive open could leave an empty file behind a kill.
        self.place(name, bytes, |draft, path| {
            fs::hard_link(draft, path)?;
            fs::remove_file(draft)
        })
    }

    /// Replaces a file as a whole, or makes it.
    ///
    /// Errors: disk.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.place(name, bytes, |draft, path| fs::rename(draft, path))
    }

    fn place(
        &self,
        name: &str,
        bytes: &[u8],
        put: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), Trouble> {
        let (draft, path) = (self.file(&draft_of(name)), self.file(name));
        let written = write(&draft, bytes).and_then(|()| put(&draft, &path));
        if written.is_err() {
            // The draft may hold a key or a token: whatever failed, it must not stay.
            let _ = fs::remove_file(&draft);
        }
        written
            .and_then(|()| sync_folder(&self.0))
            .map_err(|error| disk(&path, "write", &error))
    }

    /// Writes over the beginning of a file in its place, which needs no room on the disk, and says whether there is such a file. What is
    /// shorter than a sector of the disk is there wholly or not at all.
    ///
    /// Errors: folder, disk.
    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<bool, Trouble> {
        let path = self.file(name);
        let file = match options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(disk(&path, "open", &error)),
        };
        check_file(&path, &file)?;
        file.write_all_at(bytes, 0)
            .and_then(|()| file.sync_data())
            .map_err(|error| disk(&path, "write", &error))?;
        Ok(true)
    }

    /// Opens a file that is there, to write over it.
    ///
    /// Errors: folder, disk.
    pub(crate) fn rewrite(&self, name: &str) -> Result<File, Trouble> {
        let path = self.file(name);
        let file = options().write(true).open(&path);
        let file = file.map_err(|error| disk(&path, "open", &error))?;
        check_file(&path, &file)?;
        Ok(file)
    }

    /// Gives a file another name in the folder, in the place of what has it.
    ///
    /// Errors: disk.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Trouble> {
        let path = self.file(from);
        fs::rename(&path, self.file(to))
            .and_then(|()| sync_folder(&self.0))
            .map_err(|error| disk(&path, "rename", &error))
    }

    /// Takes a file out of another folder, in the place of what has its name here.
    ///
    /// Errors: disk.
    pub(crate) fn take(&self, from: &Self, name: &str) -> Result<(), Trouble> {
        let path = from.file(name);
        fs::rename(&path, self.file(name))
            .and_then(|()| sync_folder(&self.0))
            .and_then(|()| sync_folder(&from.0))
            .map_err(|error| disk(&path, "rename", &error))
    }

    /// Removes a file that may be there.
    ///
    /// Errors: disk.
    pub fn remove(&self, name: &str) -> Result<(), Trouble> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(disk(&path, "remove", &error)),
            _ => Ok(()),
        }
    }

    /// Returns the names in it, in their order.
    ///
    /// Errors: disk.
    pub fn names(&self) -> Result<Vec<String>, Trouble> {
        let listed = fs::read_dir(&self.0).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<Vec<_>>>()
        });
        let mut names = listed.map_err(|error| disk(&self.0, "list", &error))?;
        names.sort();
        Ok(names)
    }

    /// Returns how somebody gets room beside an agent that works here.
    fn waiting(&self) -> String {
        match DeviceFile::load(self) {
            Ok(Some(device)) => format!(
                "wait for it, or stop it: {} stop provost-agent where it is the service, Ctrl-C in its terminal where somebody started it there",
                systemctl(device.mode)
            ),
            // One that enrols, which is no service.
            Ok(None) | Err(_) => "wait for it, or end the command that runs there".to_owned(),
        }
    }

    /// Keeps other processes of the agent out of the folder.
    ///
    /// Errors: busy, when one works there; folder and disk.
    pub fn lock(&self) -> Result<Lock, Trouble> {
        let path = self.file("lock");
        let opened = options().read(true).write(true).create(true).open(&path);
        let file = opened.map_err(|error| disk(&path, "open", &error))?;
        check_file(&path, &file)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Trouble::new(
                Cause::Busy,
                format!("another agent works in {}", self.0.display()),
            )
            .fix(self.waiting())),
            Err(TryLockError::Error(error)) => Err(disk(&path, "lock", &error)),
        }
    }
}

/// Returns the name under which a file is written.
pub(crate) fn draft_of(name: &str) -> String {
    format!(".{name}.new")
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

fn open(path: &Path) -> Result<Option<File>, Trouble> {
    let file = match options().read(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            let line = format!("{} is a link, and the agent follows none", path.display());
            return Err(Trouble::new(Cause::Folder, line).fix(format!("remove it: rm {}", path.display())));
        }
        Err(error) => return Err(disk(path, "open", &error)),
    };
    check_file(path, &file)?;
    Ok(Some(file))
}

fn check_file(path: &Path, file: &File) -> Result<(), Trouble> {
    let found = file.metadata().map_err(|error| disk(path, "look at", &error))?;
    if !found.is_file() {
        let line = format!("{} is no regular file", path.display());
        return Err(
            Trouble::new(Cause::Folder, line).fix(format!("move it away: mv {0} {0}.old", path.display()))
        );
    }
    check(path, &found)
}

/// INVARIANT AG-4: the owner is the account of the process, and nobody else has a bit.
fn check(path: &Path, found: &Metadata) -> Result<(), Trouble> {
    let shown = path.display();
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner != own {
        let line = format!("{shown} belongs to the account {owner}, and the agent runs as {own}");
        // The folder holds the key of a machine: nobody is told to give that to an account which does not have it.
        let fix = if owner == 0 {
            "run the command as root: sudo provost agent …".to_owned()
        } else {
            format!(
                "run the command as the account {owner}, whose agent it is, or name another folder with --state-dir"
            )
        };
        return Err(Trouble::new(Cause::Folder, line).fix(fix));
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let wanted = if found.is_dir() { "700" } else { "600" };
        let line = format!("{shown} is open to other accounts of this machine (mode {mode:o})");
        return Err(Trouble::new(Cause::Folder, line).fix(format!(
            "chmod {wanted} {shown}; if somebody else may have read a key there, have the device retired and enrol with --anew"
        )));
    }
    Ok(())
}

fn write(draft: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a process that was killed left behind.
    let _ = fs::remove_file(draft);
    let mut file = options().write(true).create_new(true).open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn disk(path: &Path, what: &str, error: &io::Error) -> Trouble {
    let trouble = Trouble::new(Cause::Disk, format!("cannot {what} {}: {error}", path.display()));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => trouble.fix("make room on the disk"),
        ErrorKind::PermissionDenied => trouble.fix("run the agent as the account that owns the folder"),
        _ => trouble,
    }
}
