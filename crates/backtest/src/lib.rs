//! Recorded decisions: their form in the history, and what other policies would have decided on them.
//!
//! ```text
//!   judged event ── record::Owned ──► a row of the history ── record ──► the same event, judged again
//! ```
//!
//! Everything here is a function of its arguments and of the bytes that a [`provost_history::Storage`] gives.
//!
//! Absent on purpose: clocks, SQL, HTTP, async, organizations, and writing: nothing here changes a history.

pub mod record;
pub mod run;
