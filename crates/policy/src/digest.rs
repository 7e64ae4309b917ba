//! Digests of documents: SHA-256, in lower-case hexadecimal, over canonical JSON (RFC 8785).

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use std::fmt::Write;

/// Returns the SHA-256 of some bytes as 64 hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Returns the canonical text of a document: two documents have the same one iff they are the same value.
pub fn canonical(document: &Value) -> String {
    // A parsed document holds finite numbers and text keys only, and so has a canonical form.
    serde_json_canonicalizer::to_string(document).unwrap_or_else(|_| document.to_string())
}

/// Returns the digest of a document's canonical text.
pub fn document_sha256(document: &Value) -> String {
    sha256_hex(canonical(document).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_and_spelling_of_numbers_do_not_matter() {
        let a: Value = serde_json::from_str(r#"{"b":1.0,"a":[1e2,"é"]}"#).unwrap();
        assert_eq!(canonical(&a), r#"{"a":[100,"é"],"b":1}"#);
        assert_eq!(
            document_sha256(&a),
            document_sha256(&json!({"a": [100, "é"], "b": 1}))
        );
        assert_ne!(
            document_sha256(&a),
            document_sha256(&json!({"a": [100, "e"], "b": 1}))
        );
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
