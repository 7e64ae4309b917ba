//! Lists profiles.

use super::model::ProfileStatus;
use super::targets::Target;
use super::views::ProfileView;
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
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

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProfilePage {
    /// The profiles, the oldest first.
    profiles: Vec<ProfileView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListProfiles {
    const META: Meta = Meta::read(
        "listHeadlessManagedConfigProfiles",
        "/managed-config/profiles",
        "managed_config",
    )
    .access("managed_config:read", READERS)
    .command("managed-config", "list")
    .says("List profiles of managed configuration, the oldest first", "");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ProfilePage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ProfilePage> {
        let (query, keys, org) = (&input.query, &cx.services().keys, cx.org());
        let after = query
            .cursor
            .as_ref()
            .map_or(Ok(0), |cursor| cursor.open(keys, org, Self::META.id))?;
        let limit = query.limit.get();
        let mut found = store::list(cx, query.status, query.target, after, limit + 1)?;
        let next_cursor = super::model::cut(&mut found, limit)
            .map(|last| Cursor::issue(keys, org, Self::META.id, last.seq));
        Ok(ProfilePage {
            profiles: found
                .iter()
                .map(|profile| ProfileView::of(org, profile))
                .collect(),
            next_cursor,
        })
    }
}
