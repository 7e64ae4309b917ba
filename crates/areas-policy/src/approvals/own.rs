//! `GET …/approvals/own`

use super::list::{self, ApprovalPage};
use super::model::Party;
use super::store;
use crate::paging::PageQuery;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct ListOwnApprovals;

const LIST: &str = "listHeadlessOwnApprovals";

impl Operation for ListOwnApprovals {
    const META: Meta = Meta::read(LIST, "/approvals/own", "mcp_approvals")
        .access("mcp_approvals:request", &Role::ALL)
        .command("approvals", "own")
        .columns(&[
            "state",
            "tool",
            "createdAt as asked",
            "deadlineAt as until",
            "id",
            "kind",
            "requestedBy.id as by",
            "requestedFor.id as for",
            "policies",
            "quorum",
            "votes",
            "decidedAt as decided",
            "grant",
            "endedAt as ended",
            "endReason as why",
        ])
        .says(
            "List the approvals of the caller",
            "What the caller asked for, and what was asked for them, newest first.",
        );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = ApprovalPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ApprovalPage> {
        let query = &input.query;
        let caller = Party::of(ctx.actor());
        let name = [LIST, caller.kind.as_str(), caller.id.as_str()].join("|");
        let find = |ctx: &mut OperationContext<'_>, before: &str, limit: i64| {
            store::own(ctx, &caller, before, limit)
        };
        list::page(ctx, &name, query.cursor.as_ref(), query.limit, find)
    }
}
