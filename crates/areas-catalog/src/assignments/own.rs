//! `GET …/devices/{deviceId}/profiles` and `GET …/devices/{deviceId}/profiles/{profileId}`: what a device gets, asked by itself.

use super::assign::AssignmentPath;
use super::store::{self, Assignment};
use crate::managed_config::current::{self, Current};
use crate::managed_config::model::{Profile, ProfileId, Release, ReleaseId};
use crate::managed_config::redact::shown_content;
use crate::managed_config::store::{self as profiles, ProfileWithRelease};
use crate::managed_config::targets::Target;
use provost_areas_fleet::fleet::{self, DeviceId, DevicePath, Standing};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation, RateClass};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListDeviceProfiles;
pub struct GetDeviceProfile;

/// A device, for itself.
pub const ITSELF: Access = Access::OfKind {
    kind: fleet::DEVICE_KIND,
    parameter: "deviceId",
};

provost_kernel::word! {
    /// Why a release is not delivered.
    pub enum Withheld {
        /// It has hidden values, and nobody who may fetch them gave the device its profile.
        HiddenValues = "hidden_values",
        /// It has hidden values, and the device is quarantined.
        Quarantined = "quarantined",
    }
}

/// The release that a device should have of a profile.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceProfileRelease")]
pub struct Offered {
    id: ReleaseId,
    version: i64,
    store_epoch: i64,
}

/// A profile as the device that gets it sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceProfile")]
pub struct DeviceProfile {
    profile_id: ProfileId,
    target: Target,
    poll_interval_seconds: i64,
    /// Another one whenever there is something to fetch.
    revision: String,
    /// Absent before the first publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<Offered>,
    /// Why the release is not delivered; absent where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<Withheld>,
}

/// What a device gets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct DeviceProfiles {
    /// At most one for each program.
    profiles: Vec<DeviceProfile>,
}

/// Refuses a device that gets nothing.
///
/// Errors: those of a token that no longer works; `Conflict` for a device that is not active yet.
pub fn must_work(ctx: &mut OperationContext<'_>, device: &DeviceId) -> Result<()> {
    match fleet::standing(ctx, device)? {
        Standing::Works => Ok(()),
        Standing::Ended => Err(provost_kernel::credential::invalid_token()),
        Standing::Waits => {
            let message = "the device is not active yet: it has to be heard of, and to be approved where that is asked for";
            Err(Error::new(Code::Conflict, message).with("status", "pending"))
        }
    }
}

/// Returns a profile that a device gets.
///
/// Errors: `NotFound`, for what it does not get and what is not there alike.
pub fn given(
    ctx: &mut OperationContext<'_>,
    device: &DeviceId,
    profile: &ProfileId,
) -> Result<(Assignment, ProfileWithRelease)> {
    // INVARIANT DC-1.
    let given = store::get(ctx, device, profile)?;
    let given = given.ok_or_else(|| Error::not_found("profile of this device"))?;
    let found = profiles::get(ctx, profile)?;
    Ok((given, found))
}

/// Returns why a release is not delivered to a device.
///
/// Keeps DC-2.
fn withheld(
    ctx: &mut OperationContext<'_>,
    given: &Assignment,
    release: &Release,
) -> Result<Option<Withheld>> {
    let why = match (given.in_clear, fleet::is_quarantined(ctx, &given.device_id)?) {
        // The content is not even looked at: each device asks at each heartbeat.
        (true, false) => return Ok(None),
        (true, true) => Withheld::Quarantined,
        (false, _) => Withheld::HiddenValues,
    };
    let content = profiles::content(ctx, &release.content_digest)?;
    Ok((shown_content(&content) != content).then_some(why))
}

fn revision(profile: &Profile) -> String {
    let release = profile.current_release_id.as_ref().map_or("", ReleaseId::as_str);
    format!("{release}-{}", profile.updated_at.as_ms())
}

impl Operation for ListDeviceProfiles {
    const META: Meta = Meta::read(
        "listHeadlessDeviceProfiles",
        "/devices/{deviceId}/profiles",
        "managed_config",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[401, 403])
    .says(
        "List the profiles that a device gets",
        "A device calls this for itself, with its token and a proof of its key. Which they are people say, of this device.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeviceProfiles;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeviceProfiles> {
        let device = &input.path.device_id;
        must_work(ctx, device)?;
        let mut all = Vec::new();
        for given in store::of_device(ctx, device)? {
            let ProfileWithRelease { profile, current } = profiles::get(ctx, &given.profile_id)?;
            let withheld = match &current {
                Some(release) => withheld(ctx, &given, release)?,
                None => None,
            };
            all.push(DeviceProfile {
                revision: revision(&profile),
                target: profile.target,
                poll_interval_seconds: profile.poll_interval_secs,
                profile_id: profile.id,
                release: current.map(|release| Offered {
                    id: release.id,
                    version: release.version,
                    store_epoch: release.store_epoch,
                }),
                withheld,
            });
        }
        Ok(DeviceProfiles { profiles: all })
    }
}

impl Operation for GetDeviceProfile {
    const META: Meta = Meta::read(
        "getHeadlessDeviceProfile",
        "/devices/{deviceId}/profiles/{profileId}",
        "managed_config",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[401, 403])
    .says(
        "Read the current release of a profile that a device gets",
        "A device calls this for itself. The signed manifest and its files as published; the audit log names the device, once an \
         hour. A release with hidden values that nobody gave it in the clear is 409, and so is one for a quarantined device.",
    );
    type Path = AssignmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Current;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Current> {
        let AssignmentPath {
            profile_id,
            device_id,
        } = &input.path;
        must_work(ctx, device_id)?;
        let (given, found) = given(ctx, device_id, profile_id)?;
        let release = found.must_have_release()?;
        match withheld(ctx, &given, release)? {
            None => current::deliver(ctx, &found, release),
            Some(why) => {
                let message = match why {
                    Withheld::HiddenValues => {
                        "the release has hidden values; an admin who holds managed_config:pull has to assign the profile to this device"
                    }
                    Withheld::Quarantined => {
                        "the release has hidden values, and the device is quarantined; what it has stays"
                    }
                };
                Err(Error::new(Code::Conflict, message).with("withheld", why.as_str()))
            }
        }
    }
}
