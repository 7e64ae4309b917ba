//! `DELETE …/devices/{deviceId}/inventory`

use super::{fences, maintenance};
use crate::fleet::{self, DevicePath};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct EraseDeviceInventory;

impl Operation for EraseDeviceInventory {
    const META: Meta = Meta::write(
        "eraseHeadlessDeviceInventory",
        Method::Delete,
        "/devices/{deviceId}/inventory",
        "inventory",
    )
    .access("inventory:write", &[Admin])
    .command("devices", "erase-inventory")
    .status(204)
    .confirmed()
    .of_two(&["devices"])
    .says(
        "Erase what a retired device reported",
        "At once, in place of after 90 days: where servers, skills and credentials were, and in whose homes. Servers and what is decided \
         about them stay, and so do entries of the audit log. 409 for a device that is not retired: its next report would bring all of it back.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        fleet::shown_to_voters(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.device_id;
        ctx.target(&fences::INVENTORY, id.as_str());
        if fleet::standing(ctx, id)? != fleet::Standing::Ended {
            let message =
                "the device is not retired; retire it first, or its next report brings everything back";
            return Err(Error::new(Code::Conflict, message));
        }
        let erased = maintenance::erase(ctx, id.as_str())?;
        ctx.change("/observations", erased, 0);
        Ok(NoContent {})
    }
}
