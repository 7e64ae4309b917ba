//! `POST …/resource-gateways`

use super::model::{Gateway, GatewayBody, GatewayView, view};
use super::store;
use crate::resources::fences;
use crate::resources::ownership::Owner;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct CreateResourceGateway;

impl Operation for CreateResourceGateway {
    const META: Meta = Meta::write(
        "createHeadlessResourceGateway",
        Method::Post,
        "/resource-gateways",
        "resources",
    )
    .access("resources:write", &[Admin])
    .command("resource-gateways", "create")
    .status(201)
    .answers(&["Location"])
    .says(
        "Create a resource gateway",
        "Sent with both manager headers, it belongs to that Terraform manager and to the calling service account.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = GatewayBody;
    type Output = GatewayView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<GatewayView> {
        let body = &input.body;
        let mut gateway = Gateway {
            id: ctx.new_id(),
            name: body.name.as_str().to_owned(),
            hostname: body.hostname.as_str().to_owned(),
            enabled: body.enabled,
            owner: Owner::calling(ctx, input.manager.as_ref()),
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        ctx.target(&fences::GATEWAY, gateway.id.as_str());
        body.breaches().refuse()?;
        store::insert(ctx, &mut gateway)?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}/resource-gateways/{}", gateway.id));
        ctx.change("/name", Value::Null, gateway.name.as_str());
        ctx.change("/hostname", Value::Null, gateway.hostname.as_str());
        ctx.change("/managementMode", Value::Null, gateway.owner.mode());
        Ok(view(ctx.org(), gateway))
    }
}
