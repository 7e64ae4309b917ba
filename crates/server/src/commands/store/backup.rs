//! `provost store backup`: a consistent copy, taken while the server works.

use super::{backup_mac, copy, lift_statement_timeouts, segments, series};
use crate::areas::ALL;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store_flags::{StoreFlags, opening};
use crate::config::Config;
use provost_kernel::Timestamp;
use provost_kernel::db::{Access, Conn, Engine, Location, is_migrated, migrate};
use provost_kernel::durable::make_private_file;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{params, statements};
use std::fs::File;
use std::path::{Path, PathBuf};

statements! {
    /// Copies the database into an empty file, from one snapshot.
    COPY_INTO = unscoped("a backup takes every organization") {
        sqlite: "VACUUM INTO ?1",
        postgres: "SELECT CAST(?1 AS TEXT)",
    };
    /// The keys that the store was written with.
    KEY_CHECKS = unscoped("the keys are the installation's") "SELECT key_id, check_value FROM key_checks ORDER BY key_id";
}

/// Copy the store into one new file, while a server uses it.
///
/// The copy is a SQLite file whatever the store is; the segments of recorded history, if there are any, go into a
/// folder beside it. It never contains keys; the ids of those that a restore needs are printed. Beside it lies its MAC under the
/// audit key (FILE.mac), without which a restore does not take it: keep the two together.
///
/// With --to the file is named by the store and the time, and --keep removes older ones of this store, and of no other, once the new one
/// is whole.
#[derive(clap::Parser)]
#[command(
    name = "backup",
    after_help = "Examples:
  provost store backup /var/backups/provost/
  provost store backup provost-monday.db --database-url-file /run/secrets/database-url
  provost store backup --keep 14 --to /var/backups/provost
  provost store backup --keep 30 --to s3://backups/provost --config /etc/provost/provost.toml"
)]
pub struct Backup {
    /// The new file, or a folder for a file named by the time
    #[arg(required_unless_present = "to", conflicts_with = "to")]
    target: Option<PathBuf>,
    /// A folder, or a place in an S3-compatible store such as `s3://bucket/prefix` (see the section `backup` of the configuration)
    #[arg(long, value_name = "DIR|URL")]
    to: Option<String>,
    /// Keep so many backups of this store there, the new one among them, and remove older ones
    #[arg(long, value_name = "N", requires = "to", conflicts_with = "target", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    keep: Option<u16>,
    #[command(flatten)]
    store: StoreFlags,
}

impl Backup {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let now = SystemClock::new().now();
        match (&self.target, &self.to) {
            (Some(target), _) => make(&config, &file(target, now), now)?.tell(),
            (None, Some(to)) => series::make(&config, to, self.keep.map(usize::from), now),
            (None, None) => Err(Failure::usage("name a file, or a place with --to")),
        }
    }
}

/// A backup that is whole.
pub struct WholeBackup {
    file: PathBuf,
    size_bytes: u64,
    segments: usize,
    keys: Vec<String>,
}

impl WholeBackup {
    /// Says what there is.
    pub fn tell(&self) -> Outcome {
        let file = &self.file;
        show::out(&format!("{}  {} bytes\n", file.display(), self.size_bytes))?;
        show::out(&format!(
            "{}  its MAC: keep the two together\n",
            backup_mac::beside(file).display()
        ))?;
        if self.segments > 0 {
            let folder = segments::beside(file);
            show::out(&format!(
                "{}  {} segments of recorded history\n",
                folder.display(),
                self.segments
            ))?;
        }
        self.tell_keys()
    }

    /// Says which keys a restore needs.
    pub fn tell_keys(&self) -> Outcome {
        show::out(&format!(
            "A restore needs these keys, which are not in the backup: {}\n",
            self.keys.join(", ")
        ))
    }
}

/// Makes a backup in a new file.
pub fn make(config: &Config, file: &Path, now: Timestamp) -> Result<WholeBackup, Failure> {
    let location = config.store.location()?;
    let mut conn = open(&location)?;
    let known: Vec<(String, Vec<u8>)> =
        conn.read(|tx| tx.query(&KEY_CHECKS, params![], |row| Ok((row.get(0)?, row.get(1)?))))?;
    let keys = keys(config)?;
    keys.verify(&known)?;
    create(file)?;
    if let Err(failure) = fill(&mut conn, file, now) {
        // Half a backup would only be mistaken for one.
        let _ = std::fs::remove_file(file);
        return Err(failure);
    }
    let failed = |error| Failure::of_file("the backup cannot be made durable", file, &error);
    let size_bytes = sync(file).map_err(failed)?;
    let segments = backup_mac::write(&keys, file)
        .and_then(|()| segments::back_up(config, file))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(file);
            let _ = std::fs::remove_file(backup_mac::beside(file));
        })?;
    Ok(WholeBackup {
        file: file.to_owned(),
        size_bytes,
        segments,
        keys: known.into_iter().map(|(id, _)| id).collect(),
    })
}

/// Opens the keys of the store.
pub fn keys(config: &Config) -> Result<Keys, Failure> {
    let keys_dir = config.store.keys_dir().0;
    Keys::open(&keys_dir).map_err(|error| {
        Failure::from(error)
            .during("a backup gets a MAC under the keys of the store; name their folder with --keys-dir")
    })
}

/// Returns an instant as it stands in the names of backups.
pub fn stamp(now: Timestamp) -> String {
    now.to_rfc3339().replace([':', '.'], "-")
}

fn file(target: &Path, now: Timestamp) -> PathBuf {
    if !target.is_dir() {
        return target.to_owned();
    }
    target.join(format!("provost-{}.db", stamp(now)))
}

/// Opens a store that is there and of this version.
pub fn open(location: &Location) -> Result<Conn, Failure> {
    if let Location::Sqlite(file) = location
        && !file.is_file()
    {
        return Err(Failure::new(format!("there is no store at {}", file.display())));
    }
    let mut conn = Conn::open_to_inspect(location).map_err(|error| opening(error, location))?;
    if !is_migrated(&mut conn, ALL.migrations()).map_err(|error| opening(error, location))? {
        return Err(Failure::new(
            "the store is of an older version; start `provost serve` on it once",
        ));
    }
    lift_statement_timeouts(&mut conn)?;
    Ok(conn)
}

/// Creates a file for its owner alone; one that is there is never overwritten.
pub fn create(file: &Path) -> Outcome {
    let failed = |error: &std::io::Error| Failure::of_file("the file cannot be made", file, error);
    if make_private_file(file).map_err(|error| failed(&error))? {
        return Ok(());
    }
    Err(failed(&std::io::Error::from(std::io::ErrorKind::AlreadyExists)))
}

fn fill(conn: &mut Conn, file: &Path, now: Timestamp) -> Outcome {
    if conn.engine() == Engine::Sqlite {
        let path = file
            .to_str()
            .ok_or_else(|| Failure::usage("the backup's path is not UTF-8"))?;
        conn.tx().execute(&COPY_INTO, params![path])?;
        return Ok(());
    }
    let mut target = Conn::open(&Location::Sqlite(file.to_owned()), Access::Write)?;
    migrate(&mut target, ALL.migrations(), now)?;
    copy::all(conn, &mut target)?;
    // Whether the log could be copied into the file is told here alone; then one file, without a log beside it.
    target.checkpoint()?;
    Ok(target.batch("PRAGMA journal_mode = DELETE")?)
}

/// Makes a file and its name durable and returns its size.
pub fn sync(file: &Path) -> std::io::Result<u64> {
    let opened = File::open(file)?;
    opened.sync_all()?;
    let folder = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok(opened.metadata()?.len())
}
