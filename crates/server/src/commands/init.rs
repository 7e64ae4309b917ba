//! `provost init`: an organization and its admin account, without serving.

use super::failure::{Failure, Outcome};
use super::show;
use super::store_flags::{Absent, Place, StoreFlags, block_on, brief};
use crate::app;

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
        let kernel = Place::find(&config, Absent::Make)?.start(brief())?;
        let made = block_on(async {
            let made = app::bootstrap(&kernel, &self.organization, self.organization_id.as_deref()).await;
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
