//! The recorded form of events, and backtests over them.

#![cfg(test)]

mod differential;
#[path = "../../../policy/tests/differential/document.rs"]
mod document;
mod expected;
mod interruption;
#[path = "../../../policy/tests/differential/naive.rs"]
mod naive;
#[expect(dead_code, reason = "shared with the fuzz targets of the policy engine")]
#[path = "../../../policy/tests/differential/random.rs"]
mod random;
mod record;
mod rego;
mod support;
