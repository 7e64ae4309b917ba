//! Deterministic simulation (R16, R21): the whole application on one thread, with one seed for everything that happens.
//!
//! ```text
//! seed ─► clients ─► router ─► dispatch ─► reader, inline
//!   │                            └──────► writer, a task ─► SQLite in memory-backed files
//!   ├─► weather: pauses before turns; transactions that fail, or after which the process is gone
//!   └─► clock: hours, days, the year 2038
//! ```
//!
//! INVARIANT of this driver: the same seed gives the same trace, byte for byte, and nothing but the seed decides it.
//!
//! What is judged: after every step the audit log is read and replayed in its order on a reference model
//! (`model.rs`), which says what each request had to be answered; every answer is compared with the log and with
//! earlier answers to its key (`judge.rs`); after each crash and at the end, the chain, the events, the file and every
//! token are looked at (`last.rs`).
//!
//! Absent on purpose: sockets, PostgreSQL, and loss of power. Other drivers have them.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
#[path = "../it/areas/mod.rs"]
mod areas;
mod client;
mod dice;
mod judge;
mod last;
mod life;
mod model;
mod run;
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
#[path = "../it/samples.rs"]
mod samples;
mod simulated_faults;
#[expect(dead_code, reason = "shared with the other tests, which use more of it")]
#[path = "../it/support.rs"]
mod support;
mod world;

/// Nobody signs in here: what people alone do is left out (`client::made`).
#[expect(clippy::unused_async, reason = "as the other tests have it")]
async fn person(_: &support::App) -> String {
    unreachable!("nobody signs in here")
}

/// The program is the product alone.
fn beside(_: Option<&support::App>) -> &'static [areas::Samples] {
    &[]
}
