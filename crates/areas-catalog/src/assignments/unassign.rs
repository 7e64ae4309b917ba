//! `DELETE …/managed-config/profiles/{profileId}/devices/{deviceId}`

use super::assign::AssignmentPath;
use super::store;
use crate::managed_config::fences;
use crate::managed_config::store as profiles;
use provost_areas_fleet::fleet;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::Value;

pub struct UnassignProfile;

impl Operation for UnassignProfile {
    const META: Meta = Meta::write(
        "unassignHeadlessDeviceProfile",
        Method::Delete,
        "/managed-config/profiles/{profileId}/devices/{deviceId}",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "unassign")
    .status(204)
    .says(
        "Have a device get a profile no longer",
        "The file that it has stays: a program without its managed settings has no restrictions at all. Its agent leaves the file \
         alone from then on.",
    );
    type Path = AssignmentPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let AssignmentPath {
            profile_id,
            device_id,
        } = &input.path;
        ctx.target(&fences::PROFILE, profile_id.as_str());
        profiles::get(ctx, profile_id)?;
        fleet::standing(ctx, device_id)?;
        if !store::remove(ctx, device_id, profile_id)? {
            return Err(Error::not_found("device of this profile"));
        }
        ctx.change("/deviceId", device_id.as_str(), Value::Null);
        Ok(NoContent {})
    }
}
