//! Calls of tools without the detour: what the library would do for a call that is beyond doubt, in a fraction of its
//! time (it reads a message as each of its methods in turn, and starts a service with channels for each request).
//!
//! INVARIANT ME-6: a call that is answered here gets the bytes that the library would send. Whatever is not exactly the
//! usual form, right or wrong, is the library's to judge.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A call in the usual form.
pub(crate) struct Express<'a> {
    id: &'a Value,
    pub name: &'a str,
    arguments: Option<&'a Map<String, Value>>,
    is_modern: bool,
}

impl<'a> Express<'a> {
    /// Reads a call; nothing for what is not beyond doubt.
    pub fn read(message: &'a Value, headers: &HeaderMap) -> Option<Self> {
        let members = message.as_object()?;
        let known = ["jsonrpc", "id", "method", "params"];
        if members.len() != known.len() || !known.iter().all(|name| members.contains_key(*name)) {
            return None;
        }
        let params = members["params"].as_object()?;
        if members["method"] != "tools/call"
            || params
                .keys()
                .any(|name| !matches!(name.as_str(), "name" | "arguments" | "_meta"))
            || !has_usual_media_types(headers)
        {
            return None;
        }
        let name = params.get("name")?.as_str()?;
        let arguments = match params.get("arguments") {
            Some(arguments) => Some(arguments.as_object()?),
            None => None,
        };
        let id = &members["id"];
        let is_usual_id = id.is_string() || id.as_u64().is_some_and(|id| u32::try_from(id).is_ok());
        Some(Self {
            id: is_usual_id.then_some(id)?,
            name,
            arguments,
            is_modern: is_modern(params.get("_meta"), name, headers)?,
        })
    }

    pub fn request(&self) -> CallToolRequestParams {
        let request = CallToolRequestParams::new(self.name.to_owned());
        match self.arguments {
            Some(arguments) => request.with_arguments(arguments.clone()),
            None => request,
        }
    }

    /// Returns the message of a result.
    pub fn answer(&self, mut result: CallToolResult) -> Option<axum::response::Response> {
        #[derive(Serialize)]
        struct Answer<'a> {
            jsonrpc: &'static str,
            id: &'a Value,
            result: CallToolResult,
        }
        if !self.is_modern {
            result.result_type = None;
        }
        let answer = Answer {
            jsonrpc: "2.0",
            id: self.id,
            result,
        };
        let body = serde_json::to_vec(&answer).ok()?;
        let mut response = axum::response::Response::new(Bytes::from(body).into());
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        Some(response)
    }
}

/// The only value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn has_usual_media_types(headers: &HeaderMap) -> bool {
    let accept = only(headers, ACCEPT.as_str()).unwrap_or_default();
    let takes = |media_type| accept.contains(media_type);
    let sent = only(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    takes("application/json") && takes("text/event-stream") && sent.starts_with("application/json")
}

/// Says by which lifecycle a call is made; nothing when headers and message do not say the same.
fn is_modern(meta: Option<&Value>, name: &str, headers: &HeaderMap) -> Option<bool> {
    let said = |header| headers.contains_key(header);
    let has_parameters = headers.keys().any(|name| name.as_str().starts_with("mcp-param-"));
    if has_parameters {
        return None;
    }
    let (version, capabilities) = match meta {
        Some(meta) => (meta.as_object()?.get(VERSION), meta.get(CAPABILITIES)),
        None => (None, None),
    };
    let Some(version) = version else {
        let is_legacy = match only(headers, "mcp-protocol-version") {
            Some(version) => LEGACY.contains(&version),
            None => !said("mcp-protocol-version"),
        };
        return is_legacy.then_some(false);
    };
    let is_plain = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let agrees = version == MODERN
        && only(headers, "mcp-protocol-version") == Some(MODERN)
        && only(headers, "mcp-method") == Some("tools/call")
        && only(headers, "mcp-name") == Some(name)
        && capabilities.is_some_and(|declared| ClientCapabilities::deserialize(declared).is_ok());
    (agrees && is_plain).then_some(true)
}
