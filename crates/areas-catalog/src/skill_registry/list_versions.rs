//! Lists the versions of an item.

use super::model::VersionView;
use super::reference::ItemPath;
use super::{find, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListSkillRegistryVersions;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
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

        versions: VersionView,
    }
}

impl Operation for ListSkillRegistryVersions {
    const META: Meta = Meta::read(
        "listHeadlessSkillRegistryVersions",
        "/skill-registry/{itemRef}/versions",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "versions").columns(&["version", "status", "publishedAt as published", "publishedBy as by", "sizeBytes as bytes", "digest", "manifest.description as description", "withdrawnAt as withdrawn"])
    .says(
        "List the versions of a skill",
        "The one that was published last comes first. Withdrawn versions stay in the list. A version behind the \
         name of the item is not looked at.",
    );
    type Path = ItemPath;
    type Query = VersionsQuery;
    type Body = Empty;
    type Output = VersionPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<VersionPage> {
        let (item, _) = find::item(ctx, &input.path.item_ref)?;
        let query = &input.query;
        let below = page::start(ctx, Self::META.id, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list_versions(ctx, &item.id, below, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |(place, _)| *place);
        Ok(VersionPage {
            versions: found.into_iter().map(|(_, version)| version).collect(),
            next_cursor,
        })
    }
}
