//! Writes what a plan needs, in the unit that records its decisions.
//!
//! Keeps AP-7 and AP-8.

use super::model::{Approval, State};
use super::plan::{Plan, Step, is_full};
use super::{expire, fences, make_void, rights, store};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

/// Writes what a plan needs.
///
/// Errors: `Conflict` when a row is another than the plan's, or there is no room any more; then a new plan is due.
pub fn apply(ctx: &mut OperationContext<'_>, plan: &Plan) -> Result<()> {
    // Keeps AP-12: a new plan says so.
    if !plan.writes_nothing() && ctx.services().is_set_back() {
        return Err(store::moved());
    }
    let mut done: [Vec<String>; 4] = Default::default();
    for step in &plan.steps {
        match step {
            Step::Use {
                id,
                revision,
                event_id,
                device,
            } => {
                let mut approval = store::get(ctx, id)?;
                let is_done = approval.uses.iter().any(|earlier| earlier.event_id == *event_id);
                // The unit ran before, and its commit went unanswered (WK-3).
                if !is_done {
                    if approval.revision != *revision {
                        return Err(store::moved());
                    }
                    use_once(ctx, &mut approval, event_id, device.as_deref())?;
                }
                done[0].push(id.as_str().to_owned());
            }
            Step::Void { id, revision, reason } => {
                let mut approval = store::get(ctx, id)?;
                if approval.state != State::Void {
                    if approval.revision != *revision {
                        return Err(store::moved());
                    }
                    make_void(ctx, &mut approval, reason)?;
                }
                done[1].push(id.as_str().to_owned());
            }
            Step::Expire { id } => {
                let mut approval = store::get(ctx, id)?;
                if !approval.state.is_ended() && !expire(ctx, &mut approval)? {
                    return Err(store::moved());
                }
                done[2].push(id.as_str().to_owned());
            }
            Step::Open(approval) => {
                open(ctx, approval)?;
                done[3].push(approval.id.as_str().to_owned());
            }
        }
    }
    for (path, ids) in ["/used", "/void", "/expired", "/requested"].into_iter().zip(done) {
        if let Some(first) = ids.first() {
            ctx.target(&fences::APPROVAL, first.clone());
            ctx.change(path, Value::Null, json!(ids));
        }
    }
    Ok(())
}

fn open(ctx: &mut OperationContext<'_>, approval: &Approval) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    // The unit ran before, and its commit went unanswered (WK-3).
    if store::find(&mut ctx.tx(), org, &approval.id)?.is_some() {
        return Ok(());
    }
    // Others may have opened as many in the meantime.
    let asker = (&approval.asker, approval.owner_id.as_str());
    let counts = store::counts(&mut ctx.tx(), org, asker, &approval.subject, now)?;
    let waits_ms = approval
        .deadline_at
        .as_ms()
        .saturating_sub(approval.created_at.as_ms());
    if is_full(counts, waits_ms / 1_000) {
        return Err(store::moved());
    }
    store::insert(ctx, approval)?;
    ctx.emit(&fences::REQUESTED, &fences::OfApproval::of(approval));
    Ok(())
}

fn use_once(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    event_id: &str,
    device: Option<&str>,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    let rights = rights::of_party(&mut ctx.tx(), org, &approval.subject)?;
    let lapse = rights::lapse(&mut ctx.tx(), org, approval, device, now)?;
    if rights.as_ref() != Some(&approval.subject_rights) || lapse.is_some() {
        return Err(store::moved());
    }
    approval.consume(event_id, now).map_err(|_| store::moved())?;
    store::save(ctx, approval)?;
    let data = fences::UsedApproval {
        approval_id: approval.id.clone(),
        event_id: event_id.to_owned(),
        uses_left: approval.uses_left(),
    };
    ctx.emit(&fences::USED, &data);
    Ok(())
}
