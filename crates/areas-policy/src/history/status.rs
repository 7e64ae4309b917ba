//! Tells how much history there is.

use super::model::READERS;
use super::{retention_days, store};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

pub struct GetStatus;

/// How much history there is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Status {
    /// How many events are kept.
    events: i64,
    /// When the oldest of them happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_event_at: Option<Timestamp>,
    /// When the newest of them happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_event_at: Option<Timestamp>,
    /// How many chunks wait to be sealed.
    chunks: i64,
    /// How many segments there are.
    segments: i64,
    /// What chunks and segments take. Units: bytes.
    bytes: i64,
    /// How long events are kept. Units: days.
    retention_days: i64,
}

impl Operation for GetStatus {
    const META: Meta = Meta::read(
        "getHeadlessPolicyHistoryStatus",
        "/policies/history/status",
        "policies",
    )
    .access("policies:history", READERS)
    .command("history", "status")
    .says(
        "Tell how much history there is",
        "Events are kept as long as the setting retention.historyDays says; whole chunks and segments go when their newest \
         event is older.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Status;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<Status> {
        let (org, now) = (ctx.org(), ctx.now());
        let [chunks, segments] = store::status(&mut ctx.tx(), org)?;
        let instant = |at: Option<i64>| at.map(Timestamp::from_ms);
        Ok(Status {
            events: chunks.events + segments.events,
            oldest_event_at: instant(chunks.min_at.into_iter().chain(segments.min_at).min()),
            newest_event_at: instant(chunks.max_at.max(segments.max_at)),
            chunks: chunks.count,
            segments: segments.count,
            bytes: chunks.bytes + segments.bytes,
            retention_days: retention_days(&mut ctx.tx(), org, now)?,
        })
    }
}
