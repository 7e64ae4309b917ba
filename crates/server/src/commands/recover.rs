//! `provost recover`: a way back into an organization that nobody can administer any more (D3.3).

use super::failure::{Failure, Outcome};
use super::show;
use super::store_flags::{Absent, StoreFlags, StoreLocation, block_on, brief};
use crate::app;
use provost_areas_platform::audit::{self, ForeignStorePolicy};

/// Make a new admin account in an organization whose admins have lost their tokens.
///
/// Needs the store and the keys, and leaves the entry `organization.recovered` in the audit log. Runs beside a
/// server, and refuses a store that a server would refuse. The token is shown once.
#[derive(clap::Parser)]
#[command(
    name = "recover",
    after_help = "Examples:
  provost recover --organization default
  provost recover --organization acme --lift-acts-of-two
  provost recover --organization acme --json --database-url-file /run/secrets/database-url"
)]
pub struct Recover {
    /// The organization's key, as in the paths
    #[arg(long, value_name = "KEY")]
    organization: String,
    /// Also have nothing need a second person any more (settings: approvals.requireFor), where nobody is left who could say yes
    #[arg(long)]
    lift_acts_of_two: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Recover {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let kernel = StoreLocation::find(&config, Absent::Refuse)?.start(brief())?;
        let made = block_on(async {
            // What is not served is not recovered either: the account would be one in a store that went back.
            let made = match audit::verify_start(&kernel, ForeignStorePolicy::Refuse).await {
                Ok(()) => app::recover(&kernel, &self.organization, self.lift_acts_of_two).await,
                Err(error) => Err(error),
            };
            kernel.stop().await;
            made
        })?;
        let made = made.map_err(Failure::from)?;
        if self.json {
            show::account_json(&made)
        } else {
            show::account(&made)
        }
    }
}
