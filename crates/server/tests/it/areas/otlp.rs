//! See the module above.

pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    let payload = match operation {
        "receiveHeadlessPolicyLogs" => r#"{"resourceLogs":[]}"#,
        "receiveHeadlessPolicyTraces" => r#"{"resourceSpans":[]}"#,
        _ => return None,
    };
    Some(("application/json", payload.as_bytes().to_vec()))
}
