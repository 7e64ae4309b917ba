//! `provost audit verify`: was the audit log changed? Offline, on an export or on a store (D12.5).

mod anchors;
mod stored;

pub use stored::STATEMENTS;

use super::failure::{Failure, Outcome};
use super::show;
use super::store_flags::StoreFlags;
use anchors::TrustAnchors;
use provost_areas_platform::audit::{Report, Verifier};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Verify the audit log of a store, or an export of it, from its first entry on.
///
/// Names the first entry that was edited, deleted, inserted or swapped, or where the log was cut off. Says which
/// signed checkpoint it relied on and what it cannot vouch for. Exit code 0: unchanged; 1: changed.
#[derive(clap::Parser)]
#[command(
    name = "verify",
    after_help = "Examples:
  provost audit verify
  provost audit verify --organization acme --checkpoint kept-elsewhere.txt
  provost audit verify --export audit.jsonl --checkpoint kept-elsewhere.txt --public-keys provost-keys.json"
)]
pub struct Verify {
    /// Verify this export (JSON Lines, from the first entry on) instead of a store
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// A signed checkpoint that was kept elsewhere: a note, an API answer, or checkpoints.jsonl
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The organization's key [default: every organization of a store; the one that an export names]
    #[arg(long, value_name = "KEY")]
    organization: Option<String>,
    /// Trust these public keys (the answer of /.well-known/provost-keys.json) instead of the keys folder
    #[arg(long, value_name = "FILE")]
    public_keys: Option<PathBuf>,
    #[command(flatten)]
    store: StoreFlags,
}

impl Verify {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load_quietly()?;
        let trusted = match &self.public_keys {
            Some(file) => Some(TrustAnchors::of_file(file)?),
            None => TrustAnchors::of_folder(&config.store.keys_dir().0)?,
        };
        let given = match (&self.checkpoint, &trusted) {
            (None, _) => Vec::new(),
            (Some(file), Some(trusted)) => trusted.read(file)?,
            (Some(_), None) => {
                return Err(Failure::usage(
                    "a checkpoint is worth its signature: name the keys with --public-keys or --keys-dir",
                ));
            }
        };
        if let Some(export) = &self.export {
            let report = verify_export(export, self.organization.as_deref(), &given)?;
            show::out(&format!("{report}\n"))?;
            return Ok(());
        }
        stored::verify(&config, self.organization.as_deref(), trusted.as_ref(), &given)
    }
}

fn verify_export(
    path: &Path,
    organization: Option<&str>,
    checkpoints: &[provost_kernel::checkpoint::Checkpoint],
) -> Result<Report, Failure> {
    let unreadable = |error| Failure::of_file("the export cannot be read", path, &error);
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?).lines();
    let Some(first) = lines.next() else {
        return Err(Failure::new(format!(
            "{} is empty: there is nothing to verify",
            path.display()
        )));
    };
    let first = first.map_err(unreadable)?;
    let organization = match organization {
        Some(organization) => organization.to_owned(),
        None => named_by(&first).ok_or_else(|| Failure::new("the first line is no audit entry"))?,
    };
    let changed = |finding| Failure::new(format!("{finding}"));
    let mut verifier = Verifier::new(organization);
    verifier.feed(&first).map_err(changed)?;
    for line in lines {
        verifier.feed(&line.map_err(unreadable)?).map_err(changed)?;
    }
    verifier.finish(checkpoints).map_err(changed)
}

fn named_by(line: &str) -> Option<String> {
    let entry: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(entry.get("organizationId")?.as_str()?.to_owned())
}
