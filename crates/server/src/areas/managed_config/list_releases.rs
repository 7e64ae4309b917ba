//! Lists the releases of a profile.

use super::model::{ProfilePath, Release, cut};
use super::store::{self, Found};
use super::views::{ReleaseView, Tally};
use super::{READERS, machines};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ReleasePage {
    /// The releases, the newest first.
    releases: Vec<ReleaseView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
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
        let (query, keys, org) = (&input.query, &cx.services().keys, cx.org());
        let Found { profile, current } = store::get(cx, &input.path.profile_id)?;
        // A cursor of another profile would be a place in another list.
        let list = format!("{} {}", Self::META.id, profile.id);
        let before = query
            .cursor
            .as_ref()
            .map_or(Ok(i64::MAX), |cursor| cursor.open(keys, org, &list))?;
        let limit = query.limit.get();
        let mut found = store::releases(cx, &profile.id, before, limit + 1)?;
        let next_cursor = cut(&mut found, limit).map(|last| Cursor::issue(keys, org, &list, last.version));
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
