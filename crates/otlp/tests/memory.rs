//! The memory that the worst payloads take. Alone in its process: what is measured is the process's peak.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use provost_otlp::{Encoding, MAX_EXPANDED, MAX_RECORD, MAX_RECORDS, Signal, Times, read};

const TIMES: Times = Times {
    now_ms: 1,
    oldest_ms: 0,
    newest_ms: 2,
};

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

/// The most memory that the process held. Units: KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Proves OT-2.
#[test]
fn the_worst_payloads_stay_within_their_bound() {
    let payload = |records: Vec<u8>| field(1, &field(2, &records));
    // Attributes and values of two bytes each, as many as a record can hold.
    let attributes = field(2, &field(6, &[]).repeat(MAX_RECORD / 2 - 8));
    let values = field(
        2,
        &field(
            6,
            &field(2, &field(5, &field(1, &[]).repeat(MAX_RECORD / 2 - 16))),
        ),
    );
    // One name that every event of the resource repeats.
    let name = [field(1, b"user.email"), field(2, &field(1, &[b'x'; 200]))].concat();
    let prompts = field(2, &field(12, b"codex.user_prompt")).repeat(MAX_RECORDS);
    let worst = [
        ("attributes", payload(attributes.repeat(15))),
        ("values", payload(values.repeat(15))),
        (
            "names",
            field(1, &[field(1, &field(1, &name)), field(2, &prompts)].concat()),
        ),
        ("records", payload(field(2, &[]).repeat(MAX_EXPANDED / 2))),
        ("scopes", field(1, &field(2, &[]).repeat(MAX_EXPANDED / 2))),
    ];
    // proc(5): 5 sets the peak to what is held now, which is the payloads.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    for (what, payload) in worst {
        drop(read(Signal::Logs, Encoding::Protobuf, &payload, TIMES));
        let grown = peak() - before;
        println!(
            "{what}: {} KiB, grown by {grown} KiB so far",
            payload.len() / 1024
        );
        // LIMIT: 64 MiB beside a body of 16 MiB; decoded at once its records alone would take 1 GiB.
        assert!(grown < 64 << 10, "{what}: {grown} KiB");
    }
}
