//! `POST …/resource-gateways`

use super::model::{Gateway, GatewayBody, GatewayView, view};
use super::store;
use crate::resources::fences;
use crate::resources::ownership::{Owner, answer_again, may_be_said_again, naming};
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
    .example(r#"{"name": "Frankfurt", "hostname": "gateway.acme.example"}"#)
    .status(201)
    .also(200)
    .answers(&["Location", "Idempotent-Replayed"])
    .says(
        "Create a resource gateway",
        "Sent with both manager headers, it is that manager's and the caller's, and the same create within a day answers 200.",
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
        if let Some(there) = store::named(ctx, &gateway.name)? {
            return said_again(ctx, &gateway, there);
        }
        store::insert(ctx, &mut gateway)?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}/resource-gateways/{}", gateway.id));
        ctx.change("/name", Value::Null, gateway.name.as_str());
        ctx.change("/hostname", Value::Null, gateway.hostname.as_str());
        ctx.change("/managementMode", Value::Null, gateway.owner.mode());
        Ok(view(ctx.org(), gateway))
    }
}

/// Answers a create whose name is taken with the gateway that the caller made so.
///
/// Errors: `AlreadyExists` with the gateway that has the name.
fn said_again(ctx: &mut OperationContext<'_>, said: &Gateway, there: Gateway) -> Result<GatewayView> {
    let is_same = (&said.name, &said.hostname, said.enabled) == (&there.name, &there.hostname, there.enabled);
    let is_untouched = there.created_at == there.updated_at;
    if !(is_same && is_untouched && may_be_said_again(ctx, &said.owner, &there.owner, there.created_at)) {
        return Err(naming(store::name_taken(), there.id.as_str(), &there.owner));
    }
    ctx.target(&fences::GATEWAY, there.id.as_str());
    answer_again(ctx);
    Ok(view(ctx.org(), there))
}
