//! What start-up demands of the store: its chains reach, and agree with, the checkpoints beside the keys, and
//! their heads carry this installation's MAC (D12.5, AL-3).

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
    let lines = kernel.blocking(move || shared.keys.checkpoint_lines()).await;
    let lines = lines??;
    let shared = kernel.clone();
    kernel
        .read_system(move |tx| verify_store(tx, &shared.keys, &lines))
        .await
}

/// As [`verify_start`], for a store without a kernel; `lines` are those of `checkpoints.jsonl`.
///
/// Errors: as [`verify_start`].
pub fn verify_store(tx: &mut Tx<'_>, keys: &Keys, lines: &[String]) -> Result<()> {
    let newest = newest(lines)?;
    let heads = store::heads(tx)?;
    heads.iter().try_for_each(|head| check_head(tx, keys, head))?;
    newest.values().try_for_each(|line| check_line(tx, keys, line))
}

/// Returns the last line of every organization. A restore of the store ends the file with lines of its own,
/// which then are what the store is measured against (D12.9).
pub(super) fn newest(lines: &[String]) -> Result<BTreeMap<String, CheckpointLine>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::areas::audit::make_checkpoints;
    use crate::areas::audit::testing::{World, on_every_store, statements::*};
    use provost_kernel::db::{Call, Param, Statement};
    use provost_kernel::params;

    fn verify(world: &mut World) -> Result<()> {
        world.restart();
        world.run(verify_start(&world.kernel))
    }

    fn refusal(world: &mut World) -> String {
        let error = verify(world).unwrap_err();
        assert_eq!(error.code(), Code::AuditUnavailable);
        error.message().to_owned()
    }

    fn change(world: &World, statement: &'static Statement, params: &[Param<'_>]) {
        let mut conn = world.open();
        conn.begin(&[]).unwrap();
        conn.commit(&[Call {
            statement,
            params: params.to_vec(),
        }])
        .unwrap();
    }

    fn checkpointed(world: &World, count: usize) {
        world.grow(count);
        world.advance_secs(60);
        world.run(make_checkpoints(&world.kernel)).unwrap();
    }

    #[test]
    fn an_untouched_store_starts() {
        on_every_store("start_untouched", |world| {
            verify(world).unwrap();
            checkpointed(world, 700);
            verify(world).unwrap();
            world.grow(5);
            verify(world).unwrap();
        });
    }

    #[test]
    fn a_store_that_was_rolled_back_is_refused() {
        on_every_store("start_behind", |world| {
            checkpointed(world, 20);
            let head = world.run(world.kernel.read_system(|tx| {
                tx.query_opt(&READ_HEAD, params!["acme"], |row| {
                    Ok((
                        row.get::<i64>(0)?,
                        row.get::<Vec<u8>>(1)?,
                        row.get::<Vec<u8>>(2)?,
                        row.get::<i64>(3)?,
                    ))
                })
            }));
            let (seq, hash, mac, events) = head.unwrap().unwrap();
            checkpointed(world, 20);
            change(world, &CUT, params!["acme", seq]);
            change(world, &SET_HEAD, params!["acme", seq, &hash, &mac, events]);
            let message = refusal(world);
            assert!(message.contains("behind its last checkpoint"), "{message}");
            assert!(
                message.contains("acme has 21 entries") && message.contains("covers 41"),
                "{message}"
            );
        });
    }

    #[test]
    fn a_store_whose_signed_entries_changed_is_refused() {
        on_every_store("start_disagrees", |world| {
            checkpointed(world, 20);
            change(world, &EDIT_HASH, params!["acme", 7_i64, [1_u8; 32]]);
            let message = refusal(world);
            assert!(
                message.contains("disagrees with its last checkpoint"),
                "{message}"
            );
        });
    }

    #[test]
    fn a_head_that_others_wrote_is_refused() {
        on_every_store("start_mac", |world| {
            world.grow(3);
            change(world, &SET_MAC, params!["acme", [0_u8; 32]]);
            let message = refusal(world);
            assert!(
                message.contains("does not carry this installation's MAC"),
                "{message}"
            );
        });
    }

    #[test]
    fn a_chain_without_its_last_entry_is_refused() {
        on_every_store("start_cut", |world| {
            world.grow(3);
            change(world, &CUT, params!["acme", 2_i64]);
            let message = refusal(world);
            assert!(
                message.contains("the audit chain acme ends with entry 2"),
                "{message}"
            );
        });
    }

    #[test]
    fn lines_that_nobody_signed_are_refused() {
        on_every_store("start_lines", |world| {
            checkpointed(world, 3);
            let line = world.kernel.keys.checkpoint_lines().unwrap().remove(0);
            let file = world.keys_dir.join("checkpoints.jsonl");
            for (forged, expected) in [
                (
                    line.replace(r#""size":3"#, r#""size":2"#),
                    "contradicts its own note",
                ),
                (
                    line.replace(r"acme\n3\n", r"acme\n2\n"),
                    "is not signed by a key of this installation",
                ),
                (
                    line.replace(r#""organizationId":"acme""#, r#""organizationId":"globex""#),
                    "contradicts its own note",
                ),
                (
                    "{}".to_owned(),
                    "line 1 of checkpoints.jsonl in the keys folder is no checkpoint",
                ),
            ] {
                assert_ne!(forged, line);
                std::fs::write(&file, forged + "\n").unwrap();
                let message = refusal(world);
                assert!(message.contains(expected), "{message}");
            }
            std::fs::write(&file, line + "\n").unwrap();
            verify(world).unwrap();
        });
    }
}
