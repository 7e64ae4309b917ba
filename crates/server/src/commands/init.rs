//! `provost init`: an organization and its admin account, without serving.

use super::failure::Outcome;
use super::show;
use super::store_flags::{Absent, StoreFlags, StoreLocation, block_on, brief};
use crate::app;
use provost_areas_platform::audit::{self, ForeignStorePolicy};
use provost_kernel::Kernel;
use std::sync::Arc;

/// Make an organization and its first admin account, without starting a server.
///
/// Runs beside a server that uses the same store. The token is shown once.
#[derive(clap::Parser)]
#[command(
    name = "init",
    after_help = "Examples:
  provost init --organization \"Acme Ltd\"
  provost init --organization \"Acme Ltd\" --organization-id acme --json
  provost init --organization Acme --database-url-file /run/secrets/database-url --keys-dir /etc/provost/keys"
)]
pub struct Init {
    /// The organization's name
    #[arg(long, value_name = "NAME")]
    organization: String,
    /// The organization's key, which stands in every path [default: made from the name]
    #[arg(long, value_name = "KEY")]
    organization_id: Option<String>,
    /// Make a new store although the keys have served another one, which stays what it is
    #[arg(long)]
    new: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl Init {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let (absent, stranger) = if self.new {
            (Absent::MakeNew, ForeignStorePolicy::Take)
        } else {
            (Absent::Make, ForeignStorePolicy::Refuse)
        };
        let kernel = StoreLocation::find(&config, absent)?.start(brief())?;
        block_on(async {
            let done = self.make(&kernel, stranger).await;
            kernel.stop().await;
            done
        })?
    }

    async fn make(&self, kernel: &Arc<Kernel>, stranger: ForeignStorePolicy) -> Outcome {
        audit::verify_start(kernel, stranger).await?;
        let made = app::bootstrap(kernel, &self.organization, self.organization_id.as_deref()).await?;
        // The token first: it is shown once, and the line can be written by the next start.
        let shown = if self.json {
            show::account_json(&made)
        } else {
            show::account(&made)
        };
        audit::served(kernel).await?;
        shown
    }
}
