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

/// From what age of the last backup on a newer one is missed. Units: seconds.
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
    let fix = "provost store backup --to FOLDER --keep 7, on a timer: docs/guide/operating.md";
    let is_here = is_this_machine(&place.url.parse().unwrap_or_default());
    let last = is_here.then(|| last_backup(Path::new(DATA)));
    match last {
        Some(Ok(Some(made))) => {
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
        Some(Ok(None)) => found.warn("backups", format!("none was made of {DATA}"), fix),
        Some(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            found.warn("backups", error.to_string(), fix);
        }
        Some(Err(_)) | None => {
            let says = "a client cannot see when the last one was made; the server's provost_backup_age_seconds says it";
            found.ok("backups", says);
        }
    }
}

/// Returns when the last backup of a server's folder was made; nothing when none was.
///
/// Errors: `InvalidData` when the note of it cannot be read, and what the system says where the folder cannot be.
fn last_backup(data: &Path) -> io::Result<Option<Timestamp>> {
    let file = data.join("last-backup.json");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fs::read_dir(data).map(|_| None);
        }
        Err(error) => return Err(error),
    };
    let note = serde_json::from_str::<Value>(&text).ok();
    let made = note.and_then(|note| note["atMs"].as_i64());
    let unreadable = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} cannot be read", file.display()),
        )
    };
    made.map(Timestamp::from_ms).map(Some).ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_backup_is_read_from_the_note_of_it() {
        let folder = std::env::temp_dir().join(format!("provost-last-backup-{}", std::process::id()));
        let note = folder.join("last-backup.json");
        assert_eq!(last_backup(&folder).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(&folder).unwrap();
        assert_eq!(last_backup(&folder).unwrap(), None);
        fs::write(&note, r#"{"atMs":1795000000000,"to":"/backups"}"#).unwrap();
        assert_eq!(
            last_backup(&folder).unwrap(),
            Some(Timestamp::from_ms(1_795_000_000_000))
        );
        for broken in ["", "{", "[]", r#"{"atMs":"today"}"#] {
            fs::write(&note, broken).unwrap();
            let error = last_backup(&folder).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{broken}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
