//! The flags that say where the store and its keys are, and how a command opens them.
//!
//! Keeps WS-3.

use super::failure::Failure;
use super::logging;
use crate::app;
use crate::areas;
use crate::config::{Config, Environment};
use provost_areas_platform::audit;
use provost_areas_platform::store;
use provost_kernel::db::{self, Location};
use provost_kernel::durable::{close_to_others, make_folder};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use provost_kernel::{Kernel, Secret};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the store is. Every flag is also a key of the configuration file and a `PROVOST_…` variable.
#[derive(clap::Args)]
#[expect(clippy::doc_markdown, reason = "the texts are shown as they are, in the help")]
pub struct StoreFlags {
    /// Read the configuration from this TOML file [env: PROVOST_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep the data in this folder, in SQLite [env: PROVOST_DATA_DIR] [default: ./provost-data]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["database_url", "database_url_file"])]
    data_dir: Option<PathBuf>,
    /// Keep the data in this PostgreSQL database. Every process can see a flag: with a password, prefer
    /// --database-url-file [env: PROVOST_DATABASE_URL]
    #[arg(long, value_name = "URL", value_parser = secret, conflicts_with = "database_url_file")]
    database_url: Option<Secret<String>>,
    /// Keep the data in the PostgreSQL database whose URL is in this file [env: PROVOST_DATABASE_URL_FILE]
    #[arg(long, value_name = "FILE")]
    database_url_file: Option<PathBuf>,
    /// Let the connection to a PostgreSQL database on another machine go without TLS where its URL says so: everybody on the
    /// way can read and change what passes [env: PROVOST_DATABASE_PLAINTEXT]
    #[arg(long)]
    database_plaintext: bool,
    /// Keep the keys in this folder [env: PROVOST_KEYS_DIR] [default: keys in the data folder]
    #[arg(long, value_name = "DIR")]
    keys_dir: Option<PathBuf>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a value parser")]
fn secret(text: &str) -> Result<Secret<String>, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

impl StoreFlags {
    /// Returns the effective configuration: file < environment < flags.
    pub fn load(&self) -> Result<Config, Failure> {
        let mut config = Config::load(self.config.as_deref(), &Environment::of_process())?;
        let store = &mut config.store;
        if let Some(dir) = &self.data_dir {
            store.data_dir = Some(dir.clone());
            (store.database_url, store.database_url_file) = (None, None);
        }
        if let Some(url) = &self.database_url {
            store.database_url = Some(url.clone());
        }
        if let Some(file) = &self.database_url_file {
            store.database_url = None;
            store.database_url_file = Some(file.clone());
        }
        store.database_plaintext |= self.database_plaintext;
        if let Some(dir) = &self.keys_dir {
            store.keys_dir = Some(dir.clone());
        }
        Ok(config)
    }

    /// Returns the configuration of a command that is over soon, with its log started.
    pub fn load_quietly(&self) -> Result<Config, Failure> {
        let config = self.load()?;
        logging::start(&config.log, logging::BRIEF)?;
        Ok(config)
    }
}

/// Whether a command may make what is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Data folder, store and keys are made; beside keys that have served a store no other one is.
    Make,
    /// The same, and beside such keys as well.
    MakeNew,
    /// Their absence is an error.
    Refuse,
}

/// A store and what belongs to it, not yet opened.
pub struct StoreLocation {
    /// The store.
    pub location: Location,
    /// The data folder, when the store is in it.
    pub data_dir: Option<PathBuf>,
    /// The keys.
    pub keys: Keys,
    /// The present.
    pub clock: Arc<dyn Clock>,
}

impl StoreLocation {
    /// Finds the store and its keys, and makes them where `absent` says so.
    ///
    /// A store that knows keys never gets new ones: its tokens and its audit log would be worthless (D12.8).
    pub fn find(config: &Config, absent: Absent) -> Result<Self, Failure> {
        let location = config.store.location()?;
        look_around(&location)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let data_dir = match &location {
            Location::Sqlite(file) => Some(file.parent().unwrap_or(Path::new(".")).to_owned()),
            Location::Postgres(_) => None,
        };
        if let (Location::Sqlite(file), Some(dir)) = (&location, &data_dir) {
            match absent {
                Absent::Make if !file.is_file() && has_served(&config.store.keys_dir().0)? => {
                    return Err(Failure::new(audit::EMPTY));
                }
                Absent::Make | Absent::MakeNew => {
                    make_private(dir)?;
                    warn_of_open(dir)?;
                }
                Absent::Refuse if file.is_file() => make_private(dir)?,
                Absent::Refuse => {
                    return Err(Failure::new(format!("there is no store at {}", file.display())));
                }
            }
        }
        let (keys_dir, _) = config.store.keys_dir();
        let knows_keys = store::knows_keys(&location).map_err(|error| opening(error, &location))?;
        let keys = match (knows_keys, absent) {
            (true, _) if !Keys::exists(&keys_dir) => {
                return Err(Failure::new(format!(
                    "this store was written with keys that are not in {}; name their folder with --keys-dir, or \
                     bring them back with `provost keys import`",
                    keys_dir.display()
                )));
            }
            (true, Absent::Make | Absent::MakeNew) => {
                let known = store::known_key_labels(&location).map_err(|error| opening(error, &location))?;
                Keys::add_later_purposes(&keys_dir, &known, clock.now(), &SystemEntropy)?;
                Keys::open(&keys_dir)?
            }
            (true, Absent::Refuse) => Keys::open(&keys_dir)?,
            (false, Absent::Make) if has_served(&keys_dir)? => return Err(Failure::new(audit::EMPTY)),
            (false, Absent::Make | Absent::MakeNew) => {
                let keys = Keys::complete(&keys_dir, clock.now(), &SystemEntropy)?.0;
                keys.begin_ends(clock.now()).map_err(|error| {
                    Failure::of_file("ends.jsonl cannot be made in the keys folder", &keys_dir, &error)
                })?;
                keys
            }
            (false, Absent::Refuse) => {
                return Err(Failure::new(
                    "this store holds no installation; start one with `provost serve`",
                ));
            }
        };
        if absent == Absent::Make {
            keys.check_days()?;
        }
        Ok(Self {
            location,
            data_dir,
            keys,
            clock,
        })
    }

    /// Starts a kernel on the store.
    pub fn start(self, settings: Settings) -> Result<Arc<Kernel>, Failure> {
        self.start_with(settings, Extras::default())
    }

    /// Starts a kernel on the store with what the operator declared.
    pub fn start_with(self, settings: Settings, extras: Extras) -> Result<Arc<Kernel>, Failure> {
        let Self {
            location,
            keys,
            clock,
            ..
        } = self;
        let shown = location.clone();
        let entropy = Arc::new(SystemEntropy);
        app::start(app::Installation {
            areas: &areas::ALL,
            location,
            keys,
            clock,
            entropy,
            settings,
            extras,
        })
        .map_err(|error| opening(error, &shown))
    }
}

/// Says whether a keys folder has served a store (WS-3).
fn has_served(keys_dir: &Path) -> Result<bool, Failure> {
    Ok(Keys::has_checkpoint_lines(keys_dir)?)
}

/// Returns the settings of a command that makes one change and ends.
pub fn brief() -> Settings {
    Settings {
        readers: 1,
        writers: 1,
        rate_limits: false,
        ..Settings::default()
    }
}

/// Runs one command's asynchronous part.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no runtime could be started: {error}")))?;
    Ok(runtime.block_on(future))
}

/// Refuses what a store must not lie in, before anything is done to it.
pub fn look_around(location: &Location) -> Result<(), Failure> {
    db::look_around(location).map_err(|error| opening(error, location))
}

/// Says of a store that cannot be opened which one it is; a URL is not shown, it may hold a password.
pub fn opening(error: provost_kernel::Error, location: &Location) -> Failure {
    use provost_kernel::error::{Class, Code};
    let failure_class = error.work_class();
    if error.told().is_some() {
        return error.into();
    }
    let cause = error.private().unwrap_or_else(|| error.message().to_owned());
    let is_internal = error.code() == Code::Internal;
    let failure = Failure::from(error);
    match (failure_class, location) {
        (Class::Refused, _) if is_internal => failure.said(format!(
            "the store does not do what every store does: {cause}; see that the url or the folder is the one that is meant, and \
             run `provost store check`"
        )),
        (Class::Refused, _) => failure,
        (Class::Broken, Location::Sqlite(file)) => {
            failure.said(format!("{} is damaged, or is no SQLite file", file.display()))
        }
        (_, Location::Sqlite(file)) => {
            failure.during(&format!("the store {} cannot be opened", file.display()))
        }
        (_, Location::Postgres(_)) => failure.said(format!(
            "the PostgreSQL database cannot be reached; check its URL and that it runs: {cause}"
        )),
    }
}

/// Makes a folder for its owner alone.
///
/// Errors: one that everybody may write to: whoever may could put another store into its place.
pub fn make_private(dir: &Path) -> Result<(), Failure> {
    make_folder(dir).map_err(|error| Failure::of_file("the data folder cannot be made", dir, &error))?;
    if mode(dir)? & 0o002 != 0 {
        return Err(Failure::new(format!(
            "everybody on this machine may write to the data folder {0}, and could put another store into its place; take that \
             away with chmod 0700 {0}, and look at what lies in it",
            dir.display()
        )));
    }
    Ok(())
}

/// Warns of a folder that a group may write to, or that everybody may look into.
fn warn_of_open(dir: &Path) -> Result<(), Failure> {
    let mode = mode(dir)?;
    let who = match (mode & 0o020 != 0, mode & 0o005 != 0) {
        (true, true) => "its group may write to it, and everybody may look into it",
        (true, false) => "its group may write to it",
        (false, true) => "everybody may look into it",
        (false, false) => return Ok(()),
    };
    tracing::warn!(
        "the data folder {} is open to others: {who}; give it mode 0700",
        dir.display()
    );
    Ok(())
}

fn mode(dir: &Path) -> Result<u32, Failure> {
    let metadata = std::fs::metadata(dir);
    metadata
        .map(|metadata| metadata.mode())
        .map_err(|error| Failure::of_file("the data folder cannot be looked at", dir, &error))
}

/// Takes the files of a SQLite store from everybody but their owner (DU-2). The log and its index are there after a crash.
pub fn close_store(store: &Path) {
    for end in ["", "-wal", "-shm"] {
        let mut file = store.as_os_str().to_owned();
        file.push(end);
        let file = PathBuf::from(file);
        match close_to_others(&file) {
            Ok(false) => {}
            Ok(true) => tracing::warn!(
                "the file {} of the store was open to others; it is its owner's alone now",
                file.display()
            ),
            Err(error) => tracing::warn!(
                "the file {} of the store may be open to others, and that cannot be changed: {error}; give it mode 0600",
                file.display()
            ),
        }
    }
}
