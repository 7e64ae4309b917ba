//! Writing a package to the file system.

use super::Package;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes a package as a new folder.
pub(super) fn unpack(package: &Package, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} already exists", to.display()),
        ));
    }
    let draft = draft_of(to)?;
    remove_leftover(&draft)?;
    // INVARIANT SP-4: the place shows nothing until everything is written and durable.
    let done = write(package, &draft).and_then(|()| fs::rename(&draft, to));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = remove_leftover(&draft);
        return done;
    }
    sync(parent_of(to))
}

/// Removes what an interrupted run left.
pub(super) fn remove_draft(to: &Path) -> io::Result<()> {
    remove_leftover(&draft_of(to)?)
}

/// Returns the folder beside `to` where it is prepared.
fn draft_of(to: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(to.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    name.push(".provost-new");
    Ok(to.with_file_name(name))
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn remove_leftover(draft: &Path) -> io::Result<()> {
    match fs::remove_dir_all(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write(package: &Package, draft: &Path) -> io::Result<()> {
    let mut folders = BTreeSet::from([draft.to_owned()]);
    new_folder(draft)?;
    for (path, file) in &package.files {
        let place = draft.join(path);
        let missing: Vec<&Path> = place
            .ancestors()
            .skip(1)
            .take_while(|folder| !folders.contains(*folder))
            .collect();
        for folder in missing.into_iter().rev() {
            new_folder(folder)?;
            folders.insert(folder.to_owned());
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        let mut new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&place)?;
        new.write_all(&file.bytes)?;
        // The process's mask must not decide what can be run.
        new.set_permissions(Permissions::from_mode(mode))?;
        new.sync_all()?;
    }
    // The deepest first: a name is durable before the folder that holds it.
    folders.iter().rev().try_for_each(|folder| sync(folder))
}

fn new_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(folder)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
