//! The headers that the protocol wants beside a message: revision, method, name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

const VERSION_IN_META: &str = "io.modelcontextprotocol/protocolVersion";
/// The first revision that wants method and name in headers.
const NAMED_IN_HEADERS: &str = "2026-07-28";

/// Returns the headers of a message. `negotiated` is the revision of the answer to `initialize`.
pub(super) fn of(message: &Value, negotiated: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(
        "accept",
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    let method = message["method"].as_str();
    if method == Some("initialize") {
        return headers;
    }
    let own = message["params"]["_meta"][VERSION_IN_META].as_str();
    let Some(revision) = own.or(negotiated) else {
        return headers;
    };
    put(&mut headers, "mcp-protocol-version", revision);
    let Some(method) = method.filter(|_| revision >= NAMED_IN_HEADERS) else {
        return headers;
    };
    put(&mut headers, "mcp-method", method);
    let name = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            message["params"]["uri"].as_str()
        }
        _ => None,
    };
    if let Some(name) = name {
        put(&mut headers, "mcp-name", &spelled(name));
    }
    headers
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// A value as a header holds it: what is not plain stands in base64 behind a mark.
fn spelled(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text;
    if is_plain && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", BASE64.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_revision_stands_in_each_message_and_names_what_is_called() {
        let call = json!({ "method": "tools/call", "params": { "name": "größe", "_meta": { VERSION_IN_META: "2026-07-28" } } });
        let headers = of(&call, Some("2025-11-25"));
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
    }

    #[test]
    fn older_revisions_are_those_of_initialize() {
        let call = json!({ "method": "tools/call", "params": { "name": "x" } });
        let headers = of(&call, Some("2025-11-25"));
        assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
        assert!(!headers.contains_key("mcp-method"));
        assert!(
            !of(&json!({ "method": "initialize" }), Some("2025-11-25")).contains_key("mcp-protocol-version")
        );
        assert!(!of(&call, None).contains_key("mcp-protocol-version"));
    }
}
