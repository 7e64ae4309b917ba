//! Lists the decisions by which the caller was stopped, asked or answered otherwise, and what passed by an approval.
//!
//! Keeps VI-6.

use super::feedback::subject_of;
use super::view::OwnViolation;
use crate::history::{Decided, Filters, Look, Seen, look, subject};
use provost_backtest::record::Mode;
use provost_kernel::auth::Role;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListOwn;

const ID: &str = "listHeadlessOwnPolicyViolations";

/// What stops or changes a call where it is enforced. What only marks one or looks on is no stop, and tells nobody which policies watch them.
pub(super) const STOPPED: [Action; 4] = [
    Action::Block,
    Action::RequireApproval,
    Action::Redact,
    Action::Filter,
];

/// What narrows the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnQuery {
    /// At or after this instant.
    from: Option<Timestamp>,
    /// Before this instant.
    to: Option<Timestamp>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

/// A page of one's own violations.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OwnViolations {
    /// Newest first.
    violations: Vec<OwnViolation>,
    /// Where the next page goes on; absent at the end. A page may hold fewer than asked for and have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    /// Parts of the history cannot be read, so that some may be missing.
    incomplete: bool,
}

impl Operation for ListOwn {
    const META: Meta = Meta::read(ID, "/policies/violations/own", "policies")
        .access("policies:feedback", &Role::ALL)
        // It reads the history for anybody, as what is said of it does.
        .rate(RateClass::Resolve)
        .command("violations", "own")
        .columns(&["at", "outcome", "tool", "policyIds or basis as policies", "occasion", "imported", "eventId as id"])
        .says(
            "List decisions by which oneself was stopped",
            "What was blocked, asked about, approved or redacted where it was enforced: the id is what feedback is given on. Newest first, a bounded part of \
             the history at a call, so that a page may be short and have a cursor. Neither prompts nor arguments are in it.",
        );
    type Path = Empty;
    type Query = OwnQuery;
    type Body = Empty;
    type Output = OwnViolations;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OwnViolations> {
        let query = &input.query;
        let (kind, id) = subject_of(ctx.actor()).ok_or_else(|| {
            let message = "decisions are about people and service accounts; nobody else has any of their own";
            Error::new(Code::RoleForbidden, message)
        })?;
        let looked = look(
            ctx,
            Look {
                operation: ID,
                filters: Filters {
                    subject: Some(id.clone()),
                    decided: Some(Decided {
                        plain: STOPPED.map(Action::word).to_vec(),
                        // It was stopped before, whatever was decided beside.
                        approved: Action::ALL.map(Action::word).to_vec(),
                    }),
                    mode: Some(Mode::Enforce.word()),
                    ..Filters::default()
                },
                from: query.from,
                to: query.to,
                limit: query.limit,
                cursor: query.cursor.as_ref(),
            },
        )?;
        Ok(ctx.later(async move {
            let Seen {
                events,
                next_cursor,
                unreadable,
                ..
            } = looked.await?;
            let own = events
                .iter()
                .filter(|found| subject(&found.event) == Some((kind, id.as_str())));
            Ok(OwnViolations {
                violations: own
                    .filter_map(|found| OwnViolation::of(&found.id, &found.event))
                    .collect(),
                next_cursor,
                incomplete: unreadable.is_some(),
            })
        }))
    }
}
