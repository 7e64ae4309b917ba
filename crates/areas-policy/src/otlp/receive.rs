//! What both receivers do.

use crate::history::{self, Durability, IncomingEvent, NewEvent, Provenance};
use bytes::Bytes;
use provost_backtest::record::OTLP;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::Content;
use provost_kernel::{Kernel, OperationContext, Result};
use provost_otlp::{Encoding, Event, Signal, SkipReason, Times, answer, expand, read};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// In the order in which a person would choose.
pub const MEDIA_TYPES: &[&str] = &["application/json", "application/x-protobuf"];
/// LIMIT: seconds in which a body must be complete; exporters wait 10.
pub const SECONDS: u64 = 30;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// How far ahead of ours the clock of an exporter may be.
const AHEAD_MS: i64 = 5 * 60 * 1_000;

/// A payload without its compression.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct PlainPayload {
    #[serde(skip)]
    encoding: Option<Encoding>,
    #[serde(skip)]
    payload: Bytes,
}

impl PlainPayload {
    /// Errors: `UnsupportedMediaType` for another compression, `PayloadTooLarge` for a body beyond the limit,
    /// `Invalid` for a broken one.
    pub fn of(content: &Content) -> Result<Self> {
        let expanded = expand(content.encoding.as_deref(), &content.bytes).map_err(refused)?;
        Ok(Self {
            encoding: Encoding::of(&content.media_type),
            payload: match expanded {
                Cow::Borrowed(_) => content.bytes.clone(),
                Cow::Owned(bytes) => bytes.into(),
            },
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
fn refused(error: provost_otlp::Error) -> Error {
    let code = match error {
        provost_otlp::Error::UnknownCompression => Code::UnsupportedMediaType,
        provost_otlp::Error::TooLarge => Code::PayloadTooLarge,
        provost_otlp::Error::Malformed(_) => return Error::invalid("", error.to_string()),
    };
    Error::new(code, error.to_string())
}

/// Reads a payload, and answers once its events are durable (OT-7).
pub fn receive(ctx: &mut OperationContext<'_>, signal: Signal, received: &PlainPayload) -> Result<()> {
    let encoding = received.encoding.unwrap_or(Encoding::Protobuf);
    let org = ctx.org();
    let now = ctx.now();
    let days = history::retention_days(&mut ctx.tx(), org, now)?;
    let now_ms = now.as_ms();
    let times = Times {
        now_ms,
        oldest_ms: now_ms - days * DAY_MS,
        newest_ms: now_ms + AHEAD_MS,
    };
    let reading = read(signal, encoding, &received.payload, times).map_err(refused)?;
    let kernel = Kernel::behind(ctx.services())?;
    let remark = reading.remark();
    if let Some(remark) = remark {
        remarked(ctx, now_ms, remark);
    }
    let (organization, why) = (ctx.organization().clone(), remark.unwrap_or(reading.why));
    let counts = Counts {
        read: reading.read,
        skipped: reading.skipped,
        rejected: reading.rejected,
    };
    let events = events(ctx, reading.events)?;
    ctx.send_later(encoding.content_type(), async move {
        let events = history::undecided(&kernel, &organization, events).await?;
        let recorder = history::recorder(&kernel);
        recorder
            .append(&organization, events, Durability::Durable)
            .await?;
        counts.count();
        Ok(answer(signal, encoding, counts.rejected, why).into())
    });
    Ok(())
}

/// LIMIT: exporters whose last line in the log is remembered.
const REMARKED: usize = 1_024;

/// Writes into the log, once an hour for each exporter, that nothing of what it sends is known.
fn remarked(ctx: &OperationContext<'_>, now_ms: i64, remark: &str) {
    static LAST: Mutex<BTreeMap<String, i64>> = Mutex::new(BTreeMap::new());
    let organization = ctx.org().to_owned();
    let exporter = format!("{organization} {}", ctx.actor().id);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = last
        .get(&exporter)
        .is_none_or(|at| !(*at..*at + HOUR_MS).contains(&now_ms));
    if !is_new {
        return;
    }
    if last.len() >= REMARKED {
        last.clear();
    }
    last.insert(exporter, now_ms);
    tracing::warn!(organization, actor = %ctx.actor().id, "telemetry: {remark}");
}

/// Returns the events as they are recorded, with the users that the directory knows.
fn events(ctx: &mut OperationContext<'_>, events: Vec<Event>) -> Result<Vec<NewEvent>> {
    let instants: Vec<i64> = events.iter().map(|event| event.at_ms).collect();
    let mut events: Vec<IncomingEvent> = events.into_iter().map(incoming).collect();
    history::resolve(ctx, &mut events)?;
    // Events of one instant stay in the order of the payload.
    let mut sequence = history::accept(ctx, events.len())?;
    let from = Provenance::own(OTLP, ctx.actor());
    let mut recorded = Vec::with_capacity(events.len());
    for (event, at_ms) in events.iter().zip(instants) {
        let event = event.event(&sequence.id(at_ms)?, at_ms, &from);
        recorded.push(
            event.map_err(|faults| Error::internal(format!("a record was read as no event: {faults:?}")))?,
        );
    }
    Ok(recorded)
}

/// What became of the records of a payload.
struct Counts {
    read: u64,
    skipped: BTreeMap<SkipReason, u64>,
    rejected: u64,
}

impl Counts {
    fn count(&self) {
        let skipped = |why| self.skipped.get(&why).copied().unwrap_or_default();
        for (outcome, records) in [
            ("read", self.read),
            ("other", skipped(SkipReason::Other)),
            ("foreign", skipped(SkipReason::Foreign)),
            ("twice", skipped(SkipReason::Twice)),
            ("rejected", self.rejected),
        ] {
            metrics::counter!("provost_otlp_records_total", "outcome" => outcome).increment(records);
        }
    }
}

fn incoming(event: Event) -> IncomingEvent {
    IncomingEvent {
        external_id: event.id,
        at_ms: Some(event.at_ms),
        attributes: event.attributes,
        missing: event.missing.into_iter().map(str::to_owned).collect(),
        session: event.session,
        call_id: event.call_id,
        ..IncomingEvent::new(event.occasion)
    }
}
