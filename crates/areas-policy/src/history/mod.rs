//! The event history of every organization: decisions and imported events as they were judged.
//!
//! ```text
//! decisions, imports, receivers ─► Recorder ─► chunk (a row, durable on answer) ─► seal ─► segment (a file)
//!                                                   └───────── sources, open, list ─────────┘
//!
//! chunk    unsealed → sealed → gone two hours later
//! segment  writing → sealed → removing → gone          writing → removing when its writer is overdue
//! ```
//!
//! INVARIANT HS-1: an event whose recording was acknowledged as durable is in the history from then on until its
//! retention ends, whatever is killed when; one whose recording failed is not, and no append is there in part.
//! INVARIANT HS-2: at every instant an event is in exactly one source that [`sources`] returns: the unit that makes a
//! segment count is the unit that makes its chunks count no more.
//! INVARIANT HS-3: of two writers that seal the same chunks at most one succeeds, and what the other wrote is
//! removed.
//! INVARIANT HS-4: a file of the segments' folder has a row from before it is written until it is gone.
//! INVARIANT HS-5: a body is imported once under its source; a repeat is answered as the first time.
//! INVARIANT HS-6: the numbers of an organization's chunks have no gap and follow the order of their commits.
//! INVARIANT HS-7: a segment or chunk that cannot be read is reported with its name, never left out in silence.
//! INVARIANT HS-8: an event's id says when it happened, so that an id alone finds its event.
//! Keeps HS-9: events of one instant are read in the order in which they were accepted (`order.rs`).
//! INVARIANT HS-10: an event says who handed it in, under which name, and whether it was imported; no import has a
//! name that the server or a machine uses, in any spelling.
//! INVARIANT HS-11: every import is named in an audit entry, one for each principal, source and hour.
//!
//! Keeps HS-13: nothing is sealed into a place, and nothing removed, unless the place carries the marker that the
//! store names (`standing.rs`).
//! Keeps HS-16: a call that was decided about and that telemetry tells of is one event (`decided_calls.rs`).
//! INVARIANT HS-14: where a segment cannot be read and the rows that it stands for are still there, they are read in
//! its place.
//!
//! D9.11.
//!
//! Absent on purpose: an audit entry for each event (D9.11); changing or removing single events; searching texts;
//! merging segments.

mod decided_calls;
pub mod fences;
mod get;
mod import;
mod incoming;
mod list;
mod look;
mod model;
mod order;
mod page;
mod place_standing;
mod recorder;
mod resolve;
mod retain;
mod seal;
mod seen_values;
mod segment_files;
mod segment_place;
mod server_uses;
mod sources;
mod status;
mod store;
mod tell;
mod view;

pub use decided_calls::undecided;
pub(crate) use get::event;
pub use incoming::{Fault, IncomingEvent};
pub(crate) use look::{Look, Seen, look};
pub(crate) use model::{DAY_MS, INSPECTORS, READERS, subject, text, tool};
pub use model::{EventId, NewEvent, Provenance};
pub use order::{Sequence, accept, accept_now};
pub(crate) use page::{BASIS, Decided, Filters};
pub use place_standing::{
    Holder, PlaceStanding, forget as forget_place, forget_empty as forget_empty_place, holder, standing,
    take as take_place, watch, whose as whose_place,
};
pub use recorder::{Durability, Recorder};
pub use resolve::{meaning, resolve};
pub use retain::retain;
pub use seal::seal;
pub use seen_values::{SeenValue, SeenValues, WATCHED, count_values, seen_values};
pub use segment_files::{files, verify};
pub use segment_place::SegmentPlace;
pub use sources::{OpenSources, SourceKind, SourceRow, Unreadable, open};
pub use store::File;
pub(crate) use store::organizations;
pub use store::{LiveChunk, chunks_after, last_chunk, sources};
pub use tell::tell_of_imports;
pub(crate) use view::{UnreadableView, as_sent};

use provost_areas_platform::settings;
use provost_kernel::area::{Area, Check, every, now_and_every};
use provost_kernel::auth::scope;
use provost_kernel::db::Tx;
use provost_kernel::migrations;
use provost_kernel::operation::Entry;
use provost_kernel::{Kernel, Result, Timestamp};
use std::sync::Arc;

/// The area.
pub static AREA: Area = Area {
    scopes: &[
        scope("policies:history")
            .says("Read what was decided and recorded, about everybody")
            .readers(),
        scope("policies:import_history").says("Add events of the past to the recorded history"),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0009_history",
        "0014_history_order",
        "0032_history_values",
        "0033_history_calls"
    ],
    statements: &[store::STATEMENTS, decided_calls::STATEMENTS],
    records: &[
        ("history_calls", "digests of what happened"),
        ("history_chunks", "what happened"),
        ("history_heads", "numbers of chunks"),
        ("history_imports", "which bodies arrived"),
        ("history_segments", "name files by their digests"),
        ("history_value_heads", "numbers of chunks"),
        ("history_values", "how often things were named"),
    ],
    timers: &[
        every(5, "history-sealing", |kernel, _| {
            Box::pin(async move { seal(&kernel).await })
        }),
        now_and_every(3_600, "history-place", |kernel, is_start| {
            Box::pin(async move { watch(&kernel, is_start).await })
        }),
        every(60, "history-imports", |kernel, _| {
            Box::pin(async move { tell_of_imports(&kernel).await })
        }),
        now_and_every(60, "history-values", |kernel, _| {
            Box::pin(async move { count_values(&kernel).await })
        }),
        every(300, "history-retention", |kernel, _| {
            Box::pin(async move { retain(&kernel).await })
        }),
    ],
    finish: Some(|kernel| Box::pin(async move { recorder(&kernel).close().await })),
    check: Check::Nothing("the command compares the segments with the place that they lie in"),
    guides: &[provost_kernel::guide!("history", "Recorded history")],
    floor: 3,
    ..Area::named(
        "history",
        "The event history of every organization: decisions and imported events as they were judged",
    )
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<import::Import>(),
        Entry::of::<list::List>(),
        Entry::of::<status::GetStatus>(),
        Entry::of::<get::Get>(),
    ]
}

/// Returns what records the events of this process.
pub fn recorder(kernel: &Kernel) -> &Arc<Recorder> {
    kernel.own(|| Arc::new(Recorder::new(kernel)))
}

/// Returns how long the organization keeps its history now. Units: days, 1 to 3 650.
pub fn retention_days(tx: &mut Tx<'_>, org: &str, now: Timestamp) -> Result<i64> {
    Ok(settings::of(tx, org)?.acting_history_days(now))
}
