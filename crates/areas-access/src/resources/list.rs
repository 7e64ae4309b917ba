//! `GET …/resources`

use super::model::{ResourceView, view};
use super::{READERS, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

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
    pub fn start(&self, ctx: &OperationContext<'_>, operation: &str) -> Result<(Timestamp, i64)> {
        let after = page::start(ctx, operation, self.cursor.as_ref(), -1)?;
        Ok((Timestamp::from_ms(after), self.limit.get() + 1))
    }

    /// Cuts off the row beyond the page and returns the cursor to go on with, if there was one.
    pub fn end<T>(
        &self,
        ctx: &OperationContext<'_>,
        operation: &str,
        rows: &mut Vec<T>,
        created_at: impl Fn(&T) -> Timestamp,
    ) -> Option<Cursor> {
        page::end(ctx, operation, self.limit, rows, |row| created_at(row).as_ms())
    }
}

provost_kernel::page! {
    /// One page of resources.
    pub struct ResourcePage {
        /// The resources, the oldest first.
        resources: ResourceView,
    }
}

impl Operation for ListResources {
    const META: Meta = Meta::read("listHeadlessResources", "/resources", "resources")
        .access("resources:read", READERS)
        .command("resources", "list").columns(&["name", "protocol", "upstreamHost as host", "upstreamPort as port", "enabled", "id", "accessName", "gatewayId as gateway", "updatedAt as changed", "upstreamTls as tls", "transparentRouting as transparent", "managementMode as managed", "managerId as manager", "managerInstance as instance", "createdAt as created"])
        .says(
            "List resources, the oldest first",
            "The list has ended when nextCursor is absent. What is made while somebody reads stands at the end.",
        );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = ResourcePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ResourcePage> {
        let (after, count) = input.query.start(ctx, Self::META.id)?;
        let mut found = store::list(ctx, after, count)?;
        let next_cursor = input
            .query
            .end(ctx, Self::META.id, &mut found, |resource| resource.created_at);
        Ok(ResourcePage {
            resources: found
                .into_iter()
                .map(|resource| view(ctx.org(), resource))
                .collect(),
            next_cursor,
        })
    }
}
