//! Tests of the crate as others see it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod access_token;
mod answers;
mod attacks;
mod clients;
mod fuzz;
mod grants;
mod keys;
mod proofs;
mod workloads;
