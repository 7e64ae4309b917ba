//! `GET …/resource-gateways/{resourceGatewayId}`

use super::model::{GatewayPath, GatewayView, view};
use super::store;
use crate::resources::READERS;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetResourceGateway;

impl Operation for GetResourceGateway {
    const META: Meta = Meta::read(
        "getHeadlessResourceGateway",
        "/resource-gateways/{resourceGatewayId}",
        "resources",
    )
    .access("resources:read", READERS)
    .command("resource-gateways", "get")
    .says("Show a resource gateway", "");
    type Path = GatewayPath;
    type Query = Empty;
    type Body = Empty;
    type Output = GatewayView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayView> {
        let gateway = store::get(ctx, &input.path.resource_gateway_id)?;
        Ok(view(ctx.org(), gateway))
    }
}
