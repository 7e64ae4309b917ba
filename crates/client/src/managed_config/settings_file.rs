//! A settings file of a client as the members of a release: JSON or TOML, read strictly.

use crate::cli::{Exit, Failure};
use provost_words::json;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;

/// LIMIT: the server takes a body of 2 MiB.
const MAX_BYTES: u64 = 2 << 20;
/// LIMIT: the server takes documents of 32 levels.
const MAX_DEPTH: usize = 30;

/// Returns the members of a file, in the form that the client of a profile reads.
///
/// Errors: what is wrong in the file, with line and column where a reader knows them. No sentence quotes the file: it may hold
/// secrets.
pub fn read(path: &Path, target: &str) -> Result<Map<String, Value>, Failure> {
    let shown = path.display();
    let wrong = |why: String| Failure::new(Exit::Conflict, format!("{shown} {why}; nothing was sent"));
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| wrong(format!("is not UTF-8 from byte {} on", error.valid_up_to())))?;
    if target == "codex" {
        return toml_members(text).map_err(wrong);
    }
    json_members(text).map_err(wrong)
}

fn json_members(text: &str) -> Result<Map<String, Value>, String> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        return Err(format!(
            "is not JSON: line {}, column {}",
            error.line(),
            error.column()
        ));
    }
    // The loose reader found no fault; what the strict one refuses is a member given twice, of which readers take either.
    json::parse(text.as_bytes(), MAX_DEPTH).map_err(|error| {
        let envelope = error.envelope("");
        let first = envelope.pointer("/errors/0").cloned().unwrap_or_default();
        let said = |member: &str| first[member].as_str().unwrap_or_default().to_owned();
        let (path, message) = (said("path"), said("message"));
        // The reader speaks of a request where the whole of it is meant.
        let message = message.strip_prefix("the body ").unwrap_or(&message);
        match path.as_str() {
            "" => format!("is not taken: it {message}"),
            path => format!("is not taken: {path} {message}"),
        }
    })?;
    serde_json::from_str(text).map_err(|_| "is no JSON object".to_owned())
}

fn toml_members(text: &str) -> Result<Map<String, Value>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("is not TOML: line {line}, column {column}")
    })?;
    let members = table
        .into_iter()
        .map(|(name, value)| Ok((name.clone(), converted(value, &format!("/{name}"))?)));
    members.collect()
}

fn converted(value: toml::Value, path: &str) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Float(number) => {
            let number = serde_json::Number::from_f64(number);
            number
                .ok_or_else(|| format!("has a number at {path} that JSON has no word for"))?
                .into()
        }
        toml::Value::Datetime(_) => return Err(format!("has a date at {path}, which JSON has no word for")),
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let items = items.map(|(place, item)| converted(item, &format!("{path}/{place}")));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        toml::Value::Table(members) => {
            let members = members
                .into_iter()
                .map(|(name, member)| Ok((name.clone(), converted(member, &format!("{path}/{name}"))?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
    })
}
