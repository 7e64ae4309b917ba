#![forbid(unsafe_code)]
//! The vocabulary that the server and its client share: ids, instants, secrets, texts with limits, errors, strict JSON,
//! randomness, durable names, signed documents, and text that is safe to show.
//!
//! Absent on purpose: a database, HTTP, threads. What stands here links none of them, so that a client stays small.

pub mod digest;
pub mod document;
pub mod dsse;
pub mod durable;
pub mod entropy;
pub mod error;
pub mod free_text;
pub mod html;
pub mod id;
pub mod json;
pub mod secret;
pub mod text;
pub mod time;
pub mod url;
pub mod visible;
pub mod withheld;
pub mod word;

pub use error::{Code, Error, Result};
pub use secret::Secret;
pub use time::Timestamp;
