//! Storms, histories and hostile input: what many clients, unlucky clients and enemies do, all of it by chance.
//!
//! Every subject is one test that takes seconds in the suite. `cargo xtask torment <subject>` runs the same test as
//! long as one likes: it sets `PROVOST_TEST_COUNT` (how much, in the subject's own unit), `PROVOST_TEST_SEED`,
//! `PROVOST_TEST_ENGINE` (`sqlite`, `postgres` or `both`) and `PROVOST_TEST_REPORT` (the file for the figures).
//!
//! Invariants: a seed is printed before anything is drawn; what is drawn depends on it and on the part's number alone;
//! a subject counts what it did, so that a run which did nothing cannot pass for one that found nothing.
//!
//! Absent on purpose: sockets (the crash driver and the storms of `idempotency.rs` have them), and faults of the
//! machine below.

mod approvals;
mod cells;
mod histories;
mod jwts;
mod paths;
mod requests;
pub mod run;
pub mod storms;
mod strings;
mod tokens;
mod verdicts;
