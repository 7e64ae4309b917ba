//! The functions that the fuzzer calls; they live with the tests, which replay the corpora.
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../../crates/policy/tests/differential/case.rs"]
mod case;
#[path = "../../crates/policy/tests/differential/document.rs"]
mod document;
#[path = "../../crates/policy/tests/differential/fuzz.rs"]
mod engine;
#[path = "../../crates/history/tests/it/fuzz.rs"]
mod history;
#[path = "../../crates/mcp/tests/it/fuzz.rs"]
mod mcp;
#[path = "../../crates/policy/tests/differential/naive.rs"]
mod naive;
#[path = "../../crates/oauth/tests/it/fuzz.rs"]
mod oauth;
#[path = "../../crates/otlp/tests/it/fuzz.rs"]
mod payloads;
#[path = "../../crates/policy/tests/differential/random.rs"]
mod random;
#[path = "../../crates/policy/tests/differential/reading.rs"]
mod reading;
#[path = "../../crates/server/tests/it/fuzz.rs"]
mod requests;

pub use engine::{documents, modules, policies};
pub use history::chunks;
pub use mcp::messages;
pub use oauth::oauth_tokens;
pub use payloads::otlp;
pub use reading::inputs;
pub use requests::{csv, json, texts};
