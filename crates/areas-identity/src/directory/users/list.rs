//! Lists users.

use super::super::READERS;
use super::super::model::{DirectoryId, GroupId, Status, UserView};
use super::super::store::users::{self, Filter};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListUsers;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only users in this state.
    status: Option<Status>,
    /// Only users of this directory.
    directory_id: Option<DirectoryId>,
    /// Only users in this group.
    group_id: Option<GroupId>,
    /// Only users of exactly this login name, upper and lower case alike.
    login_name: Option<LongName>,
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
    users: Vec<UserView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListUsers {
    const META: Meta = Meta::read("listHeadlessDirectoryUsers", "/directory/users", "directory")
        .access("directory:read", READERS)
        .command("users", "list")
        .columns(&[
            "loginName as login",
            "displayName as name",
            "status",
            "id",
            "permissionRole as role",
            "email",
            "updatedAt as changed",
            "suspendedAt as suspended",
            "externalId",
            "directoryId",
            "createdAt as created",
        ])
        .says(
            "List users, the oldest first",
            "Every filter narrows the list. The list has ended when nextCursor is absent.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let filter = Filter {
            status: query.status,
            directory_id: query.directory_id.as_ref().map(DirectoryId::as_str),
            login_name: query.login_name.as_ref().map(LongName::as_str),
            group_id: query.group_id.as_ref().map(GroupId::as_str),
        };
        let mut found = users::list(ctx, &filter, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |user| user.seq);
        Ok(Page {
            users: found.into_iter().map(UserView::from).collect(),
            next_cursor,
        })
    }
}
