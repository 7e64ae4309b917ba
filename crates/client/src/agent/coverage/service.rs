//! Whether the agent is started when the machine is, or the person signs in, as the files of systemd say it (F4.15).
//!
//! ```text
//! unit ── named by a folder `*.wants` or `*.requires` ──► enabled
//!      ├─ led to /dev/null: masked ─────────────────────► not enabled
//!      ├─ named by none ────────────────────────────────► not enabled
//!      └─ none, and there was one before ───────────────► not enabled: it was taken away while the agent works
//!         none, and never was one ──────────────────────► nothing is known: a container, another manager of services
//! ```
//!
//! Absent on purpose: asking systemd, which would start a program; a unit that is enabled and was stopped, which is an agent that does not work,
//! and seen by its silence; launchd.

use provost_agent::Mode;
use std::fs;
use std::path::{Path, PathBuf};

const UNIT: &str = "provost-agent.service";
/// LIMIT: folders of systemd that are looked at. Ours: a system has some dozens.
const MOST_FOLDERS: usize = 512;

/// What the files of systemd say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// There is no unit.
    Absent,
    /// It is started with the machine, or with the session of its person.
    Enabled,
    /// It is not.
    NotEnabled,
}

/// Returns what the files below a root and in the settings of a person say of the agent's unit.
pub fn service(root: &Path, config: Option<&Path>, mode: Mode) -> Service {
    let below = |folders: &[&str]| folders.iter().map(|folder| root.join(folder)).collect::<Vec<_>>();
    let folders = match mode {
        Mode::System => below(&[
            "etc/systemd/system",
            "run/systemd/system",
            "usr/local/lib/systemd/system",
            "usr/lib/systemd/system",
            "lib/systemd/system",
        ]),
        Mode::User => {
            let mut folders: Vec<PathBuf> = config
                .map(|config| config.join("systemd/user"))
                .into_iter()
                .collect();
            folders.extend(below(&[
                "etc/systemd/user",
                "usr/local/lib/systemd/user",
                "usr/lib/systemd/user",
            ]));
            folders
        }
    };
    // The first folder that has it counts.
    let first = folders
        .iter()
        .map(|folder| folder.join(UNIT))
        .find(|unit| unit.symlink_metadata().is_ok());
    let Some(unit) = first else {
        return Service::Absent;
    };
    let is_masked = fs::read_link(&unit).is_ok_and(|to| to == Path::new("/dev/null"));
    if !is_masked && folders.iter().any(|folder| is_wanted(folder)) {
        Service::Enabled
    } else {
        Service::NotEnabled
    }
}

/// Says whether something that is started wants the unit.
fn is_wanted(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.take(MOST_FOLDERS).flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_wanting = name.ends_with(".wants") || name.ends_with(".requires");
        is_wanting && entry.path().join(UNIT).symlink_metadata().is_ok()
    })
}
