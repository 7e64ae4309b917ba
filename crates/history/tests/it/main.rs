//! The event history through its public functions.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod damage;
mod fuzz;
mod grouping;
mod growing;
#[cfg(feature = "object-store")]
mod object_store;
mod reading;
mod round_trip;
mod support;
