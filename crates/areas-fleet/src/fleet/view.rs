//! A device as its readers see it.

use super::bypass::LiveBypass;
use super::clones::Tamper;
use super::coverage::{HeldBundle, ShownCoverage};
use super::model::{Device, DeviceId, EnrolmentTokenId, KeyProtection, Mode, Owner, Platform, Status};
use super::owners;
use super::presence::{AwaySecs, Presence};
use super::sight::Sight;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device as its readers see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Device")]
pub struct DeviceView {
    id: DeviceId,
    organization_id: String,
    /// What people call it; where names are hidden from the caller, what stands for it.
    name: String,
    /// Whether the settings hide its name from the caller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    name_hidden: bool,
    status: Status,
    presence: Presence,
    /// An admin has yet to approve it.
    needs_approval: bool,
    tamper: Tamper,
    /// How far its clients are guarded, as it said it last; absent where it said nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    coverage: Vec<ShownCoverage>,
    /// When it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_at: Option<Timestamp>,
    /// The bundle of policies by which it judges, as it said last; absent where it judges by none.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_bundle: Option<HeldBundle>,
    /// The bypass that is live: what policies refuse passes on the device until then, and is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    bypass: Option<LiveBypass>,
    labels: Vec<String>,
    /// Whose machine it is; callers who may not read the directory do not see it. Where people are pseudonymous it is a pseudonym
    /// (`psn_…`), which no operation takes, for everybody but the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_user_id: Option<String>,
    mode: Mode,
    platform: Platform,
    arch: String,
    /// As the device said last; absent before its first heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    os_version: Option<String>,
    /// As the device said last; absent before its first heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<String>,
    /// The thumbprint of its key (RFC 7638), which is what the device is.
    key_thumbprint: String,
    /// Where the device keeps its key, by its own word.
    key_protection: KeyProtection,
    enrolment_token_id: EnrolmentTokenId,
    /// The application by which the caller made the enrolment token; in the list of the caller's own devices alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    enrolled_with: Option<String>,
    enrolled_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_heartbeat_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_at: Option<Timestamp>,
    /// `never_called`: it enrolled and was not heard of for a day; `never_approved`: nobody approved it for thirty days; `silent`:
    /// it was not heard of for as long as the settings say. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    retire_reason: Option<String>,
    /// Since when a restore of the store holds it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_at: Option<Timestamp>,
    updated_at: Timestamp,
}

impl DeviceView {
    /// Returns what the caller sees of a device.
    pub fn seen(ctx: &mut OperationContext<'_>, device: Device) -> Result<Self> {
        let (away, sight) = (AwaySecs::load(ctx)?, Sight::load(ctx)?);
        Ok(Self::among(ctx, device, (away, &sight)))
    }

    /// Returns what the caller sees of one of several devices.
    ///
    /// Keeps PV-1.
    pub fn among(ctx: &OperationContext<'_>, device: Device, (away, sight): (AwaySecs, &Sight<'_>)) -> Self {
        let is_shown = sight.shows_name(&device);
        let owner = device.owner.clone().filter(|_| owners::are_seen(ctx));
        let owner = owner.map(|owner| Owner {
            user_id: sight.person(owner.user_id),
            ..owner
        });
        let name = sight.name(is_shown, ("device", device.id.as_str()), device.name.clone());
        let seen = Self::of(
            Device {
                name,
                owner,
                ..device
            },
            ctx.now(),
            away,
        );
        Self {
            name_hidden: !is_shown,
            ..seen
        }
    }

    /// Returns what a machine sees of itself.
    pub fn of_itself(ctx: &mut OperationContext<'_>, device: Device) -> Result<Self> {
        let away = AwaySecs::load(ctx)?;
        let device = Device {
            owner: None,
            ..device
        };
        Ok(Self::of(device, ctx.now(), away))
    }

    /// Says of a device whether its bundle is the newest, by the name of the one that it would be given.
    pub fn beside_newest(self, device: &Device, newest: Option<&str>) -> Self {
        let said = device.coverage.as_ref();
        let bundle = said.and_then(|said| said.bundle.as_ref());
        Self {
            policy_bundle: bundle.map(|bundle| bundle.shown(newest)),
            ..self
        }
    }

    /// Says of a device by which application its owner had it enrolled.
    pub fn enrolled_with(self, application: Option<String>) -> Self {
        Self {
            enrolled_with: application,
            ..self
        }
    }

    /// Returns what is known of a device at an instant, for its owner.
    pub fn of(device: Device, now: Timestamp, away: AwaySecs) -> Self {
        let last = device.heartbeat.as_ref().map(|beat| beat.at);
        let presence = Presence::of_device(&device, now, away);
        let said = device.coverage.as_ref();
        let coverage = said
            .map(|said| said.shown(&device, now, away))
            .unwrap_or_default();
        let coverage_at = said.map(|said| said.at);
        let bundle = said.and_then(|said| said.bundle.as_ref());
        let policy_bundle = bundle.map(|bundle| bundle.shown(None));
        let bypass = device.live_bypass(now).map(LiveBypass::from);
        let (os_version, agent_version) = device
            .heartbeat
            .map(|beat| (beat.os_version, beat.agent_version))
            .unzip();
        Self {
            id: device.id,
            organization_id: device.organization_id,
            name: device.name,
            name_hidden: false,
            status: device.status,
            presence,
            needs_approval: device.needs_approval,
            tamper: Tamper::of(device.tamper),
            coverage,
            coverage_at,
            policy_bundle,
            bypass,
            labels: device.labels,
            owner_user_id: device.owner.map(|owner| owner.user_id),
            mode: device.mode,
            platform: device.platform,
            arch: device.arch,
            os_version,
            agent_version,
            key_thumbprint: device.key_thumbprint,
            key_protection: device.key_protection,
            enrolment_token_id: device.enrolment_token_id,
            enrolled_with: None,
            enrolled_at: device.created_at,
            last_heartbeat_at: last,
            quarantined_at: device.quarantined_at,
            retired_at: device.retired_at,
            retire_reason: device.retire_reason,
            held_at: device.held_at,
            updated_at: device.updated_at,
        }
    }
}

/// One device.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneDevice {
    /// It.
    pub device: DeviceView,
}

/// The path of operations on one device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DevicePath {
    /// The device.
    pub device_id: DeviceId,
}
