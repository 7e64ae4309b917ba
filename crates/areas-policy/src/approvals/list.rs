//! `GET …/approvals`

use super::delegations::Seats;
use super::model::{Approval, Party, State};
use super::store;
use super::view::ApprovalView;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct ListApprovals;

/// What can be asked; an approval must fit all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Only those that stand there. One whose time ran out is `expired` within a minute.
    state: Option<State>,
    /// Only those for this user or service account, by its id.
    requested_for: Option<Name>,
    /// Only those that wait and to which the caller can say yes, in the own name or by a delegation: whom the route names. Who stands behind
    /// the account that asked is refused at the vote.
    assigned_to: Option<AssignedTo>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

provost_kernel::word! {
    /// Whose vote is waited for.
    pub enum AssignedTo {
        /// That of the caller.
        Me = "me",
    }
}

provost_kernel::page! {
    /// One page of approvals.
    pub struct ApprovalPage {
        /// The approvals, the newest first, without what the calls say.
        approvals: ApprovalView,
    }
}

impl Operation for ListApprovals {
    const META: Meta = Meta::read("listHeadlessApprovals", "/approvals", "mcp_approvals")
        .access("mcp_approvals:read", &[Admin, Operator, Auditor])
        .command("approvals", "list")
        .columns(&[
            "state",
            "tool",
            "requestedFor.id as for",
            "createdAt as asked",
            "deadlineAt as until",
            "id",
            "kind",
            "requestedBy.id as by",
            "policies",
            "quorum",
            "votes",
            "decidedAt as decided",
            "grant",
            "endedAt as ended",
            "endReason as why",
        ])
        .says(
            "List approvals",
            "What waited or waits for somebody's yes, newest first.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = ApprovalPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ApprovalPage> {
        let query = &input.query;
        let subject = query.requested_for.as_ref().map(Name::as_str);
        let list = [
            "listHeadlessApprovals",
            query.state.map_or("", State::as_str),
            subject.unwrap_or_default(),
            query.assigned_to.map_or("", AssignedTo::as_str),
        ];
        let find = |ctx: &mut OperationContext<'_>, before: &str, limit: i64| match query.assigned_to {
            None => store::list(ctx, before, query.state, subject, limit),
            Some(AssignedTo::Me) if query.state.is_some_and(|state| state != State::Pending) => {
                Ok(Vec::new())
            }
            Some(AssignedTo::Me) => assigned(ctx, before, subject, limit),
        };
        page(ctx, &list.join("|"), query.cursor.as_ref(), query.limit, find)
    }
}

/// Returns what waits for the caller before a place of the list, the newest first.
///
/// Cost: all that waits at most, a thousand (AP-8).
fn assigned(
    ctx: &mut OperationContext<'_>,
    before: &str,
    subject: Option<&str>,
    limit: i64,
) -> Result<Vec<Approval>> {
    let (org, now, caller) = (ctx.org(), ctx.latest(), Party::of(ctx.actor()));
    let seats = Seats::of(&mut ctx.tx(), org, caller, now)?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut found, mut place) = (Vec::new(), before.to_owned());
    loop {
        let some = store::waiting(ctx, &place, subject, limit)?;
        let Some(last) = some.last() else {
            return Ok(found);
        };
        last.id.as_str().clone_into(&mut place);
        let is_asked = |one: &Approval| one.state_at(now) == State::Pending && seats.are_asked(one);
        found.extend(some.into_iter().filter(is_asked));
        if found.len() >= most {
            found.truncate(most);
            return Ok(found);
        }
    }
}

/// Returns a page of approvals before a cursor's place, the newest first. A cursor is a place in the list that it was made for: with
/// other filters it is another list.
pub fn page(
    ctx: &mut OperationContext<'_>,
    list: &str,
    cursor: Option<&Cursor>,
    limit: Limit,
    find: impl FnOnce(&mut OperationContext<'_>, &str, i64) -> Result<Vec<Approval>>,
) -> Result<ApprovalPage> {
    let before = match cursor {
        // Behind every id.
        None => "~".to_owned(),
        Some(cursor) => {
            let place = cursor.open_bytes(&ctx.services().keys, ctx.org(), list)?;
            String::from_utf8(place).map_err(Error::internal)?
        }
    };
    let limit = limit.get();
    let mut found = find(ctx, &before, limit + 1)?;
    let goes_on = i64::try_from(found.len()).unwrap_or(i64::MAX) > limit;
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let shown_last = found.last().filter(|_| goes_on);
    let next_cursor = shown_last.map(|approval| {
        let place = approval.id.as_str().as_bytes();
        Cursor::issue_bytes(&ctx.services().keys, ctx.org(), list, place)
    });
    Ok(ApprovalPage {
        approvals: ApprovalView::of_all(ctx, found)?,
        next_cursor,
    })
}
