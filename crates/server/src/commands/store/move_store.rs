//! `provost store move`: from SQLite to PostgreSQL.

use super::{backup, copy, segments};
use crate::areas::ALL;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::logging;
use crate::commands::show;
use crate::commands::store_flags::{look_around, opening};
use crate::config::{Config, Environment, Log, Store};
use provost_areas_platform::audit::{self, ForeignStorePolicy, Register};
use provost_areas_platform::identity::{self, Identity, State};
use provost_areas_policy::history;
use provost_kernel::Secret;
use provost_kernel::db::{Access, Conn, Location, migrate};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use std::path::PathBuf;

/// Copy the store of a data folder into an empty PostgreSQL database.
///
/// The server must be stopped. The keys stay where they are and serve the database from then on. The store in the data folder
/// is marked as moved, and no server starts on it again: the two would go separate ways. `provost store accept --moved-back`
/// takes the mark off while the database holds nothing newer.
///
/// Only a store that agrees with the last checkpoint beside its keys is moved: in one that is behind it, what was taken away
/// since would come back to life. Such a store is restored from a backup with `provost store restore`, which holds everybody
/// back.
#[derive(clap::Parser)]
#[command(
    name = "move",
    after_help = "Examples:
  provost store move --from ./provost-data --to-file /run/secrets/database-url
  provost store move --from ./provost-data --keys-dir /etc/provost/keys --to-file /run/secrets/database-url
  provost store move --from ./provost-data --to postgres://provost@db.example.com/provost"
)]
#[expect(clippy::doc_markdown, reason = "the texts are shown as they are, in the help")]
pub struct Move {
    /// The data folder
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The keys folder of the store [env: PROVOST_KEYS_DIR] [default: keys in the data folder]
    #[arg(long, value_name = "DIR")]
    keys_dir: Option<PathBuf>,
    /// The database. Every process can see a flag: with a password, prefer --to-file
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "to_file",
        conflicts_with = "to_file"
    )]
    to: Option<String>,
    /// A file with the database's URL
    #[arg(long, value_name = "FILE")]
    to_file: Option<PathBuf>,
    /// Let the connection to a database on another machine go without TLS where its URL says so: everybody on the way can
    /// read and change what passes [env: PROVOST_DATABASE_PLAINTEXT]
    #[arg(long)]
    database_plaintext: bool,
}

impl Move {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        logging::start(&Log::default(), logging::BRIEF)?;
        let configured = Config::load(None, &Environment::of_process())?.store;
        let target = Store {
            database_url: self.to.clone().map(Secret::new),
            database_url_file: self.to_file.clone(),
            database_plaintext: self.database_plaintext || configured.database_plaintext,
            ..Store::default()
        };
        let target = target.location()?;
        let source = Location::Sqlite(self.from.join("provost.db"));
        let mut from = backup::open(&source)?;
        let _lock = lock::take(&self.from)?;
        let (keys, identity) = self.compare(&mut from, configured.keys_dir)?;
        look_around(&target)?;
        let mut to = Conn::open(&target, Access::Write).map_err(|error| opening(error, &target))?;
        migrate(&mut to, ALL.migrations(), SystemClock::new().now())
            .map_err(|error| opening(error, &target))?;
        // Both carry the mark until all is done: whenever this is cut off, no more than one of them can be served.
        identity.clone().with(State::Moved).write(&mut from, &keys)?;
        let rows = copy::all(&mut from, &mut to).or_else(|failure| {
            identity.write(&mut from, &keys)?;
            Err(failure)
        })?;
        history::forget_empty_place(&mut to)?;
        identity.write(&mut to, &keys)?;
        show::out(&format!("{rows} rows were copied and counted.\n"))?;
        if !segments::named(&source)?.is_empty() {
            show::out(&format!(
                "The segments of recorded history stay where they are: if that is {}, make it history.folder of the \
                 server's configuration.\n",
                self.from.join("history").display()
            ))?;
        }
        show::out(&format!(
            "Start the server with --database-url-file and the same --keys-dir. The store in {} is marked as moved.\n",
            self.from.display()
        ))?;
        Ok(())
    }

    /// Refuses a store that a server would refuse, and returns its keys and what it is.
    fn compare(&self, from: &mut Conn, configured: Option<PathBuf>) -> Result<(Keys, Identity), Failure> {
        let folder = self.keys_dir.clone().or(configured);
        let folder = folder.unwrap_or_else(|| self.from.join("keys"));
        if !Keys::exists(&folder) {
            return Err(Failure::new(format!(
                "the keys of this store are not in {}; name their folder with --keys-dir: only a store that agrees with the \
                 checkpoints beside its keys is moved",
                folder.display()
            )));
        }
        let keys = Keys::open(&folder)?;
        let register = Register::of(&keys.checkpoint_lines()?)?;
        let known = from.read(|tx| {
            audit::verify_store(tx, &keys, &register, ForeignStorePolicy::Refuse)?;
            Ok((identity::read(tx, &keys)?, identity::epoch(tx)?))
        })?;
        let identity = match known {
            (Some(known), _) => known,
            // No server of this build has opened it: its id travels with it, and is written down where it is served.
            (None, epoch) => Identity::new(&SystemEntropy, epoch, State::Live),
        };
        Ok((keys, identity))
    }
}
