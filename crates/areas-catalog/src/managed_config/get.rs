//! Reads a profile.

use super::model::ProfilePath;
use super::views::{OneProfile, ProfileView};
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetProfile;

impl Operation for GetProfile {
    const META: Meta = Meta::read(
        "getHeadlessManagedConfigProfile",
        "/managed-config/profiles/{profileId}",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "get")
    .says("Read a profile of managed configuration", "");
    type Path = ProfilePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneProfile;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneProfile> {
        let found = store::get(ctx, &input.path.profile_id)?;
        Ok(OneProfile {
            profile: ProfileView::of(ctx.org(), &found.profile),
        })
    }
}
