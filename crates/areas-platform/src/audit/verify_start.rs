//! What start-up demands of the store: it is the one that is served with these keys, its chains reach, and agree with, its
//! checkpoints beside them, and their heads carry this installation's MAC (D12.5, AL-3).
//!
//! ```text
//! the store says          beside the keys          what follows
//! an id and an epoch      its lines                measured against them
//! none                    lines without a name     measured against them, then they are its own (WS-2)
//! whatever                nothing                  it is the first: an id, and a line once it holds an organization
//! whatever else           lines of others          refused: empty, or another store (WS-3)
//! moved, retired, an epoch that was given up       refused
//! a rehearsal             whatever                 its heads alone
//! ```
//!
//! INVARIANT WS-3: keys that have served a store are served with no other one, unless `provost init --new` made it or
//! a restore did; what `serve` refuses, `recover`, `init` and `store move` refuse and `store check` names.
//! Keeps AL-3, WS-2.

use super::lost;
use super::model::{CheckpointLine, origin};
use super::register::{Event, Register};
use super::store;
use super::tree::StoredTree;
use crate::identity::{self, Identity, State};
use crate::store::COUNT_ORGANIZATIONS;
use provost_kernel::audit::{Head, hex};
use provost_kernel::auth::OrganizationId;
use provost_kernel::checkpoint::parse_and_verify;
use provost_kernel::db::Tx;
use provost_kernel::ends::EndJournal;
use provost_kernel::keys::Keys;
use provost_kernel::{Code, Error, Kernel, Result, merkle, params};
use std::sync::Arc;

/// What is done with a store that these keys have not served, while they have served others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignStorePolicy {
    /// It is refused.
    Refuse,
    /// It is a new one, on purpose.
    Take,
}

/// What a store is to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreStanding {
    /// It is measured against its lines.
    Known,
    /// It fits the lines that name no store, which are its own from now on.
    Adopts,
    /// No line names it yet.
    First,
    /// It is a rehearsal of a restore.
    Rehearsal,
}

/// Refuses a store that is not the one of these keys, or was changed from outside or rolled back since its last checkpoint; gives it
/// its id, and writes down whose the lines are that name no store.
///
/// Errors: `AuditUnavailable` with a sentence that says what is wrong and what to do.
/// Cost: some six indexed reads an organization, and one reading of `checkpoints.jsonl`.
pub async fn verify_start(kernel: &Arc<Kernel>, stranger: ForeignStorePolicy) -> Result<()> {
    let (register, standing, known) = look(kernel, stranger).await?;
    if standing == StoreStanding::Rehearsal {
        identity::note_rehearsal(kernel);
        tracing::warn!("{}", identity::REHEARSAL);
        return Ok(());
    }
    begin_ends(kernel).await?;
    if standing == StoreStanding::Known {
        return Ok(());
    }
    if known.is_none() {
        let epoch = kernel.read_system(identity::epoch).await?;
        let new = Identity::new(&*kernel.entropy, epoch, State::Live);
        let add = move |ctx: &mut provost_kernel::OperationContext<'_>| new.add(ctx);
        kernel.system(OrganizationId::installation(), None, add).await?;
    }
    if standing == StoreStanding::Adopts {
        tracing::info!("the lines of checkpoints.jsonl that name no store are this store's from now on");
        return append(kernel, Event::Adopted).await;
    }
    if standing == StoreStanding::First && !register.is_empty() {
        tracing::warn!(
            "these keys have served another store: this one is measured by lines of its own from now on"
        );
    }
    served(kernel).await
}

/// Has `ends.jsonl` say from when on it is whole, where it is not there yet, and says what it names that the store lacks.
///
/// A line beyond the end of its chain is no proof of a loss: a server that was killed before its commit leaves one as well.
async fn begin_ends(kernel: &Arc<Kernel>) -> Result<()> {
    let (shared, now) = (kernel.clone(), kernel.latest());
    let read = move || match shared.keys.begin_ends(now) {
        Ok(true) => Ok(Vec::new()),
        Ok(false) => shared.keys.end_lines(),
        Err(error) => Err(error),
    };
    let lines = match kernel.blocking(read).await? {
        Ok(lines) => lines,
        Err(error) => {
            tracing::error!(
                cause = %error,
                "ends.jsonl in the keys folder cannot be read or written: what takes something away is refused until it can; \
                 let the server write to the folder, and make room in it"
            );
            return Ok(());
        }
    };
    let journal = EndJournal::of(&lines);
    if let Some(line) = journal.damaged.first() {
        tracing::error!(
            line,
            "a line of ends.jsonl in the keys folder says nothing that this version understands: if this store ever goes back, \
             everybody is held back"
        );
    }
    let shared = kernel.clone();
    let beyond = kernel.read_system(move |tx| {
        let known = identity::read(tx, &shared.keys)?;
        let mut beyond = 0;
        for line in &journal.lines {
            let is_own = |known: &Identity| known.id == line.store_id && known.epoch == line.store_epoch;
            if known.as_ref().is_some_and(is_own) && lost::is_beyond(tx, line)? {
                beyond += 1;
            }
        }
        Ok(beyond)
    });
    let beyond = beyond.await?;
    if beyond > 0 {
        tracing::warn!(
            lines = beyond,
            "ends.jsonl in the keys folder names what was taken away and is not in this store: a server was killed before it \
             was done, or the store went back; in doubt, `provost store accept --lost` takes it away again"
        );
    }
    Ok(())
}

/// Writes down that a store which holds an organization is served with these keys, unless that is known.
///
/// Errors: those of the store and the keys folder.
pub async fn served(kernel: &Arc<Kernel>) -> Result<()> {
    let shared = kernel.clone();
    let known = kernel
        .read_system(move |tx| {
            let known = identity::read(tx, &shared.keys)?;
            Ok(known
                .filter(|known| known.state == State::Live)
                .zip(Some(organizations(tx)?)))
        })
        .await?;
    let Some((known, 1..)) = known else { return Ok(()) };
    let register = register(kernel).await?;
    if register.epoch_of(&known.id) >= Some(known.epoch) {
        return Ok(());
    }
    append(kernel, Event::Served).await
}

async fn append(kernel: &Arc<Kernel>, event: Event) -> Result<()> {
    let shared = kernel.clone();
    let known = kernel
        .read_system(move |tx| identity::read(tx, &shared.keys))
        .await?;
    let known = known.ok_or_else(|| Error::internal("the store has no id"))?;
    let line = event.line(&known.id, known.epoch, kernel.clock.now());
    let shared = kernel.clone();
    kernel
        .blocking(move || shared.keys.append_checkpoint_line(&line))
        .await?
        .inspect_err(|error| kernel.note_failure(error))
}

async fn register(kernel: &Arc<Kernel>) -> Result<Register> {
    let shared = kernel.clone();
    let lines = kernel.blocking(move || shared.keys.checkpoint_lines()).await;
    Register::of(&lines??)
}

async fn look(
    kernel: &Arc<Kernel>,
    stranger: ForeignStorePolicy,
) -> Result<(Register, StoreStanding, Option<Identity>)> {
    let register = register(kernel).await?;
    let (shared, lines) = (kernel.clone(), register.clone());
    let judged = kernel.read_system(move |tx| {
        let standing = verify_store(tx, &shared.keys, &lines, stranger)?;
        Ok((standing, identity::read(tx, &shared.keys)?))
    });
    let (standing, known) = judged.await?;
    Ok((register, standing, known))
}

/// Returns what a store is to its keys, and refuses it as [`verify_start`] does; `register` is what lies beside the keys.
///
/// Errors: as [`verify_start`].
pub fn verify_store(
    tx: &mut Tx<'_>,
    keys: &Keys,
    register: &Register,
    stranger: ForeignStorePolicy,
) -> Result<StoreStanding> {
    let known = identity::read(tx, keys)?;
    let standing = match &known {
        Some(known) if known.state == State::Rehearsal => StoreStanding::Rehearsal,
        Some(known) => standing(tx, register, known, stranger)?,
        None if register.unclaimed().is_some() && organizations(tx)? > 0 => StoreStanding::Adopts,
        None => unknown(tx, register, stranger)?,
    };
    let heads = store::heads(tx)?;
    heads.iter().try_for_each(|head| check_head(tx, keys, head))?;
    let newest = match standing {
        StoreStanding::Known => register.newest(known.as_ref()),
        StoreStanding::Adopts => register.newest(None),
        StoreStanding::First | StoreStanding::Rehearsal => return Ok(standing),
    };
    newest.values().try_for_each(|line| check_line(tx, keys, line))?;
    Ok(standing)
}

fn standing(
    tx: &mut Tx<'_>,
    register: &Register,
    known: &Identity,
    stranger: ForeignStorePolicy,
) -> Result<StoreStanding> {
    if known.state == State::Moved {
        return Err(refuse(
            "this store was moved to another database, which is served in its place; start the server there, or take \
             this one back with `provost store accept --moved-back`"
                .to_owned(),
        ));
    }
    overtaken(register, known)?;
    match register.epoch_of(&known.id) {
        Some(epoch) if epoch < known.epoch => {
            tracing::warn!(
                "checkpoints.jsonl in the keys folder is older than this store: it knows the epoch {epoch} of it, and not {}",
                known.epoch
            );
            Ok(StoreStanding::First)
        }
        Some(_) => Ok(StoreStanding::Known),
        // A server that stopped between giving the id and writing that down.
        None if register.unclaimed().is_some() && organizations(tx)? > 0 => Ok(StoreStanding::Adopts),
        None => unknown(tx, register, stranger),
    }
}

/// Refuses a store in whose place another one is served, or a later epoch of it.
pub(super) fn overtaken(register: &Register, known: &Identity) -> Result<()> {
    if let Some(time) = register.retired(&known.id) {
        return Err(refuse(format!(
            "this store was given up at {time}, when a backup was restored in its place with --replace-live; start the \
             restored store, or restore a backup with provost store restore"
        )));
    }
    match register.epoch_of(&known.id) {
        Some(epoch) if epoch > known.epoch => Err(refuse(format!(
            "this store is of the epoch {}, and the one that is served in its place of the epoch {epoch}; start that one, or \
             restore a backup with provost store restore. If this one went back, or `provost store accept --lost` was cut off, \
             run that (again)",
            known.epoch
        ))),
        _ => Ok(()),
    }
}

/// Judges a store that no line names.
fn unknown(tx: &mut Tx<'_>, register: &Register, stranger: ForeignStorePolicy) -> Result<StoreStanding> {
    if register.is_empty() {
        if store::chains(tx)?.iter().any(|chain| chain.covered > 0) {
            tracing::warn!(
                "the store has signed checkpoints, and checkpoints.jsonl is missing from the keys folder: whether the store \
                 went back behind them cannot be said; bring the file back if it was lost"
            );
        }
        return Ok(StoreStanding::First);
    }
    if stranger == ForeignStorePolicy::Take {
        return Ok(StoreStanding::First);
    }
    if organizations(tx)? == 0 {
        return Err(refuse(EMPTY.to_owned()));
    }
    Err(refuse(
        "the keys have served another store, and this one is in no line of checkpoints.jsonl beside them; name the store that \
         they belong to, bring the newest keys folder, or restore a backup with provost store restore. If it is meant to be \
         another store of the same keys, `provost init --new` makes an organization in it"
            .to_owned(),
    ))
}

/// What is said of an empty store beside keys that have served one.
pub const EMPTY: &str = "the store is empty, and its keys have served another one: name the store that they belong to \
                         (--data-dir or --database-url-file), or restore a backup with provost store restore. If a new store \
                         is meant, `provost init --new` makes it";

fn organizations(tx: &mut Tx<'_>) -> Result<i64> {
    let count = tx.query_opt(&COUNT_ORGANIZATIONS, params![], |row| row.get::<i64>(0))?;
    Ok(count.unwrap_or(0))
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
    let root = signed(keys, line)?;
    let length = store::length(tx, organization)?;
    if u64::try_from(length).is_ok_and(|length| length < *size) {
        return Err(refuse(format!(
            "the store is behind its last checkpoint: the audit chain {organization} has {length} entries, and \
             the checkpoint of {time} covers {size}; start the newer store, restore a backup with provost store restore, or go \
             on without what is lost with `provost store accept --lost`"
        )));
    }
    if merkle::root(*size, &mut StoredTree::new(tx, organization, *size))? == root {
        return Ok(());
    }
    Err(refuse(format!(
        "the store disagrees with its last checkpoint: the first {size} entries of the audit chain \
         {organization} are not those that were signed at {time}; restore a backup with provost store restore, or, if the store \
         went back, go on without what is lost with `provost store accept --lost`"
    )))
}

/// Returns the root that a line proves.
pub(super) fn signed(keys: &Keys, line: &CheckpointLine) -> Result<merkle::Hash> {
    let organization = &line.organization_id;
    let signed = parse_and_verify(&line.note, &keys.checkpoint_public_keys()).map_err(|e| {
        refuse(format!(
            "the last checkpoint of {organization} in checkpoints.jsonl is not signed by a key of this installation"
        ))
        .caused_by(e)
    })?;
    let is_consistent = signed.origin == origin(organization)
        && signed.size == line.size
        && hex(&signed.root) == line.root_hash;
    if !is_consistent {
        let message =
            format!("the last checkpoint of {organization} in checkpoints.jsonl contradicts its own note");
        return Err(refuse(message));
    }
    Ok(signed.root)
}

pub(super) fn refuse(message: String) -> Error {
    Error::new(Code::AuditUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::make_checkpoints;
    use crate::audit::testing::{World, on_every_store, statements::*};
    use provost_kernel::db::{Call, Param, Statement};
    use provost_kernel::params;

    fn verify(world: &mut World) -> Result<()> {
        world.restart();
        world.run(verify_start(&world.kernel, ForeignStorePolicy::Refuse))
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

    /// Proves AL-3.
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
