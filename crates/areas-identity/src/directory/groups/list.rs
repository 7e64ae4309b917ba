//! Lists groups.

use super::super::READERS;
use super::super::model::{DirectoryId, GroupView};
use super::super::store::groups;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListGroups;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only groups of this directory.
    directory_id: Option<DirectoryId>,
    /// Only groups of exactly this name, upper and lower case alike.
    name: Option<Name>,
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
pub struct Page {
    groups: Vec<GroupView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListGroups {
    const META: Meta = Meta::read("listHeadlessDirectoryGroups", "/directory/groups", "directory")
        .access("directory:read", READERS)
        .command("groups", "list")
        .columns(&[
            "name",
            "description",
            "updatedAt as changed",
            "id",
            "externalId",
            "directoryId",
            "createdAt as created",
        ])
        .says(
            "List groups, the oldest first",
            "Every filter narrows the list. The list has ended when nextCursor is absent.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let directory = query.directory_id.as_ref().map(DirectoryId::as_str);
        let name = query.name.as_ref().map(Name::as_str);
        let mut found = groups::list(ctx, directory, name, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |group| group.seq);
        Ok(Page {
            groups: found.into_iter().map(GroupView::from).collect(),
            next_cursor,
        })
    }
}
