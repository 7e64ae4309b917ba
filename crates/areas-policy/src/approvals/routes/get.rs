//! `GET …/approval-routes`

use super::model::Route;
use super::store::{self, StoredRoutes};
use crate::approvals::fences;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetRoutes;

/// The routes of an organization.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RoutesView {
    /// They, in the order in which they are looked at: the first that fits counts.
    routes: Vec<Route>,
    /// How often they were written; 0 before they were. A write repeats it.
    revision: i64,
    /// When they were written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
}

impl RoutesView {
    /// Returns how routes look.
    pub fn of(stored: Option<StoredRoutes>) -> Self {
        let revision = stored.as_ref().map_or(0, |stored| stored.revision);
        let updated_at = stored.as_ref().map(|stored| stored.updated_at);
        Self {
            routes: stored.map_or_else(Vec::new, |stored| stored.routes),
            revision,
            updated_at,
        }
    }
}

impl Operation for GetRoutes {
    const META: Meta = Meta::read("getHeadlessApprovalRoutes", "/approval-routes", "mcp_approvals")
        .access("mcp_approvals:read", &[Admin, Operator, Auditor])
        .command("approval-routes", "get")
        .columns(&[
            "name",
            "quorum",
            "deadlineSeconds as seconds",
            "onDeadline as then",
            "match",
            "approvers",
        ])
        .says(
            "Show who decides about what is asked for",
            "The first route that fits counts. Where none does, one person of all who may decide is enough.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = RoutesView;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<RoutesView> {
        let org = ctx.org();
        ctx.target(&fences::ROUTES, org);
        Ok(RoutesView::of(store::load(&mut ctx.tx(), org)?))
    }
}
