//! What an import does in small units of work: marking, the swap, undoing, clearing away.
//!
//! Keeps DI-2: the swap is one row; before it nothing of an import is visible, behind it everything.

use super::super::returning::{group_gone, user_gone};
use super::super::store::upkeep::{self, Ended, Marked};
use super::super::store::{clashes as store, ended, held, imports};
use super::super::users::suspended;
use super::clashes::{self, Judged};
use super::model::{ABANDONED_AFTER_SECS, AbortReason, Import, ImportId, KEPT_SECS, Mode, State};
use crate::directory::fences;
use crate::subjects::{Record, lost_with, tell};
use crate::words::{self, Kind};
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{Cx, Kernel, Result};
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
    marked: Marked,
    is_marked: bool,
    judged: Judged,
}

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: CONTINUE,
    action: "directory.import.continued",
    work: Work::Inside(carry_on),
};

fn enqueue(cx: &mut Cx<'_>, import: &ImportId, done: &Done) {
    cx.enqueue(NewJob {
        kind: CONTINUE,
        payload: json!({ "importId": import, "done": done }),
        run_at: cx.now(),
    });
}

/// Does the next part of what an import needs, and sees to the part after it.
fn carry_on(cx: &mut Cx<'_>, payload: &Value) -> Result<()> {
    let id = payload["importId"].as_str();
    let id = ImportId::from_text(id.ok_or_else(|| Error::internal("a job names no import"))?);
    cx.target(&fences::IMPORT, id.as_str());
    let mut import = imports::get(cx, &id)?;
    match import.state {
        State::Open => Ok(()),
        State::Applying => {
            let done = match payload.get("done") {
                Some(done) => serde_json::from_value(done.clone()).map_err(Error::internal)?,
                // A job of an earlier build: to mark again what is marked changes nothing.
                None => Done::default(),
            };
            mark_and_swap(cx, &mut import, done)
        }
        State::Aborting => undo(cx, &mut import),
        State::Applied | State::Aborted => clear(cx, &id),
    }
}

/// Marks what the file does not name, judges words that others have, and swaps when nothing is left to do.
pub fn mark_and_swap(cx: &mut Cx<'_>, import: &mut Import, done: Done) -> Result<()> {
    let mut done = done;
    for _ in 0..MARK_STEPS {
        if step(cx, import, &mut done)? {
            return swap(cx, import);
        }
    }
    import.state = State::Applying;
    import.touch(cx.now());
    imports::save(cx, import)?;
    enqueue(cx, &import.id, &done);
    Ok(())
}

/// Does the next part of what comes before the swap; says whether nothing is left to do.
fn step(cx: &mut Cx<'_>, import: &mut Import, done: &mut Done) -> Result<bool> {
    if import.mode == Mode::Replace && !done.is_marked {
        let step = upkeep::mark(cx, import, &mut done.marked)?;
        import.counts.users.removed += step.users.cast_signed();
        import.counts.groups.removed += step.groups.cast_signed();
        import.counts.memberships.removed += step.memberships.cast_signed();
        done.is_marked = step.is_done;
        if !step.is_done {
            return Ok(false);
        }
    }
    // Behind the marking: who goes takes no word from anybody.
    clashes::step(cx, import, &mut done.judged)
}

/// Begins to mark in a job: a large directory has taken its time already.
pub fn mark_soon(cx: &mut Cx<'_>, import: &mut Import) -> Result<()> {
    import.state = State::Applying;
    import.touch(cx.now());
    imports::save(cx, import)?;
    enqueue(cx, &import.id, &Done::default());
    Ok(())
}

/// Makes an import visible.
pub fn swap(cx: &mut Cx<'_>, import: &mut Import) -> Result<()> {
    // Whom it removes or suspends may wait in this very commit (WK-4).
    cx.judge_callers_anew();
    imports::swap(cx, import)?;
    words::settle_imported(cx, import.id.as_str())?;
    import.finish(cx.now(), State::Applied);
    imports::save(cx, import)?;
    if import.counts.held > 0 {
        held::replace(cx, &import.id)?;
        cx.emit(
            &fences::CHANGE_HELD,
            &fences::HeldChanges {
                import_id: import.id.clone(),
                directory_id: import.directory_id.clone(),
                held: import.counts.held,
            },
        );
    }
    cx.change("/counts", Value::Null, json!(import.counts));
    cx.emit(
        &fences::IMPORT_APPLIED,
        &fences::AppliedImport {
            import_id: import.id.clone(),
            directory_id: import.directory_id.clone(),
            counts: import.counts,
        },
    );
    enqueue(cx, &import.id, &Done::default());
    Ok(())
}

/// Ends an import without effect.
pub fn abort(cx: &mut Cx<'_>, import: &mut Import, reason: AbortReason) -> Result<()> {
    cx.change("/state", import.state.as_str(), State::Aborted.as_str());
    import.abort_reason = Some(reason);
    undo(cx, import)
}

/// Undoes the next part of a staging. No other import begins before all of it is undone, because the next swap would
/// make the rest visible.
fn undo(cx: &mut Cx<'_>, import: &mut Import) -> Result<()> {
    held::delete_of_import(cx, &import.id)?;
    store::forget_warnings(cx, &import.id)?;
    import.counts.warnings = 0;
    if upkeep::undo(cx, import.generation)? {
        import.finish(cx.now(), State::Aborted);
    } else {
        import.state = State::Aborting;
        import.touch(cx.now());
    }
    imports::save(cx, import)?;
    enqueue(cx, &import.id, &Done::default());
    Ok(())
}

/// Removes the next part of what a finished import left behind, and tells of the records that it ended.
fn clear(cx: &mut Cx<'_>, id: &ImportId) -> Result<()> {
    let (gone, is_done) = upkeep::clear(cx, id)?;
    let lost = lost_with(cx, gone.iter().filter_map(record).collect())?;
    tell(cx, &lost)?;
    for record in &gone {
        match record {
            Ended::User(id, _) => user_gone(cx, id)?,
            Ended::Suspended(id) => suspended(cx, id)?,
            Ended::Group(id, _) => group_gone(cx, id)?,
        }
    }
    if !is_done {
        enqueue(cx, id, &Done::default());
    }
    Ok(())
}

/// Returns a record that is gone, as policies may name it.
fn record(ended: &Ended) -> Option<Record> {
    let (kind, id, words) = match ended {
        Ended::User(id, words) => (Kind::User, id.as_str(), words.clone()),
        Ended::Group(id, name) => (Kind::Group, id.as_str(), vec![name.clone()]),
        Ended::Suspended(_) => return None,
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
        .read_system(move |tx| upkeep::abandoned(tx, silent_since))
        .await?;
    let mut count = abandoned.len();
    for (organization, id) in abandoned {
        kernel
            .system(organization, Some("directory.import.expired"), move |cx| {
                cx.target(&fences::IMPORT, id.as_str());
                let mut import = imports::get(cx, &id)?;
                // A chunk may have arrived since, or another server may have been here.
                if import.state == State::Open && import.updated_at < silent_since {
                    abort(cx, &mut import, AbortReason::Expired)?;
                }
                Ok(())
            })
            .await?;
    }
    let old_since = now.earlier_by(KEPT_SECS);
    let old = kernel
        .read_system(move |tx| upkeep::old(tx, old_since.instant()))
        .await?;
    count += old.len();
    for (organization, id) in old {
        kernel
            .system(organization, None, move |cx| upkeep::forget(cx, &id, old_since))
            .await?;
    }
    let ended_since = now.earlier_by(ended::KEPT_SECS);
    let forgetful = kernel
        .read_system(move |tx| ended::old(tx, ended_since.instant()))
        .await?;
    count += forgetful.len();
    for organization in forgetful {
        kernel
            .system(organization, None, move |cx| ended::forget(cx, ended_since))
            .await?;
    }
    Ok(count)
}
