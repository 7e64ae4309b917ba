//! Taking back: a request that waits, and what was approved.

use super::model::{Approval, Effect, Party, Refusal};
use super::view::{ApprovalPath, ApprovalView, OneApproval};
use super::{fences, refused, store};
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::error::Error;
use provost_kernel::event::EventOf;
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};

pub(super) const WRITE: &str = "mcp_approvals:write";

/// Takes an approval back in one way, and says so once.
fn take_back(
    ctx: &mut OperationContext<'_>,
    mut approval: Approval,
    act: fn(&mut Approval, Timestamp) -> std::result::Result<Effect, Refusal>,
    event: &'static EventOf<fences::OfApproval>,
) -> Result<OneApproval> {
    let (before, now) = (approval.state, ctx.latest());
    let effect = act(&mut approval, now).map_err(|refusal| refused(refusal, &approval, now))?;
    if effect == Effect::Changed {
        store::save(ctx, &approval)?;
        ctx.change("/state", before.as_str(), approval.state.as_str());
        ctx.emit(event, &fences::OfApproval::of(&approval));
    }
    Ok(OneApproval {
        approval: ApprovalView::of(ctx, approval, None)?,
    })
}

pub struct CancelApproval;

impl Operation for CancelApproval {
    const META: Meta = Meta::write(
        "cancelHeadlessApproval",
        Method::Post,
        "/approvals/{approvalId}/cancel",
        "mcp_approvals",
    )
    .rule(Access::ScopedEither {
        scope: "mcp_approvals:request",
        other: WRITE,
        roles: &Role::ALL,
    })
    .command("approvals", "cancel")
    .says(
        "Take a request back",
        "Only while it waits. Whoever asked takes their own back with mcp_approvals:request; of others an admin does, and for \
         everybody else there is no such request.",
    );
    type Path = ApprovalPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let id = &input.path.approval_id;
        ctx.target(&fences::APPROVAL, id.as_str());
        let approval = store::get(ctx, id)?;
        let actor = ctx.actor();
        let is_of_all = actor.permission.role == Admin && actor.permission.scopes.has(WRITE);
        if !is_of_all && approval.asker != Party::of(actor) {
            return Err(Error::not_found("approval"));
        }
        take_back(ctx, approval, Approval::cancel, &fences::CANCELED)
    }
}

pub struct RevokeApproval;

impl Operation for RevokeApproval {
    const META: Meta = Meta::write(
        "revokeHeadlessApproval",
        Method::Post,
        "/approvals/{approvalId}/revoke",
        "mcp_approvals",
    )
    .access(WRITE, &[Admin])
    .command("approvals", "revoke")
    .says(
        "Take back what was approved",
        "From the answer on no call passes by it.",
    );
    type Path = ApprovalPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let id = &input.path.approval_id;
        ctx.target(&fences::APPROVAL, id.as_str());
        let approval = store::get(ctx, id)?;
        take_back(ctx, approval, Approval::revoke, &fences::REVOKED)
    }
}
