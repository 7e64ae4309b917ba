//! The functions that the fuzzer calls; they live with the tests, which replay the corpora.
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../../crates/policy/tests/differential/case.rs"]
mod case;
#[path = "../../crates/policy/tests/differential/fuzz.rs"]
mod engine;
#[path = "../../crates/history/tests/it/fuzz.rs"]
mod history;
#[path = "../../crates/policy/tests/differential/naive.rs"]
mod naive;
#[path = "../../crates/oauth/tests/it/fuzz.rs"]
mod oauth;
#[path = "../../crates/policy/tests/differential/random.rs"]
mod random;

pub use engine::{documents, modules, policies};
pub use history::chunks;
pub use oauth::oauth_tokens;
