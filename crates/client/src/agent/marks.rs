//! How far each profile has come on this machine, whatever its file holds now.
//!
//! Keeps MP-2: another profile in between brings no earlier release back.

use super::asked::{disk, of_failure};
use crate::managed_config::applied_release::AppliedRelease;
use crate::managed_config::manifest::Mark;
use provost_agent::{Agent, Trouble};
use std::collections::BTreeMap;
use std::path::Path;

/// How far each profile has come on this machine, in the folder of the agent.
const HIGHEST: &str = "releases.json";
/// LIMIT: profiles that are remembered. Ours: a machine has one for each program, and gets another one when people say so.
const MOST_REMEMBERED: usize = 256;

/// Returns how far a profile had come on this machine, after it was noted what FILE holds now: it may be about to give way to another
/// profile (MP-2).
///
/// Errors: folder, disk; when what is noted cannot be read: to go on without it would allow a downgrade.
pub fn highest(agent: &Agent, to: &Path, profile_id: &str) -> Result<Option<Mark>, Trouble> {
    let bytes = agent.folder.read(HIGHEST)?;
    let mut marks: BTreeMap<String, Mark> = match &bytes {
        None => BTreeMap::new(),
        Some(bytes) => serde_json::from_slice(bytes).map_err(|error| {
            let shown = agent.folder.file(HIGHEST);
            disk(format!("{} cannot be read: {error}", shown.display()))
                .fix("remove it only if any release may follow")
        })?,
    };
    if let Some(kept) = AppliedRelease::load(to).map_err(of_failure)?
        && kept.organization == agent.device.organization
    {
        let held = kept.manifest().map_err(of_failure)?;
        let is_higher = marks
            .get(&held.profile_id)
            .is_none_or(|mark| *mark != held.mark() && held.may_follow(mark).is_ok());
        if is_higher {
            if marks.len() >= MOST_REMEMBERED && !marks.contains_key(&held.profile_id) {
                return Err(disk("this machine had too many profiles; enrol it anew"));
            }
            marks.insert(held.profile_id.clone(), held.mark());
            agent
                .folder
                .replace(HIGHEST, &serde_json::to_vec(&marks).unwrap_or_default())?;
        }
    }
    Ok(marks.remove(profile_id))
}
