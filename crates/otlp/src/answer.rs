//! What an exporter is answered.
//!
//! Source: OTLP specification, "OTLP/HTTP Response": the encoding of the answer is that of the request; a partial
//! success is told only if something was rejected.

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

/// Returns the body of the answer to a request of which this many records were rejected, and why. Where none was, and something is to be
/// said all the same, an exporter shows it as a warning.
pub fn answer(signal: Signal, encoding: Encoding, rejected: u64, why: &str) -> Vec<u8> {
    let is_silent = rejected == 0 && why.is_empty();
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    match encoding {
        Encoding::Protobuf => Export {
            partial_success: (!is_silent).then(|| Partial {
                rejected,
                error_message: why.to_owned(),
            }),
        }
        .encode_to_vec(),
        Encoding::Json if is_silent => b"{}".to_vec(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_success_says_nothing() {
        assert!(answer(Signal::Logs, Encoding::Protobuf, 0, "").is_empty());
        assert_eq!(answer(Signal::Traces, Encoding::Json, 0, ""), b"{}");
    }

    #[test]
    fn a_remark_rejects_nothing() {
        // Field 1, length 4: field 2 text "no"; a count of 0 is not written.
        assert_eq!(
            answer(Signal::Logs, Encoding::Protobuf, 0, "no"),
            [0x0a, 4, 0x12, 2, b'n', b'o']
        );
        assert_eq!(
            String::from_utf8(answer(Signal::Traces, Encoding::Json, 0, "no")).unwrap(),
            r#"{"partialSuccess":{"errorMessage":"no","rejectedSpans":"0"}}"#
        );
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
}
