#![forbid(unsafe_code)]
//! OTLP/HTTP: what agents and frameworks export about themselves, read as events of the history.
//!
//! ```text
//! body ── expand ──► bytes ── outline ──► slices, one per record ── decode ──► attributes ── read ──► events
//!          OT-1                OT-2                           OT-3                      OT-4, OT-5
//! ```
//!
//! Sources: OTLP specification 1.10 (HTTP, JSON, partial success), OpenTelemetry's conventions for generative AI and
//! MCP, the events that Claude Code and Codex document; D9.11.
//!
//! Invariants:
//! - OT-1: no body expands beyond [`MAX_EXPANDED`].
//! - OT-2: a record is decoded alone and dropped before the next one, so that memory follows the size of the body and
//!   not what its bytes claim.
//! - OT-3: every record is counted once: as events, as skipped, or as rejected.
//! - OT-4: one tool call is one `pre_tool` and one `post_tool`, and one model call at most one `prompt` and one
//!   `response`, whichever exporter tells of it. Records of one call that come in two payloads are two events.
//! - OT-5: what an exporter hides, cuts or leaves out is *missing*, never absent: a policy that reads it is unknown
//!   and not silently unmatched. So is what is told and cannot be read: nothing is decided on a value that may be there.
//! - OT-6: of a record and its resource only the attributes that are named here are read; nothing else is kept.
//!
//! Absent on purpose: HTTP and its statuses, organizations, names resolved to ids, metrics; the permission that an agent's user gave
//! (accept, reject) as a decision, for it is not the decision of a policy; OTLP over gRPC.

mod answer;
mod attributes;
mod body;
mod error;
mod event;
mod flat;
mod genai;
mod joined;
mod log;
mod mcp;
mod message;
mod messages;
mod outline;
mod read;
mod span;

pub use answer::answer;
pub use body::{Encoding, MAX_EXPANDED, expand};
pub use error::Error;
pub use event::Event;
pub use outline::MAX_RECORDS;
pub use read::{MAX_RECORD, PayloadReading, Signal, SkipReason, Times, read};
