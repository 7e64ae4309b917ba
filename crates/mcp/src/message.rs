//! One JSON-RPC message, read strictly: what is refused here never reaches the protocol's library.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use provost_kernel::{Error, json};
use serde_json::Value;

/// LIMIT: levels of nesting of a message; arguments may nest as deep as the deepest body of an operation, and stand
/// three levels down.
const MAX_DEPTH: usize = 100;

/// Why a message is not answered by its method.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: i32,
    id: Value,
    message: String,
}

/// Reads a message.
///
/// Errors: what JSON-RPC and the revisions say of it: not JSON, a batch, no message, parameters that are no object.
pub(crate) fn read(body: &[u8]) -> Result<Value, Refusal> {
    let refused = |code, id: &Value, message: &str| Err(Refusal::new(code, id, message));
    let message = match json::parse(body, MAX_DEPTH) {
        Ok(message) => message,
        Err(error) => {
            return refused(
                -32700,
                &Value::Null,
                &format!("parse error: {}", unreadable(&error)),
            );
        }
    };
    if message.is_array() {
        return refused(
            -32600,
            &Value::Null,
            "invalid request: no revision since 2025-06-18 has batches",
        );
    }
    let id = &message["id"];
    if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return refused(-32600, id, "invalid request: jsonrpc must be \"2.0\"");
    }
    if message.get("id").is_some_and(|id| !is_id(id)) && message.get("method").is_some() {
        return refused(
            -32600,
            id,
            "invalid request: id must be a string or a whole number",
        );
    }
    match message.get("method") {
        Some(Value::String(_)) => {}
        None if message.get("result").is_some() || message.get("error").is_some() => {}
        _ => return refused(-32600, id, "invalid request: method must be a string"),
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return refused(-32602, id, "invalid params: /params must be an object");
    }
    if let Some(pointer) = misfit(&message) {
        return refused(-32602, id, &format!("invalid params: {pointer}"));
    }
    Ok(message)
}

/// Says why a body is no document; where the parser stumbled is nothing that a client could mend.
fn unreadable(error: &Error) -> &str {
    let message = error.message();
    if message.contains("is not valid JSON at ") {
        return "the message is not valid JSON";
    }
    message
}

/// Says what is wrong with the parameters of the methods that are called most, by name.
fn misfit(message: &Value) -> Option<&'static str> {
    let params = message.get("params");
    let of = |name: &str| params.and_then(|params| params.get(name));
    let is_text = |name| of(name).is_some_and(Value::is_string);
    match message.get("method")?.as_str()? {
        "tools/call" | "prompts/get" if !is_text("name") => Some("/params/name must be a string"),
        "tools/call" | "prompts/get" if of("arguments").is_some_and(|a| !a.is_object() && !a.is_null()) => {
            Some("/params/arguments must be an object")
        }
        "resources/read" if !is_text("uri") => Some("/params/uri must be a string"),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list"
            if of("cursor").is_some_and(|c| !c.is_string() && !c.is_null()) =>
        {
            Some("/params/cursor must be a string")
        }
        _ => None,
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

impl Refusal {
    /// Returns the refusal of a message with this id, if that is one.
    pub fn new(code: i32, id: &Value, message: impl Into<String>) -> Self {
        Self {
            code,
            id: if is_id(id) { id.clone() } else { Value::Null },
            message: message.into(),
        }
    }

    /// Returns the answer: 400, except for parameters, which older revisions answer in the message alone.
    pub fn respond(&self) -> axum::response::Response {
        let body = serde_json::json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": { "code": self.code, "message": self.message },
        });
        let mut response = axum::response::Response::new(Bytes::from(body.to_string()).into());
        *response.status_mut() = if self.code == -32602 {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused_by_the_code_that_says_why() {
        let cases: &[(&str, i32)] = &[
            ("", -32700),
            ("{", -32700),
            ("\u{feff}{}", -32700),
            (
                r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}"#,
                -32700,
            ),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            ("1", -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[]}}"#,
                -32602,
            ),
        ];
        for (body, code) in cases {
            let refusal = read(body.as_bytes()).unwrap_err();
            assert_eq!(refusal.code, *code, "{body}");
            assert!(!refusal.message.contains("column"), "{}", refusal.message);
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}1{}}}}}"#,
            "[".repeat(120),
            "]".repeat(120)
        );
        assert_eq!(read(deep.as_bytes()).unwrap_err().code, -32700);
    }

    #[test]
    fn messages_are_read() {
        for body in [
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}"#,
        ] {
            assert!(read(body.as_bytes()).is_ok(), "{body}");
        }
    }
}
