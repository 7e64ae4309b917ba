//! How often this device called, and how often it scanned: numbers that never go back, by which the server sees that there are two of
//! it, and which of two scans is the later one.

use crate::Agent;
use crate::folder::Folder;
use crate::trouble::{Cause, Trouble};
use provost_words::time::Timestamp;

const CALLS: &str = "counter";
const SCANS: &str = "scans";
/// LIMIT: the largest whole number that every reader of JSON keeps.
const MOST: u64 = 9_007_199_254_740_991;

/// Returns the number that a file holds; `lost` where it holds none.
fn kept(folder: &Folder, name: &str, lost: u64) -> Result<u64, Trouble> {
    let Some(bytes) = folder.read(name)? else {
        return Ok(0);
    };
    let number = String::from_utf8_lossy(&bytes).trim().parse::<u64>().ok();
    Ok(number.filter(|number| *number < MOST).unwrap_or(lost))
}

fn write(folder: &Folder, name: &str, number: u64) -> Result<(), Trouble> {
    // Always as long, so that it fits in its place also where the disk is full.
    let text = format!("{number:020}\n");
    if folder.overwrite(name, text.as_bytes())? {
        return Ok(());
    }
    folder.replace(name, text.as_bytes())
}

/// Counts a call, and returns the number; it is on the disk before it is said.
///
/// A disk that takes nothing ends no heartbeats: the number then goes on in memory, and a restart before there is room may look like a
/// copy.
///
/// Errors: folder, when the file is not as it has to be.
pub(crate) fn call(agent: &Agent, now: Timestamp) -> Result<u64, Trouble> {
    // The present in seconds is ahead of every count, and a server takes any.
    let lost = u64::try_from(now.as_ms() / 1000).unwrap_or_default();
    let number = kept(&agent.folder, CALLS, lost)?.max(agent.counted.get()) + 1;
    agent.counted.set(number);
    match write(&agent.folder, CALLS, number) {
        Err(trouble) if trouble.cause != Cause::Disk => Err(trouble),
        _ => Ok(number),
    }
}

/// Returns the number of the next scan. Where none is kept it is the first: a server says which one it knows, and takes none that is far
/// ahead of it.
///
/// Errors: folder.
pub(crate) fn next_scan(folder: &Folder) -> Result<u64, Trouble> {
    Ok(kept(folder, SCANS, 0)? + 1)
}

/// Notes that a scan has a number, or that the server knows one with it, which the next ones follow.
///
/// Errors: folder, disk.
pub(crate) fn scanned(folder: &Folder, number: u64) -> Result<(), Trouble> {
    if number >= MOST || number <= kept(folder, SCANS, 0)? {
        return Ok(());
    }
    write(folder, SCANS, number)
}

/// Counts scans anew: the server says then which one it knows.
///
/// Errors: folder, disk.
pub(crate) fn forget_scans(folder: &Folder) -> Result<(), Trouble> {
    write(folder, SCANS, 0)
}
