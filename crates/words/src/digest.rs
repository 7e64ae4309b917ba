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

/// The only member of an object that stands for a number which no double is; its value is the number as it is written. Who
/// reads documents that others sent keeps such numbers so.
pub const INEXACT: &str = "$serde_json::private::provost::number";

/// Returns the number that a value stands for, as it is written, if it is one that no double is.
pub fn inexact_number(value: &Value) -> Option<&str> {
    value.get(INEXACT).and_then(Value::as_str)
}

/// Returns the text as which content is judged and kept: the canonical one, in which whole numbers keep their digits.
///
/// RFC 8785 writes of a whole number beyond 2^53 its nearest one of 64-bit floating point, which is another number.
pub fn exact_text(document: &Value) -> String {
    if !has_long_number(document) {
        return canonical(document);
    }
    if let Some(written) = inexact_number(document) {
        return written.to_owned();
    }
    match document {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            // The order of RFC 8785.
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            let member = |(name, value): (&String, &Value)| {
                format!("{}:{}", canonical(&name.as_str().into()), exact_text(value))
            };
            let members: Vec<String> = members.into_iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(exact_text).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// Returns whether a number of it is one that RFC 8785 would round: a whole one beyond 2^53, or one that no double is. A parsed document is no deeper than its parser allows.
fn has_long_number(document: &Value) -> bool {
    const LONG: u64 = 1 << 53;
    match document {
        Value::Object(members) => members.contains_key(INEXACT) || members.values().any(has_long_number),
        Value::Array(items) => items.iter().any(has_long_number),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => whole.unsigned_abs() > LONG,
            (None, whole) => whole.is_some(),
        },
        _ => false,
    }
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
    fn content_keeps_the_digits_of_whole_numbers() {
        let long = json!({"b": [9_007_199_254_740_993_i64, 1.5, {"é": u64::MAX}], "a": i64::MIN, "\n": 1.0});
        assert_eq!(
            exact_text(&long),
            r#"{"\n":1,"a":-9223372036854775808,"b":[9007199254740993,1.5,{"é":18446744073709551615}]}"#
        );
        let short = json!({"b": 9_007_199_254_740_992_i64, "a": 1e300});
        assert_eq!(exact_text(&short), canonical(&short));
    }

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
