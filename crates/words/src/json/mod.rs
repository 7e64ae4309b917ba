//! JSON as this API reads and hashes it (D1.3, D4.4).
//!
//! Reading has two steps: [`parse`] refuses bytes that are not strict JSON, [`decode`] refuses a document
//! that is not the operation's. No refusal quotes a value, since any value may be a secret.

mod decode;
mod number;
mod parse;

pub use decode::decode;
pub use number::{ExactDocument, ExactNumbers, INEXACT, mark_whole, round};
pub use parse::parse;

use crate::error::Error;
use serde_json::Value;

/// Returns the canonical text of a document (RFC 8785).
///
/// Numbers are IEEE 754 doubles there: integers beyond 2^53 that round to the same double are one.
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a parsed document has string keys and finite numbers only"
)]
pub fn canonical(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).expect("a document")
}

/// Returns `invalid_request`; what is wrong with the document as a whole is a sentence of its own.
fn refusal(pointer: String, message: &str) -> Error {
    if pointer.is_empty() {
        return Error::invalid(pointer, format!("the body {message}"));
    }
    Error::invalid(pointer, message)
}

/// Appends a member's name to a JSON Pointer (RFC 6901).
fn push_member(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&clipped(name).replace('~', "~0").replace('/', "~1"));
}

/// Returns a member's name as a message may show it: short, without characters that break a line.
fn clipped(name: &str) -> String {
    // LIMIT: no member of this API has a longer name; a longer one is the caller's and only needs finding.
    const SHOWN: usize = 64;
    let shown: String = name
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect();
    if name.chars().nth(SHOWN).is_some() {
        return shown + "…";
    }
    shown
}

#[cfg(test)]
mod tests;
