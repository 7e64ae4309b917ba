//! What other programs and other people's eyes need of a document: no words of the project, no formats of Rust.

use super::OPEN;
use serde_json::{Value, json};

/// Leaves out of schemas, at every depth, what other programs warn of or refuse: formats of Rust's unsigned numbers
/// (`minimum` says as much), and `true` as the schema of a member where `{}` says the same.
pub(in crate::expose) fn portable(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(portable),
        Value::Object(members) => {
            if members
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with("uint"))
            {
                members.remove("format");
            }
            if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
                for any in properties
                    .values_mut()
                    .filter(|schema| **schema == Value::Bool(true))
                {
                    *any = json!({});
                }
            }
            members.values_mut().for_each(portable);
        }
        _ => {}
    }
}

/// Takes the mark from requests, at every depth: they may say the words that this version knows.
pub(in crate::expose) fn closed(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(closed),
        Value::Object(members) => {
            members.remove(OPEN);
            members.values_mut().for_each(closed);
        }
        _ => {}
    }
}

/// Takes references to the project's own papers out of every description: `(D4.8)`, `(HS-7)`, `(specification §2.3)`.
pub(in crate::expose) fn for_strangers(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(for_strangers),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if matches!(name.as_str(), "description" | "summary") => {
                        *text = without_references(text);
                    }
                    other => for_strangers(other),
                }
            }
        }
        _ => {}
    }
}

/// Returns a text without the parentheses that hold nothing but references.
fn without_references(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(open) = rest.find('(') {
        let Some(length) = rest[open..].find(')') else {
            break;
        };
        let (before, inner, behind) = (
            &rest[..open],
            &rest[open + 1..open + length],
            &rest[open + length + 1..],
        );
        if inner.split([',', ';']).all(|part| is_reference(part.trim())) {
            kept.push_str(before.trim_end());
        } else {
            kept.push_str(&rest[..=open + length]);
        }
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

/// Says whether a word names a decision, an invariant, a record of a decision or a section of the specification.
fn is_reference(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if word.contains('§') {
        return true;
    }
    if let Some(number) = word.strip_prefix("ADR").or_else(|| word.strip_prefix('D')) {
        return is_number(number.trim_start_matches([' ', '-']));
    }
    word.split_once('-').is_some_and(|(area, number)| {
        area.len() == 2 && area.bytes().all(|b| b.is_ascii_uppercase()) && is_number(number)
    })
}
