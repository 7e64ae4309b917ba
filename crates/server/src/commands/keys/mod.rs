//! `provost keys`: the key material of an installation (D12.8).

mod passphrase;
mod transfer;

pub use transfer::{Export, Import};

use super::failure::Outcome;
use super::show;
use super::store_flags::StoreFlags;
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use serde_json::json;

/// List the keys, without the keys themselves.
#[derive(clap::Parser)]
#[command(
    name = "list",
    after_help = "Examples:
  provost keys list
  provost keys list --json --keys-dir /etc/provost/keys"
)]
pub struct List {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlags,
}

impl List {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let (dir, _) = self.store.load_quietly()?.store.keys_dir();
        let keys = Keys::open(&dir)?.ids();
        if self.json {
            let entry = |key: &provost_kernel::keys::KeyInfo| json!({ "id": key.id, "purpose": key.purpose, "createdAt": key.created, "current": key.current });
            return show::out(&format!(
                "{}\n",
                serde_json::Value::Array(keys.iter().map(entry).collect())
            ));
        }
        let mut table = show::table(["ID", "PURPOSE", "CREATED", "CURRENT"]);
        for key in keys {
            let current = if key.current { "yes" } else { "no" };
            table.add_row([key.id.as_str(), key.purpose, &key.created.to_string(), current]);
        }
        show::out(&format!("{table}\n"))
    }
}

/// Make the next key of a purpose. Older keys stay: what was made with them must still be checked.
///
/// A running server uses the new key after its next start.
#[derive(clap::Parser)]
#[command(
    name = "rotate",
    after_help = "Examples:
  provost keys rotate pepper
  provost keys rotate checkpoint --keys-dir /etc/provost/keys"
)]
pub struct Rotate {
    /// Which key
    #[arg(value_parser = ["pepper", "sealing", "audit", "checkpoint", "signing"])]
    purpose: String,
    #[command(flatten)]
    store: StoreFlags,
}

impl Rotate {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let (dir, _) = self.store.load_quietly()?.store.keys_dir();
        let id = Keys::rotate(&dir, &self.purpose, SystemClock::new().now(), &SystemEntropy)?;
        show::out(&format!(
            "{id} was made. Restart the server to use it, and export the keys again.\n"
        ))?;
        Ok(())
    }
}
