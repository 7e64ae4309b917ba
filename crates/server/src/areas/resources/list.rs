//! `GET …/resources`

use super::model::{ResourceView, view};
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
pub struct ListResources;

/// The parameters of a list that goes on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PageQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

impl PageQuery {
    /// Returns the instant after which the page begins, and how many rows show whether another page follows.
    pub fn start(&self, cx: &Cx<'_>, operation: &str) -> Result<(Timestamp, i64)> {
        let keys = &cx.services().keys;
        let cursor = self.cursor.as_ref();
        let after = cursor.map_or(Ok(-1), |cursor| cursor.open(keys, cx.org(), operation))?;
        Ok((Timestamp::from_ms(after), self.limit.get() + 1))
    }

    /// Cuts off the row beyond the page and returns the cursor to go on with, if there was one.
    pub fn end<T>(
        &self,
        cx: &Cx<'_>,
        operation: &str,
        rows: &mut Vec<T>,
        created_at: impl Fn(&T) -> Timestamp,
    ) -> Option<Cursor> {
        let limit = usize::try_from(self.limit.get()).unwrap_or(usize::MAX);
        if rows.len() <= limit {
            return None;
        }
        rows.truncate(limit);
        let last = created_at(rows.last()?).as_ms();
        Some(Cursor::issue(&cx.services().keys, cx.org(), operation, last))
    }
}

/// One page of resources.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ResourcePage {
    /// The resources, the oldest first.
    resources: Vec<ResourceView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListResources {
    const META: Meta = Meta::read("listHeadlessResources", "/resources", "resources")
        .access("resources:read", READERS)
        .command("resources", "list")
        .says(
            "List resources, the oldest first",
            "The list has ended when nextCursor is absent. What is made while somebody reads stands at the end.",
        );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = ResourcePage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ResourcePage> {
        let (after, count) = input.query.start(cx, Self::META.id)?;
        let mut found = store::list(cx, after, count)?;
        let next_cursor = input
            .query
            .end(cx, Self::META.id, &mut found, |resource| resource.created_at);
        Ok(ResourcePage {
            resources: found
                .into_iter()
                .map(|resource| view(cx.org(), resource))
                .collect(),
            next_cursor,
        })
    }
}
