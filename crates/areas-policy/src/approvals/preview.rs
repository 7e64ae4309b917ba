//! What people are shown of a call.
//!
//! Keeps AP-6 and AP-9. Characters that reorder or hide what a reader sees are spelled out: a terminal shows what is bound.

use super::binding::Unbound;
use super::names::{is_no_value, is_secret_name};
use super::secrets::looks_secret;
use super::values::{HIDDEN, Unshowable, of_member, of_text};
use crate::history::IncomingEvent;
use provost_words::document::{DocumentReading, exact_document, read};
use provost_words::visible::lines_visible;
use serde_json::{Map, Value, json};

/// LIMIT: documents in texts of documents that are looked into. Ours.
const MAX_DEPTH: usize = 4;
/// Names of members that hold the name of what another member of the same object holds.
const NAMING: [&str; 6] = ["name", "key", "header", "variable", "env", "field"];
/// The members that hold it.
const NAMED: [&str; 4] = ["value", "val", "content", "data"];

/// Returns the call as people are shown it, and everything else that an approval of it binds.
///
/// Errors: something of it looks like a credential and cannot be hidden without hiding more; readers differ about its arguments.
pub fn shown(event: &IncomingEvent) -> Result<Value, Unbound> {
    let mut call = Map::new();
    for (name, value) in &event.attributes {
        call.insert(name.clone(), attribute(name, value)?);
    }
    let mut shown = json!({ "call": call });
    if !event.missing.is_empty() {
        shown["missing"] = missing(event).into();
    }
    for (name, said) in [
        ("folder", &event.folder),
        ("host", &event.host),
        ("session", &event.session),
    ] {
        if let Some(said) = said {
            if looks_secret(said) || said.contains(HIDDEN) {
                return Err(Unbound::Secret);
            }
            shown[name] = lines_visible(said).into();
        }
    }
    Ok(shown)
}

/// Returns the attributes that exist and whose values nobody can say, sorted, once each.
pub fn missing(event: &IncomingEvent) -> Vec<String> {
    let mut missing = event.missing.clone();
    missing.sort_unstable();
    missing.dedup();
    missing
}

fn attribute(name: &str, value: &Value) -> Result<Value, Unbound> {
    // Who it is and what is called is shown whole, or not at all.
    let names_something =
        name.starts_with("identity.") || matches!(name.rsplit(['.', '_']).next(), Some("id" | "ids"));
    if let Value::String(text) = value {
        if names_something {
            let is_hidden = looks_secret(text) || of_text(text).as_deref() != Ok(text.as_str());
            return if is_hidden {
                Err(Unbound::Secret)
            } else {
                Ok(lines_visible(text).into())
            };
        }
        if matches!(read(text), DocumentReading::Unreadable { .. }) {
            return Err(Unbound::Uncertain);
        }
    }
    document(value, false, 0).map_err(|Unshowable| Unbound::Secret)
}

/// Returns a document without the values of credentials.
fn document(value: &Value, is_secret: bool, depth: usize) -> Result<Value, Unshowable> {
    Ok(match value {
        Value::Object(members) => object(members, is_secret, depth)?.into(),
        Value::Array(items) => list(items, is_secret, depth)?.into(),
        Value::Number(_) if is_secret => HIDDEN.into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) if is_secret => lines_visible(&of_member(text)?).into(),
        Value::String(text) => match exact_document(text).filter(|_| depth < MAX_DEPTH) {
            Some(inner) => document(&inner, false, depth + 1)?,
            None => lines_visible(&of_text(text)?).into(),
        },
    })
}

fn object(
    members: &Map<String, Value>,
    is_secret: bool,
    depth: usize,
) -> Result<Map<String, Value>, Unshowable> {
    let one_of = |name: &str, names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    let names_secret = members
        .iter()
        .any(|(name, value)| one_of(name, &NAMING) && value.as_str().is_some_and(is_secret_name));
    let mut shown = Map::new();
    for (name, value) in members {
        if looks_secret(name) || name.contains(HIDDEN) {
            return Err(Unshowable);
        }
        // `max_tokens` is how many, and a command among secrets is a command.
        let counts = value.is_number() && name.to_ascii_lowercase().ends_with("tokens");
        let is_named = names_secret && one_of(name, &NAMED);
        let is_below = is_secret && !is_no_value(name);
        let is_secret = !counts && (is_below || is_named || is_secret_name(name));
        let part = document(value, is_secret, depth)?;
        if shown.insert(lines_visible(name).into_owned(), part).is_some() {
            // Two names that look the same: one of them would not be shown.
            return Err(Unshowable);
        }
    }
    Ok(shown)
}

fn list(items: &[Value], is_secret: bool, depth: usize) -> Result<Vec<Value>, Unshowable> {
    let mut shown = Vec::with_capacity(items.len());
    let (mut is_behind_flag, mut ended_flags) = (false, false);
    for item in items {
        let text = item.as_str();
        // A list of a program's arguments: the value of a flag is the next one, unless it could be a path, or `--` stood before it.
        let is_value = is_behind_flag && text.is_some_and(|text| !text.starts_with('-'));
        if is_value && (ended_flags || text.is_some_and(|text| text.contains('/'))) {
            return Err(Unshowable);
        }
        ended_flags |= text == Some("--");
        shown.push(document(item, is_secret || is_value, depth)?);
        is_behind_flag =
            text.is_some_and(|text| text.starts_with('-') && is_secret_name(text) && !text.contains('='));
    }
    // `["-u", "user:password"]`, `["mysql", "-ppassword"]`
    let texts: Vec<&str> = shown.iter().filter_map(Value::as_str).collect();
    if looks_secret(&texts.join(" ")) {
        Err(Unshowable)
    } else {
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> Result<Value, Unshowable> {
        document(value, false, 0)
    }

    /// Proves AP-6, AP-9.
    #[test]
    fn a_document_is_shown_without_the_values_of_credentials_and_whole_otherwise() {
        for (document, shown) in [
            (
                json!({ "a": [1, true, null, "x y"] }),
                json!({ "a": [1, true, null, "x y"] }),
            ),
            (
                json!({ "apiKey": "k", "pin_token": 7 }),
                json!({ "apiKey": HIDDEN, "pin_token": HIDDEN }),
            ),
            (
                json!({ "max_tokens": 7, "maxTokens": 8 }),
                json!({ "max_tokens": 7, "maxTokens": 8 }),
            ),
            (
                json!({ "secrets": { "db": "x", "n": [1, "y"], "command": "rm" } }),
                json!({ "secrets": { "db": HIDDEN, "n": [HIDDEN, HIDDEN], "command": "rm" } }),
            ),
            (
                json!([{ "name": "DB_PASSWORD", "value": "x" }, { "name": "HOME", "value": "/x" }]),
                json!([{ "name": "DB_PASSWORD", "value": HIDDEN }, { "name": "HOME", "value": "/x" }]),
            ),
            (
                json!({ "body": "{\"token\":\"x\",\"n\":[1]}" }),
                json!({ "body": { "token": HIDDEN, "n": [1] } }),
            ),
            (
                json!(["login", "--token", "x", "--verbose"]),
                json!(["login", "--token", HIDDEN, "--verbose"]),
            ),
            // What would reorder the line is spelled out.
            (json!("a\u{202e}b\nc"), json!("a\\u202eb\nc")),
        ] {
            assert_eq!(of(&document), Ok(shown), "{document}");
        }
    }

    /// Proves AP-9.
    #[test]
    fn a_document_of_which_more_would_be_hidden_is_not_shown() {
        for document in [
            json!({ "password": "a b" }),
            json!({ "secrets": { "x": "rm -rf /" } }),
            json!({ "ghp_0123456789abcdefghijABCD": 1 }),
            json!({ "a": HIDDEN }),
            json!({ HIDDEN: 1 }),
            json!(["rm", "-rf", "--", "--password", "production"]),
            json!(["rm", "-rf", "--token", "/srv"]),
            json!(["mysql", "-phunter2"]),
            // Two names that a reader takes for one.
            json!({ "a\u{200b}": 1, "a\\u200b": 2 }),
        ] {
            assert_eq!(of(&document), Err(Unshowable), "{document}");
        }
    }
}
