//! Taking back: a request that waits, and what was approved.

use super::model::Effect;
use super::view::{ApprovalPath, ApprovalView, OneApproval};
use super::{fences, refused, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

const WRITE: &str = "mcp_approvals:write";

pub struct CancelApproval;

impl Operation for CancelApproval {
    const META: Meta = Meta::write(
        "cancelHeadlessApproval",
        Method::Post,
        "/approvals/{approvalId}/cancel",
        "mcp_approvals",
    )
    .access(WRITE, &[Admin])
    .command("approvals", "cancel")
    .says("Take a request back", "Only while it waits.");
    type Path = ApprovalPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        let id = &input.path.approval_id;
        ctx.target(&fences::APPROVAL, id.as_str());
        let (mut approval, now) = (store::get(ctx, id)?, ctx.latest());
        let before = approval.state;
        let effect = approval
            .cancel(now)
            .map_err(|refusal| refused(refusal, &approval, now))?;
        if effect == Effect::Changed {
            store::save(ctx, &approval)?;
            ctx.change("/state", before.as_str(), approval.state.as_str());
            ctx.emit(&fences::CANCELED, &fences::OfApproval::of(&approval));
        }
        Ok(OneApproval {
            approval: ApprovalView::of(approval, now, None),
        })
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
        let (mut approval, now) = (store::get(ctx, id)?, ctx.latest());
        let before = approval.state;
        let effect = approval
            .revoke(now)
            .map_err(|refusal| refused(refusal, &approval, now))?;
        if effect == Effect::Changed {
            store::save(ctx, &approval)?;
            ctx.change("/state", before.as_str(), approval.state.as_str());
            ctx.emit(&fences::REVOKED, &fences::OfApproval::of(&approval));
        }
        Ok(OneApproval {
            approval: ApprovalView::of(approval, now, None),
        })
    }
}
