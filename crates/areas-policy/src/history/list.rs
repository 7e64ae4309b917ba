//! Lists recorded events, newest first.

use super::look::{Look, look};
use super::model::READERS;
use super::page::Filters;
use super::view::{EventView, UnreadableView};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::text::LongName;
use provost_kernel::{OperationContext, Result, Timestamp};
use provost_policy::{Action, Occasion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct List;

const ID: &str = "listHeadlessPolicyHistory";

/// What narrows the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct ListQuery {
    /// Events at or after this instant.
    from: Option<Timestamp>,
    /// Events before this instant.
    to: Option<Timestamp>,
    /// Events of this user, service account or device.
    subject_id: Option<LongName>,
    /// Events of this tool, by its own id or by the one it has at its MCP server.
    tool: Option<LongName>,
    /// Events on which this was decided.
    action: Option<ActionWord>,
    /// Events that this policy decided.
    policy_id: Option<LongName>,
    /// Events that were judged here.
    occasion: Option<OccasionWord>,
    /// Events that came from there.
    source: Option<LongName>,
    /// Events of this session.
    session: Option<LongName>,
    /// Events of this call: what a hook, a device, a gateway and telemetry tell of it.
    call_id: Option<LongName>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

macro_rules! word {
    ($name:ident, $of:ty, $named:expr) => {
        #[derive(Clone, Copy, Debug, Deserialize)]
        #[serde(try_from = "String")]
        struct $name($of);

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(word: String) -> std::result::Result<Self, Self::Error> {
                let mut all = <$of>::ALL.into_iter();
                let found = all.find(|one| one.word() == word);
                found.map(Self).ok_or($named)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": <$of>::ALL.map(<$of>::word) })
            }
        }
    };
}
word!(ActionWord, Action, "must be an action");
word!(OccasionWord, Occasion, "must be an occasion");

/// A page of the history.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Events {
    /// Newest first.
    #[expect(clippy::struct_field_names, reason = "the names on the wire")]
    events: Vec<EventView>,
    /// Where the next page goes on; absent at the end. A page may hold fewer events than asked for and have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
    /// Everything after this instant was looked at.
    scanned_to: String,
    /// Parts of the history that cannot be read; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<Vec<UnreadableView>>,
}

impl Operation for List {
    const META: Meta = Meta::read(ID, "/policies/history", "policies")
        .access("policies:history", READERS)
        .command("history", "list").columns(&["at", "subject.id as subject", "tool", "decision.action as decision", "decision.policyIds as policies", "occasion", "decision.mode as mode", "principalId as caller", "resourceId as resource", "session", "source", "imported", "eventId as id", "callId as call"])
        .says(
            "List recorded events, newest first",
            "Decisions and imported events, by default of the whole retention. A call looks at a bounded part of the history: \
             with a rare filter it may answer fewer events than asked for, or none, and a cursor with which to go on.",
        );
    type Path = Empty;
    type Query = ListQuery;
    type Body = Empty;
    type Output = Events;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Events> {
        let query = &input.query;
        let text = |name: &Option<LongName>| name.as_ref().map(|name| name.as_str().to_owned());
        let seen = look(
            ctx,
            Look {
                operation: ID,
                filters: Filters {
                    subject: text(&query.subject_id),
                    tool: text(&query.tool),
                    actions: query.action.iter().map(|word| word.0.word()).collect(),
                    policy: text(&query.policy_id),
                    occasion: query.occasion.map(|word| word.0.word().to_owned()),
                    source: text(&query.source),
                    session: text(&query.session),
                    call: text(&query.call_id),
                    ..Filters::default()
                },
                from: query.from,
                to: query.to,
                limit: query.limit,
                cursor: query.cursor.as_ref(),
            },
        )?;
        Ok(ctx.later(async move {
            let seen = seen.await?;
            let events = seen.events.iter();
            Ok(Events {
                events: events
                    .map(|found| EventView::of(&found.id, &found.event))
                    .collect(),
                next_cursor: seen.next_cursor,
                scanned_to: seen.scanned_to,
                unreadable: seen.unreadable,
            })
        }))
    }
}
