//! Lists who is held back since a restore.

use super::model::{HeldView, Kind, kinds};
use crate::areas::restore::fences;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Limit, Offset};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListHeld;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only this kind.
    kind: Option<Kind>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// How many are skipped. A release makes the list shorter: begin again with 0 behind one.
    #[serde(default)]
    offset: Offset,
}

/// One page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Page {
    held: Vec<HeldView>,
    /// How many are held in all, of the kind that was asked for.
    total: i64,
    limit: Limit,
    offset: Offset,
}

impl Operation for ListHeld {
    const META: Meta = Meta::read("listHeadlessRestoreHeld", "/restore/held", "service_accounts")
        .access("service_accounts:read", &[Admin, Auditor])
        .command("restore", "held").columns(&["name", "kind", "permissionRole as role", "lastChangedAt as changed", "id"])
        .says(
            "List who is held back since a restore",
            "Service accounts, then users who have a role, registered clients, identity links and workload trusts, each \
             with its last change before the backup was made. Empty where the store was never restored, or everybody was released.",
        )
        .sensitive();
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let ListQuery { kind, limit, offset } = input.query;
        ctx.target(&fences::HELD, "held");
        let (mut room, mut skip, mut total) = (limit.get(), offset.get(), 0);
        let mut held = Vec::new();
        for (of, records) in kinds(ctx)? {
            if kind.is_some_and(|kind| kind != of) {
                continue;
            }
            let count = (records.count)(ctx)?;
            total += count;
            if room > 0 && skip < count {
                let found = (records.page)(ctx, room, skip)?;
                room -= i64::try_from(found.len()).unwrap_or(room);
                held.extend(found.into_iter().map(|one| HeldView::of(of, one)));
            }
            skip = skip.saturating_sub(count).max(0);
        }
        Ok(Page {
            held,
            total,
            limit,
            offset,
        })
    }
}
