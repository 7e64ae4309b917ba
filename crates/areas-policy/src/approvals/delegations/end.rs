//! `DELETE …/approval-delegations/{delegationId}`

use super::model::DelegationId;
use super::store;
use crate::approvals::verbs::WRITE;
use crate::approvals::{fences, rights};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct EndDelegation;

/// The path of operations on one delegation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DelegationPath {
    /// The delegation.
    delegation_id: DelegationId,
}

impl Operation for EndDelegation {
    const META: Meta = Meta::write(
        "deleteHeadlessApprovalDelegation",
        Method::Delete,
        "/approval-delegations/{delegationId}",
        "mcp_approvals",
    )
    .rule(Access::ScopedEither {
        scope: rights::DECIDE,
        other: WRITE,
        roles: &[Admin],
    })
    .command("approvals", "undelegate")
    .status(204)
    .says(
        "Have somebody vote in one's name no longer",
        "From the answer on no vote by it counts, nor what passes by one. Who lent their vote ends it and to whom it is lent; with \
         mcp_approvals:write an admin ends each, and for everybody else there is no such delegation.",
    );
    type Path = DelegationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.delegation_id;
        ctx.target(&fences::DELEGATION, id.as_str());
        let delegation = store::get(ctx, id)?;
        let actor = ctx.actor();
        let is_theirs = [&delegation.from_user_id, &delegation.to_user_id].contains(&&actor.id);
        if !is_theirs && !actor.permission.scopes.has(WRITE) {
            return Err(Error::not_found("delegation"));
        }
        super::end(ctx, delegation, Some("taken_back"))?;
        Ok(NoContent {})
    }
}
