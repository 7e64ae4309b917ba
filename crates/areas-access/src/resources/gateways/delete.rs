//! `DELETE …/resource-gateways/{resourceGatewayId}`

use super::model::GatewayPath;
use super::store;
use crate::resources::fences;
use crate::resources::ownership::Owner;
use crate::resources::store::count_by_gateway;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};

pub struct DeleteResourceGateway;

impl Operation for DeleteResourceGateway {
    const META: Meta = Meta::write(
        "deleteHeadlessResourceGateway",
        Method::Delete,
        "/resource-gateways/{resourceGatewayId}",
        "resources",
    )
    .access("resources:write", &[Admin])
    .command("resource-gateways", "delete")
    .confirmed()
    .status(204)
    .says(
        "Delete a resource gateway",
        "A gateway that resources name stays: point them elsewhere first.",
    );
    type Path = GatewayPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.resource_gateway_id;
        ctx.target(&fences::GATEWAY, id.as_str());
        let gateway = store::get(ctx, id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        gateway.owner.admit(ctx, writer)?;
        let count = count_by_gateway(ctx, id.as_str())?;
        if count > 0 {
            let message = format!("resources still name this gateway ({count}); point them elsewhere first");
            return Err(Error::new(Code::Conflict, message).with("resources", count));
        }
        store::delete(ctx, id)?;
        ctx.change("/name", gateway.name, serde_json::Value::Null);
        Ok(NoContent {})
    }
}
