//! Lists the held changes.

use super::super::store::held;
use super::super::{PageQuery, READERS};
use super::model::HeldChange;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListHeldChanges;

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    held_changes: Vec<HeldChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListHeldChanges {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryHeldChanges",
        "/directory/held-changes",
        "directory",
    )
    .access("directory:read", READERS)
    .command("directory", "list-held").columns(&["after.loginName as login", "before.status as status", "after.status as new status", "before.permissionRole as role", "after.permissionRole as new role", "createdAt as held", "id", "userId as user", "joins", "importId as import", "line"])
    .says(
        "List the changes that applied imports hold, the oldest first",
        "A line that would have needed more than its caller holds: a new login name, address or external id of a user who \
         has a role, or its reactivation. Each is shown with the user as the line found it and as the line wants it. A \
         change is kept until it is settled, until a later import holds another one of the same user, and 30 days at \
         most.",
    );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let limit = input.query.limit;
        let after = page::start(ctx, Self::META.id, input.query.cursor.as_ref(), 0)?;
        let mut found = held::list(ctx, after, limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, limit, &mut found, |change| change.seq);
        Ok(Page {
            held_changes: found,
            next_cursor,
        })
    }
}
