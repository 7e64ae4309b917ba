//! What payloads of real exporters, of the specification and of nobody say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod hostile;
mod json;
mod recorded;

use provost_otlp::{Encoding, Event, Reading, Signal, read};

/// 2026-09-23T12:00:30Z: later than every record of the fixtures.
const NOW_MS: i64 = 1_790_164_830_000;

fn json(signal: Signal, payload: &serde_json::Value) -> Reading {
    read(signal, Encoding::Json, payload.to_string().as_bytes(), NOW_MS).unwrap()
}

/// A payload with one resource and these log records.
fn logs(records: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] })
}

/// Whether the catalogue has every attribute with its type, as the engine reads it.
fn assert_readable(event: &Event) {
    let mut symbols = provost_policy::Symbols::default();
    let read = provost_policy::Event::read(
        &mut symbols,
        event.at_ms,
        event.occasion,
        &event.attributes,
        &event.missing,
    );
    assert!(read.is_ok(), "{event:?}: {read:?}");
}
