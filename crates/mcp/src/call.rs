//! From a tool's arguments to a request that `dispatch` judges like one of HTTP.
//!
//! The arguments are one flat object; path, query, headers and body are taken out of it by the operation's declaration.
//! Values are judged by the operation's own types; here only what a request could not hold is refused.
//!
//! Keeps MT-1.

use crate::catalogue::Tool;
use crate::endpoint::Sender;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue};
use provost_kernel::auth::Actor;
use provost_kernel::dispatch::{BearerToken, Request};
use provost_kernel::expose::mcp::{Content, content};
use provost_kernel::json;
use provost_kernel::operation::{Entry, Kind, Meta};
use provost_kernel::{Code, Error, Result};
use serde_json::{Map, Value};
use std::sync::Arc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Where the mutation metadata travels when it has no place in the body.
const TRIO: [(&str, HeaderName); 3] = [
    ("reason", HeaderName::from_static("x-reason")),
    ("idempotencyKey", HeaderName::from_static("idempotency-key")),
    ("confirm", HeaderName::from_static("x-confirm")),
];

/// By whom a request is made.
#[derive(Clone, Copy)]
pub(crate) struct By<'a> {
    pub actor: &'a Actor,
    pub presented: &'a Arc<BearerToken>,
    pub sender: &'a Sender,
}

/// Makes the request of a call.
///
/// Errors: `ConfirmationRequired` for an act that nothing can undo; `InvalidRequest`, naming the argument by a pointer;
/// `PayloadTooLarge`.
pub(crate) fn request(
    entry: &Entry,
    operation_index: usize,
    tool: &Tool,
    mut arguments: Map<String, Value>,
    by: By<'_>,
) -> Result<Request> {
    let meta = tool.meta;
    fits(tool, &arguments)?;
    confirmed(meta, &arguments)?;
    tool.whole_numbers.write(&mut arguments);
    let mut path = Vec::new();
    for name in meta.path_parameters() {
        match arguments.remove(name) {
            Some(Value::String(text)) if !text.is_empty() => path.push((name, text)),
            _ => return Err(invalid(name, "must be a string that is not empty")),
        }
    }
    let query = query(entry, &mut arguments)?;
    let mut headers = HeaderMap::new();
    if meta.kind == Kind::Write && meta.trio_in_headers() {
        metadata(&mut arguments, &mut headers)?;
    }
    let body = body(meta, arguments, &mut headers)?;
    if body.len() > meta.limit.bytes {
        let message = format!("the arguments are larger than {} bytes", meta.limit.bytes);
        return Err(Error::new(Code::PayloadTooLarge, message));
    }
    Ok(Request {
        path,
        query,
        headers,
        body,
        ..bare(operation_index, by)
    })
}

/// Makes a request that says nothing but who calls what.
pub(crate) fn bare(operation_index: usize, by: By<'_>) -> Request {
    Request {
        operation_index,
        organization: by.actor.organization.as_str().to_owned(),
        path: Vec::new(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        origin: by.sender.origin.clone(),
        entry_point: by.sender.entry_point.clone(),
        line: by.sender.line.clone(),
        presented: Some(by.presented.clone()),
    }
}

fn fits(tool: &Tool, arguments: &Map<String, Value>) -> Result<()> {
    if let Some(name) = arguments.keys().find(|name| !tool.arguments.contains(name)) {
        return Err(invalid(name, "is no argument of this tool"));
    }
    // What must be confirmed says so in a sentence of its own.
    let mut required = tool.required.iter().filter(|name| *name != "confirm");
    match required.find(|name| arguments.get(*name).is_none_or(Value::is_null)) {
        Some(name) => Err(invalid(name, "is required")),
        None => Ok(()),
    }
}

/// INVARIANT ME-3: only the call's own arguments confirm.
fn confirmed(meta: &Meta, arguments: &Map<String, Value>) -> Result<()> {
    if !meta.confirm || arguments.get("confirm") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let message = format!(
        "nothing can undo this: {}; nothing was done; ask the person you work for, then call again with confirm: true",
        meta.summary
    );
    Err(Error::new(Code::ConfirmationRequired, message))
}

fn query(entry: &Entry, arguments: &mut Map<String, Value>) -> Result<Option<String>> {
    let mut query = String::new();
    for name in &entry.query_names {
        let text = match arguments.remove(name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text,
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            Some(_) => return Err(invalid(name, "must be a single value")),
        };
        if !query.is_empty() {
            query.push('&');
        }
        encode(&mut query, name);
        query.push('=');
        encode(&mut query, &text);
    }
    Ok((!query.is_empty()).then_some(query))
}

fn encode(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let digit = |half: u8| {
                char::from_digit(u32::from(half), 16)
                    .unwrap_or('0')
                    .to_ascii_uppercase()
            };
            query.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

fn metadata(arguments: &mut Map<String, Value>, headers: &mut HeaderMap) -> Result<()> {
    for (name, header) in TRIO {
        let text = match arguments.remove(name) {
            None | Some(Value::Null) => continue,
            Some(Value::Bool(value)) if name == "confirm" => value.to_string(),
            Some(Value::String(text)) if name == "idempotencyKey" && text.starts_with('"') => {
                // The header takes one pair of quotes away.
                format!("\"{text}\"")
            }
            Some(Value::String(text)) if name != "confirm" => text,
            Some(_) if name == "confirm" => return Err(invalid(name, "must be true or false")),
            Some(_) => return Err(invalid(name, "must be a string")),
        };
        let value = HeaderValue::from_bytes(text.as_bytes());
        headers.insert(
            header,
            value.map_err(|_| invalid(name, "must not hold control characters"))?,
        );
    }
    Ok(())
}

fn body(meta: &Meta, mut arguments: Map<String, Value>, headers: &mut HeaderMap) -> Result<Bytes> {
    let (Some(form), Some(consumes)) = (content(meta), meta.consumes) else {
        if !meta.method.has_body() {
            return Ok(Bytes::new());
        }
        headers.insert(CONTENT_TYPE, JSON);
        // The operation reads its numbers as the client wrote them.
        return serde_json::to_vec(&json::ExactDocument(&Value::Object(arguments)))
            .map(Bytes::from)
            .map_err(Error::internal);
    };
    let media_type = arguments
        .get("mediaType")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(media_type) = consumes.media_types.iter().find(|known| **known == media_type) else {
        let message = format!("must be one of {}", consumes.media_types.join(", "));
        return Err(invalid("mediaType", &message));
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let Some(Value::String(text)) = arguments.remove("content") else {
        return Err(invalid("content", "must be a string"));
    };
    match form {
        Content::Text => Ok(text.into()),
        Content::Base64 => {
            let bytes = BASE64
                .decode(text)
                .map_err(|_| invalid("content", "must be base64"))?;
            Ok(bytes.into())
        }
    }
}

fn invalid(name: &str, message: &str) -> Error {
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Error::invalid(
        format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        message,
    )
}
