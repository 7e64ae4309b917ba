//! Lists and calls of tools without the detour: what the library would do for a message that is beyond doubt, in a
//! fraction of its time (it reads a message as each of its methods in turn, and starts a service with channels for each
//! request).
//!
//! INVARIANT ME-6: a list or a call that takes the short way gets the bytes that the protocol's library would send.
//! Whatever is not exactly the usual form, right or wrong, is the library's to judge.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ListToolsResult, ServerResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

const LIST: &str = "tools/list";
const CALL: &str = "tools/call";

/// A message in the usual form.
pub(crate) struct FastMessage<'a> {
    id: &'a Value,
    pub ask: FastQuestion<'a>,
    is_modern: bool,
}

/// What a message asks for.
pub(crate) enum FastQuestion<'a> {
    /// The tools.
    List,
    /// That a tool is called.
    Call(Call<'a>),
}

/// A call of a tool.
pub(crate) struct Call<'a> {
    pub name: &'a str,
    arguments: Option<&'a Map<String, Value>>,
}

impl Call<'_> {
    pub fn request(&self) -> CallToolRequestParams {
        let request = CallToolRequestParams::new(self.name.to_owned());
        match self.arguments {
            Some(arguments) => request.with_arguments(arguments.clone()),
            None => request,
        }
    }
}

impl<'a> FastMessage<'a> {
    /// Reads a message whose media types were judged; nothing for what is not beyond doubt.
    pub fn read(message: &'a Value, headers: &HeaderMap) -> Option<Self> {
        let members = message.as_object()?;
        let mut names = members.keys().map(String::as_str);
        if names.any(|name| !matches!(name, "jsonrpc" | "id" | "method" | "params")) {
            return None;
        }
        let params = match members.get("params") {
            Some(params) => Some(params.as_object()?),
            None => None,
        };
        let method = members.get("method")?.as_str()?;
        let ask = match method {
            LIST => list(params)?,
            CALL => call(params?)?,
            _ => return None,
        };
        let name = match &ask {
            FastQuestion::List => None,
            FastQuestion::Call(call) => Some(call.name),
        };
        let id = members.get("id")?;
        let is_usual_id = id.is_string() || id.as_u64().is_some_and(|id| u32::try_from(id).is_ok());
        let meta = params.and_then(|params| params.get("_meta"));
        Some(Self {
            id: is_usual_id.then_some(id)?,
            ask,
            is_modern: is_modern(meta, method, name, headers)?,
        })
    }

    /// Returns the message of a call's result.
    pub fn answer(&self, result: CallToolResult) -> Option<axum::response::Response> {
        self.respond(ServerResult::CallToolResult(result))
    }

    /// Returns the message of a list without its tools.
    pub fn answer_list(&self) -> Option<axum::response::Response> {
        self.respond(ServerResult::ListToolsResult(ListToolsResult::default()))
    }

    fn respond(&self, mut result: ServerResult) -> Option<axum::response::Response> {
        #[derive(Serialize)]
        struct Answer<'a> {
            jsonrpc: &'static str,
            id: &'a Value,
            result: ServerResult,
        }
        if self.is_modern {
            result.fill_missing_cache_hints();
        } else {
            result.strip_result_type_for_legacy_peer();
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

type Members = Map<String, Value>;

fn has_only(params: &Members, names: &[&str]) -> bool {
    params.keys().all(|name| names.contains(&name.as_str()))
}

fn list(params: Option<&Members>) -> Option<FastQuestion<'_>> {
    let is_usual = params.is_none_or(|params| has_only(params, &["_meta"]));
    is_usual.then_some(FastQuestion::List)
}

fn call(params: &Members) -> Option<FastQuestion<'_>> {
    let arguments = match params.get("arguments") {
        Some(arguments) => Some(arguments.as_object()?),
        None => None,
    };
    let name = params.get("name")?.as_str()?;
    has_only(params, &["name", "arguments", "_meta"]).then_some(FastQuestion::Call(Call { name, arguments }))
}

/// The only value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Says by which lifecycle a message is sent; nothing when headers and message do not say the same. `name` is that of the
/// tool, where there is one.
fn is_modern(meta: Option<&Value>, method: &str, name: Option<&str>, headers: &HeaderMap) -> Option<bool> {
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
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let is_said = match name {
        Some(name) => name.bytes().all(is_plain) && only(headers, "mcp-name") == Some(name),
        None => !said("mcp-name"),
    };
    let agrees = version == MODERN
        && only(headers, "mcp-protocol-version") == Some(MODERN)
        && only(headers, "mcp-method") == Some(method)
        && capabilities.is_some_and(|declared| ClientCapabilities::deserialize(declared).is_ok());
    (agrees && is_said).then_some(true)
}
