//! Who is in a group.

use super::super::model::{GroupId, GroupPath, MemberPath, UserId, UserView};
use super::super::store::users::{self, Filter};
use super::super::store::{groups, memberships};
use super::super::{PageQuery, READERS};
use super::opened;
use crate::directory::{deciders, fences, hands};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

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
        "List the users in a group, the oldest first",
        "Suspended ones are among them.",
    );
    type Path = GroupPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (id, limit) = (&input.path.group_id, input.query.limit);
        ctx.target(&fences::GROUP, id.as_str());
        let after = page::start(ctx, Self::META.id, input.query.cursor.as_ref(), 0)?;
        groups::get(ctx, id)?;
        let filter = Filter {
            group_id: Some(id.as_str()),
            ..Filter::default()
        };
        let mut found = users::list(ctx, &filter, after, limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, limit, &mut found, |user| user.seq);
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
    .of_two(&["rights"])
    .of_deciders()
    .says("Put a user into a group", "A user that is in it stays in it.");
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Membership;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        deciders::is_one(ctx, &input.path.user_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        deciders::standing(ctx, &input.path.user_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Membership> {
        let (group, user) = (&input.path.group_id, &input.path.user_id);
        ctx.target(&fences::GROUP, group.as_str());
        groups::get(ctx, group)?;
        let found = users::get(ctx, user)?;
        if memberships::add(ctx, group, &found)? {
            ctx.change("/members", Value::Null, user.as_str());
            opened::note(ctx, group)?;
            hands::note_hand(ctx, user.as_str())?;
            ctx.emit(
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
    .of_two(&["removals"])
    .of_deciders()
    .says(
        "Take a user out of a group",
        "A user that is not in it stays out of it.",
    );
    type Path = MemberPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn touches_deciders(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        deciders::is_one(ctx, &input.path.user_id)
    }

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        deciders::standing(ctx, &input.path.user_id)
    }

    /// What is said of the group holds for the user no longer.
    fn gains(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        Ok(vec![input.path.user_id.as_str().to_owned()])
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let (group, user) = (&input.path.group_id, &input.path.user_id);
        ctx.target(&fences::GROUP, group.as_str());
        groups::get(ctx, group)?;
        let found = users::get(ctx, user)?;
        if memberships::remove(ctx, group, &found)? {
            ctx.change("/members", user.as_str(), Value::Null);
            ctx.emit(
                &fences::GROUP_MEMBER_REMOVED,
                &fences::OfMembership::of(group, user),
            );
        }
        Ok(NoContent {})
    }
}
