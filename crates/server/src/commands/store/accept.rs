//! `provost store accept`: goes on with a store that changed while it was closed, or that was moved and comes back.

use super::{accept_clock, accept_lost, moved_back};
use crate::areas::ALL;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::show;
use crate::commands::store_flags::{Absent, StoreFlags, StoreLocation, block_on, brief, opening};
use crate::config::Store;
use crate::{closing, proofs};
use provost_kernel::Secret;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn, is_migrated};
use provost_kernel::keys::Keys;
use std::path::PathBuf;

/// Go on with a store whose organizations, service accounts or tokens changed while it was closed, or with a clock that is
/// doubted.
///
/// A server refuses to start on a store that changed: a disk may have spoilt it, or somebody edited it. Restoring a backup is
/// the safe way; this one leaves everything as it is, and the entry `store.accepted` in the audit log. Look at the accounts
/// and tokens afterwards.
///
/// With --clock it says that the clock of this machine is right: servers doubt it no longer, and what ends by time ends by it
/// again. With --removals it lets go what waits because a round would remove more than a tenth. Both leave an audit entry.
///
/// It does the same for rows that decide rights and that another hand changed while a server ran, which `store check` names: it
/// names them once more, takes them as they are, and leaves the entry `rights.accepted`.
///
/// With --moved-back a store that `provost store move` marked is served again, while the database that it was moved to holds
/// nothing newer; that database is marked instead.
///
/// With --lost a store that went back, as after a failover that lost changes, is served again, in a new epoch. It shows how much
/// is left and how much is proven, takes away again what ends.jsonl in the keys folder names and the store forgot, and says what
/// somebody has to do by hand. Where that file cannot say all of it, everybody is held back as after a restore. Run it again if
/// it is cut off.
#[derive(clap::Parser)]
#[command(
    name = "accept",
    after_help = "Examples:
  provost store check
  provost store accept
  provost store accept --clock
  provost store accept --removals
  provost store accept --lost --yes
  provost store accept --moved-back --moved-to-file /run/secrets/database-url"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Accept {
    /// Say that the clock of this machine is right
    #[arg(long)]
    clock: bool,
    /// Let rounds that would remove very much act at once
    #[arg(long, conflicts_with = "clock")]
    removals: bool,
    /// Go on with a store that went back, and take away again what it forgot
    #[arg(long, conflicts_with_all = ["clock", "removals", "moved_back"])]
    lost: bool,
    /// Ask nothing
    #[arg(long, requires = "lost")]
    yes: bool,
    /// Serve a store again that was moved, in place of the database that it was moved to
    #[arg(long, conflicts_with_all = ["clock", "removals"])]
    moved_back: bool,
    /// The database that it was moved to. Every process can see a flag: with a password, prefer --moved-to-file
    #[arg(
        long,
        value_name = "URL",
        requires = "moved_back",
        conflicts_with = "moved_to_file"
    )]
    moved_to: Option<String>,
    /// A file with the URL of the database that it was moved to
    #[arg(long, value_name = "FILE", requires = "moved_back")]
    moved_to_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreFlags,
}

impl Accept {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let place = StoreLocation::find(&config, Absent::Refuse)?;
        let _lock = match &place.data_dir {
            Some(folder) => Some(lock::take(folder)?),
            None => None,
        };
        if self.clock {
            return accept_clock::clock(place);
        }
        if self.removals {
            return accept_clock::removals(place);
        }
        if self.lost {
            return accept_lost::lost(place, self.yes);
        }
        let mut conn =
            Conn::open(&place.location, Access::Write).map_err(|error| opening(error, &place.location))?;
        if self.moved_back {
            return self.take_back(&mut conn, &place.keys, config.store.database_plaintext);
        }
        let disagreeing = if is_migrated(&mut conn, ALL.migrations())? {
            conn.read(|tx| proofs::findings(&ALL, tx, &place.keys))?
        } else {
            Vec::new()
        };
        if !closing::accept(&mut conn)? && disagreeing.is_empty() {
            return show::out("Nothing says that this store changed while it was closed.\n");
        }
        for finding in &disagreeing {
            show::note(&finding.to_string());
        }
        if !disagreeing.is_empty() {
            proofs::renew(&ALL, &mut conn, &place.keys, place.clock.now())?;
        }
        drop(conn);
        let kernel = place.start(brief())?;
        let noted = block_on(async {
            let noted = kernel
                .system(OrganizationId::installation(), Some("store.accepted"), |_| Ok(()))
                .await;
            kernel.stop().await;
            noted
        })?;
        noted.map_err(Failure::from)?;
        show::out(
            "The store is taken as it is, and the audit log says so. Look at its accounts and tokens.\n",
        )
    }

    fn take_back(&self, conn: &mut Conn, keys: &Keys, database_plaintext: bool) -> Outcome {
        if self.moved_to.is_none() && self.moved_to_file.is_none() {
            return Err(Failure::usage(
                "name the database that the store was moved to, with --moved-to-file: whether it holds anything newer is asked \
                 there. One that is gone can be replaced by an empty one",
            ));
        }
        let to = Store {
            database_url: self.moved_to.clone().map(Secret::new),
            database_url_file: self.moved_to_file.clone(),
            database_plaintext,
            ..Store::default()
        };
        moved_back::take_back(conn, keys, &to.location()?)?;
        show::out("The store is served again, and the database that it was moved to is not.\n")
    }
}
