//! Compares two releases of a profile.

use super::READERS;
use super::difference::Difference;
use super::model::{ReleaseId, ReleasePath};
use super::store::{self, ProfileWithRelease};
use super::targets::Weakening;
use super::views::ReleaseRef;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct DiffReleases;

/// What it is compared with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DiffQuery {
    /// The release that is there before; the current one when absent.
    against: Option<ReleaseId>,
}

/// What would change from one release to the other.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ReleaseDiff {
    against: ReleaseRef,
    release: ReleaseRef,
    #[serde(flatten)]
    difference: Difference,
    /// What guards less than before.
    weakens_enforcement: Vec<Weakening>,
}

impl Operation for DiffReleases {
    const META: Meta = Meta::read(
        "diffHeadlessManagedConfigReleases",
        "/managed-config/profiles/{profileId}/releases/{releaseId}/diff",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "diff")
    .says(
        "Compare two releases of a profile",
        "Shows what changes from `against` to the release, hidden values as a mark.",
    );
    type Path = ReleasePath;
    type Query = DiffQuery;
    type Body = Empty;
    type Output = ReleaseDiff;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReleaseDiff> {
        let found = store::get(ctx, &input.path.profile_id)?;
        let release = store::release_of(ctx, &found.profile.id, &input.path.release_id)?;
        let against = match &input.query.against {
            Some(id) => store::release_of(ctx, &found.profile.id, id)?,
            None => found.must_have_release()?.clone(),
        };
        let ProfileWithRelease { profile, .. } = found;
        let before = store::content(ctx, &against.content_digest)?;
        let after = store::content(ctx, &release.content_digest)?;
        Ok(ReleaseDiff {
            against: ReleaseRef::of(ctx, &against),
            release: ReleaseRef::of(ctx, &release),
            difference: Difference::of(profile.target, &before, &after),
            weakens_enforcement: profile.target.weakened(&before, &after),
        })
    }
}
