//! How often this device called: a number that never goes back, by which the server sees that there are two of it.

use crate::folder::Folder;
use crate::trouble::{Cause, Trouble};

const NAME: &str = "counter";

/// Counts, and returns the number; it is on the disk before it is said.
///
/// Errors: folder, when the file holds no number: to begin anew would look like a copy. Disk.
pub(crate) fn count(folder: &Folder) -> Result<u64, Trouble> {
    let before = match folder.read(NAME)? {
        None => 0,
        Some(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            text.trim().parse::<u64>().map_err(|_| {
                let line = format!("{} holds no number", folder.file(NAME).display());
                Trouble::new(Cause::Folder, line)
                    .fix("remove it: the server may then say of the device that there are two of it")
            })?
        }
    };
    let number = before.saturating_add(1);
    // Always as long, so that it fits in its place also where the disk is full: a full disk ends no heartbeats.
    let text = format!("{number:020}\n");
    if !folder.overwrite(NAME, text.as_bytes())? {
        folder.replace(NAME, text.as_bytes())?;
    }
    Ok(number)
}
