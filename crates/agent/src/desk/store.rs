//! The bundle of a device on its disk, and how new the newest was.
//!
//! Keeps LJ-2 and LJ-5: what is taken away does not make an earlier one good.

use crate::folder::Folder;
use crate::trouble::{Cause, Trouble};
use provost_bundle::Floor;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The signed bundle.
pub(crate) const BUNDLE: &str = "policy-bundle.json";
/// How new the newest was.
pub(crate) const FLOOR: &str = "policy-bundle.floor.json";
/// What came of the last look.
pub(crate) const JUDGING: &str = "judging.json";
/// LIMIT: bytes of an envelope: 3 MiB in base64, with what stands around them.
const MOST: u64 = 5 << 20;

/// What came of the last look at the server's bundle, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastLook {
    /// When the server was last asked and answered, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// Why there is no bundle, or no later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Returns the envelope that is kept; `None` where there is none.
///
/// Errors: folder, disk.
pub fn kept_bundle(folder: &Folder) -> Result<Option<Vec<u8>>, Trouble> {
    folder.read_up_to(BUNDLE, MOST)
}

/// Keeps an envelope whose bundle was opened. The bundle comes first: a kill leaves one that is newer than the floor, which is no harm.
///
/// Errors: disk.
pub fn keep_bundle(folder: &Folder, envelope: &[u8], floor: Floor) -> Result<(), Trouble> {
    folder.replace(BUNDLE, envelope)?;
    folder.replace(FLOOR, &serde_json::to_vec(&floor).unwrap_or_default())
}

/// Returns how new the newest bundle was.
///
/// Errors: folder; when it cannot be read: to go on without it would make an earlier one good.
pub fn floor(folder: &Folder) -> Result<Option<Floor>, Trouble> {
    let Some(bytes) = folder.read(FLOOR)? else {
        return Ok(None);
    };
    let read = serde_json::from_slice(&bytes).map_err(|error| {
        let line = format!("{} cannot be read: {error}", folder.file(FLOOR).display());
        Trouble::new(Cause::Folder, line).fix("remove it only if any bundle of this device may follow")
    });
    read.map(Some)
}

/// Takes the bundle away. How new it was stays.
///
/// Errors: disk.
pub fn take_bundle_away(folder: &Folder) -> Result<(), Trouble> {
    folder.remove(BUNDLE)
}

/// Returns what came of the last look.
///
/// Errors: folder.
pub fn last_look(folder: &Folder) -> Result<LastLook, Trouble> {
    let bytes = folder.read(JUDGING)?.unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Keeps what came of a look.
///
/// Errors: disk.
pub fn keep_look(folder: &Folder, look: &LastLook) -> Result<(), Trouble> {
    folder.replace(JUDGING, &serde_json::to_vec(look).unwrap_or_default())
}
