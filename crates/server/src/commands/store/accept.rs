//! `provost store accept`: goes on with a store that changed while it was closed.

use super::accept_clock;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::show;
use crate::commands::store_flags::{Absent, Place, StoreFlags, block_on, brief, opening};
use crate::{closing, migrations, proofs};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn, is_migrated};

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
#[derive(clap::Parser)]
#[command(
    name = "accept",
    after_help = "Examples:
  provost store check
  provost store accept
  provost store accept --clock
  provost store accept --removals"
)]
pub struct Accept {
    /// Say that the clock of this machine is right
    #[arg(long)]
    clock: bool,
    /// Let rounds that would remove very much act at once
    #[arg(long, conflicts_with = "clock")]
    removals: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Accept {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let place = Place::find(&config, Absent::Refuse)?;
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
        let mut conn =
            Conn::open(&place.location, Access::Write).map_err(|error| opening(error, &place.location))?;
        let disagreeing = if is_migrated(&mut conn, migrations::ALL)? {
            conn.read(|tx| proofs::findings(tx, &place.keys))?
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
            proofs::renew(&mut conn, &place.keys, place.clock.now())?;
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
}
