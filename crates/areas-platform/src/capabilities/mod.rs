//! What the caller may do, as the server sees it now: operations, scopes and limits.
//!
//! INVARIANT CP-1: an operation is shown iff the very function that guards it would let the caller pass. An operation
//! that may be called on oneself counts.
//!
//! Specification §4.10; D1.10, D1.11, D13.
//!
//! Absent on purpose: what other callers may do; states of records (an operation that is shown may still
//! answer 404 or 409).

pub mod fences;
mod get;
mod model;
#[cfg(test)]
mod tests;

use provost_kernel::area::{Area, Check};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 2,
        name: "capabilities",
        says: "What the caller may do, and the limits that hold.",
        title: "Capabilities",
        holds: "what callers can do",
    }],
    scopes: &[scope("capabilities:read").readers(), scope("capabilities:write")],
    operations,
    fences: Some(&fences::FENCES),
    check: Check::Nothing("it owns no table"),
    floor: 1,
    ..Area::named(
        "capabilities",
        "What the caller may do, as the server sees it now",
    )
};

fn operations() -> Vec<Entry> {
    vec![Entry::of::<get::Get>()]
}
