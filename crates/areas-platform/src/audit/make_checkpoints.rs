//! The reconciler that signs checkpoints (D12.5).
//!
//! ```text
//! read   which chains have open entries          one snapshot
//! read   256 hashes a node, 32 nodes a time      snapshots; then a unit that stores the nodes
//! file   the last line of the chain in checkpoints.jsonl
//! read   old root = signed root? new root        one snapshot; sign
//! unit   checkpoint row · entry · event          under the head's lock: nobody else signed meanwhile
//! file   a line in checkpoints.jsonl, fsync
//! ```
//!
//! A server that stops between the last two steps leaves a store that is ahead of the file: harmless, and
//! the next checkpoint brings the file forward.

use super::get_checkpoint;
use super::model::{CHECKPOINT_CREATED, CheckpointLine, is_due, origin};
use super::register::Register;
use super::store::{self, Chain};
use super::tree::{STEP, StoredTree};
use super::verify_start;
use crate::audit::fences;
use crate::identity::{self, Identity, State};
use provost_kernel::audit::hex;
use provost_kernel::auth::OrganizationId;
use provost_kernel::checkpoint::{Checkpoint, parse_and_verify};
use provost_kernel::db::Tx;
use provost_kernel::merkle;
use provost_kernel::{Code, Error, Kernel, OperationContext, Result, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: nodes that one snapshot computes and one unit stores; 32 of them stand for 8192 entries.
const CHUNK: i64 = 32;
/// The highest stored level; 2^56 entries are beyond any log.
const TOP: u8 = 56;

/// Signs a checkpoint over every chain that is due and returns how many were made.
///
/// Errors: the first failure, after every other chain had its turn.
pub async fn make_checkpoints(kernel: &Arc<Kernel>) -> Result<usize> {
    let now = kernel.clock.now();
    let due = kernel.read_system(move |tx| {
        let open = store::chains(tx)?
            .into_iter()
            .filter(|chain| chain.length > chain.covered);
        let mut due = Vec::new();
        for chain in open {
            let oldest = store::oldest_open(tx, &chain)?;
            if is_due(chain.length - chain.covered, oldest, now) {
                due.push(chain);
            }
        }
        Ok(due)
    });
    let (mut made, mut failure) = (0, None);
    for chain in due.await? {
        match make_one(kernel, &chain).await {
            Ok(was_made) => made += usize::from(was_made),
            Err(error) => {
                tracing::error!(organization = %chain.organization, cause = ?error.private(), "no checkpoint: {error}");
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(made), Err)
}

/// Returns the time of the oldest entry of any chain that no checkpoint covers yet, leaving out the checkpoints' own.
pub fn oldest_unsigned(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let mut oldest: Option<Timestamp> = None;
    for chain in store::chains(tx)? {
        if chain.length > chain.covered
            && let Some(time) = store::oldest_open(tx, &chain)?
        {
            oldest = Some(oldest.map_or(time, |known| known.min(time)));
        }
    }
    Ok(oldest)
}

/// Signs a checkpoint over all entries of one chain; says whether it was this call that did.
async fn make_one(kernel: &Arc<Kernel>, chain: &Chain) -> Result<bool> {
    let size = u64::try_from(chain.length).map_err(Error::internal)?;
    for level in (STEP..=TOP).step_by(usize::from(STEP)) {
        store_nodes(kernel, &chain.organization, level, size).await?;
    }
    let shared = kernel.clone();
    let identity = kernel
        .read_system(move |tx| identity::read(tx, &shared.keys))
        .await?;
    let line = last_line(kernel, identity.clone(), &chain.organization).await?;
    let checkpoint = measure(kernel, chain, size, line).await?;
    let note = checkpoint.sign(&kernel.keys);
    let Some(time) = record(kernel, chain, &checkpoint, &note).await? else {
        return Ok(false);
    };
    if identity
        .as_ref()
        .is_some_and(|known| known.state == State::Rehearsal)
    {
        return Ok(true);
    }
    let line = CheckpointLine {
        store_id: identity.as_ref().map(|known| known.id.clone()),
        store_epoch: identity.as_ref().map(|known| known.epoch),
        organization_id: chain.organization.as_str().to_owned(),
        size,
        root_hash: hex(&checkpoint.root),
        note,
        time,
    };
    tracing::info!(organization = %chain.organization, size, root = %line.root_hash, "checkpoint of the audit log");
    let (text, shared) = (
        serde_json::to_string(&line).map_err(Error::internal)?,
        kernel.clone(),
    );
    kernel
        .blocking(move || shared.keys.append_checkpoint_line(&text))
        .await?
        .inspect_err(|error| kernel.note_failure(error))?;
    Ok(true)
}

/// Computes and stores the nodes of one level that are complete and not stored yet.
async fn store_nodes(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    level: u8,
    size: u64,
) -> Result<()> {
    let complete = i64::try_from(size >> level).map_err(Error::internal)?;
    if complete == 0 {
        return Ok(());
    }
    loop {
        let org = organization.clone();
        let computed = kernel.read_system(move |tx| {
            let first = store::node_count(tx, org.as_str(), level)?;
            let mut tree = StoredTree::new(tx, org.as_str(), size);
            let mut nodes = Vec::new();
            for position in first..complete.min(first + CHUNK) {
                nodes.push((position, tree.compute(level, position.unsigned_abs())?));
            }
            Ok(nodes)
        });
        let nodes = computed.await?;
        if nodes.is_empty() {
            return Ok(());
        }
        let add = move |ctx: &mut OperationContext<'_>| {
            nodes
                .iter()
                .try_for_each(|(position, hash)| store::add_node(ctx, level, *position, hash))
        };
        kernel.system(organization.clone(), None, add).await?;
    }
}

/// What lies beside the keys, and how many bytes of it were read.
#[derive(Default)]
struct CheckpointFile {
    read: u64,
    register: Register,
}

/// Returns the last line of a chain of this store in `checkpoints.jsonl`. The file grows for years: what was read before is
/// remembered.
///
/// Errors: those of reading the file, and `AuditUnavailable` when a line is none, or says that another store is served in the
/// place of this one.
async fn last_line(
    kernel: &Arc<Kernel>,
    identity: Option<Identity>,
    organization: &OrganizationId,
) -> Result<Option<CheckpointLine>> {
    let (shared, organization) = (kernel.clone(), organization.clone());
    let read = move || {
        let lines = shared.own(Mutex::<CheckpointFile>::default);
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        let (appended, end) = shared.keys.checkpoint_lines_after(lines.read)?;
        if end < lines.read {
            // A shorter file was put in place, and read from its beginning.
            lines.register = Register::default();
        }
        lines.register.extend(&appended)?;
        lines.read = end;
        if let Some(identity) = &identity {
            verify_start::overtaken(&lines.register, identity)?;
        }
        let last = lines.register.last(identity.as_ref(), organization.as_str());
        Ok(last.cloned())
    };
    kernel.blocking(read).await?
}

/// Returns the checkpoint to sign. `line` is the last one of the chain that lies outside the store: a store that went back
/// took its own checkpoints along.
///
/// Errors: `AuditUnavailable` when the tree no longer extends the one that was signed last.
async fn measure(
    kernel: &Arc<Kernel>,
    chain: &Chain,
    size: u64,
    line: Option<CheckpointLine>,
) -> Result<Checkpoint> {
    let (shared, organization) = (kernel.clone(), chain.organization.clone());
    let measured = kernel.read_system(move |tx| {
        let org = organization.as_str();
        let previous = store::newest_checkpoint(tx, org)?;
        let mut tree = StoredTree::new(tx, org, size);
        // INVARIANT AL-1: what was signed once is still there, or nothing is signed.
        let stored = previous.as_ref().map(|stored| get_checkpoint::read(&shared.keys, org, stored));
        let kept = line.as_ref().map(|line| parse_and_verify(&line.note, &shared.keys.checkpoint_public_keys()));
        for signed in [stored, kept].into_iter().flatten() {
            let signed = signed?;
            if signed.size > size || merkle::root(signed.size, &mut tree)? != signed.root {
                let message = format!(
                    "the audit chain {org} disagrees with its signed checkpoint of {} entries; nothing more is \
                     signed",
                    signed.size
                );
                return Err(Error::new(Code::AuditUnavailable, message));
            }
        }
        Ok(Checkpoint { origin: origin(org), size, root: merkle::root(size, &mut tree)? })
    });
    measured.await
}

/// Stores a checkpoint with its entry and its event; returns when, or `None` when another server was faster.
async fn record(
    kernel: &Arc<Kernel>,
    chain: &Chain,
    checkpoint: &Checkpoint,
    note: &str,
) -> Result<Option<Timestamp>> {
    let recorded = Arc::new(Mutex::new(None));
    let sink = recorded.clone();
    let (covered, size) = (chain.covered, chain.length);
    let (note, root) = (note.to_owned(), hex(&checkpoint.root));
    let run = move |ctx: &mut OperationContext<'_>| {
        let org = ctx.org();
        let newest = store::newest_checkpoint(ctx, org)?;
        let mut time = None;
        if newest.as_ref().map_or(0, |c| c.size) == covered {
            store::add_checkpoint(ctx, size, &note)?;
            ctx.action(CHECKPOINT_CREATED);
            ctx.target(&fences::CHECKPOINT, size.to_string());
            ctx.emit(
                &fences::CHECKPOINT_CREATED,
                &fences::NewCheckpoint {
                    size,
                    root_hash: root.clone(),
                },
            );
            time = Some(ctx.now());
        } else if let Some(same) = newest.filter(|c| c.size == size && c.note == note) {
            // The unit ran twice because its first COMMIT went unanswered.
            time = Some(same.created_at);
        }
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = time;
        Ok(())
    };
    kernel.system(chain.organization.clone(), None, run).await?;
    let time = *recorded.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::register::Event;
    use crate::audit::testing::{World, on_every_store, statements::*};
    use crate::audit::verify_start::ForeignStorePolicy;
    use provost_kernel::audit::AuditRecord;
    use provost_kernel::checkpoint::parse_and_verify;
    use provost_kernel::db::{Call, Param};
    use provost_kernel::merkle::MemoryNodes;
    use serde_json::{Value, json};

    fn make(world: &World) -> usize {
        world.run(make_checkpoints(&world.kernel)).unwrap()
    }

    fn lines(world: &World) -> Vec<CheckpointLine> {
        let lines = world.kernel.keys.checkpoint_lines().unwrap();
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Proves AL-2.
    #[test]
    fn an_idle_chain_gets_one_checkpoint_and_no_more() {
        on_every_store("checkpoint_idle", |world| {
            world.grow(1);
            world.advance_secs(59);
            assert_eq!(make(world), 0, "not a minute old");
            world.advance_secs(1);
            assert_eq!(make(world), 1);
            for _ in 0..5 {
                world.advance_secs(3600);
                assert_eq!(make(world), 0, "its own entry is no reason for another");
            }
            world.grow(1);
            world.advance_secs(60);
            assert_eq!(make(world), 1);
            assert_eq!(
                lines(world).iter().map(|line| line.size).collect::<Vec<_>>(),
                [1, 3]
            );
        });
    }

    #[test]
    fn a_thousand_entries_are_signed_at_once() {
        on_every_store("checkpoint_thousand", |world| {
            world.grow(999);
            assert_eq!(make(world), 0);
            world.grow(1);
            assert_eq!(make(world), 1);
            assert_eq!(lines(world)[0].size, 1000);
        });
    }

    /// Proves AL-3.
    #[test]
    fn a_checkpoint_leaves_an_entry_an_event_and_a_line() {
        on_every_store("checkpoint_traces", |world| {
            world.grow(2);
            let installation = OrganizationId::installation();
            world.append(
                &installation,
                &[AuditRecord::new(
                    installation.clone(),
                    world.kernel.clock.now(),
                    "test",
                )],
            );
            world.advance_secs(60);
            assert_eq!(make(world), 2, "the installation's own chain too");
            let exported = world.exported();
            let entry: Value = serde_json::from_str(exported.last().unwrap()).unwrap();
            assert_eq!(entry["action"], CHECKPOINT_CREATED);
            assert_eq!(entry["target"], json!({ "type": "audit_checkpoint", "id": "2" }));
            let events = world.get("admin", "listHeadlessEvents", &[], "").json();
            let leaves = exported[..2].iter().map(|line| {
                let (_, hash) = line.split_at(line.len() - 66);
                let byte = |at: usize| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap();
                merkle::leaf(&std::array::from_fn::<u8, 32, _>(byte))
            });
            let root = hex(&merkle::root(2, &mut MemoryNodes(leaves.collect())).unwrap());
            assert_eq!(events["events"][0]["type"], CHECKPOINT_CREATED);
            assert_eq!(
                events["events"][0]["data"],
                json!({ "size": 2, "rootHash": root, "sequence": 1 })
            );
            let lines = lines(world);
            let line = lines.iter().find(|line| line.organization_id == "acme").unwrap();
            assert_eq!((line.size, &line.root_hash), (2, &root));
            assert_eq!(line.time, world.kernel.clock.now());
            let signed = parse_and_verify(&line.note, &world.kernel.keys.checkpoint_public_keys()).unwrap();
            assert_eq!((signed.size, hex(&signed.root)), (2, root));
        });
    }

    /// Proves AL-1.
    #[test]
    fn nothing_is_signed_over_a_history_that_changed() {
        on_every_store("checkpoint_tampered", |world| {
            world.grow(20);
            world.advance_secs(60);
            assert_eq!(make(world), 1);
            let mut conn = world.open();
            conn.begin(&[]).unwrap();
            let edit = vec![Param::from("acme"), Param::from(7_i64), Param::from([1_u8; 32])];
            conn.commit(&[Call {
                statement: &EDIT_HASH,
                params: edit,
            }])
            .unwrap();
            drop(conn);
            world.grow(1);
            world.advance_secs(60);
            let error = world.run(make_checkpoints(&world.kernel)).unwrap_err();
            assert_eq!(error.code(), Code::AuditUnavailable);
            assert!(
                error
                    .message()
                    .contains("disagrees with its signed checkpoint of 20 entries"),
                "{error}"
            );
            assert_eq!(lines(world).len(), 1);
        });
    }

    /// Proves AL-1.
    #[test]
    fn nothing_is_signed_that_is_behind_the_last_line_beside_the_keys() {
        on_every_store("checkpoint_behind", |world| {
            world.grow(5);
            let read = |tx: &mut provost_kernel::db::Tx<'_>| {
                tx.query_opt(&READ_HEAD, provost_kernel::params!["acme"], |row| {
                    let (seq, events): (i64, i64) = (row.get(0)?, row.get(3)?);
                    let (hash, mac): (Vec<u8>, Vec<u8>) = (row.get(1)?, row.get(2)?);
                    Ok((seq, hash, mac, events))
                })
            };
            let head = world.run(world.kernel.read_system(read)).unwrap().unwrap();
            let (seq, hash, mac, events) = head;
            world.grow(20);
            world.advance_secs(60);
            assert_eq!(make(world), 1);
            // The whole store goes back, with its checkpoints, and a server without a memory of it grows it again.
            let mut conn = world.open();
            conn.begin(&[]).unwrap();
            let acme = || Param::from("acme");
            conn.commit(&[
                Call {
                    statement: &CUT,
                    params: vec![acme(), Param::from(seq)],
                },
                Call {
                    statement: &CUT_CHECKPOINTS,
                    params: vec![acme()],
                },
                Call {
                    statement: &CUT_NODES,
                    params: vec![acme()],
                },
                Call {
                    statement: &CUT_EVENTS,
                    params: vec![acme(), Param::from(events)],
                },
                Call {
                    statement: &SET_HEAD,
                    params: vec![
                        acme(),
                        Param::from(seq),
                        Param::from(hash),
                        Param::from(mac),
                        Param::from(events),
                    ],
                },
            ])
            .unwrap();
            drop(conn);
            world.restart();
            for grown in [1, 40] {
                world.grow(grown);
                world.advance_secs(60);
                let error = world.run(make_checkpoints(&world.kernel)).unwrap_err();
                assert_eq!(error.code(), Code::AuditUnavailable);
                assert!(
                    error
                        .message()
                        .contains("disagrees with its signed checkpoint of 25 entries"),
                    "{error}"
                );
                assert_eq!(lines(world).len(), 1);
            }
        });
    }

    #[test]
    fn nothing_is_signed_of_a_store_that_was_given_up_while_it_runs() {
        on_every_store("checkpoint_given_up", |world| {
            world.grow(2);
            world
                .run(verify_start::verify_start(
                    &world.kernel,
                    ForeignStorePolicy::Refuse,
                ))
                .unwrap();
            world.advance_secs(60);
            assert_eq!(make(world), 1);
            let keys = &world.kernel.keys;
            let line: Value = serde_json::from_str(&keys.checkpoint_lines().unwrap().pop().unwrap()).unwrap();
            assert_eq!(line["storeEpoch"], 0);
            let id = line["storeId"].as_str().unwrap();
            let count = keys.checkpoint_lines().unwrap().len();
            for (event, epoch) in [(Event::Accepted, 1), (Event::Retired, 1)] {
                let now = world.kernel.clock.now();
                keys.append_checkpoint_line(&event.line(id, epoch, now)).unwrap();
                world.grow(1);
                world.advance_secs(60);
                let error = world.run(make_checkpoints(&world.kernel)).unwrap_err();
                assert_eq!(error.code(), Code::AuditUnavailable);
            }
            assert_eq!(keys.checkpoint_lines().unwrap().len(), count + 2);
        });
    }

    #[test]
    fn two_servers_sign_one_checkpoint() {
        on_every_store("checkpoint_race", |world| {
            world.grow(2);
            world.advance_secs(60);
            let chains = world.run(world.kernel.read_system(store::chains)).unwrap();
            let acme = chains
                .iter()
                .find(|chain| chain.organization.as_str() == "acme")
                .unwrap();
            assert!(world.run(make_one(&world.kernel, acme)).unwrap());
            world.grow(1);
            let late = Chain {
                length: acme.length + 2,
                ..acme.clone()
            };
            assert!(
                !world.run(make_one(&world.kernel, &late)).unwrap(),
                "somebody else was faster"
            );
            assert_eq!(lines(world).len(), 1);
            assert_eq!(
                world.exported().len(),
                4,
                "two entries, the checkpoint's, and one more"
            );
        });
    }
}
