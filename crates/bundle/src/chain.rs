//! The order of what a device tells: each entry follows the one before it by a digest.
//!
//! ```text
//!   CHAIN_START ── entry 1 ──► hash 1 ── entry 2 ──► hash 2 ── …
//! ```
//!
//! What is hashed is the text of an entry as it is sent, so that nobody has to spell its numbers alike. A server that knows one hash
//! and its number tells a gap, a repeat and a second machine apart; that a device tells the truth it proves not.

use provost_words::digest::sha256_hex;

/// What stands before the first entry of a device.
pub const CHAIN_START: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Returns the hash of an entry: of the hash before it, as 64 hexadecimal digits, and of the entry's text.
pub fn entry_hash(previous: &str, entry: &str) -> String {
    sha256_hex(&[previous.as_bytes(), entry.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_the_text_and_of_what_was_before_it() {
        let first = entry_hash(CHAIN_START, "{\"kind\":\"dropped\"}");
        // The same from `printf '%064d{"kind":"dropped"}' 0 | sha256sum`.
        assert_eq!(
            first,
            "5a408a5cb4c05888f82aac387b3c89e557ad18e87c122251efb19f9663c8c51a"
        );
        assert_ne!(first, entry_hash(&first, "{\"kind\":\"dropped\"}"));
        assert_ne!(first, entry_hash(CHAIN_START, "{\"kind\": \"dropped\"}"));
    }
}
