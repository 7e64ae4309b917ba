//! How often this device called: a number that never goes back, by which the server sees that there are two of it.

use crate::Agent;
use crate::trouble::{Cause, Trouble};
use provost_words::time::Timestamp;

const NAME: &str = "counter";

/// Counts, and returns the number; it is on the disk before it is said.
///
/// A disk that takes nothing ends no heartbeats: the number then goes on in memory, and a restart before there is room may look like a
/// copy. A file that holds no number counts on from the present in seconds, which is ahead of every count of calls.
///
/// Errors: folder, when the file is not as it has to be.
pub(crate) fn count(agent: &Agent, now: Timestamp) -> Result<u64, Trouble> {
    let kept = match agent.folder.read(NAME)? {
        None => 0,
        Some(bytes) => {
            let number = String::from_utf8_lossy(&bytes).trim().parse::<u64>().ok();
            number.unwrap_or_else(|| u64::try_from(now.as_ms() / 1000).unwrap_or_default())
        }
    };
    let number = kept.max(agent.counted.get()).saturating_add(1);
    agent.counted.set(number);
    // Always as long, so that it fits in its place also where the disk is full.
    let text = format!("{number:020}\n");
    let written = match agent.folder.overwrite(NAME, text.as_bytes()) {
        Ok(true) => Ok(()),
        Ok(false) => agent.folder.replace(NAME, text.as_bytes()),
        Err(trouble) => Err(trouble),
    };
    match written {
        Err(trouble) if trouble.cause != Cause::Disk => Err(trouble),
        _ => Ok(number),
    }
}
