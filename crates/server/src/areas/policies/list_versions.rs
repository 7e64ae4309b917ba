//! `GET …/policies/versions`

use super::list::page;
use super::store;
use super::views::VersionView;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
pub struct ListVersions;

/// The parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionsQuery {
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
pub struct VersionPage {
    /// The versions, the newest first.
    versions: Vec<VersionView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListVersions {
    const META: Meta = Meta::read("listHeadlessPolicyVersions", "/policies/versions", "policies")
        .access("policies:read", &Role::ALL)
        .command("policies", "versions")
        .says(
            "List the versions of the policy set, the newest first",
            "The newest one decides. A write that changes which definitions decide makes the next one.",
        );
    type Path = Empty;
    type Query = VersionsQuery;
    type Body = Empty;
    type Output = VersionPage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<VersionPage> {
        let query = &input.query;
        let keys = &cx.services().keys;
        let cursor = query.cursor.as_ref();
        let before = cursor.map_or(Ok(i64::MAX), |cursor| cursor.open(keys, cx.org(), Self::META.id))?;
        let found = store::versions(cx, before, query.limit.get() + 1)?;
        let mut found: Vec<_> = found
            .into_iter()
            .map(|version| (version.sequence, version))
            .collect();
        let next_cursor = page(cx, Self::META.id, query.limit, &mut found);
        Ok(VersionPage {
            versions: found.into_iter().map(|(_, version)| version.into()).collect(),
            next_cursor,
        })
    }
}
