//! `GET …/devices/own/inventory`
//!
//! What is on a machine its owner always sees (F5.4): whoever reads it reads words of a machine of their own. How old the data of other
//! machines are is left out, and skills stand beside the registry for whoever may read that alone. What was found while the machine was somebody
//! else's is not read until a look found it again (FL-15).

use super::fences;
use super::model::ObservationView;
use super::observations;
use crate::fleet::{self, DeviceId, Owned, ToldBy, ToldOfDevice};
use provost_kernel::auth::Role;
use provost_kernel::error::Error;
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListOwnInventory;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct OwnQuery {
    /// Only what is on this device of the caller.
    device_id: Option<DeviceId>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

/// What is kept of a device of the caller beside what was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnHeld {
    /// The device.
    device_id: DeviceId,
    /// Since when it is the caller's: what it said before is not shown.
    owned_since: Timestamp,
    /// Whether something is known from before, of which no look since then said whether it is there still.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    earlier_withheld: bool,
    /// When its last report was taken; absent where none was since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported_at: Option<Timestamp>,
    /// What it told since then of what it judged; absent where it told nothing, and where nobody knows how much that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<ToldOfDevice>,
}

/// One page of what is on the devices of the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnInventory {
    /// The caller's devices, or the one that is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    devices: Vec<OwnHeld>,
    /// What was found and not removed since, what was found last first.
    observations: Vec<ObservationView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

const LIST: &str = "listHeadlessOwnInventory";

impl Operation for ListOwnInventory {
    const META: Meta = Meta::read(LIST, "/devices/own/inventory", "inventory")
        .rule(Access::ScopedEither {
            scope: "fleet:enrol_self",
            other: "fleet:read",
            roles: &Role::ALL,
        })
        .command("devices", "own-inventory")
        .columns(&[
            "name",
            "found.kind as kind",
            "standing",
            "client",
            "account",
            "firstSeenAt as found",
            "deviceId as device",
            "found.key as key",
            "id",
        ])
        .sensitive()
        .says(
            "See what is on the devices of the caller",
            "What they reported, and how much they told of what they judged; who reads it is noted.",
        );
    type Path = Empty;
    type Query = OwnQuery;
    type Body = Empty;
    type Output = OwnInventory;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OwnInventory> {
        let query = &input.query;
        let mut own = fleet::own_devices(ctx)?;
        if let Some(id) = &query.device_id {
            ctx.target(&fences::INVENTORY, id.as_str());
            own.retain(|device| device.id == *id);
            // Somebody else's, an unknown one and one that is no longer the caller's are answered alike.
            if own.is_empty() {
                return Err(Error::not_found("device"));
            }
        }
        let one = query.device_id.as_ref();
        let list = [LIST, ctx.actor().id.as_str(), one.map_or("", DeviceId::as_str)].join("|");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = observations::of_own(ctx, one, before, query.limit.get() + 1)?;
        for one in &mut found {
            if let Some(owned) = own.iter().find(|owned| owned.id == one.device_id) {
                one.first_seen_at = owned.seen_since(one.first_seen_at);
            }
        }
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |one| one.seq);
        Ok(OwnInventory {
            devices: held(ctx, own)?,
            observations: found,
            next_cursor,
        })
    }
}

/// Returns what is kept of devices beside what was found; nobody owns more than some.
///
/// Keeps FL-15.
fn held(ctx: &mut OperationContext<'_>, devices: Vec<Owned>) -> Result<Vec<OwnHeld>> {
    let told = ctx.ask(&ToldBy {
        devices: devices.iter().map(|owned| owned.id.clone()).collect(),
    })?;
    let withheld = observations::withheld(ctx)?;
    let mut held = Vec::with_capacity(devices.len());
    for owned in devices {
        let told = told.iter().find(|(device, _)| *device == owned.id);
        let last = observations::last_scan(ctx, owned.id.as_str())?;
        // By when it began: one that waited is of before, whenever it was taken.
        let last = last.filter(|scan| owned.covers(observations::began(scan.started_at, scan.received_at)));
        held.push(OwnHeld {
            reported_at: last.map(|scan| scan.received_at),
            decisions: told.and_then(|(_, told)| owned.told(*told)),
            owned_since: owned.since,
            earlier_withheld: withheld.contains(&owned.id),
            device_id: owned.id,
        });
    }
    Ok(held)
}
