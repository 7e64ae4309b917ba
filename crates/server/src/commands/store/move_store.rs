//! `provost store move`: from SQLite to PostgreSQL.

use super::{backup, copy, segments};
use crate::areas::audit;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::logging;
use crate::commands::show;
use crate::commands::store_flags::{look_around, opening};
use crate::config::{Config, Environment, Log, Store};
use crate::migrations;
use provost_kernel::Secret;
use provost_kernel::db::{Access, Conn, Location, migrate};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use std::path::PathBuf;

/// Copy the store of a data folder into an empty PostgreSQL database.
///
/// The server must be stopped. The data folder stays as it is; the keys stay where they are and serve the
/// database from then on. Do not start a server on the folder again: the two would go separate ways.
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
        self.compare(&mut from, configured.keys_dir)?;
        look_around(&target)?;
        let mut to = Conn::open(&target, Access::Write).map_err(|error| opening(error, &target))?;
        migrate(&mut to, migrations::ALL, SystemClock::new().now())
            .map_err(|error| opening(error, &target))?;
        let rows = copy::all(&mut from, &mut to)?;
        show::out(&format!("{rows} rows were copied and counted.\n"))?;
        if !segments::named(&source)?.is_empty() {
            show::out(&format!(
                "The segments of recorded history stay where they are: if that is {}, make it history.folder of the \
                 server's configuration.\n",
                self.from.join("history").display()
            ))?;
        }
        show::out(&format!(
            "Start the server with --database-url-file and the same --keys-dir, and do not use {} again.\n",
            self.from.display()
        ))?;
        Ok(())
    }

    /// Refuses a store that is behind the last checkpoint beside its keys, or disagrees with it.
    fn compare(&self, from: &mut Conn, configured: Option<PathBuf>) -> Outcome {
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
        let lines = keys.checkpoint_lines()?;
        from.read(|tx| audit::verify_store(tx, &keys, &lines))?;
        Ok(())
    }
}
