//! Lists the releases of a profile.

use super::model::{ProfilePath, Release};
use super::store::{self, ProfileWithRelease};
use super::views::{MachineCounts, ReleaseView};
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListReleases;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct ReleasePage {
        /// The releases, the newest first.
        releases: ReleaseView,
    }
}

impl Operation for ListReleases {
    const META: Meta = Meta::read(
        "listHeadlessManagedConfigReleases",
        "/managed-config/profiles/{profileId}/releases",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "releases")
    .columns(&[
        "version",
        "status",
        "rollout.percent as percent",
        "rollout.targets.verified as verified",
        "rollout.targets.failed as failed",
        "createdAt as published",
        "id",
        "createdBy.id as by",
        "reason",
        "kind",
        "rollout.strategy as rollout",
        "rollout.state as state",
        "sourceReleaseId as source",
        "contentDigest as digest",
    ])
    .says("List the releases of a profile, the newest first", "");
    type Path = ProfilePath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ReleasePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReleasePage> {
        let query = &input.query;
        let ProfileWithRelease { profile, current } = store::get(ctx, &input.path.profile_id)?;
        // A cursor of another profile would be a place in another list.
        let list = format!("{} {}", Self::META.id, profile.id);
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::releases(ctx, &profile.id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |last| last.version);
        let Some(current) = current else {
            return Ok(ReleasePage {
                releases: Vec::new(),
                next_cursor,
            });
        };
        let (now, behind) = (
            machines::tally(ctx, &profile, Some(&current))?,
            machines::behind(ctx, &profile.id, &current)?,
        );
        let tally = |release: &Release| {
            let own = behind.iter().find(|(id, _)| id == release.id.as_str());
            if release.id == current.id {
                now
            } else {
                own.map_or_else(MachineCounts::default, |(_, tally)| *tally)
            }
        };
        let releases = found
            .iter()
            .map(|release| ReleaseView::of(ctx, &profile, release, tally(release)));
        Ok(ReleasePage {
            releases: releases.collect(),
            next_cursor,
        })
    }
}
