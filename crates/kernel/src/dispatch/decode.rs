//! Steps 7 and 8: the media type, the strict JSON, the trio, the schema.

use super::Request;
use crate::auth::Actor;
use crate::error::{Code, Error, Result};
use crate::idempotency::KeyUse;
use crate::json;
use crate::kernel::Kernel;
use crate::operation::{Entry, Raw};
use crate::wire::Trio;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

/// LIMIT: nesting of a body (D1.3).
pub const MAX_DEPTH: usize = 32;

pub(super) struct Decoded {
    pub bound: Box<dyn crate::operation::Bound>,
    pub path: Value,
    pub key: Option<KeyUse>,
}

/// Steps 7 and 8: the media type, the strict JSON, the trio, the schema.
pub(super) fn decode(
    kernel: &Kernel,
    entry: &Entry,
    request: &Request,
    actor: &Actor,
    path: Value,
) -> Result<Decoded> {
    let mut body = body_of(entry, request)?;
    let query = query_of(entry, request)?;
    let trio = Trio::take(entry.meta, &request.headers, &mut body)?;
    let key = trio.key.as_ref().map(|key| {
        // Members of the fingerprint: D4.4.
        let mut fingerprint = Value::Object(body.clone());
        fingerprint["reason"] = json!(trio.reason.as_ref().map(crate::text::Reason::as_str));
        fingerprint["confirm"] = trio.confirm.into();
        let manager = |name: &str| {
            request
                .headers
                .get(name)
                .map(|v| String::from_utf8_lossy(v.as_bytes()))
        };
        let request_value = json!({
            "path": path,
            "query": query,
            "body": fingerprint,
            "manager": [manager("x-forge-terraform-manager"), manager("x-forge-terraform-instance")],
        });
        KeyUse::new(
            &kernel.keys,
            key.as_str(),
            actor.organization.as_str(),
            entry.meta.id,
            &request_value,
        )
    });
    let raw = Raw {
        path: path.clone(),
        query,
        body: Value::Object(body),
        reason: trio.reason,
        confirm: trio.confirm,
    };
    Ok(Decoded {
        bound: (entry.bind)(raw)?,
        path,
        key,
    })
}

pub(super) fn path_of(request: &Request) -> Value {
    let members = request
        .path
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
    Value::Object(members.collect())
}

fn body_of(entry: &Entry, request: &Request) -> Result<Map<String, Value>> {
    if request.body.is_empty() {
        return Ok(Map::new());
    }
    if !entry.meta.method.has_body() {
        return Err(Error::invalid("", "this method takes no body"));
    }
    let media_type = request
        .headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Error::new(
            Code::UnsupportedMediaType,
            "the body must be application/json",
        ));
    }
    match json::parse(&request.body, MAX_DEPTH)? {
        Value::Object(members) => Ok(members),
        _ => Err(Error::invalid("", "the body must be a JSON object")),
    }
}

fn query_of(entry: &Entry, request: &Request) -> Result<Value> {
    let mut members = Map::new();
    for pair in request
        .query
        .as_deref()
        .unwrap_or("")
        .split('&')
        .filter(|p| !p.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode_query(name)?, decode_query(value)?);
        if !entry.query_names.contains(&name) {
            let known = if entry.query_names.is_empty() {
                "none".into()
            } else {
                entry.query_names.join(", ")
            };
            let message = format!("this query parameter does not exist here; known: {known}");
            return Err(Error::new(Code::UnknownParameter, message));
        }
        if members.insert(name.clone(), Value::from(value)).is_some() {
            return Err(Error::invalid(format!("/query/{name}"), "is given twice"));
        }
    }
    Ok(Value::Object(members))
}

fn decode_query(text: &str) -> Result<String> {
    percent_decode(&text.replace('+', " "))
        .ok_or_else(|| Error::invalid("/query", "is not valid percent-encoded UTF-8"))
}

/// Decodes a percent-encoded text once; `None` when an escape is broken or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| char::from(b?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
