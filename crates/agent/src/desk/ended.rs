//! The log of a device that is given up. What waits in it was never told, and the later device cannot tell it: it is set aside.
//!
//! Keeps LJ-7.

use super::log::{LOG, Log, remove_folder};
use crate::folder::Folder;
use crate::trouble::Trouble;

/// What rebinding a chain leaves where it is killed, beside the log.
const BESIDE: [&str; 2] = ["decisions.anew", "decisions.former"];
/// What a log is called that nobody sends any more.
const UNSENT: &str = "decisions.unsent";
/// LIMIT: bytes that are read of a segment, to count what is in it; none that the agent wrote is longer.
const MOST_READ: u64 = 4 << 20;

/// Ends the log of a device that is given up: one in which nothing waits goes, any other is set aside. Returns what whoever gives the device
/// up should know.
///
/// Errors: folder, disk.
pub(crate) fn end_log(folder: &Folder) -> Result<Option<String>, Trouble> {
    let is_there = |name: &str| folder.file(name).symlink_metadata().is_ok();
    if !is_there(LOG) && !BESIDE.iter().any(|name| is_there(name)) {
        return Ok(None);
    }
    // What a kill left of a chain that was bound anew is finished first, or it would become the later device's.
    Log::open(folder, &|_| {}).map(drop)?;
    let waits = waiting(&Folder::open(&folder.file(LOG))?)?;
    if waits == 0 {
        return remove_folder(folder, LOG).map(|()| None);
    }
    let mut place = UNSENT.to_owned();
    for number in 2_u32.. {
        if !is_there(&place) {
            break;
        }
        place = format!("{UNSENT}.{number}");
    }
    folder.rename(LOG, &place)?;
    Ok(Some(format!(
        "what the earlier device judged and never sent lies in {} (entries: {waits}); no device sends it any more: remove it when nobody needs it",
        folder.file(&place).display()
    )))
}

/// Returns how many entries wait in a log, those of segments that were set aside as torn included.
fn waiting(log: &Folder) -> Result<usize, Trouble> {
    let mut waits = 0;
    for name in log.names()? {
        let bytes = log.read_up_to(&name, MOST_READ)?.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let is_segment = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
        // A segment says in its first line where the chain stands.
        waits += lines.count().saturating_sub(usize::from(is_segment));
    }
    Ok(waits)
}
