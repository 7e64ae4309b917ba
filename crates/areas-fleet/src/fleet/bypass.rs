//! A way out of enforcement for one device, for a time: whoever is locked out works on, and what policies say is recorded (F4.12).
//!
//! ```text
//! begun by somebody with fleet:bypass ──► stands in the device's signed bundle ──► its agent lets pass what policies refuse, and tells it
//! ended: by somebody, by its time, with what the device is (quarantined, retired, held, another's), with its owner (suspended, deleted),
//!        with whoever began it, by a restore, by a clock that was set back
//! ```
//!
//! INVARIANT FL-13: no bypass lasts longer than 24 hours, and those of a device that ended within the last 24 hours are no longer together with
//! the next one: no repetition, no clock and no order of calls makes a device go without enforcement for longer.
//! INVARIANT FL-14: a bypass is live on an active device alone, which has the owner that it had, and not one who is suspended; one that ended is live never again, in a store
//! that went back neither, and no device and no model begins one or prolongs it.
//!
//! Absent on purpose: a code that works without the server (ADR 0132).

use super::bypass_store as bypasses;
use super::model::{Device, DeviceId, Status};
use super::sight::Sight;
use super::{fences, store};
use provost_areas_identity::directory;
use provost_areas_platform::announcements::{Departure, PrincipalEnded, SubjectKind};
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Code, Error};
use provost_kernel::{Kernel, OperationContext, Result, Timestamp, id, word};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

id!(BypassId, "byp", "Names a bypass.");

/// LIMIT: how long a bypass lasts, and those of a device within as long before the next (F4.12). Units: milliseconds.
pub const MOST_MS: i64 = 86_400_000;
/// LIMIT: bypasses of a device that are begun within a day. Ours: what bounds the next one is read each time.
const MOST_BEGUN: i64 = 24;
/// LIMIT: bypasses of one maker that are live at a time: all of them end in the unit in which the maker ends. Ours.
const MOST_OF_MAKER: usize = 100;
/// How far the clock of a device may be from the server's. Units: milliseconds.
const SKEW_MS: i64 = 600_000;
/// Why a bypass ends whose machine gets another owner, or none.
pub const OWNER_CHANGED: &str = "owner_changed";
/// How long one is kept that ended. Units: seconds.
pub const KEPT_SECS: i64 = 90 * 86_400;

word! {
    /// A client whose hooks ask the agent of a machine, by the word of the inventory.
    pub enum BypassClient {
        /// Claude Code.
        ClaudeCode = "claude_code",
        /// Codex.
        Codex = "codex",
        /// Gemini CLI.
        GeminiCli = "gemini_cli",
    }
}

word! {
    /// Whether a bypass is live.
    #[schemars(extend("x-open" = true))]
    pub enum BypassState {
        /// It is.
        Live = "live",
        /// It ended, by its time or before.
        Ended = "ended",
    }
}

/// A bypass as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bypass {
    /// Its id.
    pub id: BypassId,
    /// The device.
    pub device_id: DeviceId,
    /// The clients; none of them is all of them.
    pub clients: Vec<BypassClient>,
    /// Who began it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
    /// When it ended before its time, or when that was written down.
    pub ended_at: Option<Timestamp>,
    /// Why.
    pub end_reason: Option<String>,
}

impl Bypass {
    /// Says whether it is live at an instant.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.expires_at
    }

    /// Says whether a device may have let something pass by it at an instant of its own clock: it hears of an end later, and its clock is another.
    pub fn may_have_been_live(&self, at: Timestamp) -> bool {
        self.created_at.plus_ms(-SKEW_MS) <= at && at < self.expires_at.plus_ms(SKEW_MS)
    }

    /// Says whether it is of a client, by the word of the inventory.
    pub fn is_of(&self, client: &str) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|one| one.as_str() == client)
    }
}

/// A bypass as its readers see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceBypass")]
pub struct BypassView {
    id: BypassId,
    device_id: DeviceId,
    /// Whether it is live.
    state: BypassState,
    /// The clients that it is for; absent where it is for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    clients: Vec<BypassClient>,
    /// Who began it; where people are pseudonymous, what stands for somebody else.
    created_by: String,
    created_at: Timestamp,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// `taken_back`, `expired`, `quarantined`, `retired`, `owner_changed`, `owner_ended`, `maker_ended`, `clock_set_back`, `restored` or `lost`. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<String>,
}

impl BypassView {
    /// Returns what the caller sees of a bypass at an instant.
    ///
    /// Keeps PV-1.
    pub fn seen(bypass: Bypass, now: Timestamp, sight: &Sight<'_>) -> Self {
        let state = if bypass.is_live(now) {
            BypassState::Live
        } else {
            BypassState::Ended
        };
        Self {
            state,
            created_by: sight.maker(bypass.created_by),
            id: bypass.id,
            device_id: bypass.device_id,
            clients: bypass.clients,
            created_at: bypass.created_at,
            expires_at: bypass.expires_at,
            ended_at: bypass.ended_at,
            end_reason: bypass.end_reason,
        }
    }
}

/// The bypass that is live on a device, as it is shown there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LiveBypass {
    id: BypassId,
    expires_at: Timestamp,
    /// The clients that it is for; absent where it is for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    clients: Vec<BypassClient>,
}

impl From<&Bypass> for LiveBypass {
    fn from(bypass: &Bypass) -> Self {
        Self {
            id: bypass.id.clone(),
            expires_at: bypass.expires_at,
            clients: bypass.clients.clone(),
        }
    }
}

impl Device {
    /// Returns the bypass that is live on the device at an instant.
    ///
    /// Keeps FL-14.
    pub fn live_bypass(&self, now: Timestamp) -> Option<&Bypass> {
        let works = self.status == Status::Active && self.held_at.is_none();
        self.bypass.as_ref().filter(|bypass| works && bypass.is_live(now))
    }
}

/// Returns the bypass that is live on a device; none of somebody who is suspended, and none while the clock is behind what it showed before: nobody could say how long it lasts.
///
/// Errors: `NotFound` for an unknown and another organization's device alike.
pub fn live(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Option<Bypass>> {
    let device = store::get(ctx, id)?;
    if ctx.services().is_set_back() {
        return Ok(None);
    }
    // An import suspends many at once, and their bypasses are ended behind it.
    match must_have_an_owner_who_acts(ctx, &device) {
        Err(error) if error.code() == Code::Conflict => return Ok(None),
        acts => acts?,
    }
    Ok(device.live_bypass(ctx.latest()).cloned())
}

/// Returns a bypass, where it is of this device.
pub fn of_device(ctx: &mut OperationContext<'_>, device: &DeviceId, id: &BypassId) -> Result<Option<Bypass>> {
    match bypasses::get(ctx, id) {
        Ok(bypass) => Ok(Some(bypass).filter(|bypass| bypass.device_id == *device)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses a bypass of the machine of somebody who is suspended: it would end as theirs do.
///
/// Errors: `Conflict`.
fn must_have_an_owner_who_acts(ctx: &mut OperationContext<'_>, device: &Device) -> Result<()> {
    let Some(owner) = &device.owner else {
        return Ok(());
    };
    let org = ctx.org();
    if directory::principal(&mut ctx.tx(), org, &owner.user_id)?.is_some_and(|owner| owner.enabled) {
        return Ok(());
    }
    let message = "whose machine this is was suspended; make the user active again, or name another owner";
    Err(Error::new(Code::Conflict, message).with("status", "owner_suspended"))
}

/// Begins a bypass.
///
/// Keeps FL-13, FL-14.
///
/// Errors: `Conflict` for a device that is not active, has one, had as much as a day has, or whose owner is suspended; `Unavailable` while the clock is set back.
pub fn begin(
    ctx: &mut OperationContext<'_>,
    device: &Device,
    minutes: i64,
    clients: Vec<BypassClient>,
) -> Result<Bypass> {
    if ctx.services().is_set_back() {
        let message = "the clock of this server was set back, so that nobody can say how long a bypass would last; an operator sets it right, or \
                       says that it is right (provost store accept --clock)";
        return Err(Error::unavailable(message));
    }
    let now = ctx.latest();
    if device.status != Status::Active || device.held_at.is_some() {
        let status = device.status.as_str();
        let message = "only a device that is active, and that no restore holds back, is given a bypass";
        return Err(Error::new(Code::Conflict, message).with("status", status));
    }
    must_have_an_owner_who_acts(ctx, device)?;
    match &device.bypass {
        Some(bypass) if bypass.is_live(now) => {
            let message = "a bypass is live on the device; none is prolonged: end it first (provost devices end-bypass)";
            return Err(Error::new(Code::Conflict, message)
                .with("status", "bypassed")
                .with("bypassId", bypass.id.as_str())
                .with("expiresAt", bypass.expires_at.to_rfc3339()));
        }
        Some(over) => {
            end(ctx, over, "expired")?;
        }
        None => {}
    }
    let (used_ms, begun) = bypasses::used(ctx, &device.id, now)?;
    let asked_ms = minutes.saturating_mul(60_000);
    if used_ms.saturating_add(asked_ms) > MOST_MS || begun >= MOST_BEGUN {
        let left = if begun < MOST_BEGUN {
            (MOST_MS - used_ms).max(0) / 60_000
        } else {
            0
        };
        let message = format!(
            "a device has 24 hours of bypass at most, together with those of the last 24 hours, each for as long as it was \
             given, and 24 of them begin a day: {left} minutes are left"
        );
        return Err(Error::new(Code::Conflict, message)
            .with("status", "bypass_used_up")
            .with("minutesLeft", left));
    }
    let me = ctx.actor().id.clone();
    if bypasses::open_of_maker(ctx, &me)?.len() >= MOST_OF_MAKER {
        let message = "100 bypasses that you began are live; end one first";
        return Err(Error::new(Code::Conflict, message));
    }
    let bypass = Bypass {
        id: ctx.new_id(),
        device_id: device.id.clone(),
        clients,
        created_by: me,
        created_at: now,
        expires_at: now.plus_ms(asked_ms),
        ended_at: None,
        end_reason: None,
    };
    bypasses::insert(ctx, &bypass)?;
    ctx.change("/bypass", device.bypass.as_ref().map(said), said(&bypass));
    let data = fences::BypassBegin {
        device_id: bypass.device_id.clone(),
        bypass_id: bypass.id.clone(),
        expires_at: bypass.expires_at,
        clients: words(&bypass),
    };
    ctx.emit(&fences::BYPASS_BEGUN, &data);
    Ok(bypass)
}

/// Ends the bypass of a device for a reason, and says whether there was one that had not ended.
pub fn end_of(ctx: &mut OperationContext<'_>, device: &Device, reason: &'static str) -> Result<bool> {
    let Some(bypass) = &device.bypass else {
        return Ok(false);
    };
    end_one(ctx, bypass, reason)
}

/// Ends one, notes it, and says whether it was open.
fn end_one(ctx: &mut OperationContext<'_>, bypass: &Bypass, reason: &'static str) -> Result<bool> {
    let Some(reason) = end(ctx, bypass, reason)? else {
        return Ok(false);
    };
    let after = json!({ "id": bypass.id, "endReason": reason });
    ctx.change("/bypass", said(bypass), after);
    Ok(true)
}

/// Ends one and tells of it; returns why it ended, and nothing where it had ended before.
fn end(
    ctx: &mut OperationContext<'_>,
    bypass: &Bypass,
    reason: &'static str,
) -> Result<Option<&'static str>> {
    let now = ctx.latest();
    // Whatever ends it afterwards: it was over by its time.
    let (at, reason) = if bypass.is_live(now) {
        (now, reason)
    } else {
        (bypass.expires_at, "expired")
    };
    if !bypasses::end(ctx, &bypass.id, at, reason)? {
        return Ok(None);
    }
    let data = fences::BypassEnd {
        device_id: bypass.device_id.clone(),
        bypass_id: bypass.id.clone(),
        reason,
    };
    ctx.emit(&fences::BYPASS_ENDED, &data);
    Ok(Some(reason))
}

fn words(bypass: &Bypass) -> Vec<&'static str> {
    bypass.clients.iter().map(|client| client.as_str()).collect()
}

fn said(bypass: &Bypass) -> Value {
    json!({ "id": bypass.id, "expiresAt": bypass.expires_at, "clients": words(bypass) })
}

/// Ends a bypass again in a store that went back behind its end, and says whether it was open.
///
/// Errors: `NotFound` where the store has none of this id.
pub fn end_again(ctx: &mut OperationContext<'_>, id: &BypassId) -> Result<bool> {
    let bypass = bypasses::get(ctx, id)?;
    ctx.target(&fences::DEVICE, bypass.device_id.as_str());
    if bypass.ended_at.is_some() {
        return Ok(false);
    }
    end_one(ctx, &bypass, "lost")
}

/// Ends every bypass of the organization, in the unit that restores it.
pub fn end_every(ctx: &mut OperationContext<'_>) -> Result<()> {
    let open = bypasses::open(ctx)?;
    end_all(ctx, &open, "restored")
}

/// Ends the bypasses that somebody began who acts no more, and those of the machines of a user who is suspended, or deleted: they lose
/// their owner.
pub fn principal_ended(ctx: &mut OperationContext<'_>, ended: &PrincipalEnded) -> Result<()> {
    if ended.kind == SubjectKind::User {
        let open = bypasses::open_of_owner(ctx, &ended.id)?;
        let reason = match ended.how {
            Departure::Stopped => "owner_ended",
            Departure::Deleted => OWNER_CHANGED,
        };
        end_all(ctx, &open, reason)?;
    }
    end_of_maker(ctx, &ended.id)
}

/// Ends the bypasses of somebody who can do less now.
pub fn end_of_maker(ctx: &mut OperationContext<'_>, maker: &str) -> Result<()> {
    let open = bypasses::open_of_maker(ctx, maker)?;
    end_all(ctx, &open, "maker_ended")
}

fn end_all(ctx: &mut OperationContext<'_>, open: &[Bypass], reason: &'static str) -> Result<()> {
    let mut ended = Vec::with_capacity(open.len());
    for bypass in open {
        if end(ctx, bypass, reason)?.is_some() {
            ended.push(bypass.id.as_str());
        }
    }
    if !ended.is_empty() {
        ctx.change("/bypasses", json!(ended), Value::Null);
    }
    Ok(())
}

/// Writes down whose time ran out, if nobody doubts the clock; where it was set back, ends what is open: it would last anew.
///
/// Keeps FL-13.
pub async fn sweep(kernel: Arc<Kernel>) -> Result<()> {
    let sure = kernel.undoubted().await?;
    let (until, reason) = match sure {
        _ if kernel.is_set_back() => (Timestamp::from_ms(i64::MAX), "clock_set_back"),
        Some(now) => (now.instant(), "expired"),
        None => return Ok(()),
    };
    let (mut outcome, mut last) = (Ok(()), bypasses::first_place());
    loop {
        let behind = last.clone();
        let some = kernel
            .read_system(move |tx| bypasses::open_of_all(tx, &behind, until))
            .await?;
        let Some(place) = some.last() else {
            return outcome;
        };
        last = place.clone();
        for (organization, id) in some {
            let run = move |ctx: &mut OperationContext<'_>| {
                let bypass = bypasses::get(ctx, &BypassId::from_store(id.clone()))?;
                ctx.target(&fences::DEVICE, bypass.device_id.as_str());
                end_one(ctx, &bypass, reason).map(drop)
            };
            let organization = OrganizationId::from_store(organization);
            let written = kernel.system(organization, Some(fences::BYPASS_OVER), run).await;
            outcome = outcome.and(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bypass() -> Bypass {
        Bypass {
            id: BypassId::from_text("byp_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            device_id: DeviceId::from_text("dev_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            clients: vec![BypassClient::Codex],
            created_by: "usr_1".into(),
            created_at: Timestamp::EPOCH,
            expires_at: Timestamp::EPOCH.plus_secs(60),
            ended_at: None,
            end_reason: None,
        }
    }

    /// Proves FL-13.
    #[test]
    fn a_bypass_is_over_at_its_time_and_of_its_clients_alone() {
        let live = bypass();
        assert!(live.is_live(Timestamp::EPOCH.plus_ms(59_999)));
        assert!(!live.is_live(Timestamp::EPOCH.plus_secs(60)));
        assert!(live.is_of("codex") && !live.is_of("claude_code"));
        let ended = Bypass {
            ended_at: Some(Timestamp::EPOCH),
            clients: Vec::new(),
            ..bypass()
        };
        assert!(!ended.is_live(Timestamp::EPOCH) && ended.is_of("claude_code"));
    }
}
