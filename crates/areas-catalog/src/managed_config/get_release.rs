//! Reads a release, without its content.

use super::model::ReleasePath;
use super::store::{self, ProfileWithRelease};
use super::views::{MachineCounts, ReleaseView};
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetRelease;

/// The release.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneRelease {
    release: ReleaseView,
}

impl Operation for GetRelease {
    const META: Meta = Meta::read(
        "getHeadlessManagedConfigRelease",
        "/managed-config/profiles/{profileId}/releases/{releaseId}",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "release")
    .says(
        "Read a release of managed configuration and how far it is rolled out",
        "",
    );
    type Path = ReleasePath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneRelease;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneRelease> {
        let ProfileWithRelease { profile, current } = store::get(ctx, &input.path.profile_id)?;
        let release = store::release_of(ctx, &profile.id, &input.path.release_id)?;
        let tally = match &current {
            Some(current) if current.id != release.id => {
                let behind = machines::behind(ctx, &profile.id, current)?;
                let own = behind.into_iter().find(|(id, _)| id == release.id.as_str());
                own.map_or_else(MachineCounts::default, |(_, tally)| tally)
            }
            _ => machines::tally(ctx, &profile, current.as_ref())?,
        };
        Ok(OneRelease {
            release: ReleaseView::of(ctx, &profile, &release, tally),
        })
    }
}
