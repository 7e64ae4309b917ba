//! `POST …/resources`

use super::definition::SingleLine;
use super::model::{Resource, ResourceBody, ResourceId, ResourceView, access_name, view};
use super::ownership::{Owner, answer_again, may_be_said_again, naming};
use super::{gateways, store};
use crate::resources::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct CreateResource;

impl Operation for CreateResource {
    const META: Meta = Meta::write("createHeadlessResource", Method::Post, "/resources", "resources")
        .access("resources:write", &[Admin])
        .command("resources", "create")
        .example(
            r#"{"name": "orders db", "protocol": "postgres", "upstreamHost": "orders.acme.example",
               "upstreamPort": 5432}"#,
        )
        .status(201)
        .also(200)
        .answers(&["Location", "Idempotent-Replayed"])
        .says(
            "Create a resource",
            "A resource is a system behind a gateway: an HTTP API or a database. Sent with both manager headers, it \
             is that manager's and the caller's, and the same create within a day answers 200.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = ResourceBody;
    type Output = ResourceView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ResourceView> {
        let body = &input.body;
        let id: ResourceId = ctx.new_id();
        ctx.target(&fences::RESOURCE, id.as_str());
        let gateway_exists = gateways::exists(ctx, body.gateway_id.as_ref().map(SingleLine::as_str))?;
        body.breaches(gateway_exists).refuse()?;
        let mut resource = Resource {
            access_name: access_name(body.name.as_str(), &id),
            id,
            name: String::new(),
            protocol: body.protocol,
            upstream_host: String::new(),
            upstream_port: 0,
            upstream_tls: true,
            upstream_ca_pem: None,
            enabled: true,
            transparent_routing: false,
            gateway_id: None,
            owner: Owner::calling(ctx, input.manager.as_ref()),
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        resource.apply(body);
        if let Some(there) = store::named(ctx, &resource.name)? {
            return said_again(ctx, body, &resource.owner, there);
        }
        store::insert(ctx, &mut resource)?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header("location", format!("{base}/resources/{}", resource.id));
        ctx.change("/name", Value::Null, resource.name.as_str());
        ctx.change("/protocol", Value::Null, resource.protocol.as_str());
        ctx.change("/upstreamHost", Value::Null, resource.upstream_host.as_str());
        ctx.change("/managementMode", Value::Null, resource.owner.mode());
        Ok(view(ctx.org(), resource))
    }
}

/// Answers a create whose name is taken with the resource that the caller made so.
///
/// Errors: `AlreadyExists` with the resource that has the name.
fn said_again(
    ctx: &mut OperationContext<'_>,
    body: &ResourceBody,
    caller: &Owner,
    there: Resource,
) -> Result<ResourceView> {
    let mut said = there.clone();
    said.apply(body);
    let is_untouched = said == there && there.created_at == there.updated_at;
    if !(is_untouched && may_be_said_again(ctx, caller, &there.owner, there.created_at)) {
        return Err(naming(store::name_taken(), there.id.as_str(), &there.owner));
    }
    ctx.target(&fences::RESOURCE, there.id.as_str());
    answer_again(ctx);
    Ok(view(ctx.org(), there))
}
