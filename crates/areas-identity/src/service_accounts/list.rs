//! Lists service accounts (specification §4.6, D5.8).

use super::model::{AccountView, Status, view};
use super::store;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListServiceAccounts;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only accounts in this state.
    status: Option<Status>,
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
    service_accounts: Vec<AccountView>,
    total: i64,
    limit: i64,
    offset: i64,
}

impl Operation for ListServiceAccounts {
    const META: Meta = Meta::read(
        "listHeadlessServiceAccounts",
        "/service-accounts",
        "service_accounts",
    )
    .access("service_accounts:read", &[Admin, Auditor])
    .command("service-accounts", "list")
    .sensitive()
    .says(
        "List service accounts with non-secret token metadata",
        "Newest first. Accounts made while you page may shift the pages behind them.",
    );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (limit, offset) = (input.query.limit.get(), input.query.offset.get());
        let (found, total) = store::list(ctx, input.query.status, limit, offset)?;
        let now = ctx.now();
        let service_accounts = found
            .into_iter()
            .map(|(account, tokens)| view(account, tokens, now))
            .collect();
        Ok(Page {
            service_accounts,
            total,
            limit,
            offset,
        })
    }
}
