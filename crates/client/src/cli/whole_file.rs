//! Files that are replaced as a whole: a reader, or a machine that loses its power, sees the old or the new one.
//!
//! Keeps MP-3.

use provost_words::durable::{folder_of, sync_folder};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Replaces a file, or makes it, with these permissions whatever the process's mask says.
///
/// The draft stands in the same folder under a name of its own; a path that is a symbolic link is replaced
/// itself, never what it points to.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_file_of(path, bytes, mode, None)
}

/// Replaces a file as [`replace_file`] does, by one of this user and group, which it has before it has its name: whose folder it is can
/// put a link there at any moment, and would be given what that names.
pub(super) fn replace_file_of(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    owner: Option<(u32, u32)>,
) -> io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = folder_of(path);
    let name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".{name}.{}-{number}.new", std::process::id()));
    let written = write(&draft, bytes, mode, owner).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // The draft may hold a token; whatever failed, it must not stay.
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_folder(folder)
}

/// Removes the drafts that kills left of a file whose writers take a lock, which the caller has: each may hold a token.
pub(super) fn remove_drafts(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    let before = format!(".{name}.");
    let is_draft = |found: &str| {
        let numbers = found
            .strip_prefix(&before)
            .and_then(|rest| rest.strip_suffix(".new"));
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        numbers
            .and_then(|numbers| numbers.split_once('-'))
            .is_some_and(|(process, number)| is_number(process) && is_number(number))
    };
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_draft) {
            // One that cannot be removed keeps nobody from writing.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write(draft: &Path, bytes: &[u8], mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    // What a process of the same number left behind when it was killed.
    let _ = fs::remove_file(draft);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    file.write_all(bytes)?;
    if let Some((user, group)) = owner {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (user, group) {
            fchown(&file, Some(user), Some(group))?;
        }
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}
