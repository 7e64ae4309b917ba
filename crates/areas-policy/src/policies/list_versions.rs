//! `GET …/policies/versions`

use super::store;
use super::views::VersionView;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

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

provost_kernel::page! {
    /// One page.
    pub struct VersionPage {
        /// The versions, the newest first.
        versions: VersionView,
    }
}

impl Operation for ListVersions {
    const META: Meta = Meta::read("listHeadlessPolicyVersions", "/policies/versions", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .command("policies", "versions")
        .columns(&[
            "sequence",
            "policies",
            "createdAt as created",
            "id",
            "createdBy.id as by",
            "policyIds as policy ids",
            "digest",
        ])
        .says(
            "List the versions of the policy set, the newest first",
            "The newest one decides. A write that changes which definitions decide makes the next one.",
        );
    type Path = Empty;
    type Query = VersionsQuery;
    type Body = Empty;
    type Output = VersionPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<VersionPage> {
        let query = &input.query;
        let before = page::start(ctx, Self::META.id, query.cursor.as_ref(), i64::MAX)?;
        let found = store::versions(ctx, before, query.limit.get() + 1)?;
        let mut found: Vec<_> = found
            .into_iter()
            .map(|version| (version.sequence, version))
            .collect();
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |(place, _)| *place);
        Ok(VersionPage {
            versions: found.into_iter().map(|(_, version)| version.into()).collect(),
            next_cursor,
        })
    }
}
