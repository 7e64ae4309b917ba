//! Scenarios over the whole application, in process, on both engines.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod accounts;
mod idempotency;
mod replay_cell;
mod rotation;
mod support;
