//! The bodies in `fixtures/`, recorded from the Python exporters by `record.py`.

use super::{TIMES, assert_readable};
use provost_otlp::{Encoding, Signal, SkipReason, expand, read};
use std::path::Path;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Compares all events of a body with a golden; `UPDATE_GOLDENS=1` writes it.
fn assert_events(signal: Signal, body: &str, golden: &str) -> provost_otlp::PayloadReading {
    let reading = read(signal, Encoding::Protobuf, &fixture(body), TIMES).unwrap();
    reading.events.iter().for_each(assert_readable);
    let mut lines = String::new();
    for event in &reading.events {
        let mut json = event.to_json();
        // Exporters make up a span's id.
        if let Some(id) = json.as_object_mut().unwrap().remove("id") {
            let id = id.as_str().unwrap();
            // Of the tools that an answer asks for each has its place behind it.
            assert_eq!(id.split('.').next().unwrap().len(), 16);
        }
        lines.push_str(&json.to_string());
        lines.push('\n');
    }
    let path = folder().join(golden);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(&path).unwrap(), "{golden}");
    reading
}

/// Proves OT-3, OT-4, OT-5.
#[test]
fn logs_of_claude_code_codex_and_the_former_conventions_are_read() {
    let reading = assert_events(Signal::Logs, "logs.pb", "logs.events.jsonl");
    assert_eq!((reading.read, reading.rejected), (12, 0));
    assert_eq!(reading.skipped[&SkipReason::Twice], 2);
    assert_eq!(reading.skipped[&SkipReason::Other], 2);
}

/// Proves OT-4, OT-5.
#[test]
fn spans_of_the_conventions_are_read() {
    let reading = assert_events(Signal::Traces, "traces.pb", "traces.events.jsonl");
    assert_eq!((reading.read, reading.rejected), (5, 0));
    assert_eq!(reading.skipped[&SkipReason::Twice], 1);
    assert_eq!(reading.skipped[&SkipReason::Other], 1);
    assert_eq!(reading.skipped[&SkipReason::Foreign], 1);
}

/// Proves OT-6.
#[test]
fn nothing_of_a_resource_but_whom_it_names_is_kept() {
    for (signal, body) in [(Signal::Logs, "logs.pb"), (Signal::Traces, "traces.pb")] {
        let bytes = fixture(body);
        assert!(String::from_utf8_lossy(&bytes).contains("of-the-resource"));
        let reading = read(signal, Encoding::Protobuf, &bytes, TIMES).unwrap();
        assert!(!format!("{reading:?}").contains("of-the-resource"));
    }
}

#[test]
fn a_compressed_body_says_the_same() {
    let expanded = expand(Some("gzip"), &fixture("logs.pb.gz")).unwrap().into_owned();
    let compressed = read(Signal::Logs, Encoding::Protobuf, &expanded, TIMES).unwrap();
    let plain = read(Signal::Logs, Encoding::Protobuf, &fixture("logs.pb"), TIMES).unwrap();
    assert_eq!(compressed, plain);
}
