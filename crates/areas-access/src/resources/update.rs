//! `PUT …/resources/{resourceId}`

use super::announcements::ProtocolChanges;
use super::definition::Line;
use super::model::{Resource, ResourceBody, ResourcePath, ResourceView, view};
use super::ownership::Owner;
use super::{gateways, store};
use crate::resources::fences;
use aws_lc_rs::digest::{SHA256, digest};
use provost_kernel::audit::hex;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};

/// See [`Operation::META`].
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
    .says(
        "Replace a resource",
        "A member that is left out gets its default. The access name stays. The protocol can change only while \
         every credential of the resource fits the new one.",
    );
    type Path = ResourcePath;
    type Query = Empty;
    type Body = ResourceBody;
    type Output = ResourceView;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ResourceView> {
        let (id, body) = (&input.path.resource_id, &input.body);
        cx.target(&fences::RESOURCE, id.as_str());
        let before = store::get(cx, id)?;
        let writer = Owner::calling(cx, input.manager.as_ref());
        let owner = before.owner.admit(cx, writer)?;
        let gateway = body.gateway_id.as_ref().map(Line::as_str);
        // A gateway that resources name cannot go away, so only a new one is looked for.
        let gateway_exists = gateway == before.gateway_id.as_deref() || gateways::exists(cx, gateway)?;
        body.breaches(gateway_exists).refuse()?;
        if body.protocol != before.protocol {
            cx.announce(&ProtocolChanges {
                id: id.clone(),
                protocol: body.protocol,
            })?;
        }
        let mut after = before.clone();
        after.apply(body);
        after.owner = owner;
        note_changes(cx, &before, &after);
        if cx.has_changes() {
            after.updated_at = cx.now().max(before.updated_at.plus_ms(1));
            store::save(cx, &after, after.name != before.name)?;
        }
        Ok(view(cx.org(), after))
    }
}

fn note_changes(cx: &mut Cx<'_>, before: &Resource, after: &Resource) {
    cx.change("/name", before.name.as_str(), after.name.as_str());
    cx.change("/protocol", before.protocol.as_str(), after.protocol.as_str());
    cx.change(
        "/upstreamHost",
        before.upstream_host.as_str(),
        after.upstream_host.as_str(),
    );
    cx.change("/upstreamPort", before.upstream_port, after.upstream_port);
    cx.change("/upstreamTls", before.upstream_tls, after.upstream_tls);
    // Certificates may be 64 KiB: the entry shows by a digest that they changed.
    let digest = |pem: &Option<String>| {
        pem.as_ref()
            .map(|pem| hex(digest(&SHA256, pem.as_bytes()).as_ref()))
    };
    cx.change(
        "/upstreamCaPem",
        digest(&before.upstream_ca_pem),
        digest(&after.upstream_ca_pem),
    );
    cx.change("/enabled", before.enabled, after.enabled);
    cx.change(
        "/transparentRouting",
        before.transparent_routing,
        after.transparent_routing,
    );
    cx.change(
        "/gatewayId",
        before.gateway_id.as_deref(),
        after.gateway_id.as_deref(),
    );
    super::note_owner(cx, &before.owner, &after.owner);
}
