//! What takes away from resources and gateways, and how it is taken away again (EN-3).

use super::gateways::{self, model::GatewayId};
use super::model::ResourceId;
use super::store;
use provost_areas_platform::ends::unclear;
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp};

const RESOURCE: &str = "resource";
const GATEWAY: &str = "resource_gateway";

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::ending("resource_gateways", gateway),
    Right::ending("resources", resource),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: RESOURCE,
        again: resource_again,
    },
    RepeatedRevocation {
        what: GATEWAY,
        again: gateway_again,
    },
];

/// Says what became of a place that could be reached: where secrets were sent before, none is sent any more.
fn place(what: &'static str, change: &RowChange, leads: &[&str]) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    if !was.truth("enabled")? {
        return Ok(Vec::new());
    }
    let how = match &change.is {
        None => "deleted",
        Some(is) if !is.truth("enabled")? => "disabled",
        Some(is) if !was.agrees(is, leads)? => "changed",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn resource(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let leads = [
        "protocol",
        "upstream_host",
        "upstream_port",
        "upstream_tls",
        "upstream_ca_pem",
        "transparent_routing",
        "gateway_id",
    ];
    place(RESOURCE, change, &leads)
}

fn gateway(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    place(GATEWAY, change, &["hostname"])
}

fn done(how: &str) -> Again {
    Again::Done(match how {
        "deleted" => "disabled; delete it by hand",
        "changed" => "disabled; change it by hand before it is enabled",
        _ => "disabled",
    })
}

fn resource_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let mut resource = store::get(ctx, &ResourceId::from_store(id.clone()))?;
    if !resource.enabled {
        return Ok(Again::Already);
    }
    resource.enabled = false;
    resource.updated_at = ctx.now().max(resource.updated_at.plus_ms(1));
    store::save(ctx, &resource, false)?;
    ctx.change("/enabled", true, false);
    Ok(done(how))
}

fn gateway_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    let mut gateway = gateways::get(ctx, &GatewayId::from_store(id.clone()))?;
    if !gateway.enabled {
        return Ok(Again::Already);
    }
    gateway.enabled = false;
    gateway.updated_at = ctx.now().max(gateway.updated_at.plus_ms(1));
    gateways::save(ctx, &gateway, false)?;
    ctx.change("/enabled", true, false);
    Ok(done(how))
}
