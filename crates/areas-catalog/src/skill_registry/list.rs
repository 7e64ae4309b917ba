//! Lists the items of the registry.

use super::inputs::{Namespace, Search};
use super::model::{ItemView, Status};
use super::store::{self, ItemFilter};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

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

provost_kernel::page! {
    /// One page.
    pub struct ItemPage {

        items: ItemView,
    }
}

impl Operation for ListSkillRegistryItems {
    const META: Meta = Meta::read("listHeadlessSkillRegistryItems", "/skill-registry", "registry")
        .access("registry:read", &[Admin, Operator, Auditor])
        .command("skills", "search")
        .columns(&[
            "ref as skill",
            "latestVersion as version",
            "status",
            "updatedAt as changed",
            "description",
            "versionCount as versions",
            "id",
            "withdrawnAt as withdrawn",
            "createdAt as created",
        ])
        .says(
            "List the skills of the registry",
            "Newest first. Items that are published while you page do not shift the pages behind them.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ItemPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ItemPage> {
        let query = &input.query;
        let filter = ItemFilter {
            namespace: query.namespace.as_ref().map(|n| n.get().as_str()),
            status: query.status,
            query: query.query.as_ref().map(|q| q.get().as_str()),
        };
        let below = page::start(ctx, Self::META.id, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list_items(ctx, &filter, below, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, Self::META.id, query.limit, &mut found, |(place, _)| *place);
        Ok(ItemPage {
            items: found.into_iter().map(|(_, item)| item.into()).collect(),
            next_cursor,
        })
    }
}
