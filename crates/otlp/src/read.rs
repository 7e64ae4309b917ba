//! From a payload to events, record by record.
//!
//! INVARIANT OT-3: every record of telemetry is counted once: as events, as skipped or as rejected.
//! Keeps OT-2.

use crate::attributes::Attributes;
use crate::event::Event;
use crate::joined::joined;
use crate::message::{LogRecord, Resource, Span};
use crate::outline::{MAX_RECORDS, Outline};
use crate::{Encoding, Error, log, span};
use prost::Message;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// How large one record, or one resource, may be. Units: bytes. A larger one is rejected: decoded it could be 30 times
/// as large.
pub const MAX_RECORD: usize = 1 << 20;

/// How many attributes a record, or a resource, may have; OpenTelemetry's own limit is 128.
const MAX_ATTRIBUTES: usize = 1_024;

/// LIMIT: events of one payload, as many as its records have where each tells of a begin and an end.
const MAX_EVENTS: usize = 2 * MAX_RECORDS;

/// What is said of a payload of which nothing is known.
const REMARK: &str = "no record tells of a tool call, a prompt or a response in a form that is known here, so nothing was recorded; the \
                      guide to telemetry lists the exporters and conventions that are read";

/// Which of the two payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `ExportLogsServiceRequest`.
    Logs,
    /// `ExportTraceServiceRequest`.
    Traces,
}

/// Why a record gives no event; no fault of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// It tells of no tool call, prompt or response.
    Other,
    /// Nothing of it is known here: neither its exporter nor a convention that it follows.
    Foreign,
    /// Another record tells of the same call, with more in it.
    Twice,
    /// It may tell of a call, and of which cannot be read.
    Unreadable,
}

/// Which instants are taken. Units: milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The instant of records that have none.
    pub now_ms: i64,
    /// A record with an earlier event is rejected.
    pub oldest_ms: i64,
    /// A record with a later event is rejected.
    pub newest_ms: i64,
}

/// What a payload says. Each record is counted once (OT-3): `read + skipped + rejected` is their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PayloadReading {
    /// The events, in the order of the payload.
    pub events: Vec<Event>,
    /// How many records the events are of.
    pub read: u64,
    /// How many records gave no event, and why.
    pub skipped: BTreeMap<SkipReason, u64>,
    /// How many records could not be read.
    pub rejected: u64,
    /// Why the first of them could not.
    pub why: &'static str,
}

impl Times {
    fn take(&self, event: &Event) -> bool {
        (self.oldest_ms..=self.newest_ms).contains(&event.at_ms)
    }
}

impl PayloadReading {
    /// Says what whoever sent a payload of which nothing is known should be told; nothing of any other payload.
    pub fn remark(&self) -> Option<&'static str> {
        let all: u64 = self.skipped.values().sum();
        let foreign = self
            .skipped
            .get(&SkipReason::Foreign)
            .copied()
            .unwrap_or_default();
        (self.read == 0 && self.rejected == 0 && all > 0 && all == foreign).then_some(REMARK)
    }

    /// Counts records that could not be read; a resource that has none is no loss.
    fn reject(&mut self, records: u64, why: &'static str) {
        if self.rejected == 0 && records > 0 {
            self.why = why;
        }
        self.rejected += records;
    }
}

/// Returns what a payload says.
///
/// Errors: `Malformed`, when not even the outline can be read.
pub fn read(
    signal: Signal,
    encoding: Encoding,
    payload: &[u8],
    times: Times,
) -> Result<PayloadReading, Error> {
    let now_ms = times.now_ms;
    let outline = Outline::of(signal, encoding, payload)?;
    let mut reading = PayloadReading::default();
    for (place, group) in outline.groups.iter().enumerate() {
        let resource = match group.resource.map(|slice| decode::<Resource>(encoding, slice)) {
            None => Resource::default(),
            Some(Ok(resource)) if resource.attributes.len() <= MAX_ATTRIBUTES => resource,
            Some(_) => {
                reading.reject(group.records.len() as u64, "a resource is malformed or too large");
                continue;
            }
        };
        let resource = Attributes(&resource.attributes);
        for record in &group.records {
            let outcome = match signal {
                Signal::Logs => decode::<LogRecord>(encoding, record).and_then(|record| {
                    limited(record.attributes.len())?;
                    Ok(log::events(&record, resource, now_ms))
                }),
                Signal::Traces => decode::<Span>(encoding, record).and_then(|record| {
                    limited(record.attributes.len())?;
                    Ok(span::events(&record, resource, place, now_ms))
                }),
            };
            match outcome {
                Ok(Ok(events)) if !events.iter().all(|event| times.take(event)) => {
                    reading.reject(1, "a record is older than events are kept, or of the future");
                }
                Ok(Ok(events)) if reading.events.len() + events.len() > MAX_EVENTS => {
                    reading.reject(1, "a payload tells of more than 20000 events");
                }
                Ok(Ok(events)) => {
                    reading.read += 1;
                    reading.events.extend(events);
                }
                // Whoever sent it is told (OT-5): an event of which nobody knows what it is has no place in the history.
                Ok(Err(SkipReason::Unreadable)) => {
                    reading.reject(1, "what a record tells of cannot be read");
                }
                Ok(Err(skipped)) => *reading.skipped.entry(skipped).or_default() += 1,
                Err(why) => reading.reject(1, why),
            }
        }
    }
    if outline.beyond > 0 {
        const _: () = assert!(MAX_RECORDS == 10_000, "the sentences name it");
        reading.reject(outline.beyond, "a payload of more than 10000 records was sent");
    }
    reading.events = joined(std::mem::take(&mut reading.events));
    Ok(reading)
}

fn decode<T: Message + Default + DeserializeOwned>(
    encoding: Encoding,
    slice: &[u8],
) -> Result<T, &'static str> {
    if slice.len() > MAX_RECORD {
        return Err("a record is larger than 1 MiB");
    }
    match encoding {
        Encoding::Protobuf => T::decode(slice).map_err(|_| "a record is malformed"),
        Encoding::Json => serde_json::from_slice(slice).map_err(|_| "a record is malformed"),
    }
}

fn limited(attributes: usize) -> Result<(), &'static str> {
    if attributes > MAX_ATTRIBUTES {
        return Err("a record has more than 1024 attributes");
    }
    Ok(())
}

/// Returns an instant in milliseconds; none of 0, which stands for unknown.
pub fn millis(nanos: u64) -> Option<i64> {
    i64::try_from(nanos / 1_000_000).ok().filter(|millis| *millis > 0)
}
