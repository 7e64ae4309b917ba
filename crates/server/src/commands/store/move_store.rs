//! `provost store move`: from SQLite to PostgreSQL.

use super::{backup, copy, segments};
use crate::commands::failure::Outcome;
use crate::commands::lock;
use crate::commands::logging;
use crate::commands::store_flags::opening;
use crate::config::{Log, Store};
use crate::migrations;
use provost_kernel::Secret;
use provost_kernel::db::{Access, Conn, Location, migrate};
use provost_kernel::time::{Clock, SystemClock};
use std::path::PathBuf;

/// Copy the store of a data folder into an empty PostgreSQL database.
///
/// The server must be stopped. The data folder stays as it is; the keys stay where they are and serve the
/// database from then on. Do not start a server on the folder again: the two would go separate ways.
#[derive(clap::Parser)]
#[command(
    name = "move",
    after_help = "Examples:
  provost store move --from ./provost-data --to-file /run/secrets/database-url
  provost store move --from ./provost-data --to postgres://provost@db.example.com/provost"
)]
pub struct Move {
    /// The data folder
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
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
}

impl Move {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        logging::start(&Log::default(), logging::BRIEF)?;
        let target = Store {
            database_url: self.to.clone().map(Secret::new),
            database_url_file: self.to_file.clone(),
            ..Store::default()
        };
        let target = target.location()?;
        let source = Location::Sqlite(self.from.join("provost.db"));
        let mut from = backup::open(&source)?;
        let _lock = lock::take(&self.from)?;
        let mut to = Conn::open(&target, Access::Write).map_err(|error| opening(error, &target))?;
        migrate(&mut to, migrations::ALL, SystemClock::new().now())
            .map_err(|error| opening(error, &target))?;
        let rows = copy::all(&mut from, &mut to)?;
        println!("{rows} rows were copied and counted.");
        if !segments::named(&source)?.is_empty() {
            println!(
                "The segments of recorded history stay where they are: if that is {}, make it history.folder of the \
                 server's configuration.",
                self.from.join("history").display()
            );
        }
        println!(
            "Start the server with --database-url-file and the same --keys-dir, and do not use {} again.",
            self.from.display()
        );
        Ok(())
    }
}
