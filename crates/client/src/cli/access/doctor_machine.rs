//! What `provost doctor` looks at on this machine beside the way to the server: hooks of agents, and the server's backups.

use super::doctor::{DATA, Findings};
use crate::cli::cell::Times;
use crate::cli::connection::Place;
use crate::cli::failure::{Exit, Failure};
use crate::cli::proxy::is_this_machine;
use crate::cli::terminal::Terminal;
use crate::hook;
use provost_words::time::Timestamp;
use serde_json::Value;
use std::path::Path;
use std::{fs, io};

/// A backup that is older wants company. Units: seconds.
const OLD_SECS: i64 = 2 * 86_400;

/// Looks whether the agents of this machine ask, and are answered.
pub(super) async fn hooks(found: &mut Findings, terminal: &Terminal) {
    let fix = "provost hook doctor";
    let Some(trouble) = hook::look(terminal).await else {
        return found.ok(
            "hooks",
            "no agent of this machine asks; provost hook install lets one",
        );
    };
    if trouble.failures.is_empty() && trouble.warnings.is_empty() {
        found.ok(
            "hooks",
            "each that is registered was asked about a harmless call, and answered",
        );
    }
    for failure in trouble.failures {
        found.failed("hooks", Failure::new(Exit::Refused, failure).and(fix));
    }
    for warning in trouble.warnings {
        found.warn("hooks", warning, fix);
    }
}

/// Looks when the server's last backup was made, where its data lies on this machine and its operator looks.
pub(super) fn backups(found: &mut Findings, place: &Place, now: Timestamp) {
    let is_here = is_this_machine(&place.url.parse().unwrap_or_default());
    let file = Path::new(DATA).join("last-backup.json");
    let fix = "provost store backup --to FOLDER --keep 7, on a timer: docs/guide/operating.md";
    let text = match fs::read_to_string(&file) {
        Ok(text) if is_here => text,
        Err(error) if is_here && error.kind() == io::ErrorKind::NotFound && fs::read_dir(DATA).is_ok() => {
            return found.warn("backups", format!("none was made of {DATA}"), fix);
        }
        _ => {
            let says = "a client cannot see when the last one was made; the server's provost_backup_age_seconds says it";
            return found.ok("backups", says);
        }
    };
    let made = serde_json::from_str::<Value>(&text).ok();
    let made = made.and_then(|said| said["atMs"].as_i64().map(Timestamp::from_ms));
    match made {
        None => found.warn("backups", format!("{} cannot be read", file.display()), fix),
        Some(made) => {
            let says = format!(
                "the last was made {}",
                Times::Relative(now).write(&made.to_rfc3339())
            );
            if made < now.plus_secs(-OLD_SECS) {
                found.warn("backups", says, fix);
            } else {
                found.ok("backups", says);
            }
        }
    }
}
