//! `GET …/approval-delegations`

use super::model::{Delegation, DelegationId, DelegationState};
use super::store;
use crate::approvals::model::Kind;
use crate::paging::PageQuery;
use provost_kernel::auth::Role::{Admin, Auditor, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::Cursor;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct ListDelegations;

const LIST: &str = "listHeadlessApprovalDelegations";

/// A delegation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DelegationView {
    id: DelegationId,
    /// Who lends their vote.
    from_user_id: String,
    /// Who votes in their name.
    to_user_id: String,
    /// About what.
    kinds: Vec<Kind>,
    /// From when on.
    from: Timestamp,
    /// Until when.
    until: Timestamp,
    /// Where it stands now. Open.
    state: DelegationState,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Why it ended before its time: `taken_back`, `person_ended`, `clock_set_back`, `restored` or `lost`. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<String>,
}

impl DelegationView {
    /// Returns how a delegation looks at an instant.
    pub fn of(delegation: Delegation, now: Timestamp) -> Self {
        Self {
            state: delegation.state_at(now),
            id: delegation.id,
            from_user_id: delegation.from_user_id,
            to_user_id: delegation.to_user_id,
            kinds: delegation.kinds,
            from: delegation.from,
            until: delegation.until,
            created_at: delegation.created_at,
            ended_at: delegation.ended_at,
            end_reason: delegation.end_reason,
        }
    }
}

/// One delegation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneDelegation {
    /// It.
    pub delegation: DelegationView,
}

provost_kernel::page! {
    /// One page of delegations.
    pub struct DelegationPage {
        /// The delegations, the newest first.
        delegations: DelegationView,
    }
}

impl Operation for ListDelegations {
    const META: Meta = Meta::read(LIST, "/approval-delegations", "mcp_approvals")
        .access("mcp_approvals:read", &[Admin, Operator, Auditor])
        .command("approvals", "delegations")
        .columns(&[
            "state",
            "fromUserId as of",
            "toUserId as to",
            "kinds",
            "from",
            "until",
            "id",
            "endedAt as ended",
            "endReason as why",
        ])
        .says(
            "List who votes in whose name",
            "Delegations of votes, the newest first; those that ended as well.",
        );
    type Path = Empty;
    type Query = PageQuery;
    type Body = Empty;
    type Output = DelegationPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DelegationPage> {
        let (query, now) = (&input.query, ctx.latest());
        let before = match &query.cursor {
            // Behind every id.
            None => "~".to_owned(),
            Some(cursor) => {
                let place = cursor.open_bytes(&ctx.services().keys, ctx.org(), LIST)?;
                String::from_utf8(place).map_err(Error::internal)?
            }
        };
        let limit = query.limit.get();
        let mut found = store::list(ctx, &before, limit + 1)?;
        let goes_on = i64::try_from(found.len()).unwrap_or(i64::MAX) > limit;
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let shown_last = found.last().filter(|_| goes_on);
        let next_cursor = shown_last.map(|delegation| {
            let place = delegation.id.as_str().as_bytes();
            Cursor::issue_bytes(&ctx.services().keys, ctx.org(), LIST, place)
        });
        let view = |delegation| DelegationView::of(delegation, now);
        Ok(DelegationPage {
            delegations: found.into_iter().map(view).collect(),
            next_cursor,
        })
    }
}
