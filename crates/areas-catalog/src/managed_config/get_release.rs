//! Reads a release, without its content.

use super::model::ReleasePath;
use super::store::{self, Found};
use super::views::{ReleaseView, Tally};
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// See [`Operation::META`].
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

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<OneRelease> {
        let Found { profile, current } = store::get(cx, &input.path.profile_id)?;
        let release = store::release_of(cx, &profile.id, &input.path.release_id)?;
        let tally = match &current {
            Some(current) if current.id != release.id => {
                let behind = machines::behind(cx, &profile.id, current)?;
                let own = behind.into_iter().find(|(id, _)| id == release.id.as_str());
                own.map_or_else(Tally::default, |(_, tally)| tally)
            }
            _ => machines::tally(cx, &profile, current.as_ref())?,
        };
        Ok(OneRelease {
            release: ReleaseView::of(cx, &profile, &release, tally),
        })
    }
}
