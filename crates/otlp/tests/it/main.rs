//! What payloads of real exporters, of the specification and of nobody say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod exporters;
mod fuzz;
mod hostile;
mod json;
mod recorded;

use fuzz::{TIMES, assert_readable};
use provost_otlp::{Encoding, PayloadReading, Signal, read};

fn json(signal: Signal, payload: &serde_json::Value) -> PayloadReading {
    read(signal, Encoding::Json, payload.to_string().as_bytes(), TIMES).unwrap()
}

/// A payload with one resource and these log records.
fn logs(records: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] })
}
