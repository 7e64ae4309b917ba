//! Payloads that nobody means well with: nothing panics, nothing grows beyond what its bytes justify.

use super::{TIMES, assert_readable, json, logs};
use proptest::prelude::*;
use provost_otlp::{Encoding, MAX_EXPANDED, MAX_RECORD, MAX_RECORDS, Signal, Times, read};
use serde_json::json;
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![(tag << 3) | 2];
    let mut length = content.len();
    while length >= 0x80 {
        field.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    field.push(u8::try_from(length).unwrap());
    field.extend_from_slice(content);
    field
}

/// A payload of one resource with these log records.
fn payload(records: &[u8]) -> Vec<u8> {
    field(1, &field(2, records))
}

/// Proves OT-2.
#[test]
fn records_beyond_the_limit_are_counted_and_not_read() {
    // An empty record takes two bytes; 8 million of them fit into the limit of a body.
    let records: Vec<u8> = field(2, &[]).repeat((MAX_EXPANDED - 16) / 2);
    let count = (records.len() / 2) as u64;
    let reading = read(Signal::Logs, Encoding::Protobuf, &payload(&records), TIMES).unwrap();
    assert_eq!(reading.rejected, count - MAX_RECORDS as u64);
    assert_eq!(reading.skipped.values().sum::<u64>(), MAX_RECORDS as u64);

    let records = vec![json!({}); MAX_RECORDS + 3];
    let reading = json(Signal::Logs, &logs(&json!(records)));
    assert_eq!(reading.rejected, 3);
    assert_eq!(reading.why, "a payload of more than 10000 records was sent");
}

#[test]
fn resources_beyond_the_limit_refuse_the_payload() {
    let resources = field(1, &[]).repeat(1_001);
    assert!(read(Signal::Logs, Encoding::Protobuf, &resources, TIMES).is_err());
    assert!(read(Signal::Logs, Encoding::Protobuf, &resources[2..], TIMES).is_ok());
    let text = format!("{{\"resourceSpans\":[{}]}}", vec!["{}"; 1_001].join(","));
    assert!(read(Signal::Traces, Encoding::Json, text.as_bytes(), TIMES).is_err());
    let text = format!("{{\"resourceSpans\":[{}]}}", vec!["{}"; 1_000].join(","));
    assert!(read(Signal::Traces, Encoding::Json, text.as_bytes(), TIMES).is_ok());
}

#[test]
fn a_broken_resource_without_records_rejects_nothing() {
    // Its attributes are no message; one such group has a record, the other none.
    let resource = field(1, &field(1, &[0xff]));
    let without = field(1, &resource);
    let with = field(1, &[resource, field(2, &field(2, &[]))].concat());
    let reading = read(Signal::Logs, Encoding::Protobuf, &without, TIMES).unwrap();
    assert_eq!((reading.rejected, reading.why), (0, ""));
    let reading = read(Signal::Logs, Encoding::Protobuf, &[without, with].concat(), TIMES).unwrap();
    assert_eq!(
        (reading.rejected, reading.why),
        (1, "a resource is malformed or too large")
    );
}

/// Proves OT-2.
#[test]
fn a_record_with_too_much_in_it_is_rejected() {
    let large = field(2, &vec![0; MAX_RECORD + 1]);
    let many = field(2, &field(6, &[]).repeat(1_025));
    let enough = field(2, &field(6, &[]).repeat(1_024));
    let records = [large, many, enough].concat();
    let reading = read(Signal::Logs, Encoding::Protobuf, &payload(&records), TIMES).unwrap();
    assert_eq!(
        (reading.rejected, reading.why),
        (2, "a record is larger than 1 MiB")
    );
    assert_eq!(reading.skipped.values().sum::<u64>(), 1);
}

#[test]
fn values_nested_too_deep_are_not_read() {
    for depth in [10, 40, 5_000] {
        let mut value = field(1, b"deep");
        for _ in 0..depth {
            value = field(5, &field(1, &value));
        }
        let attributes = [
            field(6, &[field(1, b"arguments"), field(2, &value)].concat()),
            field(6, &[field(1, b"tool_name"), field(2, &field(1, b"t"))].concat()),
        ]
        .concat();
        let record = field(2, &[field(12, b"codex.tool_result"), attributes].concat());
        let reading = read(Signal::Logs, Encoding::Protobuf, &payload(&record), TIMES).unwrap();
        match depth {
            10 => assert!(reading.events[0].attributes.contains_key("tool.input")),
            40 => assert_eq!(reading.events[0].missing, ["tool.input"]),
            _ => assert_eq!((reading.read, reading.rejected), (0, 1)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        for signal in [Signal::Logs, Signal::Traces] {
            drop(read(signal, Encoding::Protobuf, &bytes, TIMES));
            drop(read(signal, Encoding::Protobuf, &payload(&field(2, &bytes)), TIMES));
            drop(read(signal, Encoding::Json, &bytes, TIMES));
        }
    }

    /// Every record is counted once (OT-3), wherever a recorded body is damaged.
    /// Proves OT-3.
    #[test]
    fn a_damaged_body_is_read_or_refused(
        is_log in any::<bool>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (signal, body) = if is_log {
            (Signal::Logs, &include_bytes!("../fixtures/logs.pb")[..])
        } else {
            (Signal::Traces, &include_bytes!("../fixtures/traces.pb")[..])
        };
        let mut bytes = body.to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let any = Times { oldest_ms: i64::MIN, newest_ms: i64::MAX, ..TIMES };
        if let Ok(reading) = read(signal, Encoding::Protobuf, &bytes, any) {
            let counted = reading.read + reading.skipped.values().sum::<u64>() + reading.rejected;
            prop_assert!(counted <= (bytes.len() / 2) as u64);
            prop_assert!(reading.events.len() as u64 <= 130 * reading.read);
            reading.events.iter().for_each(assert_readable);
        }
    }
}
