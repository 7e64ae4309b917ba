//! What an import does in small units of work: marking, the swap, undoing, clearing away.
//!
//! Keeps DI-2: the swap is one row; before it nothing of an import is visible, behind it everything.

use super::super::returning::{group_gone, user_gone};
use super::super::store::maintenance::{self, MarkProgress, SwappedRecord};
use super::super::store::{clashes as store, ended, held, imports};
use super::super::users::suspended;
use super::clashes::{self, ClashProgress};
use super::model::{ABANDONED_AFTER_SECS, AbortReason, Import, ImportId, KEPT_SECS, Mode, State};
use crate::directory::{fences, hands};
use crate::subjects::{Record, lost_with, tell};
use crate::words::{self, Kind};
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{Kernel, OperationContext, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The job that carries an import on.
const CONTINUE: &str = "directory.import.continue";
/// How many steps of marking one unit of work does.
const MARK_STEPS: usize = 4;

/// How far an import has come that is being applied.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    marked: MarkProgress,
    is_marked: bool,
    judged: ClashProgress,
}

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: CONTINUE,
    action: "directory.import.continued",
    work: Work::Inside(carry_on),
};

fn enqueue(ctx: &mut OperationContext<'_>, import: &ImportId, done: &Done) {
    ctx.enqueue(NewJob {
        kind: CONTINUE,
        payload: json!({ "importId": import, "done": done }),
        run_at: ctx.now(),
    });
}

/// Does the next part of what an import needs, and sees to the part after it.
fn carry_on(ctx: &mut OperationContext<'_>, payload: &Value) -> Result<()> {
    let id = payload["importId"].as_str();
    let id = ImportId::from_text(id.ok_or_else(|| Error::internal("a job names no import"))?);
    ctx.target(&fences::IMPORT, id.as_str());
    let mut import = imports::get(ctx, &id)?;
    match import.state {
        State::Open => Ok(()),
        State::Applying => {
            let done = match payload.get("done") {
                Some(done) => serde_json::from_value(done.clone()).map_err(Error::internal)?,
                // A job of an earlier build: to mark again what is marked changes nothing.
                None => Done::default(),
            };
            mark_and_swap(ctx, &mut import, done)
        }
        State::Aborting => undo(ctx, &mut import),
        State::Applied | State::Aborted => clear(ctx, &id),
    }
}

/// Marks what the file does not name, judges words that others have, and swaps when nothing is left to do.
pub fn mark_and_swap(ctx: &mut OperationContext<'_>, import: &mut Import, done: Done) -> Result<()> {
    let mut done = done;
    for _ in 0..MARK_STEPS {
        if step(ctx, import, &mut done)? {
            return swap(ctx, import);
        }
    }
    import.state = State::Applying;
    import.touch(ctx.now());
    imports::save(ctx, import)?;
    enqueue(ctx, &import.id, &done);
    Ok(())
}

/// Does the next part of what comes before the swap; says whether nothing is left to do.
fn step(ctx: &mut OperationContext<'_>, import: &mut Import, done: &mut Done) -> Result<bool> {
    if import.mode == Mode::Replace && !done.is_marked {
        let step = maintenance::mark(ctx, import, &mut done.marked)?;
        import.counts.users.removed += step.users.cast_signed();
        import.counts.groups.removed += step.groups.cast_signed();
        import.counts.memberships.removed += step.memberships.cast_signed();
        done.is_marked = step.is_done;
        if !step.is_done {
            return Ok(false);
        }
    }
    // Behind the marking: who goes takes no word from anybody.
    clashes::step(ctx, import, &mut done.judged)
}

/// Begins to mark in a job: a large directory has taken its time already.
pub fn mark_soon(ctx: &mut OperationContext<'_>, import: &mut Import) -> Result<()> {
    import.state = State::Applying;
    import.touch(ctx.now());
    imports::save(ctx, import)?;
    enqueue(ctx, &import.id, &Done::default());
    Ok(())
}

/// Makes an import visible.
pub fn swap(ctx: &mut OperationContext<'_>, import: &mut Import) -> Result<()> {
    // Whom it removes or suspends may wait in this very commit (WK-4).
    ctx.invalidate_cached_credentials();
    imports::swap(ctx, import)?;
    hands::note_import(ctx, import)?;
    words::settle_imported(ctx, import.id.as_str())?;
    import.finish(ctx.now(), State::Applied);
    imports::save(ctx, import)?;
    if import.counts.held > 0 {
        held::replace(ctx, &import.id)?;
        ctx.emit(
            &fences::CHANGE_HELD,
            &fences::HeldChanges {
                import_id: import.id.clone(),
                directory_id: import.directory_id.clone(),
                held: import.counts.held,
            },
        );
    }
    ctx.change("/counts", Value::Null, json!(import.counts));
    ctx.emit(
        &fences::IMPORT_APPLIED,
        &fences::AppliedImport {
            import_id: import.id.clone(),
            directory_id: import.directory_id.clone(),
            counts: import.counts,
        },
    );
    enqueue(ctx, &import.id, &Done::default());
    Ok(())
}

/// Ends an import without effect.
pub fn abort(ctx: &mut OperationContext<'_>, import: &mut Import, reason: AbortReason) -> Result<()> {
    ctx.change("/state", import.state.as_str(), State::Aborted.as_str());
    import.abort_reason = Some(reason);
    undo(ctx, import)
}

/// Undoes the next part of a staging. No other import begins before all of it is undone, because the next swap would
/// make the rest visible.
fn undo(ctx: &mut OperationContext<'_>, import: &mut Import) -> Result<()> {
    held::delete_of_import(ctx, &import.id)?;
    store::forget_warnings(ctx, &import.id)?;
    import.counts.warnings = 0;
    if maintenance::undo(ctx, import.generation)? {
        import.finish(ctx.now(), State::Aborted);
    } else {
        import.state = State::Aborting;
        import.touch(ctx.now());
    }
    imports::save(ctx, import)?;
    enqueue(ctx, &import.id, &Done::default());
    Ok(())
}

/// Removes the next part of what a finished import left behind, and tells of the records that it ended.
fn clear(ctx: &mut OperationContext<'_>, id: &ImportId) -> Result<()> {
    let (gone, is_done) = maintenance::clear(ctx, id)?;
    let lost = lost_with(ctx, gone.iter().filter_map(record).collect())?;
    tell(ctx, &lost)?;
    for record in &gone {
        match record {
            SwappedRecord::User(id, _) => user_gone(ctx, id)?,
            SwappedRecord::Suspended(id) => suspended(ctx, id)?,
            SwappedRecord::Group(id, _) => group_gone(ctx, id)?,
        }
    }
    if !is_done {
        enqueue(ctx, id, &Done::default());
    }
    Ok(())
}

/// Returns a record that is gone, as policies may name it.
fn record(ended: &SwappedRecord) -> Option<Record> {
    let (kind, id, words) = match ended {
        SwappedRecord::User(id, words) => (Kind::User, id.as_str(), words.clone()),
        SwappedRecord::Group(id, name) => (Kind::Group, id.as_str(), vec![name.clone()]),
        SwappedRecord::Suspended(_) => return None,
    };
    let id = id.to_owned();
    Some(Record { kind, id, words })
}

/// Aborts imports into which nothing arrives any more, and forgets finished ones after their time. A reconciler.
pub async fn tidy(kernel: &Arc<Kernel>) -> Result<usize> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(0);
    };
    let silent_since = now.earlier_by(ABANDONED_AFTER_SECS).instant();
    let abandoned = kernel
        .read_system(move |tx| maintenance::abandoned(tx, silent_since))
        .await?;
    let mut count = abandoned.len();
    for (organization, id) in abandoned {
        kernel
            .system(organization, Some("directory.import.expired"), move |ctx| {
                ctx.target(&fences::IMPORT, id.as_str());
                let mut import = imports::get(ctx, &id)?;
                // A chunk may have arrived since, or another server may have been here.
                if import.state == State::Open && import.updated_at < silent_since {
                    abort(ctx, &mut import, AbortReason::Expired)?;
                }
                Ok(())
            })
            .await?;
    }
    let old_since = now.earlier_by(KEPT_SECS);
    let old = kernel
        .read_system(move |tx| maintenance::old(tx, old_since.instant()))
        .await?;
    count += old.len();
    for (organization, id) in old {
        kernel
            .system(organization, None, move |ctx| {
                maintenance::forget(ctx, &id, old_since)
            })
            .await?;
    }
    let ended_since = now.earlier_by(ended::KEPT_SECS);
    let forgetful = kernel
        .read_system(move |tx| ended::old(tx, ended_since.instant()))
        .await?;
    count += forgetful.len();
    for organization in forgetful {
        kernel
            .prune(&organization, move |ctx| ended::forget(ctx, ended_since))
            .await?;
    }
    Ok(count)
}
