//! `GET …/inventory/uses`

use super::evidence::{Certainty, Evidence};
use super::model::ServerId;
use super::store::{self, Age};
use super::uses::{self, Filter, UseView};
use crate::fleet::{self, Sight};
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListUses;

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct UsesQuery {
    /// Only names that stand for something so surely: `unresolved` are those that are used and that no known device of the person has.
    certainty: Option<Certainty>,
    /// Only what is known by this.
    evidence: Option<Evidence>,
    /// Only what stands for this server, or may.
    server_id: Option<ServerId>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

/// One page of uses.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UsePage {
    /// What is used, what began to be last first.
    uses: Vec<UseView>,
    /// For how much of what events named there was no room so far: it is in no list.
    not_kept: i64,
    /// How old the data are.
    data_age: Age,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListUses {
    const META: Meta = Meta::read("listHeadlessInventoryUses", "/inventory/uses", "inventory")
        .access("inventory:read", &[Admin, Operator, Auditor])
        .command("inventory", "uses")
        .columns(&[
            "name",
            "certainty",
            "evidence",
            "events",
            "lastSeenAt as seen",
            "firstSeenAt as found",
            "serverId as server",
            "userId as user",
        ])
        .sensitive()
        .says(
            "List MCP servers that events of hooks and telemetry name",
            "By the names that clients have for them, with what the person's devices had under each; unresolved ones are used and not \
             configured as far as is known. Who reads this is noted.",
        );
    type Path = Empty;
    type Query = UsesQuery;
    type Body = Empty;
    type Output = UsePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<UsePage> {
        let query = &input.query;
        let filter = Filter {
            certainty: query.certainty,
            evidence: query.evidence,
            server: query.server_id.as_ref().map(ServerId::as_str),
        };
        let list = [
            "listHeadlessInventoryUses",
            filter.certainty.map_or("", Certainty::as_str),
            filter.evidence.map_or("", Evidence::as_str),
            filter.server.unwrap_or_default(),
        ];
        let list = list.join("|");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut uses = uses::list(ctx, &filter, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut uses, |one| one.seq);
        let (sight, are_seen) = (Sight::load(ctx)?, fleet::owners_are_seen(ctx));
        for one in &mut uses {
            let person = one.user_id.take().filter(|_| are_seen);
            one.user_id = person.map(|person| sight.person(person));
        }
        Ok(UsePage {
            uses,
            not_kept: uses::not_kept(ctx)?,
            data_age: store::age(ctx)?,
            next_cursor,
        })
    }
}
