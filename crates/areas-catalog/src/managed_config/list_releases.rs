//! Lists the releases of a profile.

use super::model::{ProfilePath, Release};
use super::store::{self, Found};
use super::views::{ReleaseView, Tally};
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Deserialize;

/// See [`Operation::META`].
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
    .says("List the releases of a profile, the newest first", "");
    type Path = ProfilePath;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ReleasePage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ReleasePage> {
        let query = &input.query;
        let Found { profile, current } = store::get(cx, &input.path.profile_id)?;
        // A cursor of another profile would be a place in another list.
        let list = format!("{} {}", Self::META.id, profile.id);
        let before = page::start(cx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::releases(cx, &profile.id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(cx, &list, query.limit, &mut found, |last| last.version);
        let Some(current) = current else {
            return Ok(ReleasePage {
                releases: Vec::new(),
                next_cursor,
            });
        };
        let (now, behind) = (
            machines::tally(cx, &profile, Some(&current))?,
            machines::behind(cx, &profile.id, &current)?,
        );
        let tally = |release: &Release| {
            let own = behind.iter().find(|(id, _)| id == release.id.as_str());
            if release.id == current.id {
                now
            } else {
                own.map_or_else(Tally::default, |(_, tally)| *tally)
            }
        };
        let releases = found
            .iter()
            .map(|release| ReleaseView::of(cx, &profile, release, tally(release)));
        Ok(ReleasePage {
            releases: releases.collect(),
            next_cursor,
        })
    }
}
