//! `PUT …/resources/{resourceId}`

use super::announcements::ProtocolChanges;
use super::definition::SingleLine;
use super::model::{Resource, ResourceBody, ResourcePath, ResourceView, view};
use super::ownership::Owner;
use super::{gateways, store};
use crate::resources::fences;
use aws_lc_rs::digest::{SHA256, digest};
use provost_kernel::audit::hex;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub struct UpdateResource;

impl Operation for UpdateResource {
    const META: Meta = Meta::write(
        "updateHeadlessResource",
        Method::Put,
        "/resources/{resourceId}",
        "resources",
    )
    .access("resources:write", &[Admin])
    .command("resources", "update")
    .example(
        r#"{"name": "orders db", "protocol": "postgres", "upstreamHost": "orders.acme.example",
           "upstreamPort": 5433}"#,
    )
    .says(
        "Replace a resource",
        "A member that is left out gets its default. The access name stays. The protocol can change only while \
         every credential of the resource fits the new one.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = ResourceBody;
    type Output = ResourceView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ResourceView> {
        let (id, body) = (&input.path.resource_id, &input.body);
        ctx.target(&fences::RESOURCE, id.as_str());
        let before = store::get(ctx, id)?;
        let writer = Owner::calling(ctx, input.manager.as_ref());
        let owner = before.owner.admit(ctx, writer)?;
        let gateway = body.gateway_id.as_ref().map(SingleLine::as_str);
        // A gateway that resources name cannot go away, so only a new one is looked for.
        let gateway_exists = gateway == before.gateway_id.as_deref() || gateways::exists(ctx, gateway)?;
        body.breaches(gateway_exists).refuse()?;
        if body.protocol != before.protocol {
            ctx.announce(&ProtocolChanges {
                id: id.clone(),
                protocol: body.protocol,
            })?;
        }
        let mut after = before.clone();
        after.apply(body);
        after.owner = owner;
        note_changes(ctx, &before, &after);
        if ctx.has_changes() {
            after.updated_at = ctx.now().max(before.updated_at.plus_ms(1));
            store::save(ctx, &after, after.name != before.name)?;
        }
        Ok(view(ctx.org(), after))
    }
}

fn note_changes(ctx: &mut OperationContext<'_>, before: &Resource, after: &Resource) {
    ctx.change("/name", before.name.as_str(), after.name.as_str());
    ctx.change("/protocol", before.protocol.as_str(), after.protocol.as_str());
    ctx.change(
        "/upstreamHost",
        before.upstream_host.as_str(),
        after.upstream_host.as_str(),
    );
    ctx.change("/upstreamPort", before.upstream_port, after.upstream_port);
    ctx.change("/upstreamTls", before.upstream_tls, after.upstream_tls);
    // Certificates may be 64 KiB: the entry shows by a digest that they changed.
    let digest = |pem: &Option<String>| {
        pem.as_ref()
            .map(|pem| hex(digest(&SHA256, pem.as_bytes()).as_ref()))
    };
    ctx.change(
        "/upstreamCaPem",
        digest(&before.upstream_ca_pem),
        digest(&after.upstream_ca_pem),
    );
    ctx.change("/enabled", before.enabled, after.enabled);
    ctx.change(
        "/transparentRouting",
        before.transparent_routing,
        after.transparent_routing,
    );
    ctx.change(
        "/gatewayId",
        before.gateway_id.as_deref(),
        after.gateway_id.as_deref(),
    );
    super::note_owner(ctx, &before.owner, &after.owner);
}
