//! Lists mappings.

use super::model::MappingView;
use super::store;
use crate::directory::model::UserId;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListIdentities;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only words of this user.
    user_id: Option<UserId>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

provost_kernel::page! {
    /// One page.
    pub struct Page {

        mappings: MappingView,
    }
}

impl Operation for ListIdentities {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryIdentities",
        "/directory/identities",
        "directory",
    )
    .access("directory:read", &[Admin, Operator, Auditor])
    .command("history", "list-identities")
    .columns(&[
        "word",
        "userId as user",
        "updatedAt as changed",
        "createdAt as created",
        "id",
    ])
    .says(
        "List the words of events that are mapped to users, the oldest first",
        "A mapping to a deleted user stays for 90 days: what guards her guards as long.",
    );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let after = page::start(ctx, Self::META.id, query.cursor.as_ref(), 0)?;
        let user = query.user_id.as_ref().map(UserId::as_str);
        let mut found = store::list(ctx, user, after, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |last| last.seq);
        Ok(Page {
            mappings: found.into_iter().map(MappingView::from).collect(),
            next_cursor,
        })
    }
}
