//! What an exporter is answered.
//!
//! Source: OTLP specification, "OTLP/HTTP Response": the encoding of the answer is that of the request; a partial
//! success is told only if something was rejected; of failures only 429, 502, 503 and 504 are worth another attempt.

use crate::{Encoding, Signal};
use prost::Message;
use serde_json::json;

/// `ExportLogsServiceResponse` and `ExportTraceServiceResponse`: the same bytes under two names.
#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
struct Partial {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Returns the body of the answer to a request of which this many records were rejected, and why.
pub fn answer(signal: Signal, encoding: Encoding, rejected: u64, why: &str) -> Vec<u8> {
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    match encoding {
        Encoding::Protobuf => Export {
            partial_success: (rejected > 0).then(|| Partial {
                rejected,
                error_message: why.to_owned(),
            }),
        }
        .encode_to_vec(),
        Encoding::Json if rejected == 0 => b"{}".to_vec(),
        Encoding::Json => {
            let name = match signal {
                Signal::Logs => "rejectedLogRecords",
                Signal::Traces => "rejectedSpans",
            };
            // A 64-bit number is a text in the JSON of protocol buffers.
            json!({ "partialSuccess": { name: rejected.to_string(), "errorMessage": why } })
                .to_string()
                .into_bytes()
        }
    }
}

/// Returns the body of a failure: the specification asks for a status message whose code is not interpreted.
pub fn failure(encoding: Encoding, message: &str) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => Status {
            code: 0,
            message: message.to_owned(),
        }
        .encode_to_vec(),
        Encoding::Json => json!({ "message": message }).to_string().into_bytes(),
    }
}

/// Returns whether an exporter sends the same body again after an answer with this status.
pub const fn is_retryable(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_success_says_nothing() {
        assert!(answer(Signal::Logs, Encoding::Protobuf, 0, "unused").is_empty());
        assert_eq!(answer(Signal::Traces, Encoding::Json, 0, "unused"), b"{}");
    }

    #[test]
    fn a_partial_success_counts_what_was_rejected() {
        // Field 1, length 6: field 1 varint 3, field 2 text "no".
        let expected = [0x0a, 6, 0x08, 3, 0x12, 2, b'n', b'o'];
        assert_eq!(answer(Signal::Logs, Encoding::Protobuf, 3, "no"), expected);
        assert_eq!(
            String::from_utf8(answer(Signal::Traces, Encoding::Json, 3, "no")).unwrap(),
            r#"{"partialSuccess":{"errorMessage":"no","rejectedSpans":"3"}}"#
        );
        assert_eq!(
            String::from_utf8(answer(Signal::Logs, Encoding::Json, 3, "no")).unwrap(),
            r#"{"partialSuccess":{"errorMessage":"no","rejectedLogRecords":"3"}}"#
        );
    }

    #[test]
    fn a_failure_is_a_status() {
        assert_eq!(failure(Encoding::Protobuf, "no"), [0x12, 2, b'n', b'o']);
        assert_eq!(failure(Encoding::Json, "no"), br#"{"message":"no"}"#);
        assert!(is_retryable(503) && !is_retryable(500) && !is_retryable(413));
    }
}
