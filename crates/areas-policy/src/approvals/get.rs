//! `GET …/approvals/{approvalId}`

use super::model::Party;
use super::view::{ApprovalPath, ApprovalView, CallView, OneApproval, call_of};
use super::{ask, fences, rights, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetApproval;

impl Operation for GetApproval {
    const META: Meta = Meta::read("getHeadlessApproval", "/approvals/{approvalId}", "mcp_approvals")
        .access("mcp_approvals:read", &[Admin, Operator, Auditor])
        .sensitive()
        .command("approvals", "get")
        .says(
            "Show an approval",
            "preview holds the call and the digest that a vote repeats, for callers who may decide (mcp_approvals:decide) and \
             for who asked; of a server that was asked for by hand also what is known of it otherwise by now (drift). A call may hold what somebody wrote: every look is an entry of the audit log.",
        );
    type Path = ApprovalPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneApproval;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneApproval> {
        ctx.target(&fences::APPROVAL, input.path.approval_id.as_str());
        let approval = store::get(ctx, &input.path.approval_id)?;
        let actor = ctx.actor();
        let caller = Party::of(actor);
        let sees = actor.permission.scopes.has(rights::DECIDE) || approval.concerns(&caller);
        let scopes = actor.permission.scopes;
        let reads_inventory = scopes.has("inventory:read");
        let reads_people = scopes.has("directory:read") && scopes.has("service_accounts:read");
        let knows = scopes.has(rights::DECIDE) || reads_people;
        let mut preview = if sees { call_of(ctx, &approval)? } else { None };
        if !knows {
            preview = preview.map(CallView::without_standing);
        }
        if let Some(shown) = preview.take() {
            let drift = if reads_inventory {
                ask::drift(ctx, &shown)?
            } else {
                Vec::new()
            };
            preview = Some(shown.with_drift(drift));
        }
        Ok(OneApproval {
            approval: ApprovalView::of(ctx, approval, preview)?,
        })
    }
}
