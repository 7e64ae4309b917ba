//! Lists profiles.

use super::model::ProfileStatus;
use super::targets::Target;
use super::views::ProfileView;
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListProfiles;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only profiles in this state.
    status: Option<ProfileStatus>,
    /// Only profiles for this program.
    target: Option<Target>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct ProfilePage {
        /// The profiles, the oldest first.
        profiles: ProfileView,
    }
}

impl Operation for ListProfiles {
    const META: Meta = Meta::read(
        "listHeadlessManagedConfigProfiles",
        "/managed-config/profiles",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "list")
    .columns(&[
        "name",
        "target",
        "status",
        "updatedAt as changed",
        "id",
        "currentReleaseId as release",
        "autoPublish",
        "onUnavailable as unavailable",
        "pollIntervalSeconds as poll seconds",
        "createdAt as created",
    ])
    .says("List profiles of managed configuration, the oldest first", "");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ProfilePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ProfilePage> {
        let (query, org) = (&input.query, ctx.org());
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let mut found = store::list(ctx, query.status, query.target, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |last| last.seq);
        Ok(ProfilePage {
            profiles: found
                .iter()
                .map(|profile| ProfileView::of(org, profile))
                .collect(),
            next_cursor,
        })
    }
}
