//! `GET …/devices/{deviceId}`

use super::newest::NewestBundle;
use super::store;
use super::view::{DevicePath, DeviceView, OneDevice};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetDevice;

impl Operation for GetDevice {
    const META: Meta = Meta::read("getHeadlessDevice", "/devices/{deviceId}", "fleet")
        .access("fleet:read", &[Admin, Operator, Auditor, Viewer])
        .command("devices", "get")
        .says("Show a device", "");
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneDevice;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneDevice> {
        let device = store::get(ctx, &input.path.device_id)?;
        let newest = ctx.ask(&NewestBundle {
            device: device.id.clone(),
        })?;
        let seen = DeviceView::seen(ctx, device.clone())?;
        Ok(OneDevice {
            device: seen.beside_newest(&device, newest.first().map(String::as_str)),
        })
    }
}
