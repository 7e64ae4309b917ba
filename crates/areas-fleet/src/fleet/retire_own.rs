//! `POST …/devices/own/{deviceId}/retire`
//!
//! Whatever a person let in with `fleet:enrol_self` may have enrolled a machine in the person's name, which stays when the access has
//! ended. So whoever made the enrolment token takes back what came of it, without an admin.
//!
//! Absent on purpose: machines that an admin had enrolled, whosever they are. What an organization manages is not its holder's to leave,
//! and whoever is let in with this scope retires nothing of the organization's.

use super::verbs::{self, RetiredDevice, RevokedWith};
use super::view::{DevicePath, DeviceView};
use super::{enrolment, fences, store};
use provost_kernel::auth::Role;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct RetireOwnDevice;

impl Operation for RetireOwnDevice {
    const META: Meta = Meta::write(
        "retireHeadlessOwnDevice",
        Method::Post,
        "/devices/own/{deviceId}/retire",
        "fleet",
    )
    .access("fleet:enrol_self", &Role::ALL)
    .command("devices", "retire-own")
    .confirmed()
    .says(
        "Retire a device of one's own",
        "Of a device that enrolled by a token that the caller made for a machine of their own, and that is nobody else's: its tokens are \
         refused from the next request on, its key is dead for ever, and it is nobody's any more. Other devices an admin retires.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = RetiredDevice;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RetiredDevice> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let device = store::get(ctx, id)?;
        let (me, by) = (
            ctx.actor().id.clone(),
            enrolment::get(ctx, &device.enrolment_token_id)?,
        );
        let is_others = device.owner.as_ref().is_some_and(|owner| owner.user_id != me);
        if !by.is_own || by.created_by != me || is_others {
            return Err(Error::not_found("device"));
        }
        let (mut device, tokens) = match verbs::retire(ctx, id, None)? {
            Some(retired) => retired,
            None => (device, 0),
        };
        // A retired one counts among the devices of its owner, of which nobody has more than some.
        if device.owner.take().is_some() {
            ctx.change("/ownerUserId", me, Value::Null);
            device.updated_at = device.updated_at.max(ctx.now());
            store::describe(ctx, &device)?;
        }
        Ok(RetiredDevice {
            device: DeviceView::seen(ctx, device)?,
            revoked: RevokedWith { tokens },
        })
    }
}
