//! `GET …/events`

use super::model::{EpochId, Event};
use super::store;
use provost_kernel::auth::Role;
use provost_kernel::fence::{Reader, Readers};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::Limit;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EventQuery {
    /// Events after this sequence; 0, the default, is the oldest that is kept.
    after: Option<IntegerBetween<0, 9_007_199_254_740_991>>,
    /// The epoch of the answer that `after` comes from; without it `after` is taken for one of the epoch of now.
    epoch: Option<EpochId>,
    /// How many events at most.
    #[serde(default)]
    limit: Limit,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventPage {
    /// The events, the oldest first.
    events: Vec<Event>,
    /// The value of `after` that goes on behind this page; absent when the page is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<i64>,
    /// In which sequences keep their meaning: to be sent with `after`. It changes when the store is restored.
    epoch: EpochId,
}

impl Operation for List {
    const META: Meta = Meta::read("listHeadlessEvents", "/events", "events")
        .access("events:read", &[Role::Admin, Role::Operator, Role::Auditor])
        .says(
            "List events after a sequence, the oldest first",
            "An empty page means that nothing came since; ask again later with the same after. Events are kept \
             for seven days. When the store went back behind after, by a restore, the answer is 410 with the nextAfter from \
             which on nothing is missed; send the epoch of the last answer along, so that this is always noticed. An event whose data are not for the caller says withheld and keeps its type, its \
             time and its sequence.",
        )
        .errors(&[401, 403, 410])
        .command("events", "list").columns(&["timestamp as time", "type", "data", "id", "withheld"]);
    type Path = Empty;
    type Query = EventQuery;
    type Body = Empty;
    type Output = EventPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<EventPage> {
        let after = input.query.after.map_or(0, IntegerBetween::get);
        let feed = store::feed(ctx)?;
        feed.admits(after, input.query.epoch.as_ref())?;
        let found = store::after(ctx, after, input.query.limit.get())?;
        let next_after = found.last().map(|(sequence, _)| *sequence);
        let mut reader = Reader::of(ctx.actor());
        let events = found.into_iter().map(|(_, event)| shown(ctx, &mut reader, event));
        let events = events.collect::<Result<_>>()?;
        Ok(EventPage {
            events,
            next_after,
            epoch: feed.epoch(),
        })
    }
}

/// Returns an event without what is not for the reader (FE-2).
fn shown(ctx: &mut OperationContext<'_>, reader: &mut Reader<'_>, event: Event) -> Result<Event> {
    let readers = ctx.services().fences.event(&event.kind);
    let record = match readers {
        Readers::Assignees(assignment) => event.data.text(assignment.member),
        Readers::Everybody | Readers::Overseers => None,
    };
    if reader.admits(&mut ctx.tx(), readers, record)? {
        return Ok(event);
    }
    Ok(Event {
        data: event.data.withheld(),
        withheld: true,
        ..event
    })
}
