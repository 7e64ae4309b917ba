//! Backups of one store in one place, of which the oldest go: what a timer makes.
//!
//! ```text
//! folder   provost-4f1c09aa-2026-11-20T06-48-23-511Z.db · .db.mac · .db.history/
//! s3://…   the same names: segments first, then the file, the MAC last, so that a backup with a MAC is whole
//! ```
//!
//! The first eight digits of the store's id stand in the name: several stores may share a place, and none removes what is another's.
//! Absent on purpose: removing anything unless the new backup is whole; reading backups out of an object store (fetch the objects of
//! one stem and restore from the folder).

use super::{backup, backup_mac, segments};
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::config::Config;
use provost_areas_platform::identity;
use provost_history::object_store::ObjectStore;
use provost_history::{Listable, Storage};
use provost_kernel::Timestamp;
use provost_kernel::durable::{make_folder, sync_folder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a backup is made of, by the ends of the names.
const ENDS: [&str; 3] = [".db.history", ".db.mac", ".db"];

/// The file in the data folder that says when the last backup of a series was made.
const LAST: &str = "last-backup.json";

/// How long a folder of a run that was killed is left alone. Units: seconds.
const STALE_SECS: i64 = 86_400;

/// The last backup of a series.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastBackup {
    at_ms: i64,
    to: String,
}

/// Makes the next backup of the store in a place, and removes those beyond `keep`.
pub fn make(config: &Config, to: &str, keep: Option<usize>, now: Timestamp) -> Outcome {
    let prefix = prefix(config)?;
    let stem = format!("{prefix}{}", backup::stamp(now));
    if to.starts_with("s3://") {
        let runtime = segments::runtime()?;
        let place = Bucket {
            store: config.backup.open(to, runtime.handle())?,
            url: to.trim_end_matches('/').to_owned(),
            config,
            runtime: &runtime,
        };
        place.put(&stem, now)?;
        note(config, to, now)?;
        remove_outdated(&place, &prefix, &stem, keep)
    } else if to.contains("://") {
        Err(Failure::usage("--to takes a folder or s3://bucket/prefix"))
    } else {
        let folder = PathBuf::from(to);
        make_folder(&folder)
            .map_err(|error| Failure::of_file("the folder of backups cannot be made", &folder, &error))?;
        backup::make(config, &folder.join(format!("{stem}.db")), now)?.tell()?;
        note(config, to, now)?;
        remove_outdated(&folder, &prefix, &stem, keep)
    }
}

/// Returns when the last backup of a series was made, if that is known.
pub fn last(data_dir: &Path) -> Option<Timestamp> {
    let text = std::fs::read(data_dir.join(LAST)).ok()?;
    let last: LastBackup = serde_json::from_slice(&text).ok()?;
    Some(Timestamp::from_ms(last.at_ms))
}

/// Notes when the last backup was made, for the metrics of the server.
fn note(config: &Config, to: &str, now: Timestamp) -> Outcome {
    let data_dir = config.store.data_dir();
    let file = data_dir.join(LAST);
    let last = LastBackup {
        at_ms: now.as_ms(),
        to: to.to_owned(),
    };
    let text = serde_json::to_vec(&last).map_err(provost_kernel::Error::internal)?;
    let partial = data_dir.join(format!("{LAST}.partial"));
    let written = make_folder(&data_dir)
        .and_then(|()| write_anew(&partial, &text))
        .and_then(|()| std::fs::rename(&partial, &file));
    written.map_err(|error| {
        Failure::of_file(
            "the backup is whole, and its time, which the metrics show, cannot be written to",
            &file,
            &error,
        )
    })
}

/// Writes a file that was not there: what lies there goes, and is not written through where it is a link.
fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut open = OpenOptions::new();
    open.write(true).create_new(true).mode(0o600);
    open.open(path)?.write_all(bytes)
}

/// Returns what the names of this store's backups begin with.
fn prefix(config: &Config) -> Result<String, Failure> {
    let keys = backup::keys(config)?;
    let mut conn = backup::open(&config.store.location()?)?;
    let known = conn.read(|tx| identity::read(tx, &keys))?;
    let id = known.map_or_else(|| "00000000".to_owned(), |known| known.id);
    let id = id.trim_start_matches("store_");
    Ok(format!("provost-{}-", id.get(..8).unwrap_or(id)))
}

/// A place that holds backups.
trait Place {
    /// Returns the names that are there.
    fn names(&self) -> Result<Vec<String>, Failure>;
    /// Removes what a backup is made of: the file first, so that what is left is no backup.
    fn remove(&self, stem: &str) -> Outcome;
}

fn remove_outdated(place: &impl Place, prefix: &str, made: &str, keep: Option<usize>) -> Outcome {
    let Some(keep) = keep else { return Ok(()) };
    for stem in outdated(&place.names()?, prefix, made, keep) {
        place.remove(&stem)?;
        show::out(&format!("{stem}.db  removed, {keep} are kept\n"))?;
    }
    Ok(())
}

/// Returns the stems that are older than the `keep` newest whole backups, never the one that was just made: a clock that went back must
/// not take it.
fn outdated(names: &[String], prefix: &str, made: &str, keep: usize) -> Vec<String> {
    let stem = |name: &'_ String| {
        let stem = ENDS.iter().find_map(|end| name.strip_suffix(end))?;
        is_of(stem, prefix).then(|| stem.to_owned())
    };
    let stems: BTreeSet<String> = names.iter().filter_map(stem).collect();
    let has = |stem: &str, end: &str| names.iter().any(|name| name.strip_suffix(end) == Some(stem));
    let mut whole = stems
        .iter()
        .rev()
        .filter(|stem| has(stem, ".db") && has(stem, ".db.mac"));
    let Some(oldest_kept) = whole.nth(keep.saturating_sub(1)) else {
        return Vec::new();
    };
    let is_outdated = |stem: &&String| *stem < oldest_kept && *stem != made;
    stems.iter().filter(is_outdated).cloned().collect()
}

/// Says whether a stem is one that a series of this store gives.
fn is_of(stem: &str, prefix: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00-00-00-000Z";
    stem.strip_prefix(prefix).is_some_and(|stamp| {
        stamp.len() == FORM.len()
            && stamp.bytes().zip(FORM).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == *form,
            })
    })
}

impl Place for PathBuf {
    fn names(&self) -> Result<Vec<String>, Failure> {
        let failed =
            |error: io::Error| Failure::of_file("the folder of backups cannot be read", self, &error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn remove(&self, stem: &str) -> Outcome {
        let file = self.join(format!("{stem}.db"));
        let absent_is_fine = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        absent_is_fine(std::fs::remove_file(&file))
            .and_then(|()| absent_is_fine(std::fs::remove_dir_all(segments::beside(&file))))
            .and_then(|()| absent_is_fine(std::fs::remove_file(backup_mac::beside(&file))))
            .and_then(|()| sync_folder(self))
            .map_err(|error| Failure::of_file("an old backup cannot be removed", &file, &error))
    }
}

/// A place in an S3-compatible store.
struct Bucket<'a> {
    store: Arc<ObjectStore>,
    url: String,
    config: &'a Config,
    runtime: &'a tokio::runtime::Runtime,
}

impl Bucket<'_> {
    /// Makes a backup in the data folder, and moves it into the store.
    fn put(&self, stem: &str, now: Timestamp) -> Outcome {
        let stage = Stage::create(&self.config.store.data_dir(), now)?;
        let name = format!("{stem}.db");
        let file = stage.0.join(&name);
        let made = backup::make(self.config, &file, now)?;
        let folder = segments::beside(&file);
        if folder.is_dir() {
            let store = self.segments(stem)?;
            for segment in folder.names()? {
                upload(&store, &segment, &folder.join(&segment))?;
            }
        }
        upload(&self.store, &name, &file)?;
        upload(&self.store, &format!("{name}.mac"), &backup_mac::beside(&file))?;
        show::out(&format!(
            "{}/{name}, and its MAC: keep the two together\n",
            self.url
        ))?;
        made.tell_keys()
    }

    /// Returns the place of the segments of a backup.
    fn segments(&self, stem: &str) -> Result<Arc<ObjectStore>, Failure> {
        let url = format!("{}/{stem}.db.history", self.url);
        Ok(self.config.backup.open(&url, self.runtime.handle())?)
    }
}

impl Place for Bucket<'_> {
    fn names(&self) -> Result<Vec<String>, Failure> {
        let listed = self.store.list();
        let listed = listed.map_err(|error| of_store("the store of backups cannot be listed", &error))?;
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    fn remove(&self, stem: &str) -> Outcome {
        let failed = |error: io::Error| of_store(&format!("the old backup {stem} cannot be removed"), &error);
        self.store.remove(&format!("{stem}.db")).map_err(failed)?;
        let segments = self.segments(stem)?;
        for segment in segments.list().map_err(failed)? {
            segments.remove(&segment.name).map_err(failed)?;
        }
        self.store.remove(&format!("{stem}.db.mac")).map_err(failed)
    }
}

fn upload(store: &ObjectStore, name: &str, file: &Path) -> Outcome {
    let mut source = File::open(file)
        .map_err(|error| Failure::of_file("the backup cannot be read again", file, &error))?;
    store
        .upload(name, &mut source)
        .map_err(|error| of_store(&format!("{name} cannot be put into the store of backups"), &error))
}

fn of_store(what: &str, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => "; see that the access key may list, read, put and delete there",
        io::ErrorKind::NotFound => "; see that the bucket is there",
        _ => "",
    };
    Failure::new(format!("{what}: {error}{next}"))
}

/// A folder beside the data that is gone when this is, whatever happens.
struct Stage(PathBuf);

impl Stage {
    fn create(data_dir: &Path, now: Timestamp) -> Result<Self, Failure> {
        let name = |at: Timestamp| format!("backup-{}.partial", backup::stamp(at));
        let folder = data_dir.join(name(now));
        let failed = |error: io::Error| Failure::of_file("the backup cannot be prepared in", &folder, &error);
        make_folder(data_dir).map_err(failed)?;
        // What a run has left that was killed is as large as a store.
        let stale = name(now.plus_secs(-STALE_SECS));
        for entry in std::fs::read_dir(data_dir).map_err(failed)?.flatten() {
            let found = entry.file_name().to_string_lossy().into_owned();
            if found.starts_with("backup-") && found.ends_with(".partial") && found < stale {
                drop(std::fs::remove_dir_all(entry.path()));
            }
        }
        make_folder(&folder).map_err(failed)?;
        Ok(Self(folder))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} is left behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(store: &str, day: u32) -> String {
        format!("provost-{store}-2026-11-{day:02}T06-48-23-511Z")
    }

    fn whole(stem: &str) -> [String; 3] {
        ENDS.map(|end| format!("{stem}{end}"))
    }

    #[test]
    fn the_newest_whole_backups_of_this_store_are_kept_and_nothing_else_goes() {
        let mut names: Vec<String> = (1..=5).flat_map(|day| whole(&backup("4f1c09aa", day))).collect();
        // Another store's, one made by hand, a stranger, one that is only begun and newer, and one that was only begun and is old.
        names.extend(whole(&backup("00000001", 1)));
        names.extend(
            [
                "provost-2026-11-01T06-48-23-511Z.db",
                "provost-4f1c09aa-monday.db",
                "notes.txt",
            ]
            .map(String::from),
        );
        names.push(format!("{}.db", backup("4f1c09aa", 6)));
        names.push(format!("{}.db.mac", backup("4f1c09aa", 0)));
        let made = backup("4f1c09aa", 5);
        let gone = outdated(&names, "provost-4f1c09aa-", &made, 2);
        assert_eq!(gone, [0, 1, 2, 3].map(|day| backup("4f1c09aa", day)));
        assert!(outdated(&names, "provost-4f1c09aa-", &made, 5).len() == 1);
        assert!(outdated(&names, "provost-4f1c09aa-", &made, 6).is_empty());
    }

    #[test]
    fn a_clock_that_went_back_does_not_take_the_backup_that_was_just_made() {
        let names: Vec<String> = [1, 8, 9]
            .iter()
            .flat_map(|day| whole(&backup("4f1c09aa", *day)))
            .collect();
        let made = backup("4f1c09aa", 1);
        assert!(outdated(&names, "provost-4f1c09aa-", &made, 2).is_empty());
    }
}
