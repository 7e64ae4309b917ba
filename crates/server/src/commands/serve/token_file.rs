//! A file that waits for the token of the first admin: new, its owner's alone, and never one that holds something.

use crate::commands::failure::Failure;
use provost_kernel::Secret;
use provost_kernel::durable::{folder_of, sync_folder};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is tried again to take a file that another server holds.
const AGAIN: Duration = Duration::from_millis(50);

/// LIMIT: more than any token (D2.1).
const MAX_BYTES: u64 = 8 << 10;

/// A file that waits for the token, and that no other server writes into until this is dropped.
pub struct TokenFile {
    path: PathBuf,
    file: File,
}

impl TokenFile {
    /// Makes the file, or takes an empty one that a start has left which ended too early; `None` where it holds something, the token
    /// of another server perhaps that starts on the same store.
    ///
    /// Errors: a file that is a link, somebody else's, or open to others.
    pub async fn create(path: &Path) -> Result<Option<Self>, Failure> {
        loop {
            let opened = open(path, OpenOptions::new().create_new(true));
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && is_ours(path) => {
                    match open(path, &mut OpenOptions::new()) {
                        Ok(file) => file,
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        Err(error) => return Err(unmade(path, &error)),
                    }
                }
                Err(error) => return Err(unmade(path, &error)),
            };
            lock(&file, path).await?;
            let found = file.metadata().map_err(|error| unmade(path, &error))?;
            if !is_still(path, &found) {
                // The one who held it has removed it.
                continue;
            }
            if found.len() > 0 {
                return Ok(None);
            }
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            return Ok(Some(Self { path, file }));
        }
    }

    /// Removes the file, which holds nothing.
    pub fn discard(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!("the empty file {} is left behind: {error}", self.path.display());
        }
    }

    /// Writes the token durably and returns where it is. After an error the file is empty again, if that is possible.
    pub fn keep(mut self, token: &Secret<String>) -> Result<PathBuf, Failure> {
        let line = Secret::new(format!("{}\n", token.expose()));
        let written = self
            .file
            .write_all(line.expose().as_bytes())
            .and_then(|()| self.file.sync_all())
            .and_then(|()| sync_folder(folder_of(&self.path)));
        written.map_err(|error| {
            drop(self.file.set_len(0));
            Failure::of_file("the first token cannot be written to", &self.path, &error)
        })?;
        Ok(self.path)
    }
}

/// Says whether a file was made for a token and holds none, while nobody is about to write it.
pub fn is_unwritten(path: &Path) -> bool {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let Some(mut file) = File::open(path).ok().filter(|_| is_file) else {
        return false;
    };
    let mut text = Vec::new();
    file.try_lock().is_ok()
        && Read::by_ref(&mut file)
            .take(MAX_BYTES)
            .read_to_end(&mut text)
            .is_ok()
        // A power loss may leave a length without what was written.
        && text.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

/// The refusal of a file that holds something.
pub fn occupied(path: &Path) -> Failure {
    unmade(path, &std::io::Error::from(ErrorKind::AlreadyExists))
}

fn unmade(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of_file("the bootstrap token file cannot be made", path, error)
}

fn open(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(no_link)
        .open(path)
}

/// Says whether a file may be one that an earlier start has left: empty or just being written, of this user, and of nobody else. Whoever
/// could open it now could read the token later.
fn is_ours(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_file()
            && found.nlink() == 1
            && found.mode() & 0o777 == 0o600
            && found.uid() == rustix::process::geteuid().as_raw()
    })
}

fn is_still(path: &Path, found: &Metadata) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (found.dev(), found.ino()))
}

/// Waits until no other server has the file.
async fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(AGAIN).await,
            Err(TryLockError::Error(error)) => return Err(unmade(path, &error)),
        }
    }
}
