//! `provost keys`: the key material of an installation (D12.8).

mod activate;
mod passphrase;
mod transfer;

pub use activate::Activate;
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
            let entry = |key: &provost_kernel::keys::KeyInfo| json!({ "id": key.id, "purpose": key.purpose, "createdAt": key.created, "current": key.current, "pending": key.pending });
            return show::out(&format!(
                "{}\n",
                serde_json::Value::Array(keys.iter().map(entry).collect())
            ));
        }
        let mut rows = Vec::new();
        for key in keys {
            let current = match (key.current, key.pending) {
                (true, _) => "yes",
                (false, true) => "not yet",
                (false, false) => "no",
            };
            rows.push(vec![
                key.id.clone(),
                key.purpose.to_owned(),
                key.created.to_string(),
                current.to_owned(),
            ]);
        }
        show::out(&show::table(["ID", "PURPOSE", "CREATED", "CURRENT"], &rows))
    }
}

/// Make the next key of a purpose. Older keys stay: what was made with them must still be checked.
///
/// The new key waits: running servers read it, and use it after `provost keys activate`, or by themselves ten minutes after all
/// of them have read it.
#[derive(clap::Parser)]
#[command(
    name = "rotate",
    after_help = "Examples:
  provost keys rotate pepper
  provost keys rotate signing --now"
)]
pub struct Rotate {
    /// Which key
    #[arg(value_parser = ROTATING)]
    purpose: String,
    /// Use the key at once: for a key that leaked. Servers that have not read it yet may refuse what others make, for seconds
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    store: StoreFlags,
}

/// The purposes whose keys rotate.
const ROTATING: [&str; 5] = ["pepper", "sealing", "audit", "checkpoint", "signing"];

impl Rotate {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let (dir, _) = self.store.load_quietly()?.store.keys_dir();
        let now = SystemClock::new().now();
        let said = if self.now {
            let id = Keys::rotate(&dir, &self.purpose, now, &SystemEntropy)?;
            format!(
                "{id} was made and is active: running servers use it within 15 seconds. Export the keys again.\n"
            )
        } else {
            let id = Keys::prepare_next(&dir, &self.purpose, now, &SystemEntropy)?;
            format!(
                "{id} was made and waits: running servers read it within 15 seconds. Use it with `provost keys activate {}`, or let them \
                 do so ten minutes after all have read it. Export the keys again.\n",
                self.purpose
            )
        };
        show::out(&said)?;
        Ok(())
    }
}
