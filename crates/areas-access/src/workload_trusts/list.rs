//! `GET …/workload-trusts`

use super::model::TrustView;
use super::store;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListWorkloadTrusts;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Those of one account.
    service_account_id: Option<Name>,
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
    workload_trusts: Vec<TrustView>,
    total: i64,
    limit: i64,
    offset: i64,
}

impl Operation for ListWorkloadTrusts {
    const META: Meta = Meta::read(
        "listHeadlessWorkloadTrusts",
        "/workload-trusts",
        "workload_trusts",
    )
    .access("workload_trusts:read", &[Admin, Auditor])
    .command("workload-trusts", "list")
    .columns(&[
        "name",
        "kind",
        "suspended",
        "createdAt as created",
        "id",
        "serviceAccountId as service account",
        "issuer",
        "claims",
        "scopes",
        "wholeOwner as whole owner",
        "audience",
        "lifetimeSeconds as lifetime",
        "maxTokenAgeSeconds as token age",
        "suspendedAt as since",
        "suspendedReason as why",
        "updatedAt as changed",
    ])
    .says("List workload trusts", "Newest first.");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let (limit, offset) = (input.query.limit.get(), input.query.offset.get());
        let account = input.query.service_account_id.as_ref().map(Name::as_str);
        let (found, total) = store::list(ctx, account, limit, offset)?;
        Ok(Page {
            workload_trusts: found.into_iter().map(TrustView::from).collect(),
            total,
            limit,
            offset,
        })
    }
}
