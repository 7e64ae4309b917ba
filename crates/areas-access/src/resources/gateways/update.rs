//! `PUT …/resource-gateways/{resourceGatewayId}`

use super::model::{GatewayBody, GatewayPath, GatewayView, view};
use super::store;
use crate::resources::fences;
use crate::resources::note_owner;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct UpdateResourceGateway;

impl Operation for UpdateResourceGateway {
    const META: Meta = Meta::write(
        "updateHeadlessResourceGateway",
        Method::Put,
        "/resource-gateways/{resourceGatewayId}",
        "resources",
    )
    .access("resources:write", &[Admin])
    .command("resource-gateways", "update")
    .example(r#"{"name": "Frankfurt", "hostname": "gateway.acme.example", "enabled": false}"#)
    .says(
        "Replace a resource gateway",
        "A member that is left out gets its default.",
    );
    type Path = GatewayPath;
    type Query = Empty;
    type Body = GatewayBody;
    type Output = GatewayView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayView> {
        let (id, body) = (&input.path.resource_gateway_id, &input.body);
        ctx.target(&fences::GATEWAY, id.as_str());
        let before = store::get(ctx, id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        let mut after = before.clone();
        after.owner = before.owner.admit(ctx, writer)?;
        body.breaches().refuse()?;
        body.name.as_str().clone_into(&mut after.name);
        body.hostname.as_str().clone_into(&mut after.hostname);
        after.enabled = body.enabled;
        ctx.change("/name", before.name.as_str(), after.name.as_str());
        ctx.change("/hostname", before.hostname.as_str(), after.hostname.as_str());
        ctx.change("/enabled", before.enabled, after.enabled);
        note_owner(ctx, &before.owner, &after.owner);
        if ctx.has_changes() {
            after.updated_at = ctx.now().max(before.updated_at.plus_ms(1));
            store::save(ctx, &after, after.name != before.name)?;
        }
        Ok(view(ctx.org(), after))
    }
}
