//! `PATCH …/devices/{deviceId}`

use super::labels::Labels;
use super::model::Device;
use super::sight::Sight;
use super::view::{DevicePath, DeviceView, OneDevice};
use super::{bypass, fences, owners, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::patch::{Patch, RequiredChange};
use provost_kernel::text::{LongName, Name};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct UpdateDevice;

/// What can change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UpdateBody {
    /// What people call the machine.
    #[serde(default)]
    name: RequiredChange<Name>,
    /// All of its labels; an empty list takes them away.
    #[serde(default)]
    labels: RequiredChange<Labels>,
    /// Whose machine it is: a user, for whom gateways take the device where no account is assigned to it; `null` says nobody's.
    /// Naming one needs the scope `llm_gateway:write` too.
    #[serde(default)]
    owner_user_id: Patch<LongName>,
}

impl Operation for UpdateDevice {
    const META: Meta = Meta::write(
        "updateHeadlessDevice",
        Method::Patch,
        "/devices/{deviceId}",
        "fleet",
    )
    .access("fleet:write", &[Admin])
    .command("devices", "update")
    .of_two(&["rights"])
    .example(r#"{"labels": ["site:berlin", "team:web"]}"#)
    .says(
        "Change a device",
        "Members that are absent stay as they are. Names and labels decide nothing. Whoever names an owner holds the scope \
         llm_gateway:write and all that this user can do. With the user the device loses its owner.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = UpdateBody;
    type Output = OneDevice;

    /// Gateways take the device for its owner; a name and labels give nobody anything.
    fn is_of_two(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        Ok(matches!(input.body.owner_user_id, Patch::Set(_)))
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneDevice> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let mut device = store::get(ctx, id)?;
        let before = device.clone();
        let body = &input.body;
        if let Some(name) = body.name.get() {
            Sight::load(ctx)?.may_name()?;
            name.as_str().clone_into(&mut device.name);
        }
        if let Some(labels) = body.labels.get() {
            device.labels = labels.to_list();
        }
        match &body.owner_user_id {
            Patch::Absent => {}
            Patch::Clear => device.owner = None,
            Patch::Set(user) => owners::name(ctx, &mut device, user.as_str())?,
        }
        note(ctx, &before, &device);
        let is_other = ctx.has_changes();
        if let Patch::Set(user) = &body.owner_user_id {
            owners::note_asked(ctx, &before, user.as_str())?;
        }
        if is_other {
            device.updated_at = ctx.now().max(before.updated_at.plus_ms(1));
            store::describe(ctx, &device)?;
            let owner = |device: &Device| device.owner.as_ref().map(|owner| owner.user_id.clone());
            if owner(&before) != owner(&device) {
                // It was for the person whose machine this was.
                bypass::end_of(ctx, &device, bypass::OWNER_CHANGED)?;
                device.bypass = None;
            }
            let of = fences::OfDevice {
                device_id: id.clone(),
            };
            ctx.emit(&fences::UPDATED, &of);
        }
        Ok(OneDevice {
            device: DeviceView::seen(ctx, device)?,
        })
    }
}

fn note(ctx: &mut OperationContext<'_>, before: &Device, after: &Device) {
    if after.name != before.name {
        ctx.change("/name", before.name.as_str(), after.name.as_str());
    }
    if after.labels != before.labels {
        ctx.change("/labels", json!(before.labels), json!(after.labels));
    }
    let owner = |device: &Device| device.owner.as_ref().map(|owner| owner.user_id.clone());
    ctx.change("/ownerUserId", owner(before), owner(after));
}
