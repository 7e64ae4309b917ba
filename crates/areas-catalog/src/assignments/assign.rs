//! `PUT …/managed-config/profiles/{profileId}/devices/{deviceId}`

use super::store::{self, Assignment};
use crate::managed_config::PULL;
use crate::managed_config::fences;
use crate::managed_config::model::{Principal, ProfileId};
use crate::managed_config::store as profiles;
use crate::managed_config::targets::Target;
use provost_areas_fleet::fleet::{self, DeviceId, Standing};
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct AssignProfile;

/// The path of operations on a profile and a device.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AssignmentPath {
    /// The profile.
    pub profile_id: ProfileId,
    /// The device.
    pub device_id: DeviceId,
}

/// What the device gets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneAssignment {
    assignment: Assignment,
}

impl Operation for AssignProfile {
    const META: Meta = Meta::write(
        "assignHeadlessDeviceProfile",
        Method::Put,
        "/managed-config/profiles/{profileId}/devices/{deviceId}",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "assign")
    .says(
        "Have a device get a profile",
        "Its agent fetches the releases and writes them. A device has one profile for each program. Releases with hidden values are \
         delivered only where whoever assigns holds managed_config:pull too; the answer says whether that is so.",
    );
    type Path = AssignmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneAssignment;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneAssignment> {
        let AssignmentPath {
            profile_id,
            device_id,
        } = &input.path;
        ctx.target(&fences::PROFILE, profile_id.as_str());
        let profile = profiles::get(ctx, profile_id)?.profile;
        let standing = fleet::standing(ctx, device_id)?;
        // INVARIANT DC-2.
        let in_clear = ctx.actor().permission.scopes.has(PULL);
        if let Some(mut known) = store::get(ctx, device_id, profile_id)? {
            if in_clear && !known.in_clear {
                store::clear(ctx, device_id, profile_id)?;
                ctx.change("/deviceId", Value::Null, device_id.as_str());
                ctx.change("/inClear", false, true);
                known.in_clear = true;
            }
            return Ok(OneAssignment { assignment: known });
        }
        profile.must_be_active()?;
        if standing == Standing::Ended {
            return Err(Error::new(
                Code::Conflict,
                "the device is retired, or a restore of the store holds it back; it gets nothing",
            ));
        }
        if profile.target == Target::GenericJson {
            return Err(Error::new(
                Code::Conflict,
                "no machine has one place for generic_json; have a service account pull it (provost managed-config pull)",
            ));
        }
        must_be_the_only_one(ctx, device_id, profile.target)?;
        let actor = ctx.actor();
        let assignment = Assignment {
            device_id: device_id.clone(),
            profile_id: profile_id.clone(),
            seq: 0,
            in_clear,
            assigned_at: ctx.now(),
            assigned_by: Principal {
                kind: actor.kind.to_owned(),
                id: actor.id.clone(),
            },
        };
        store::insert(ctx, &assignment)?;
        ctx.change("/deviceId", Value::Null, device_id.as_str());
        ctx.change("/inClear", Value::Null, in_clear);
        Ok(OneAssignment { assignment })
    }
}

/// INVARIANT DC-3: two profiles would write one file by turns.
///
/// Errors: `Conflict`.
fn must_be_the_only_one(ctx: &mut OperationContext<'_>, device: &DeviceId, target: Target) -> Result<()> {
    for given in store::of_device(ctx, device)? {
        let other = profiles::get(ctx, &given.profile_id)?.profile;
        if other.target == target {
            let message = "the device has another profile for this program; take that one away first";
            return Err(Error::new(Code::Conflict, message).with("profileId", other.id.as_str()));
        }
    }
    Ok(())
}
