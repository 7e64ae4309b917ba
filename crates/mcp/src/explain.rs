//! Why the protocol's library refused a request, where it says so in plain text: the edge hands on no such text.

use crate::handler::REVISIONS;
use crate::message::Refusal;
use axum::response::Response;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use rmcp::model::ProtocolVersion;
use serde_json::Value;

/// Returns the response of the library to a message of this id, with a message of the protocol in the place of plain text.
pub(crate) fn library(response: Response, id: &Value, has_revision: bool) -> Response {
    let media_type = response.headers().get(CONTENT_TYPE);
    if media_type.is_some_and(|media_type| media_type == "application/json") {
        return response;
    }
    let message = match response.status() {
        StatusCode::BAD_REQUEST if has_revision => {
            let served: Vec<&str> = REVISIONS.iter().map(ProtocolVersion::as_str).collect();
            format!(
                "the header MCP-Protocol-Version names no revision that is served here; there are {}",
                served.join(", ")
            )
        }
        // Media types were judged before: it is the message that it could not read.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            "the message has the form of no request and no notification of the protocol".to_owned()
        }
        _ => return response,
    };
    Refusal::new(-32600, id, format!("invalid request: {message}")).respond()
}
