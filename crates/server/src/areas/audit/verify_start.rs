//! What start-up demands of the store: its chains reach, and agree with, the checkpoints beside the keys, and
//! their heads carry this installation's MAC (D12.5, AU-3).

use super::model::{CheckpointLine, origin};
use super::store;
use super::tree::StoredTree;
use provost_kernel::audit::{Head, hex};
use provost_kernel::checkpoint::parse_and_verify;
use provost_kernel::db::Tx;
use provost_kernel::keys::Keys;
use provost_kernel::merkle;
use provost_kernel::{Code, Error, Kernel, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Refuses a store that was changed from outside, or rolled back, since the last checkpoint.
///
/// Errors: `AuditUnavailable` with a sentence that says what is wrong and what to do.
/// Cost: some six indexed reads an organization, and one reading of `checkpoints.jsonl`.
pub async fn verify_start(kernel: &Arc<Kernel>) -> Result<()> {
    let shared = kernel.clone();
    let lines = tokio::task::spawn_blocking(move || shared.keys.checkpoint_lines()).await;
    let newest = newest(&lines.map_err(Error::internal)??)?;
    let shared = kernel.clone();
    kernel
        .read_system(move |tx| {
            let heads = store::heads(tx)?;
            heads
                .iter()
                .try_for_each(|head| check_head(tx, &shared.keys, head))?;
            newest
                .values()
                .try_for_each(|line| check_line(tx, &shared.keys, line))
        })
        .await
}

/// Returns the last line of every organization. A restore of the store ends the file with lines of its own,
/// which then are what the store is measured against (D12.9).
fn newest(lines: &[String]) -> Result<BTreeMap<String, CheckpointLine>> {
    let mut newest = BTreeMap::new();
    for (place, text) in lines.iter().enumerate() {
        let line: CheckpointLine = serde_json::from_str(text).map_err(|e| {
            refuse(format!(
                "line {} of checkpoints.jsonl in the keys folder is no checkpoint",
                place + 1
            ))
            .caused_by(e)
        })?;
        newest.insert(line.organization_id.clone(), line);
    }
    Ok(newest)
}

fn check_head(tx: &mut Tx<'_>, keys: &Keys, head: &Head) -> Result<()> {
    let organization = head.organization.as_str();
    if !head.is_authentic(keys) {
        return Err(refuse(format!(
            "the head of the audit chain {organization} does not carry this installation's MAC: the store was \
             changed from outside, or it belongs to other keys"
        )));
    }
    let (length, hash) = store::tail(tx, organization)?.unwrap_or((0, [0; 32]));
    if length == head.seq && hash == head.hash {
        return Ok(());
    }
    Err(refuse(format!(
        "the audit chain {organization} ends with entry {length}, which is not the one that its head of {} \
         entries names: the store was changed from outside",
        head.seq
    )))
}

fn check_line(tx: &mut Tx<'_>, keys: &Keys, line: &CheckpointLine) -> Result<()> {
    let CheckpointLine {
        organization_id: organization,
        size,
        time,
        ..
    } = line;
    let signed = parse_and_verify(&line.note, &keys.checkpoint_public_keys()).map_err(|e| {
        refuse(format!(
            "the last checkpoint of {organization} in checkpoints.jsonl is not signed by a key of this installation"
        ))
        .caused_by(e)
    })?;
    let is_consistent =
        signed.origin == origin(organization) && signed.size == *size && hex(&signed.root) == line.root_hash;
    if !is_consistent {
        let message =
            format!("the last checkpoint of {organization} in checkpoints.jsonl contradicts its own note");
        return Err(refuse(message));
    }
    let length = store::length(tx, organization)?;
    if u64::try_from(length).is_ok_and(|length| length < *size) {
        return Err(refuse(format!(
            "the store is behind its last checkpoint: the audit chain {organization} has {length} entries, and \
             the checkpoint of {time} covers {size}; start the newer store, or restore a backup with provost \
             store restore"
        )));
    }
    if merkle::root(*size, &mut StoredTree::new(tx, organization, *size))? == signed.root {
        return Ok(());
    }
    Err(refuse(format!(
        "the store disagrees with its last checkpoint: the first {size} entries of the audit chain \
         {organization} are not those that were signed at {time}; restore a backup with provost store restore"
    )))
}

fn refuse(message: String) -> Error {
    Error::new(Code::AuditUnavailable, message)
}
