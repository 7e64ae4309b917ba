//! Lists the items of the registry.

use super::inputs::{Namespace, Search};
use super::model::{ItemView, Status};
use super::store::{self, ItemFilter};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// See [`Operation::META`].
pub struct ListSkillRegistryItems;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only of this namespace.
    namespace: Option<Namespace>,
    /// Only in this state.
    status: Option<Status>,
    /// Only with this in name, namespace or description, whatever its case.
    query: Option<Search>,
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
pub struct ItemPage {
    items: Vec<ItemView>,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListSkillRegistryItems {
    const META: Meta = Meta::read("listHeadlessSkillRegistryItems", "/skill-registry", "registry")
        .access("registry:read", &[Admin, Operator, Auditor])
        .command("skills", "search")
        .says(
            "List the skills of the registry",
            "Newest first. Items that are published while you page do not shift the pages behind them.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ItemPage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<ItemPage> {
        let query = &input.query;
        let filter = ItemFilter {
            namespace: query.namespace.as_ref().map(|n| n.get().as_str()),
            status: query.status,
            query: query.query.as_ref().map(|q| q.get().as_str()),
        };
        let limit = query.limit.get();
        let below = below(cx, query.cursor.as_ref(), Self::META.id)?;
        let found = store::list_items(cx, &filter, below, limit + 1)?;
        let (items, next_cursor) = page(cx, found, limit, Self::META.id);
        Ok(ItemPage {
            items: items.into_iter().map(ItemView::from).collect(),
            next_cursor,
        })
    }
}

/// Returns the place below which a page begins.
pub fn below(cx: &Cx<'_>, cursor: Option<&Cursor>, operation: &str) -> Result<i64> {
    cursor.map_or(Ok(i64::MAX), |c| c.open(&cx.services().keys, cx.org(), operation))
}

/// Cuts what was read, one more than was asked for, to a page; says where it goes on.
pub fn page<T>(
    cx: &Cx<'_>,
    mut found: Vec<(i64, T)>,
    limit: i64,
    operation: &str,
) -> (Vec<T>, Option<Cursor>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let goes_on = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| goes_on).map(|(place, _)| *place);
    let cursor = last.map(|place| Cursor::issue(&cx.services().keys, cx.org(), operation, place));
    (found.into_iter().map(|(_, value)| value).collect(), cursor)
}
