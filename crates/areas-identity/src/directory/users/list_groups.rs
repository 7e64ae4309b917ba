//! Lists the groups of a user.

use super::super::model::{GroupView, UserPath};
use super::super::store::{groups, users};
use super::super::{PageQuery, READERS};
use crate::directory::fences;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListUserGroups;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    groups: Vec<GroupView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListUserGroups {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryUserGroups",
        "/directory/users/{userId}/groups",
        "directory",
    )
    .access("directory:read", READERS)
    .command("users", "list-groups")
    .columns(&[
        "name",
        "description",
        "updatedAt as changed",
        "id",
        "externalId",
        "directoryId",
        "createdAt as created",
    ])
    .says("List the groups that a user is in, the oldest first", "");
    type Path = UserPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (id, limit) = (&input.path.user_id, input.query.limit);
        ctx.target(&fences::USER, id.as_str());
        let after = page::start(ctx, Self::META.id, input.query.cursor.as_ref(), 0)?;
        users::get(ctx, id)?;
        let mut found = groups::list_of_user(ctx, id.as_str(), after, limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, limit, &mut found, |group| group.seq);
        Ok(Page {
            groups: found.into_iter().map(GroupView::from).collect(),
            next_cursor,
        })
    }
}
