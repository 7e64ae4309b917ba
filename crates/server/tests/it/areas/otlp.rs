//! See the module above.

use super::Samples;

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    content,
    ..Samples::NONE
};

pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    let payload = match operation {
        "receiveHeadlessPolicyLogs" => r#"{"resourceLogs":[]}"#,
        "receiveHeadlessPolicyTraces" => r#"{"resourceSpans":[]}"#,
        _ => return None,
    };
    Some(("application/json", payload.as_bytes().to_vec()))
}
