//! Who is in a group.

use super::super::model::{GroupId, GroupPath, MemberPath, UserId, UserView};
use super::super::store::users::{self, Filter};
use super::super::store::{groups, memberships};
use super::super::{PageQuery, READERS};
use super::opened;
use crate::directory::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// See [`Operation::META`].
pub struct ListGroupMembers;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    users: Vec<UserView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListGroupMembers {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryGroupMembers",
        "/directory/groups/{groupId}/members",
        "directory",
    )
    .access("directory:read", READERS)
    .command("groups", "list-members")
    .says(
        "List the users in a group, the oldest first",
        "Suspended ones are among them.",
    );
    type Path = GroupPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Page> {
        let (id, limit) = (&input.path.group_id, input.query.limit);
        cx.target(&fences::GROUP, id.as_str());
        let after = page::start(cx, Self::META.id, input.query.cursor.as_ref(), 0)?;
        groups::get(cx, id)?;
        let filter = Filter {
            group_id: Some(id.as_str()),
            ..Filter::default()
        };
        let mut found = users::list(cx, &filter, after, limit.get() + 1)?;
        let next_cursor = page::end(cx, Self::META.id, limit, &mut found, |user| user.seq);
        Ok(Page {
            users: found.into_iter().map(UserView::from).collect(),
            next_cursor,
        })
    }
}

/// A user in a group.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Membership {
    group_id: GroupId,
    user_id: UserId,
}

/// See [`Operation::META`].
pub struct AddGroupMember;

impl Operation for AddGroupMember {
    const META: Meta = Meta::write(
        "addHeadlessDirectoryGroupMember",
        Method::Put,
        "/directory/groups/{groupId}/members/{userId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("groups", "add-member")
    .says("Put a user into a group", "A user that is in it stays in it.");
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Membership;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Membership> {
        let (group, user) = (&input.path.group_id, &input.path.user_id);
        cx.target(&fences::GROUP, group.as_str());
        groups::get(cx, group)?;
        let found = users::get(cx, user)?;
        if memberships::add(cx, group, &found)? {
            cx.change("/members", Value::Null, user.as_str());
            opened::note(cx, group)?;
            cx.emit(
                &fences::GROUP_MEMBER_ADDED,
                &fences::OfMembership::of(group, user),
            );
        }
        Ok(Membership {
            group_id: group.clone(),
            user_id: user.clone(),
        })
    }
}

/// See [`Operation::META`].
pub struct RemoveGroupMember;

impl Operation for RemoveGroupMember {
    const META: Meta = Meta::write(
        "removeHeadlessDirectoryGroupMember",
        Method::Delete,
        "/directory/groups/{groupId}/members/{userId}",
        "directory",
    )
    .access("directory:write", &[Admin])
    .command("groups", "remove-member")
    .status(204)
    .says(
        "Take a user out of a group",
        "A user that is not in it stays out of it.",
    );
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let (group, user) = (&input.path.group_id, &input.path.user_id);
        cx.target(&fences::GROUP, group.as_str());
        groups::get(cx, group)?;
        let found = users::get(cx, user)?;
        if memberships::remove(cx, group, &found)? {
            cx.change("/members", user.as_str(), Value::Null);
            cx.emit(
                &fences::GROUP_MEMBER_REMOVED,
                &fences::OfMembership::of(group, user),
            );
        }
        Ok(NoContent {})
    }
}
