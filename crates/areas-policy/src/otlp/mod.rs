//! A receiver of OpenTelemetry: what agents export about themselves becomes history (D9.11).
//!
//! ```text
//! request ── expand, read (provost-otlp) ── names to ids (history) ──► answer after the commit, in the request's encoding
//! ```
//!
//! INVARIANT OT-7: a batch of telemetry is answered as accepted only when its events are durable; after 429 or 503
//! nothing of it is recorded, and an exporter sends it again.
//!
//! Source: OTLP specification 1.10, "OTLP/HTTP".
//!
//! Absent on purpose: metrics (their endpoint does not exist, so that an exporter says so); gRPC; finding out that a
//! batch came twice, which OTLP has no word for; judging what comes: it has happened already.

pub mod fences;
mod logs;
mod receive;
mod traces;

use provost_kernel::area::{Area, Check};
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    operations,
    fences: Some(&fences::FENCES),
    check: Check::Nothing("it owns no table"),
    guides: &[provost_kernel::guide!("telemetry", "Telemetry of agents")],
    floor: 4,
    ..Area::named("otlp", "Telemetry of agents, received as events")
};

fn operations() -> Vec<Entry> {
    vec![Entry::of::<logs::Receive>(), Entry::of::<traces::Receive>()]
}
