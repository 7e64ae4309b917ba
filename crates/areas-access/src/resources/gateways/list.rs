//! `GET …/resource-gateways`

use super::model::{GatewayView, view};
use super::store;
use crate::resources::READERS;
use crate::resources::list::PageQuery;
use provost_kernel::operation::{Empty, Input, Meta, Operation};

use provost_kernel::{OperationContext, Result};

pub struct ListResourceGateways;

provost_kernel::page! {
    /// One page of gateways.
    pub struct GatewayPage {
        /// The gateways, the oldest first.
        resource_gateways: GatewayView,
    }
}

impl Operation for ListResourceGateways {
    const META: Meta = Meta::read("listHeadlessResourceGateways", "/resource-gateways", "resources")
        .access("resources:read", READERS)
        .command("resource-gateways", "list").columns(&["name", "hostname", "enabled", "updatedAt as changed", "id", "managementMode as managed", "managerId as manager", "managerInstance as instance", "createdAt as created"])
        .says(
            "List resource gateways, the oldest first",
            "The list has ended when nextCursor is absent. What is made while somebody reads stands at the end.",
        );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = GatewayPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayPage> {
        let (after, count) = input.query.start(ctx, Self::META.id)?;
        let mut found = store::list(ctx, after, count)?;
        let next_cursor = input
            .query
            .end(ctx, Self::META.id, &mut found, |gateway| gateway.created_at);
        Ok(GatewayPage {
            resource_gateways: found
                .into_iter()
                .map(|gateway| view(ctx.org(), gateway))
                .collect(),
            next_cursor,
        })
    }
}
