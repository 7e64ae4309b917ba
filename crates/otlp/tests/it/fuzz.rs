//! What a fuzzer asks of payloads: a function of any bytes that panics where a promise is broken.
//!
//! The first byte of the input says which payload the rest is: its bits are traces or logs, JSON or protobuf, compressed
//! or not.
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpus; the test here replays it.

use provost_otlp::{Encoding, Event, MAX_EXPANDED, Signal, Times, expand, read};

/// 2026-09-23T12:00:30Z: later than every record of the corpus and of the fixtures.
const NOW_MS: i64 = 1_790_164_830_000;

pub const TIMES: Times = Times {
    now_ms: NOW_MS,
    oldest_ms: NOW_MS - 86_400_000,
    newest_ms: NOW_MS + 300_000,
};

/// Any payload is events that the engine can read, each within the times that are taken, or refused.
pub fn otlp(data: &[u8]) {
    let Some((form, body)) = data.split_first() else {
        return;
    };
    let signal = if form & 1 == 0 {
        Signal::Logs
    } else {
        Signal::Traces
    };
    let encoding = if form & 2 == 0 {
        Encoding::Json
    } else {
        Encoding::Protobuf
    };
    let Ok(payload) = expand((form & 4 != 0).then_some("gzip"), body) else {
        return;
    };
    assert!(payload.len() <= MAX_EXPANDED);
    let Ok(reading) = read(signal, encoding, &payload, TIMES) else {
        return;
    };
    // A record takes two bytes at least.
    let records = reading.read + reading.skipped.values().sum::<u64>() + reading.rejected;
    assert!(records <= payload.len() as u64 && reading.read <= reading.events.len() as u64);
    assert_eq!(reading.rejected == 0, reading.why.is_empty());
    for event in &reading.events {
        assert!((TIMES.oldest_ms..=TIMES.newest_ms).contains(&event.at_ms));
        assert_readable(event);
    }
    assert_eq!(read(signal, encoding, &payload, TIMES).unwrap(), reading);
}

/// Whether the catalogue has every attribute with its type, as the engine reads it.
pub fn assert_readable(event: &Event) {
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

#[test]
fn the_corpus_of_payloads_keeps_its_promises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/otlp");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let mut with_events = 0;
    for name in &names {
        println!("{}", name.display());
        let data = std::fs::read(name).unwrap();
        otlp(&data);
        let known = match data[0] {
            0 => read(Signal::Logs, Encoding::Json, &data[1..], TIMES),
            1 => read(Signal::Traces, Encoding::Json, &data[1..], TIMES),
            2 => read(Signal::Logs, Encoding::Protobuf, &data[1..], TIMES),
            _ => read(Signal::Traces, Encoding::Protobuf, &data[1..], TIMES),
        };
        with_events += usize::from(known.is_ok_and(|reading| !reading.events.is_empty()));
    }
    assert!(
        names.len() >= 8 && with_events >= 4,
        "{} inputs, {with_events}",
        names.len()
    );
}
