//! Tests of the crate as others see it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod fetching;
mod networks;
