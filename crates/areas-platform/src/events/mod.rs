//! Outgoing events, pulled: the complement of webhooks for closed networks (D12.2).
//!
//! Events are rows of the transaction that caused them. A consumer keeps the last `data.sequence` it has
//! dealt with and asks for what came after.
//!
//! INVARIANT EV-1: an organization's events are numbered under its chain head's lock: who has seen one has seen, or
//! can still ask for, every smaller one.
//!
//! INVARIANT EV-2: nobody goes on from a sequence behind which other events lie than those that they would have read:
//! behind the counter, or where their epoch has parted, they are told from where on nothing is missed.
//!
//! Keeps FE-2: an event whose data are not for a caller keeps id, type, time and sequence, and says `withheld`.
//!
//! Specification §6; D12.2, D12.3, D13.
//!
//! Absent on purpose: acknowledging, deleting or filtering events; a cursor (the sequence is one, and lasts as long as its
//! epoch).
//! Rows older than seven days are pruned; a consumer that was away for longer reads the audit log.

pub mod fences;
mod list;
mod model;
mod store;
#[cfg(test)]
mod tests;

use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{OperationContext, Result};

/// Begins an epoch of the organization's events, in the unit in which its store has gone back (EV-2): from here on a
/// sequence may mean another event than it did to whoever read before.
pub fn begin_epoch(ctx: &mut OperationContext<'_>) -> Result<()> {
    store::begin(ctx)
}

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 20,
        name: "events",
        says: "Events of the organization as a feed.",
        title: "Events",
        holds: "events",
    }],
    scopes: &[scope("events:read").readers(), scope("events:write")],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0023_event_epochs"],
    statements: &[store::STATEMENTS],
    records: &[
        ("event_epochs", "where the numbering of events began anew"),
        ("outbox", "events that were told"),
    ],
    check: Check::Nothing("the counter of events stands in the chain heads, which the command reads"),
    floor: 1,
    ..Area::named("events", "Outgoing events, pulled by whoever consumes them")
};

fn operations() -> Vec<Entry> {
    vec![Entry::of::<list::List>()]
}
