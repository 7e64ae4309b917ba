//! From what was said on the command line to a request.

use super::api::{Effect, Operation};
use super::connection::Connection;
use super::consent::Consent;
use super::failure::Failure;
use super::flags::{self, Place};
use super::server::Call;
use super::terminal::Terminal;
use clap::ArgMatches;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// LIMIT: larger than any body that a server takes (D1.10).
const MAX_BODY_BYTES: u64 = 32 << 20;

/// A request whose query can still change, from page to page.
pub(super) struct Draft {
    path: String,
    query: Vec<(String, String)>,
    call: Call,
}

impl Draft {
    /// Reads path, query and body from the command line.
    pub(super) fn new(
        operation: &Operation,
        matches: &ArgMatches,
        connection: &Connection,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let mut path = operation
            .path
            .replace("{organizationId}", &encoded(&connection.organization));
        for field in &operation.path_parameters {
            let value = matches
                .get_one::<String>(&Place::Path.id(field))
                .map_or("", String::as_str);
            path = path.replace(&format!("{{{}}}", field.name()), &encoded(value));
        }
        let mut query = Vec::new();
        for field in &operation.query {
            if let Some(value) = flags::value(Place::Query, field, matches)? {
                query.push((field.name(), plain(&value)));
            }
        }
        let body = match &operation.body {
            Some(_) => Some(body(operation, matches, terminal)?.to_string().into()),
            None => None,
        };
        let call = Call {
            method: operation.method.clone(),
            target: String::new(),
            headers: HeaderMap::new(),
            body,
        };
        Ok(Self { path, query, call })
    }

    /// Adds the trio where the operation takes it.
    pub(super) fn consent(&mut self, operation: &Operation, consent: &Consent) -> Result<(), Failure> {
        let Effect::Write { trio_in_headers, .. } = operation.kind else {
            return Ok(());
        };
        if trio_in_headers {
            return self.consent_in_headers(consent);
        }
        let body = self.call.body.as_deref().unwrap_or(b"{}");
        let mut body: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|_| Failure::usage("the body of this command must be a JSON object"))?;
        body.insert("reason".into(), consent.reason.as_str().into());
        body.insert("idempotencyKey".into(), consent.key.as_str().into());
        if consent.confirm {
            body.insert("confirm".into(), true.into());
        }
        self.call.body = Some(Value::Object(body).to_string().into());
        Ok(())
    }

    fn consent_in_headers(&mut self, consent: &Consent) -> Result<(), Failure> {
        // A key that begins with a quote would read as a structured-field string (D4.1).
        let key = match consent.key.strip_prefix('"') {
            Some(_) => format!("\"{}\"", consent.key.replace('\\', r"\\").replace('"', "\\\"")),
            None => consent.key.clone(),
        };
        let confirm = if consent.confirm { "true" } else { "" };
        for (name, value) in [
            ("idempotency-key", key.as_str()),
            ("x-reason", &consent.reason),
            ("x-confirm", confirm),
        ] {
            if value.is_empty() {
                continue;
            }
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| Failure::usage(format!("{name} must be one line without control characters")))?;
            self.call.headers.insert(HeaderName::from_static(name), value);
        }
        Ok(())
    }

    /// Returns a query parameter.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a query parameter.
    pub(super) fn set_query(&mut self, name: &str, value: String) {
        self.query.retain(|(known, _)| known != name);
        self.query.push((name.to_owned(), value));
    }

    /// Returns the request as it stands.
    pub(super) fn call(&self) -> Call {
        let mut target = self.path.clone();
        for (place, (name, value)) in self.query.iter().enumerate() {
            let separator = if place == 0 { '?' } else { '&' };
            let _ = write!(target, "{separator}{}={}", encoded(name), encoded(value));
        }
        Call {
            target,
            ..self.call.clone()
        }
    }
}

fn body(operation: &Operation, matches: &ArgMatches, terminal: &Terminal) -> Result<Value, Failure> {
    let mut body = whole(operation, matches, terminal)?;
    for field in operation.body.iter().flat_map(|body| &body.fields) {
        let is_cleared = matches
            .try_get_one::<bool>(&flags::clear_id(field))
            .ok()
            .flatten()
            == Some(&true);
        let value = if is_cleared {
            Some(Value::Null)
        } else {
            flags::value(Place::Body, field, matches)?
        };
        if let Some(value) = value {
            insert(&mut body, &field.path, value)
                .ok_or_else(|| Failure::usage(format!("--body has no place for {}", field.name())))?;
        }
    }
    Ok(body)
}

fn whole(operation: &Operation, matches: &ArgMatches, terminal: &Terminal) -> Result<Value, Failure> {
    let is_whole = operation.body.as_ref().is_some_and(|body| body.whole);
    let said = if is_whole {
        matches.get_one::<String>("global.body")
    } else {
        None
    };
    let Some(said) = said else {
        return Ok(Value::Object(Map::new()));
    };
    let (from, bytes) = if said.starts_with(['{', '[']) {
        ("--body".to_owned(), said.clone().into_bytes())
    } else if said == "-" {
        let read = terminal.read_input(MAX_BODY_BYTES);
        (
            "standard input".into(),
            read.map_err(|error| Failure::usage(error.to_string()))?,
        )
    } else {
        let read = std::fs::read(said);
        (
            said.clone(),
            read.map_err(|error| Failure::usage(format!("cannot read {said}: {error}")))?,
        )
    };
    serde_json::from_slice(&bytes).map_err(|error| Failure::usage(format!("{from} is not JSON: {error}")))
}

/// Puts a value behind the names of the objects around it, which are made when they are missing.
fn insert(body: &mut Value, path: &[String], value: Value) -> Option<()> {
    let (name, outer) = path.split_last()?;
    let mut object = body.as_object_mut()?;
    for name in outer {
        object = object
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()?;
    }
    object.insert(name.clone(), value);
    Some(())
}

/// A query says a list as its items between commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Percent-encodes everything but the unreserved characters of RFC 3986.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
