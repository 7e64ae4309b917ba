//! Lists mappings.

use super::model::MappingView;
use super::store;
use crate::areas::directory::model::UserId;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
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

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    mappings: Vec<MappingView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListIdentities {
    const META: Meta = Meta::read(
        "listHeadlessDirectoryIdentities",
        "/directory/identities",
        "directory",
    )
    .access("directory:read", &[Admin, Operator, Auditor])
    .command("history", "list-identities")
    .says(
        "List the words of events that are mapped to users, the oldest first",
        "A mapping to a deleted user stays for 90 days: what guards her guards as long.",
    );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let keys = &cx.services().keys;
        let cursor = query.cursor.as_ref();
        let after = cursor.map_or(Ok(0), |cursor| cursor.open(keys, cx.org(), Self::META.id))?;
        let user = query.user_id.as_ref().map(UserId::as_str);
        let mut found = store::list(cx, user, after, query.limit.get() + 1)?;
        let limit = usize::try_from(query.limit.get()).unwrap_or(usize::MAX);
        let has_more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| has_more);
        let next_cursor =
            last.map(|last| Cursor::issue(&cx.services().keys, cx.org(), Self::META.id, last.seq));
        Ok(Page {
            mappings: found.into_iter().map(MappingView::from).collect(),
            next_cursor,
        })
    }
}
