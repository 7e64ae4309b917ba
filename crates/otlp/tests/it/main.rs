//! What payloads of real exporters, of the specification and of nobody say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod fuzz;
mod hostile;
mod json;
mod recorded;

use provost_otlp::{Encoding, Event, Reading, Signal, Times, read};

/// 2026-09-23T12:00:30Z: later than every record of the fixtures.
const NOW_MS: i64 = 1_790_164_830_000;

const TIMES: Times = Times {
    now_ms: NOW_MS,
    oldest_ms: NOW_MS - 86_400_000,
    newest_ms: NOW_MS + 300_000,
};

fn json(signal: Signal, payload: &serde_json::Value) -> Reading {
    read(signal, Encoding::Json, payload.to_string().as_bytes(), TIMES).unwrap()
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
