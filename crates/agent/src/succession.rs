//! A machine that enrols anew: it is the earlier device until the later one is there wholly.
//!
//! ```text
//! anew/device.json is there ──► device.json of the earlier one goes ──► what was made for it goes ──► key, token, certificates
//!        ──► device.json of the later one, the last
//! ```
//! Whoever is killed on the way goes on when the command is typed again; between the first step and the last the machine is not enrolled.
//! Keeps AG-2: no key takes the place of another before the server knows it.

use crate::desk::{BUNDLE, FLOOR, JUDGING, LATEST, end_log};
use crate::device::{CA_CERT, DeviceFile, NAME};
use crate::folder::Folder;
use crate::rotation;
use crate::trouble::Trouble;

const PLACE: &str = "anew";
/// What has to be in place before `device.json`.
const MOVED: [&str; 3] = ["device.key", "token", CA_CERT];
/// What was the earlier device's: its counts, what its server has of the machine, the key of its fingerprints, what it was told to do,
/// and what it was assigned.
const ENDED: [&str; 14] = [
    "token.next",
    "device.key.next",
    "counter",
    "scans",
    "state.json",
    "acknowledged.json",
    "inventory.key",
    "commands.json",
    "profiles.json",
    "releases.json",
    BUNDLE,
    FLOOR,
    JUDGING,
    LATEST,
];

/// Says whether the machine is a device, or began to be one.
pub(crate) fn is_somebody(folder: &Folder) -> bool {
    [NAME, "device.key"]
        .iter()
        .any(|name| folder.file(name).symlink_metadata().is_ok())
}

/// Returns the folder in which the later device is made.
///
/// Errors: folder, disk.
pub(crate) fn place(folder: &Folder) -> Result<Folder, Trouble> {
    folder.below(PLACE)
}

/// Puts a later device that is there wholly in the place of the earlier one, and returns it and what whoever gave the earlier one up should
/// know.
///
/// Errors: folder, disk.
pub(crate) fn finish(folder: &Folder) -> Result<Option<(DeviceFile, Option<String>)>, Trouble> {
    if folder.file(PLACE).symlink_metadata().is_err() {
        return Ok(None);
    }
    let anew = place(folder)?;
    let Some(device) = DeviceFile::load(&anew)? else {
        return Ok(None);
    };
    // What the earlier device changed its key to is the earlier device's.
    rotation::finish(folder)?;
    folder.remove(NAME)?;
    for name in ENDED {
        folder.remove(name)?;
    }
    // What waits was the earlier device's to say, perhaps to another organization; the later one begins with a scan of its own.
    let queue = folder.below("queue")?;
    for name in queue.names()? {
        queue.remove(&name)?;
    }
    let unsent = end_log(folder)?;
    if !device.has_own_ca {
        folder.remove(CA_CERT)?;
    }
    for name in MOVED {
        if anew.file(name).symlink_metadata().is_ok() {
            folder.take(&anew, name)?;
        }
    }
    folder.take(&anew, NAME)?;
    for name in anew.names()? {
        anew.remove(&name)?;
    }
    // An empty folder that stays is in nobody's way.
    let _ = std::fs::remove_dir(anew.path());
    Ok(Some((device, unsent)))
}
