//! `POST …/devices/{deviceId}/heartbeat`

use super::clones::{Heartbeat, TamperReason};
use super::command::{CommandState, Told};
use super::model::{Device, DeviceId, EARLY_SECS, GRACE_SECS, INTERVAL_SECS, Status};
use super::view::DevicePath;
use super::{command_store, credentials, fences, store, token_store, verbs};
use provost_areas_platform::settings::{self, HookMode, Privacy, QuarantineAction};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation, RateClass};
use provost_kernel::text::{IntegerBetween, Name};
use provost_kernel::word;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

pub struct HeartbeatOperation;

/// What a device says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct HeartbeatBody {
    /// The version of its agent.
    agent_version: Name,
    /// The version of its system.
    os_version: Name,
    /// How often it called, this time included: the agent counts in a file beside its key, before each call, and never goes back.
    counter: IntegerBetween<1, 9_007_199_254_740_991>,
    /// What its system calls this run of it: another one after each start, and never the same again.
    boot_id: Name,
}

/// What a device hears.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct HeartbeatAnswer {
    /// The server's clock.
    now: Timestamp,
    /// When to call again, in seconds.
    next_heartbeat_seconds: i64,
    /// What the device is to do, the oldest first: each is told again until the device says what came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    commands: Vec<Told>,
    /// How people and their machines are shown to others; absent where the heartbeat was early.
    #[serde(skip_serializing_if = "Option::is_none")]
    privacy: Option<Privacy>,
    /// Whether the device is quarantined, and what its hooks then do with calls. Absent where the heartbeat was early and it is not: what the
    /// device heard before still holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantine: Option<ToldQuarantine>,
    /// What the organization's hooks do; only where the device is quarantined, and gets no bundle that would say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks_mode: Option<HookMode>,
}

word! {
    /// Whether a device is quarantined, and what its hooks then do with calls.
    pub enum ToldQuarantine {
        /// It is not.
        None = "none",
        /// Those that enforce let none pass.
        Block = "block",
        /// Calls go on being judged, by the server, and answers say that the device is held apart.
        Monitor = "monitor",
    }
}

impl ToldQuarantine {
    fn of(device: &Device, action: QuarantineAction) -> Self {
        match (device.status, action) {
            (Status::Quarantined, QuarantineAction::Block) => Self::Block,
            (Status::Quarantined, QuarantineAction::Monitor) => Self::Monitor,
            (Status::Pending | Status::Active | Status::Retired, _) => Self::None,
        }
    }
}

impl Default for HeartbeatAnswer {
    /// Stands for an answer that comes later.
    fn default() -> Self {
        Self {
            now: Timestamp::EPOCH,
            next_heartbeat_seconds: INTERVAL_SECS,
            commands: Vec::new(),
            privacy: None,
            quarantine: None,
            hooks_mode: None,
        }
    }
}

impl Operation for HeartbeatOperation {
    const META: Meta = Meta::ingest("heartbeatHeadlessDevice", "/devices/{deviceId}/heartbeat", "fleet")
        .rule(Access::OfKind {
            kind: credentials::DEVICE,
            parameter: "deviceId",
        })
        .rate(RateClass::Machine)
        .errors(&[400, 401, 403])
        .example(r#"{"agentVersion": "0.1.0", "osVersion": "Debian 13", "counter": 812, "bootId": "5a1f77c2"}"#)
        .says(
            "Say that a device is there",
            "A device calls this for itself, with its token and a proof of its key. The first one makes it active, unless an \
             admin has yet to approve it. The last one is kept, and no other. A counter that goes back, and a run of the system \
             that comes back, mean that there are two of it: that is said of the device, and both go on. So is a counter that leaps further \
             than machines count, which is not kept. A heartbeat within ten seconds of another one is answered without commands, and says of a quarantine only that there is one.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = HeartbeatBody;
    type Output = HeartbeatAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<HeartbeatAnswer> {
        let device = store::get(ctx, &input.path.device_id)?;
        let fleet = settings::load(ctx)?.fleet;
        let heartbeat = Heartbeat {
            at: ctx.now(),
            agent_version: input.body.agent_version.as_str().to_owned(),
            os_version: input.body.os_version.as_str().to_owned(),
            counter: input.body.counter.get(),
            boot_id: input.body.boot_id.as_str().to_owned(),
            earlier_boot_id: None,
        };
        if is_early(&device, &heartbeat) {
            // A reader may be behind: what it says of a quarantine that there is was so, and that there is none it cannot say.
            let quarantine = ToldQuarantine::of(&device, fleet.quarantine_action);
            let quarantine = Some(quarantine).filter(|told| *told != ToldQuarantine::None);
            return Ok(HeartbeatAnswer {
                now: ctx.now(),
                quarantine,
                hooks_mode: quarantine.map(|_| fleet.hooks.mode),
                ..HeartbeatAnswer::default()
            });
        }
        let call = Beat {
            privacy: fleet.privacy,
            action: fleet.quarantine_action,
            mode: fleet.hooks.mode,
            begins: begins(&device),
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            id: device.id,
            heartbeat,
            contradiction: Arc::default(),
            told: Mutex::default(),
            quarantine: Mutex::default(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { call.keep(kernel).await }))
    }
}

/// Says whether a device was heard of so recently that nothing is written: each heartbeat of a device that calls without end
/// would be a write that others wait behind. One that is the first to say that there are two of it is written, and those behind it are not.
fn is_early(device: &Device, heartbeat: &Heartbeat) -> bool {
    let Some(last) = device.heartbeat.as_ref().filter(|_| !begins(device)) else {
        return false;
    };
    let is_news = device.tamper.is_none() && last.contradicted_by(heartbeat).is_some();
    !is_news && last.at <= heartbeat.at && heartbeat.at < last.at.plus_secs(EARLY_SECS)
}

/// Says whether a heartbeat makes a device active.
fn begins(device: &Device) -> bool {
    device.status == Status::Pending && !device.needs_approval
}

/// Notes that a device is told of what waits for it, and returns that. One that does not work yet has been told nothing to do.
fn tell(ctx: &mut OperationContext<'_>, device: &Device) -> Result<Vec<Told>> {
    if !matches!(device.status, Status::Active | Status::Quarantined) {
        return Ok(Vec::new());
    }
    let waiting = command_store::waiting(ctx, &device.id)?;
    if waiting
        .iter()
        .any(|command| command.state == CommandState::Queued)
    {
        command_store::deliver(ctx, &device.id)?;
    }
    Ok(waiting.into_iter().map(Told::from).collect())
}

/// One heartbeat on its way into the store.
struct Beat {
    organization: OrganizationId,
    actor: Actor,
    origin: Option<Origin>,
    id: DeviceId,
    heartbeat: Heartbeat,
    begins: bool,
    privacy: Privacy,
    action: QuarantineAction,
    mode: HookMode,
    /// What this heartbeat says against the one before it, found by whoever writes.
    contradiction: Arc<Mutex<Option<TamperReason>>>,
    /// What the device is told, found by whoever writes.
    told: Mutex<Vec<Told>>,
    /// Whether the device is quarantined, found by whoever writes: a reader may be behind.
    quarantine: Mutex<Option<ToldQuarantine>>,
}

impl Beat {
    /// Keeps the heartbeat. Only the first one is an entry of the audit log: the others are no news.
    async fn keep(self, kernel: Arc<Kernel>) -> Result<HeartbeatAnswer> {
        let (now, privacy, mode) = (self.heartbeat.at, Some(self.privacy), self.mode);
        let action = self.begins.then_some(fences::ACTIVATION);
        let beat = Arc::new(self);
        let (organization, writing) = (beat.organization.clone(), beat.clone());
        let run = move |ctx: &mut OperationContext<'_>| writing.write(ctx);
        kernel.system(organization.clone(), action, run).await?;
        let commands = std::mem::take(&mut *beat.told.lock().unwrap_or_else(PoisonError::into_inner));
        let quarantine = *beat.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = beat.found() {
            let run = move |ctx: &mut OperationContext<'_>| beat.suspect(ctx, reason);
            kernel.system(organization, Some(fences::CLONE), run).await?;
        }
        Ok(HeartbeatAnswer {
            now,
            next_heartbeat_seconds: INTERVAL_SECS,
            commands,
            privacy,
            quarantine,
            hooks_mode: quarantine
                .filter(|told| *told != ToldQuarantine::None)
                .map(|_| mode),
        })
    }

    fn write(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        let mut device = store::get(ctx, &self.id)?;
        if device.status == Status::Retired || device.held_at.is_some() {
            // It was retired since a reader looked.
            return Err(provost_kernel::credential::invalid_token());
        }
        let before = device.heartbeat.as_ref();
        let contradiction = before.and_then(|before| before.contradicted_by(&self.heartbeat));
        let contradiction = match contradiction {
            None if device.tamper.is_none() && self.has_forked(ctx)? => Some(TamperReason::TokenForked),
            found => found,
        };
        *self.contradiction.lock().unwrap_or_else(PoisonError::into_inner) =
            contradiction.filter(|_| device.tamper.is_none());
        let kept = Heartbeat {
            counter: self.heartbeat.kept_counter(before),
            ..self.heartbeat.clone()
        };
        store::beat(ctx, &self.id, &kept)?;
        let told = tell(ctx, &device)?;
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        let quarantine = Some(ToldQuarantine::of(&device, self.action));
        *self.quarantine.lock().unwrap_or_else(PoisonError::into_inner) = quarantine;
        if !self.begins {
            return Ok(());
        }
        ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
        ctx.target(&fences::DEVICE, self.id.as_str());
        // Another heartbeat may have come first.
        if !begins(&device) {
            return Ok(());
        }
        ctx.change("/status", device.status.as_str(), Status::Active.as_str());
        device.status = Status::Active;
        device.updated_at = ctx.now().max(device.updated_at.plus_ms(1));
        store::save(ctx, &device)?;
        ctx.emit(
            &fences::ACTIVATED,
            &fences::OfDevice {
                device_id: self.id.clone(),
            },
        );
        Ok(())
    }

    /// Says whether the token of this call had a successor that was used, longer ago than a renewal takes.
    fn has_forked(&self, ctx: &mut OperationContext<'_>) -> Result<bool> {
        let until = ctx.now().plus_secs(-GRACE_SECS);
        match &self.actor.token {
            Some(token) => token_store::has_used_successor(ctx, &token.id, until),
            None => Ok(false),
        }
    }

    fn found(&self) -> Option<TamperReason> {
        *self.contradiction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says of a device that there may be two of it, in an entry of its own; it goes on calling.
    ///
    /// Keeps FL-5.
    fn suspect(&self, ctx: &mut OperationContext<'_>, reason: TamperReason) -> Result<()> {
        let mut device = store::get(ctx, &self.id)?;
        ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
        ctx.target(&fences::DEVICE, self.id.as_str());
        // Another heartbeat may have said so first.
        verbs::suspect(ctx, &mut device, reason)
    }
}
