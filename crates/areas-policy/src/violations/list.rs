//! Lists violations, newest first, or counts them in groups.

use super::groups::{self, CountsView, Group, GroupBy};
use super::model::{self, Outcome};
use super::view::{Names, Sight, Violation};
use crate::history::{Filters, Look, READERS, Seen, UnreadableView, look};
use provost_backtest::record::Mode;
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::text::LongName;
use provost_kernel::{Error, Kernel, OperationContext, Result, Timestamp};
use provost_policy::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub struct List;

const ID: &str = "listHeadlessPolicyViolations";

provost_kernel::word! {
    /// What a violation's decision was.
    pub enum ActionWord {
        /// It passed as it was, by an approval: what else allows is no violation.
        Allow = "allow",
        Block = "block",
        RequireApproval = "require_approval",
        Redact = "redact",
        Filter = "filter",
        FlagForReview = "flag_for_review",
        Nudge = "nudge",
    }
}

provost_kernel::word! {
    /// Whether whoever asked enforced it.
    pub enum ModeWord {
        Enforce = "enforce",
        Monitor = "monitor",
        Bypass = "bypass",
    }
}

/// What narrows the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct ListQuery {
    /// At or after this instant; with `groupBy` the beginning of a day, UTC.
    pub(super) from: Option<Timestamp>,
    /// Before this instant; with `groupBy` the beginning of a day, UTC.
    pub(super) to: Option<Timestamp>,
    /// Those of this policy.
    pub(super) policy_id: Option<LongName>,
    /// Those of this user, service account or device.
    pub(super) subject_id: Option<LongName>,
    /// Those on this device, as the event said; not with `groupBy`.
    pub(super) device_id: Option<LongName>,
    /// Those of this tool, by its own id or by the one it has at its MCP server.
    pub(super) tool: Option<LongName>,
    /// On which this was decided.
    pub(super) action: Option<ActionWord>,
    /// Of which this became.
    pub(super) outcome: Option<Outcome>,
    /// Whether it was enforced.
    pub(super) mode: Option<ModeWord>,
    /// Those that came from there.
    pub(super) source: Option<LongName>,
    /// Counts them instead: the greatest groups, or days.
    pub(super) group_by: Option<GroupBy>,
    /// How many at most.
    #[serde(default)]
    pub(super) limit: Limit,
    /// Where an earlier page ended; not with `groupBy`.
    pub(super) cursor: Option<Cursor>,
}

/// A page of violations, or counts of them.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Violations {
    /// Newest first; none where they are counted.
    #[expect(clippy::struct_field_names, reason = "the names on the wire")]
    violations: Vec<Violation>,
    /// With `groupBy`: the greatest groups, or the newest days.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<Group>>,
    /// With `groupBy`: what the counts are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<CountsView>,
    /// Where the next page goes on; absent at the end. A page may hold fewer than asked for and have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    /// Everything after this instant was looked at; absent where they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    scanned_to: Option<String>,
    /// Parts of the history that cannot be read; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<Vec<UnreadableView>>,
}

impl Operation for List {
    const META: Meta = Meta::read(ID, "/policies/violations", "policies")
        .rule(Access::ScopedBoth {
            scope: "policies:read",
            other: "policies:history",
            roles: READERS,
        })
        .command("violations", "list")
        .columns(&["at", "outcome", "subject.name as who", "tool", "policyIds or basis as policies", "mode", "subject.id as subject", "source", "imported", "eventId as id"])
        .says(
            "List decisions that did not simply allow, or count them",
            "A view over the recorded history: newest first, a bounded part of it at a call, so that a page may be short and have a \
             cursor. groupBy counts whole days (UTC) of the last 90 instead, from numbers that are kept, never by reading the \
             history; beside it one of policyId, subjectId and tool may stand with day, and its own with each other one.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Violations;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Violations> {
        let query = &input.query;
        if let Some(by) = query.group_by {
            let (groups, counts) = groups::counted(ctx, query, by)?;
            return Ok(Violations {
                groups: Some(groups),
                counts: Some(counts),
                ..Violations::default()
            });
        }
        let mode = query.mode.map(ModeWord::mode);
        let action = query.action.map(ActionWord::action);
        let Some(fitting) = model::fitting(action, mode, query.outcome) else {
            let message = "never is the outcome of this action in this mode";
            return Err(Error::unfit("/query/outcome", message));
        };
        let text = |name: &Option<LongName>| name.as_ref().map(|name| name.as_str().to_owned());
        let looked = look(
            ctx,
            Look {
                operation: ID,
                filters: Filters {
                    subject: text(&query.subject_id),
                    device: text(&query.device_id),
                    tool: text(&query.tool),
                    decided: Some(fitting),
                    mode: wanted_mode(mode, query.outcome).map(Mode::word),
                    policy: text(&query.policy_id),
                    source: text(&query.source),
                    ..Filters::default()
                },
                from: query.from,
                to: query.to,
                limit: query.limit,
                cursor: query.cursor.as_ref(),
            },
        )?;
        let (kernel, organization) = (Kernel::behind(ctx.services())?, ctx.organization().clone());
        let sight = Sight::of(ctx);
        Ok(ctx.later(async move {
            let Seen {
                events,
                next_cursor,
                scanned_to,
                unreadable,
            } = looked.await?;
            let violations = events
                .iter()
                .filter_map(|found| Violation::of(&found.id, &found.event));
            let mut violations: Vec<Violation> = violations.collect();
            let ids: BTreeSet<String> = violations
                .iter()
                .filter_map(|one| one.subject_id().map(str::to_owned))
                .collect();
            let names = kernel.read_system(move |tx| Names::of(tx, organization.as_str(), &ids, sight));
            let names = names.await?;
            for one in &mut violations {
                one.tell(&names);
            }
            Ok(Violations {
                violations,
                next_cursor,
                scanned_to: Some(scanned_to),
                unreadable,
                ..Violations::default()
            })
        }))
    }
}

/// Returns the mode that a filter wants: an outcome has one.
fn wanted_mode(mode: Option<Mode>, outcome: Option<Outcome>) -> Option<Mode> {
    match outcome {
        Some(Outcome::Monitored) => Some(Mode::Monitor),
        Some(Outcome::Bypassed) => Some(Mode::Bypass),
        Some(
            Outcome::Blocked | Outcome::Approved | Outcome::Asked | Outcome::Redacted | Outcome::Flagged,
        ) => Some(Mode::Enforce),
        None => mode,
    }
}

impl ModeWord {
    const fn mode(self) -> Mode {
        match self {
            Self::Enforce => Mode::Enforce,
            Self::Monitor => Mode::Monitor,
            Self::Bypass => Mode::Bypass,
        }
    }
}

impl ActionWord {
    const fn action(self) -> Action {
        match self {
            Self::Allow => Action::Allow,
            Self::Block => Action::Block,
            Self::RequireApproval => Action::RequireApproval,
            Self::Redact => Action::Redact,
            Self::Filter => Action::Filter,
            Self::FlagForReview => Action::FlagForReview,
            Self::Nudge => Action::Nudge,
        }
    }
}
