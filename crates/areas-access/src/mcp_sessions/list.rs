//! Lists sessions (specification §4.1, D7.6 to D7.8).

use super::find::{self, Filter};
use super::view::{SessionView, StatusFilter};
use provost_kernel::auth::Role::Admin;
use provost_kernel::listing::FilterText;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListMcpSessions;

/// What can be asked; a session must fit all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// A part of the id, the actor's name, or the id of client, account or user, in any case.
    query: Option<FilterText<256>>,
    /// Only sessions of this kind: usable, ended by somebody, ended by their time.
    status: Option<StatusFilter>,
    /// Only sessions of this actor type.
    actor_type: Option<FilterText<256>>,
    /// Only sessions of this service account.
    service_account_id: Option<FilterText<256>>,
    /// Only sessions of this MCP client.
    client_id: Option<FilterText<2048>>,
    /// Only sessions with a scope of this toolset.
    toolset: Option<FilterText<256>>,
    /// Only sessions with this scope.
    scope: Option<FilterText<256>>,
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
    sessions: Vec<SessionView>,
    /// How many there are in all, at most 1 000.
    total: i64,
    /// `false` when there are more.
    total_is_exact: bool,
    limit: i64,
    offset: i64,
}

impl Operation for ListMcpSessions {
    const META: Meta = Meta::read("listHeadlessMcpSessions", "/mcp/sessions", "mcp")
        .access("mcp:read", &[Admin])
        .command("mcp-sessions", "list").columns(&["actorDisplay as who", "mcpClientId as client", "status", "lastUsedAt as last used", "id", "actorType as kind", "issuedAt as issued", "scopes", "revokedAt as revoked", "revokeReason as why revoked", "consoleUserId as user", "serviceAccountId as service account"])
        .sensitive()
        .says(
            "List remote MCP client sessions",
            "Newest first. Filters narrow together; all but query compare exactly. Sessions opened while you page may \
             shift the pages behind them.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let (limit, offset) = (query.limit.get(), query.offset.get());
        let filter = Filter {
            status: query.status,
            client: query.client_id.as_ref().map(FilterText::as_str),
            account: query.service_account_id.as_ref().map(FilterText::as_str),
            user: None,
            actor_type: query.actor_type.as_ref().map(FilterText::as_str),
            scope: query.scope.as_ref().map(FilterText::as_str),
            toolset: query.toolset.as_ref().map(FilterText::as_str),
            text: query.query.as_ref().map(FilterText::as_str),
        };
        let found = find::page(ctx, &filter, (limit, offset), find::COUNTED)?;
        Ok(Page {
            sessions: found.sessions.into_iter().map(SessionView::from).collect(),
            total: found.total,
            total_is_exact: found.is_exact,
            limit,
            offset,
        })
    }
}
