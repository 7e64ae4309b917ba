//! `GET …/devices/{deviceId}/inventory`

use super::model::{ObservationView, SectionView};
use super::observations::LastScan;
use super::reads::PageQuery;
use super::store::{self, Age};
use super::{fences, observations};
use crate::fleet::{self, DevicePath};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetDeviceInventory;

/// What is on a device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DeviceInventory {
    /// The last scan that was taken; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_scan: Option<LastScan>,
    /// Each client in each home, and how its last look went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    sections: Vec<SectionView>,
    /// What was found and not removed since, what was found last first.
    observations: Vec<ObservationView>,
    /// How old the data of all devices are.
    data_age: Age,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for GetDeviceInventory {
    const META: Meta = Meta::read(
        "getHeadlessDeviceInventory",
        "/devices/{deviceId}/inventory",
        "inventory",
    )
    .access("inventory:read", &[Admin, Operator, Auditor])
    .command("devices", "inventory")
    .columns(&[
        "name",
        "found.kind as kind",
        "standing",
        "client",
        "account",
        "firstSeenAt as found",
        "found.key as key",
        "removedAt as removed",
        "id",
    ])
    .sensitive()
    .says(
        "Get what is on a device",
        "Servers, skills, extensions, hooks, settings, and in which kinds of files credentials lie, without one value; who reads this \
         is noted.",
    );
    type Path = DevicePath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = DeviceInventory;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeviceInventory> {
        let (id, query) = (&input.path.device_id, &input.query);
        ctx.target(&fences::INVENTORY, id.as_str());
        fleet::standing(ctx, id)?;
        let list = format!("getHeadlessDeviceInventory|{}", id.as_str());
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = observations::of_device(ctx, id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |one| one.seq);
        Ok(DeviceInventory {
            last_scan: observations::last_scan(ctx, id.as_str())?,
            sections: observations::sections(ctx, id)?,
            observations: found,
            data_age: store::age(ctx)?,
            next_cursor,
        })
    }
}
