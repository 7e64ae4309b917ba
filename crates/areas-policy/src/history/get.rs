//! Shows one recorded event with all its attributes.

use super::model::{EventId, INSPECTORS, instant_of_place};
use super::sources::{OpenSources, open};
use super::view::WholeEvent;
use super::{page, store};
use crate::history::fences;
use provost_backtest::record::{self, OwnedRecord};
use provost_history::Source;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct Get;

/// Which event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct EventPath {
    /// The event's id.
    event_id: EventId,
}

impl Operation for Get {
    const META: Meta = Meta::read(
        "getHeadlessPolicyHistoryEvent",
        "/policies/history/{eventId}",
        "policies",
    )
    .access("policies:history", INSPECTORS)
    .sensitive()
    .command("history", "get")
    .says(
        "Show a recorded event with its attributes",
        "Attributes may hold prompts and the arguments of tools: every look is an entry of the audit log.",
    );
    type Path = EventPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WholeEvent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WholeEvent> {
        let id = input.path.event_id.as_str().to_owned();
        ctx.target(&fences::EVENT, id.as_str());
        let found = event(ctx, &id)?;
        Ok(ctx.later(async move { Ok(WholeEvent::of(&id, &found.await?)) }))
    }
}

/// Returns an event of the caller's organization: where it would be is read from the snapshot, and it is read afterwards.
///
/// Errors: `NotFound`; `Unavailable` where what would hold it cannot be read.
pub(crate) fn event(
    ctx: &mut OperationContext<'_>,
    id: &str,
) -> Result<impl Future<Output = Result<OwnedRecord>> + Send + use<>> {
    let (id, org) = (id.to_owned(), ctx.org());
    let place = EventId::place(&id).ok_or_else(|| Error::not_found("event"))?;
    let at = instant_of_place(place);
    let rows = store::sources(&mut ctx.tx(), org, at, at.saturating_add(1))?;
    let (kernel, organization) = (Kernel::behind(ctx.services())?, ctx.organization().clone());
    Ok(async move {
        let shared = kernel.clone();
        let read = kernel.blocking(move || {
            let OpenSources { sources, unreadable } = open(&shared, organization.as_str(), rows);
            let mut has_gap = !unreadable.is_empty();
            for source in sources {
                match find(source, at, &id) {
                    Ok(Some(event)) => return Ok(event),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::error!("history cannot be read: {error}");
                        has_gap = true;
                    }
                }
            }
            if has_gap {
                let message = "the part of the history where this event would be cannot be read";
                return Err(Error::new(Code::Unavailable, message));
            }
            Err(Error::not_found("event"))
        });
        read.await?
    })
}

/// Returns the event of this instant and id, if the source holds it.
fn find(source: Source, at: i64, id: &str) -> provost_history::Result<Option<OwnedRecord>> {
    let plan = page::plan(source, at, at.saturating_add(1))?;
    let all: Vec<usize> = (0..record::schema().columns().len()).collect();
    for unit in plan.units() {
        let ids = plan.read(unit, &[], true)?.ids;
        let row = ids.iter().position(|known| known == id);
        if let Some(row) = row {
            let mut one = unit.clone();
            let row = unit.rows.start + row;
            one.rows = row..row + 1;
            return record::owned(&plan.read(&one, &all, false)?, 0).map(Some);
        }
    }
    Ok(None)
}
