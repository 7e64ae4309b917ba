//! `GET …/audit/events`

use super::model::{AuditEvent, Outcome, READERS, Term};
use super::store::{self, Filter};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Cx, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: entries that one call looks at (AU-5). A rare filter over a long log takes several calls.
const WINDOW: i64 = 20_000;

pub(super) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListQuery {
    /// Entries at or after this instant.
    from: Option<Timestamp>,
    /// Entries before this instant.
    to: Option<Timestamp>,
    /// Entries of this principal.
    actor_id: Option<Term>,
    /// Entries of this action, usually an operation's id.
    action: Option<Term>,
    /// Entries about this record.
    target_id: Option<Term>,
    /// Entries with this decision.
    outcome: Option<Outcome>,
    /// How many entries at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEventPage {
    /// The entries, the newest first.
    events: Vec<AuditEvent>,
    /// Where the list goes on; absent at its end. A page may be short, or empty, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for List {
    const META: Meta = Meta::read("listHeadlessAuditEvents", "/audit/events", "audit")
        .access("audit:read", READERS)
        .says(
            "List audit entries, the newest first",
            "Every filter narrows the list; from is inclusive, to exclusive. One call looks at no more than \
             20000 entries: a page may therefore be short, or empty, although older entries match. The list \
             has ended when nextCursor is absent. Reading the log is counted, not recorded entry by entry.",
        )
        .command("audit", "list");
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = AuditEventPage;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AuditEventPage> {
        let (query, keys, operation) = (&input.query, &cx.kernel().keys, Self::META.id);
        let org = cx.org();
        let before = match &query.cursor {
            Some(cursor) => cursor.open(keys, org, operation)?,
            None => store::length(cx, org)? + 1,
        };
        let filter = Filter {
            from: query.from,
            to: query.to,
            actor_id: query.actor_id.as_ref().map(Term::as_str),
            action: query.action.as_ref().map(Term::as_str),
            target_id: query.target_id.as_ref().map(Term::as_str),
            outcome: query.outcome.map(Outcome::as_str),
        };
        let (lowest, limit) = ((before - WINDOW).max(1), query.limit.get());
        let records = store::list(cx, &filter, before, lowest, limit)?;
        let is_full = i64::try_from(records.len()).is_ok_and(|count| count == limit);
        let seen = match records.last() {
            Some(last) if is_full => last.seq,
            _ => lowest,
        };
        let next_cursor = (seen > 1).then(|| Cursor::issue(keys, org, operation, seen));
        Ok(AuditEventPage {
            events: records.iter().map(AuditEvent::of).collect::<Result<_>>()?,
            next_cursor,
        })
    }
}
