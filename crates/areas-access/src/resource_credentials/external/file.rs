//! Secrets in files: regular files below one folder, reached without following a link.

use super::MAX_BYTES;
use crate::resource_credentials::checks::model::Reason;
use provost_kernel::Secret;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use zeroize::Zeroizing;

/// Returns the text of a file without the newline at its end.
///
/// Each folder on the way is opened below the one before and none may be a link: what is checked is what is read.
pub fn read(root: &Path, path: &str) -> Result<Secret<Vec<u8>>, Reason> {
    let folder = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    // The root is the operator's own: it may be a link.
    let mut at: OwnedFd = open(root, folder, Mode::empty()).map_err(reason)?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
        at = openat(&at, segment, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(reason)?;
    }
    // Without NONBLOCK a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(&at, name, flags, Mode::empty()).map_err(reason)?);
    let metadata = file.metadata().map_err(|_| Reason::Unreachable)?;
    if !metadata.is_file() {
        return Err(Reason::InvalidAnswer);
    }
    let limit = MAX_BYTES as u64;
    if metadata.len() > limit {
        return Err(Reason::InvalidAnswer);
    }
    // Room from the start, so that growing leaves no copy of the secret behind.
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_BYTES + 1));
    let taken = file.take(limit + 1).read_to_end(&mut text);
    taken.map_err(|_| Reason::Unreachable)?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    if text.is_empty() || text.len() > MAX_BYTES {
        return Err(Reason::InvalidAnswer);
    }
    Ok(Secret::new(text.to_vec()))
}

fn reason(error: Errno) -> Reason {
    match error {
        // NOTDIR is also what a link in the place of a folder gives, LOOP what a link in the place of a file does.
        Errno::NOENT | Errno::NOTDIR => Reason::NotFound,
        Errno::ACCESS | Errno::PERM | Errno::LOOP => Reason::Denied,
        _ => Reason::Unreachable,
    }
}
