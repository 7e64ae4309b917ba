//! `GET …/mcp/clients`

use super::model::ClientView;
use super::store;
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListMcpClients;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// How many to pass over.
    #[serde(default)]
    offset: Offset,
}

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    mcp_clients: Vec<ClientView>,
    total: i64,
    limit: i64,
    offset: i64,
}

impl Operation for ListMcpClients {
    const META: Meta = Meta::read("listHeadlessMcpClients", "/mcp/clients", "mcp")
        .access("mcp:read", &[Admin])
        .command("mcp-clients", "list")
        .columns(&[
            "name",
            "status",
            "createdAt as created",
            "id",
            "scopes",
            "redirectUris as redirects",
            "grantTypes as grants",
            "tokenEndpointAuthMethod as authentication",
            "serviceAccountId as service account",
            "ceiling",
            "blockedAt as blocked",
            "updatedAt as changed",
        ])
        .says(
            "List registered MCP clients",
            "Newest first. Clients that are known by their metadata document are not registered.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (limit, offset) = (input.query.limit.get(), input.query.offset.get());
        let (found, total) = store::list(ctx, limit, offset)?;
        Ok(Page {
            mcp_clients: found.into_iter().map(ClientView::from).collect(),
            total,
            limit,
            offset,
        })
    }
}
