//! `provost store accept`: goes on with a store that changed while it was closed.

use super::accept_clock;
use crate::closing;
use crate::commands::failure::{Failure, Outcome};
use crate::commands::lock;
use crate::commands::show;
use crate::commands::store_flags::{Absent, Place, StoreFlags, block_on, brief, opening};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn};

/// Go on with a store whose organizations, service accounts or tokens changed while it was closed, or with a clock that is
/// doubted.
///
/// A server refuses to start on a store that changed: a disk may have spoilt it, or somebody edited it. Restoring a backup is
/// the safe way; this one leaves everything as it is, and the entry `store.accepted` in the audit log. Look at the accounts
/// and tokens afterwards.
///
/// With --clock it says that the clock of this machine is right: servers doubt it no longer, and what ends by time ends by it
/// again. With --removals it lets go what waits because a round would remove more than a tenth. Both leave an audit entry.
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
        if !closing::accept(&mut conn)? {
            return show::out("Nothing says that this store changed while it was closed.\n");
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
