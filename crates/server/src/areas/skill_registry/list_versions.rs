//! Lists the versions of an item.

use super::list::{below, page};
use super::model::VersionView;
use super::reference::ItemPath;
use super::{find, store};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
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

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct VersionPage {
    versions: Vec<VersionView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListSkillRegistryVersions {
    const META: Meta = Meta::read(
        "listHeadlessSkillRegistryVersions",
        "/skill-registry/{itemRef}/versions",
        "registry",
    )
    .access("registry:read", &[Admin, Operator, Auditor])
    .command("skills", "versions")
    .says(
        "List the versions of a skill",
        "The one that was published last comes first. Withdrawn versions stay in the list. A version behind the \
         name of the item is not looked at.",
    );
    type Path = ItemPath;
    type Query = VersionsQuery;
    type Body = Empty;
    type Output = VersionPage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<VersionPage> {
        let (item, _) = find::item(cx, &input.path.item_ref)?;
        let limit = input.query.limit.get();
        let below = below(cx, input.query.cursor.as_ref(), Self::META.id)?;
        let found = store::list_versions(cx, &item.id, below, limit + 1)?;
        let (versions, next_cursor) = page(cx, found, limit, Self::META.id);
        Ok(VersionPage {
            versions,
            next_cursor,
        })
    }
}
