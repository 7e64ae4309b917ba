//! A mark on the disk while a scan goes on: a process that was ended in one does not come to say so itself.
//!
//! ```text
//! begin ──► scan.mark: this run of the system, when, the file that is being read ──► the scan ends ──► no mark
//!                └──► killed ──► the next round finds it: said in state.json; a file in which two of a day ended is left out until
//!                                                                the first of them is a day old
//! ```
//!
//! One is no reason: a process is killed for many causes, and what kills it is met again at once.

use crate::folder::Folder;
use crate::machine::boot_id;
use crate::state::{KilledScan, State};
use crate::trouble::Trouble;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const NAME: &str = "scan.mark";
/// How long a scan counts that was ended. Units: seconds.
const LEFT_OUT_SECS: i64 = 86_400;
/// How many scans have to end in a file before it is left out.
const ENOUGH: usize = 2;
/// LIMIT: scans that were ended and are remembered. Ours: at one an hour all of a day.
const MOST: usize = 24;

/// What stands in the first line of the file; behind it may be the rest of a longer one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// A machine that went down took the scan with it, and no file did.
    boot_id: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// A scan that goes on. The mark is removed with it.
pub(crate) struct Mark {
    folder: Folder,
    file: Option<File>,
    line: RefCell<Line>,
    left_out: BTreeSet<String>,
}

impl Mark {
    /// Makes the mark of a scan.
    ///
    /// Errors: disk.
    pub fn begin(folder: &Folder, state: &State, now: Timestamp) -> Result<Self, Trouble> {
        let mut mark = Self::unmarked(folder, state, now);
        folder.replace(NAME, &mark.text())?;
        mark.file = Some(folder.rewrite(NAME)?);
        Ok(mark)
    }

    /// Returns what leaves out the same files, and writes nothing.
    pub fn unmarked(folder: &Folder, state: &State, now: Timestamp) -> Self {
        let line = Line {
            boot_id: boot_id(),
            at: now,
            file: None,
        };
        let killed = state.killed_scans.iter();
        let recent = killed.filter(|scan| is_recent(scan.at, now));
        let mut ended: BTreeMap<String, usize> = BTreeMap::new();
        for file in recent.filter_map(|scan| scan.file.clone()) {
            *ended.entry(file).or_default() += 1;
        }
        let left_out = ended.into_iter().filter(|(_, times)| *times >= ENOUGH);
        Self {
            folder: folder.clone(),
            file: None,
            line: RefCell::new(line),
            left_out: left_out.map(|(file, _)| file).collect(),
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(&*self.line.borrow()).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Notes which file is read now, and says whether it may be.
    pub fn reads(&self, path: &Path) -> bool {
        let path = path.to_string_lossy().into_owned();
        if self.left_out.contains(&path) {
            return false;
        }
        self.line.borrow_mut().file = Some(path);
        // It outlives the process at once, and the loss of power is no fault of the file.
        if let Some(file) = &self.file {
            let _ = file.write_all_at(&self.text(), 0);
        }
        true
    }

    /// Notes that all files are read: what ends the process now is none of them.
    pub fn has_read(&self) {
        self.line.borrow_mut().file = None;
        if let Some(file) = &self.file {
            let _ = file.write_all_at(&self.text(), 0);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.file.is_some() {
            remove(&self.folder);
        }
    }
}

/// Says whether a scan was killed within the day for which its file is left out.
pub(crate) fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now < at.plus_secs(LEFT_OUT_SECS)
}

/// Removes the mark of a scan that is given up because the process is told to end.
pub(crate) fn remove(folder: &Folder) {
    // One that stays says too much, and ends nothing.
    let _ = folder.remove(NAME);
}

/// Returns the scan that a mark stands for; `None` where there is none, or where the machine went down with it.
///
/// Errors: folder.
pub(crate) fn found(folder: &Folder) -> Result<Option<KilledScan>, Trouble> {
    let Some(bytes) = folder.read(NAME)? else {
        return Ok(None);
    };
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = serde_json::from_slice::<Line>(first).ok();
    let line = line.filter(|line| line.boot_id == boot_id());
    Ok(line.map(|line| KilledScan {
        at: line.at,
        file: line.file,
    }))
}

/// Takes what a scan left that was ended with its process into the state, and returns a sentence about it. Whoever calls has the lock, and
/// no scan goes on.
///
/// Errors: folder, disk.
pub(crate) fn settle(folder: &Folder, state: &mut State, now: Timestamp) -> Result<Option<String>, Trouble> {
    state.killed_scans.retain(|scan| is_recent(scan.at, now));
    let killed = found(folder)?;
    if let Some(scan) = &killed {
        state.killed_scans.push(scan.clone());
        let surplus = state.killed_scans.len().saturating_sub(MOST);
        state.killed_scans.drain(..surplus);
        // The mark goes when the state has it.
        state.save(folder)?;
    }
    folder.remove(NAME)?;
    Ok(killed.map(|scan| scan.says()))
}
