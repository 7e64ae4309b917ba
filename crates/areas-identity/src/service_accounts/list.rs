//! Lists service accounts (specification §4.6, D5.8).

use super::model::{AccountView, Status, view};
use super::store;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit, Offset};
use provost_kernel::{Error, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListServiceAccounts;

const ID: &str = "listHeadlessServiceAccounts";

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
    /// How many to pass over; not together with a cursor.
    #[serde(default)]
    offset: Offset,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
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
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

/// Returns the name of the list, which is another one for each state (see [`provost_kernel::page::start`]).
fn name(status: Option<Status>) -> String {
    format!("{ID} {}", status.map_or("", Status::as_str))
}

/// Returns the place of a cursor: the instant and the id of the account that stood last.
fn behind(ctx: &OperationContext<'_>, query: &ListQuery) -> Result<(Timestamp, String)> {
    let Some(cursor) = &query.cursor else {
        return Ok((Timestamp::from_ms(i64::MAX), String::new()));
    };
    if query.offset.get() > 0 {
        let message =
            "cannot be sent with a cursor, which says where the page begins; leave one of the two out";
        return Err(Error::invalid("/query/offset", message));
    }
    let position = cursor.open_bytes(&ctx.services().keys, ctx.org(), &name(query.status))?;
    let place = position.split_first_chunk().and_then(|(instant, id)| {
        let id = String::from_utf8(id.to_vec()).ok()?;
        Some((Timestamp::from_ms(i64::from_be_bytes(*instant)), id))
    });
    place.ok_or_else(|| Error::internal("a cursor of this list that is no place in it"))
}

impl Operation for ListServiceAccounts {
    const META: Meta = Meta::read(ID, "/service-accounts", "service_accounts")
    .access("service_accounts:read", &[Admin, Auditor])
    .command("service-accounts", "list").columns(&["name", "status", "tokens", "lastUsedAt as last used", "id", "permissionRole as role", "scopes", "allOfRole", "ownerConsoleUserId as owner", "orphaned", "description", "disabledAt as disabled", "disabledReason as why disabled", "createdAt as created"])
    .sensitive()
    .says(
        "List service accounts with non-secret token metadata",
        "Newest first. With a cursor each account that stays is listed once; with an offset, accounts made or deleted while you page \
         shift the pages behind them.",
    );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Page;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Page> {
        let query = &input.query;
        let (limit, offset) = (query.limit.get(), query.offset.get());
        let start = store::Start {
            behind: behind(ctx, query)?,
            offset,
        };
        // One more says whether the list goes on.
        let (mut found, total) = store::list(ctx, query.status, limit + 1, &start)?;
        let shown = usize::try_from(limit).map_err(Error::internal)?;
        let goes_on = found.len() > shown;
        found.truncate(shown);
        let next_cursor = found.last().filter(|_| goes_on).map(|(last, _)| {
            let instant = last.created_at.as_ms().to_be_bytes();
            let place = [instant.as_slice(), last.id.as_str().as_bytes()].concat();
            Cursor::issue_bytes(&ctx.services().keys, ctx.org(), &name(query.status), &place)
        });
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
            next_cursor,
        })
    }
}
