//! What an import does in small units of work: marking, the swap, undoing, clearing away.
//!
//! INVARIANT DI-2: the swap is one row; before it nothing of an import is visible, behind it everything.

use super::super::model::{GroupId, UserId};
use super::super::store::upkeep::{self, Ended, Marked};
use super::super::store::{imports, memberships};
use super::super::users::{orphans, suspended};
use super::model::{ABANDONED_AFTER_SECS, AbortReason, Import, ImportId, KEPT_SECS, State};
use crate::areas::subjects::SubjectKind;
use crate::areas::{mcp_sessions, resource_credentials};
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, NewJob, Work};
use provost_kernel::{Cx, Kernel, Result, params};
use serde_json::{Value, json};
use std::sync::Arc;

/// The job that carries an import on.
const CONTINUE: &str = "directory.import.continue";
/// How many steps of marking one unit of work does.
const MARK_STEPS: usize = 4;

/// Runs it.
pub const HANDLER: Handler = Handler {
    kind: CONTINUE,
    action: "directory.import.continued",
    work: Work::Inside(carry_on),
};

fn enqueue(cx: &mut Cx<'_>, import: &ImportId, marked: Marked) {
    cx.enqueue(NewJob {
        kind: CONTINUE,
        payload: json!({ "importId": import, "marked": marked }),
        run_at: cx.now(),
    });
}

/// Does the next part of what an import needs, and sees to the part after it.
fn carry_on(cx: &mut Cx<'_>, payload: &Value) -> Result<()> {
    let id = payload["importId"].as_str();
    let id = ImportId::from_text(id.ok_or_else(|| Error::internal("a job names no import"))?);
    cx.target("import", id.as_str());
    let mut import = imports::get(cx, &id)?;
    match import.state {
        State::Open => Ok(()),
        State::Applying => {
            let marked = serde_json::from_value(payload["marked"].clone()).map_err(Error::internal)?;
            mark_and_swap(cx, &mut import, marked)
        }
        State::Aborting => undo(cx, &mut import),
        State::Applied | State::Aborted => clear(cx, &id),
    }
}

/// Marks what the file does not name, and swaps when nothing is left to mark.
pub fn mark_and_swap(cx: &mut Cx<'_>, import: &mut Import, marked: Marked) -> Result<()> {
    let (mut marked, mut is_done) = (marked, false);
    for _ in 0..MARK_STEPS {
        let step = upkeep::mark(cx, import, &mut marked)?;
        import.counts.users.removed += step.users.cast_signed();
        import.counts.groups.removed += step.groups.cast_signed();
        import.counts.memberships.removed += step.memberships.cast_signed();
        is_done = step.is_done;
        if is_done {
            break;
        }
    }
    if is_done {
        return swap(cx, import);
    }
    import.state = State::Applying;
    import.touch(cx.now());
    imports::save(cx, import)?;
    enqueue(cx, &import.id, marked);
    Ok(())
}

/// Makes an import visible.
pub fn swap(cx: &mut Cx<'_>, import: &mut Import) -> Result<()> {
    // Whom it removes or suspends may wait in this very commit (WK-4).
    cx.judge_callers_anew();
    imports::swap(cx, import)?;
    import.finish(cx.now(), State::Applied);
    imports::save(cx, import)?;
    cx.change("/counts", Value::Null, json!(import.counts));
    cx.emit(
        "directory.import.applied",
        json!({ "importId": import.id, "directoryId": import.directory_id, "counts": import.counts }),
    );
    enqueue(cx, &import.id, Marked::default());
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
    if upkeep::undo(cx, import.generation)? {
        import.finish(cx.now(), State::Aborted);
    } else {
        import.state = State::Aborting;
        import.touch(cx.now());
    }
    imports::save(cx, import)?;
    enqueue(cx, &import.id, Marked::default());
    Ok(())
}

/// Removes the next part of what a finished import left behind, and tells of the records that it ended.
fn clear(cx: &mut Cx<'_>, id: &ImportId) -> Result<()> {
    let (ended, is_done) = upkeep::clear(cx, id)?;
    for record in &ended {
        match record {
            Ended::User(id) => user_gone(cx, id)?,
            Ended::Suspended(id) => suspended(cx, id)?,
            Ended::Group(id) => group_gone(cx, id)?,
        }
    }
    if !is_done {
        enqueue(cx, id, Marked::default());
    }
    Ok(())
}

fn user_gone(cx: &mut Cx<'_>, id: &UserId) -> Result<()> {
    let org = cx.org();
    cx.queue(&memberships::DELETE_OF_USER, params![org, id.as_str()])?;
    resource_credentials::forget_subject(cx, SubjectKind::User, id.as_str())?;
    mcp_sessions::user_left(cx, id.as_str())?;
    cx.emit("directory.user.deleted", json!({ "userId": id }));
    orphans(cx, id)
}

fn group_gone(cx: &mut Cx<'_>, id: &GroupId) -> Result<()> {
    let org = cx.org();
    cx.queue(&memberships::DELETE_OF_GROUP, params![org, id.as_str()])?;
    resource_credentials::forget_subject(cx, SubjectKind::Group, id.as_str())?;
    cx.emit("directory.group.deleted", json!({ "groupId": id }));
    Ok(())
}

/// Aborts imports into which nothing arrives any more, and forgets finished ones after their time. A reconciler.
pub async fn tidy(kernel: &Arc<Kernel>) -> Result<usize> {
    let silent_since = kernel.clock.now().plus_secs(-ABANDONED_AFTER_SECS);
    let abandoned = kernel
        .read_system(move |tx| upkeep::abandoned(tx, silent_since))
        .await?;
    let mut count = abandoned.len();
    for (organization, id) in abandoned {
        kernel
            .system(organization, Some("directory.import.expired"), move |cx| {
                cx.target("import", id.as_str());
                let mut import = imports::get(cx, &id)?;
                // A chunk may have arrived since, or another server may have been here.
                if import.state == State::Open && import.updated_at < silent_since {
                    abort(cx, &mut import, AbortReason::Expired)?;
                }
                Ok(())
            })
            .await?;
    }
    let old_since = kernel.clock.now().plus_secs(-KEPT_SECS);
    let old = kernel.read_system(move |tx| upkeep::old(tx, old_since)).await?;
    count += old.len();
    for (organization, id) in old {
        kernel
            .system(organization, None, move |cx| upkeep::forget(cx, &id))
            .await?;
    }
    Ok(count)
}
