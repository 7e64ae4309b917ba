//! What people do to devices: `POST …/devices/{deviceId}/approve`, `/quarantine`, `/release` and `/retire`.

use super::clones::TamperReason;
use super::model::{Device, DeviceId, Status, Verb};
use super::view::{DevicePath, DeviceView, OneDevice};
use super::{bypass, coverage_store, fences, maintenance, standing, store, taken, token_store};
use provost_areas_platform::settings::{self, HookMode, QuarantineAction};
use provost_kernel::announcement::Announcement;
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, word};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub struct ApproveDevice;
pub struct QuarantineDevice;
pub struct ReleaseDevice;
pub struct RetireDevice;

/// A device is retired.
pub struct DeviceRetired {
    /// Its id.
    pub id: DeviceId,
}

impl Announcement for DeviceRetired {}

word! {
    /// What a quarantine stops on the machine.
    #[schemars(extend("x-open" = true))]
    pub enum QuarantineEffect {
        /// Its hooks that enforce let no call pass, from its next heartbeat on.
        Blocks = "blocks",
        /// Nothing by itself: fleet.quarantineAction is monitor, and the machine asks the server about each call.
        AsksServer = "asks_server",
        /// Nothing but by a hook that is registered to enforce: the organization only monitors.
        Monitoring = "monitoring",
        /// Nothing, unless its agent runs with --judge: the device does not say that it holds a bundle, and hooks that ask the server name no
        /// device. One that was held apart before says so too.
        NotJudging = "not_judging",
    }
}

impl QuarantineEffect {
    fn of(ctx: &mut OperationContext<'_>, device: &Device) -> Result<Self> {
        let fleet = settings::load(ctx)?.fleet;
        let holds = device.coverage.as_ref().is_some_and(|said| said.bundle.is_some());
        Ok(match (fleet.quarantine_action, fleet.hooks.mode) {
            _ if !holds => Self::NotJudging,
            (QuarantineAction::Monitor, _) => Self::AsksServer,
            (QuarantineAction::Block, HookMode::Monitor) => Self::Monitoring,
            (QuarantineAction::Block, HookMode::Enforce) => Self::Blocks,
        })
    }
}

/// A device that is held apart, and what that stops.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct QuarantinedDevice {
    device: DeviceView,
    effect: QuarantineEffect,
}

/// Does to a device what a verb says, and returns it.
///
/// Keeps FL-7.
///
/// Errors: `NotFound`, `Conflict`; `EscalationForbidden` where gateways would take the device for somebody who can do more.
fn perform(ctx: &mut OperationContext<'_>, id: &DeviceId, verb: Verb) -> Result<OneDevice> {
    ctx.target(&fences::DEVICE, id.as_str());
    let mut device = store::get(ctx, id)?;
    let (was, waited) = (device.status, device.needs_approval);
    let has_moved = device.go(verb, ctx.now())?;
    // Somebody looked at it; one that is active need not be held apart for that.
    let is_settled = verb == Verb::Release && device.tamper.is_some();
    if is_settled || has_moved && matches!(verb, Verb::Approve | Verb::Release) {
        taken::may_let_act(ctx, &device)?;
    }
    if is_settled {
        settle(ctx, &mut device)?;
    }
    if is_settled && !has_moved {
        device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
    }
    if has_moved || is_settled {
        store::save(ctx, &device)?;
        note(ctx, &device, was, waited)?;
    }
    Ok(OneDevice {
        device: DeviceView::seen(ctx, device)?,
    })
}

/// Settles what is suspected of a device: what is found out from now on is news again, and what a copy counted before counts no more.
fn settle(ctx: &mut OperationContext<'_>, device: &mut Device) -> Result<()> {
    let reason = device.tamper.take().map(|(reason, _)| reason.as_str());
    ctx.change("/tamper", reason, serde_json::Value::Null);
    store::restart_count(ctx, &device.id)
}

/// Notes what changed of a device, and tells of it. What takes a device from where it was takes its bypass.
///
/// Keeps FL-14.
fn note(ctx: &mut OperationContext<'_>, device: &Device, was: Status, waited: bool) -> Result<()> {
    if device.needs_approval != waited {
        ctx.change("/needsApproval", waited, device.needs_approval);
    }
    if device.status == was {
        return Ok(());
    }
    match device.status {
        Status::Quarantined => bypass::end_of(ctx, device, "quarantined")?,
        Status::Retired => bypass::end_of(ctx, device, "retired")?,
        Status::Active | Status::Pending => false,
    };
    ctx.change("/status", was.as_str(), device.status.as_str());
    let kind = match (was, device.status) {
        (_, Status::Retired) => &fences::RETIRED,
        (_, Status::Quarantined) => &fences::QUARANTINED,
        (Status::Quarantined, _) => &fences::RELEASED,
        _ => &fences::ACTIVATED,
    };
    let of = fences::OfDevice {
        device_id: device.id.clone(),
    };
    ctx.emit(kind, &of);
    Ok(())
}

/// Retires a device, and returns how many tokens died by it; none where it was retired before.
///
/// INVARIANT FL-2: the tokens of a retired device are dead when the answer is given.
///
/// Errors: `NotFound`.
pub fn retire(
    ctx: &mut OperationContext<'_>,
    id: &DeviceId,
    why: Option<&str>,
) -> Result<Option<(Device, usize)>> {
    ctx.target(&fences::DEVICE, id.as_str());
    let mut device = store::get(ctx, id)?;
    let (was, waited) = (device.status, device.needs_approval);
    if !device.go(Verb::Retire, ctx.now())? {
        return Ok(None);
    }
    device.retire_reason = why.map(str::to_owned);
    store::save(ctx, &device)?;
    let tokens = token_store::revoke_tokens(ctx, id, maintenance::RETIRED)?;
    maintenance::revoke_rest(ctx, id, tokens);
    coverage_store::forget(ctx, id)?;
    ctx.announce(&DeviceRetired { id: id.clone() })?;
    note(ctx, &device, was, waited)?;
    Ok(Some((device, tokens)))
}

/// Quarantines a device again in a store that went back, and says whether it was not.
///
/// Errors: those of the store.
pub fn quarantine_again(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<bool> {
    ctx.target(&fences::DEVICE, id.as_str());
    let mut device = store::get(ctx, id)?;
    if matches!(device.status, Status::Quarantined | Status::Retired) {
        return Ok(false);
    }
    let was = device.status;
    device.status = Status::Quarantined;
    device.quarantined_at = Some(ctx.now());
    device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
    store::save(ctx, &device)?;
    let waited = device.needs_approval;
    note(ctx, &device, was, waited)?;
    Ok(true)
}

/// Says of a device that there may be two of it, once.
///
/// Keeps FL-5.
///
/// Errors: those of the store.
pub fn suspect(ctx: &mut OperationContext<'_>, device: &mut Device, reason: TamperReason) -> Result<()> {
    // Whoever retired it knows.
    if device.tamper.is_some() || device.status == Status::Retired {
        return Ok(());
    }
    device.tamper = Some((reason, ctx.now()));
    device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
    store::save(ctx, device)?;
    ctx.change("/tamper", serde_json::Value::Null, reason.as_str());
    let clone = fences::Clone {
        device_id: device.id.clone(),
        reason: reason.as_str(),
    };
    ctx.emit(&fences::CLONED, &clone);
    Ok(())
}

/// Quarantines an active device for which somebody called with a key that it had given up.
///
/// Keeps FL-6.
///
/// Errors: those of the store.
pub fn quarantine_for_former_key(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    let mut device = store::get(ctx, id)?;
    // One that waits is at work with its first heartbeat.
    if !matches!(device.status, Status::Active | Status::Pending) {
        return Ok(());
    }
    let before = device.tamper.map(|(reason, _)| reason.as_str());
    device.tamper = Some((TamperReason::FormerKey, ctx.now()));
    // Everything that is stored of it is stored with the status.
    store::save(ctx, &device)?;
    ctx.change("/tamper", before, TamperReason::FormerKey.as_str());
    quarantine_again(ctx, id)?;
    Ok(())
}

impl Operation for ApproveDevice {
    const META: Meta = Meta::write(
        "approveHeadlessDevice",
        Method::Post,
        "/devices/{deviceId}/approve",
        "fleet",
    )
    .access("fleet:write", &[Admin])
    .command("devices", "approve")
    .of_two(&["devices"])
    .says(
        "Approve a device",
        "A device that enrolled by a token with requireApproval becomes active, as soon as it was heard of. Nobody lets one work \
         whose owner can do more than they.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneDevice;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        standing::who_acts(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneDevice> {
        perform(ctx, &input.path.device_id, Verb::Approve)
    }
}

impl Operation for QuarantineDevice {
    const META: Meta = Meta::write(
        "quarantineHeadlessDevice",
        Method::Post,
        "/devices/{deviceId}/quarantine",
        "fleet",
    )
    .access("fleet:write", &[Admin, Operator])
    .command("devices", "quarantine")
    .says(
        "Quarantine a device",
        "It still calls, and is shown as quarantined until it is released. Gateways take it for nobody. Where its agent judges and \
         hooks enforce, fleet.quarantineAction says what they let pass; elsewhere calls go on, and effect says so.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = QuarantinedDevice;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<QuarantinedDevice> {
        let id = &input.path.device_id;
        let OneDevice { device } = perform(ctx, id, Verb::Quarantine)?;
        let held = store::get(ctx, id)?;
        let effect = QuarantineEffect::of(ctx, &held)?;
        Ok(QuarantinedDevice { device, effect })
    }
}

impl Operation for ReleaseDevice {
    const META: Meta = Meta::write(
        "releaseHeadlessDevice",
        Method::Post,
        "/devices/{deviceId}/release",
        "fleet",
    )
    .access("fleet:write", &[Admin, Operator])
    .command("devices", "release")
    .of_two(&["devices"])
    .says(
        "Release a device from quarantine",
        "It is active again, or waits for approval where nobody approved it yet, and what was suspected of it is settled, also of one that is \
         active: its next heartbeat counts as the first. Nobody releases one that gateways would take for somebody who can do more than they.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneDevice;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        standing::who_acts(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneDevice> {
        perform(ctx, &input.path.device_id, Verb::Release)
    }
}

/// A device that is retired, and what died with it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RetiredDevice {
    pub device: DeviceView,
    pub revoked: RevokedWith,
}

/// What died with a device.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RevokedWith {
    /// Tokens of the device.
    pub tokens: usize,
}

impl Operation for RetireDevice {
    const META: Meta = Meta::write(
        "retireHeadlessDevice",
        Method::Post,
        "/devices/{deviceId}/retire",
        "fleet",
    )
    .access("fleet:write", &[Admin])
    .command("devices", "retire")
    .confirmed()
    .of_two(&["devices"])
    .says(
        "Retire a device",
        "Its tokens are refused from the next request on, and its key is dead for ever: a machine that comes back enrols with \
         a new key as a new device.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = RetiredDevice;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<RetiredDevice> {
        let id = &input.path.device_id;
        let (device, tokens) = match retire(ctx, id, None)? {
            Some(retired) => retired,
            None => (store::get(ctx, id)?, 0),
        };
        Ok(RetiredDevice {
            device: DeviceView::seen(ctx, device)?,
            revoked: RevokedWith { tokens },
        })
    }
}
