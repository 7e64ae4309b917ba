//! The digest of a skill's folder, as the registry makes it of a package (`provost-skill 1`).

use crate::disk::{Disk, Fault, FileDigest};
use provost_words::digest::sha256_hex;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// LIMIT: one file of a skill, files with folders, and folders in folders of a skill: those of the registry.
const MAX_FILE: u64 = 5 << 20;
const MAX_FILES: usize = 1_000;
const MAX_DEPTH: usize = 16;

/// Returns the digest of a folder; `None` where there is no `SKILL.md`.
pub(crate) fn digest(disk: &Disk<'_>, folder: &Path, fence: &Path) -> Result<Option<String>, Fault> {
    // Files are hashed in pieces: none of them is held.
    if disk.digest(&folder.join("SKILL.md"), fence, MAX_FILE)?.is_none() {
        return Ok(None);
    }
    let (mut lines, mut seen) = (Vec::new(), 0);
    let mut waiting: Vec<(PathBuf, String, usize)> = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((place, prefix, depth)) = waiting.pop() {
        // One that was left out, or reads as two lines, would let what is no version of the registry have the digest of one.
        for name in disk.every_name(&place, fence)? {
            let (path, below) = (place.join(&name), format!("{prefix}{name}"));
            seen += 1;
            if seen > MAX_FILES || depth > MAX_DEPTH {
                return Err(Fault::Truncated);
            }
            // A link in a skill is none of its files, and the registry refuses it.
            let kind = disk.kind(&path)?;
            if kind.is_dir() {
                waiting.push((path, format!("{below}/"), depth + 1));
            } else if kind.is_symlink() {
                return Err(Fault::NotPermitted);
            } else if let Some(FileDigest { hex, mode, .. }) = disk.digest(&path, fence, MAX_FILE)? {
                lines.push((below, mode & 0o111 != 0, hex));
            }
        }
    }
    lines.sort();
    let mut listing = "provost-skill 1\n".to_owned();
    for (path, is_executable, digest) in lines {
        let mode = if is_executable { "0755" } else { "0644" };
        // Writing to a String cannot fail.
        let _ = writeln!(listing, "{mode} {digest} {path}");
    }
    Ok(Some(format!("sha256:{}", sha256_hex(listing.as_bytes()))))
}
