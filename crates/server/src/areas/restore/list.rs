//! Lists who is held back since a restore.

use super::model::{HeldView, Kind};
use crate::areas::restore::fences;
use provost_areas_access::oauth;
use provost_areas_identity::directory;
use provost_areas_identity::service_accounts;
use provost_areas_platform::held::Held;
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
            "Service accounts, then users who have a role, registered clients and identity links, each with its last \
             change before the backup was made. Empty where the store was never restored, or everybody was released.",
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
        for of in Kind::ALL
            .into_iter()
            .filter(|of| kind.is_none_or(|kind| kind == *of))
        {
            let count = count(ctx, of)?;
            total += count;
            if room > 0 && skip < count {
                let found = page(ctx, of, room, skip)?;
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

fn count(ctx: &mut OperationContext<'_>, kind: Kind) -> Result<i64> {
    match kind {
        Kind::ServiceAccount => service_accounts::count_held(ctx),
        Kind::User => directory::count_held(ctx),
        Kind::McpClient => oauth::count_held_clients(ctx),
        Kind::IdentityLink => oauth::count_held_links(ctx),
    }
}

fn page(ctx: &mut OperationContext<'_>, kind: Kind, limit: i64, offset: i64) -> Result<Vec<Held>> {
    match kind {
        Kind::ServiceAccount => service_accounts::held(ctx, limit, offset),
        Kind::User => directory::held(ctx, limit, offset),
        Kind::McpClient => oauth::held_clients(ctx, limit, offset),
        Kind::IdentityLink => oauth::held_links(ctx, limit, offset),
    }
}
