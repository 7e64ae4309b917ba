#![forbid(unsafe_code)]
//! The event history: every recorded decision, kept as it was judged, and read again at the speed of a disk.
//!
//! ```text
//! events ── Recorder ──► chunk (a BLOB, durable on answer) ── Sealer ──► segment (a Parquet file, immutable)
//!                              └──────────────── Plan: window, newest first ────────────────┘
//!                                     scan: columns, batch by batch    group: distinct behaviour
//! ```
//!
//! An event is a row over a declared [`Schema`]; what its columns mean is the policy engine's business. Source:
//! D9.1 to D9.7, D9.11.
//!
//! Absent on purpose: organizations, SQL, HTTP, clocks, entropy, async. Whoever calls says where bytes lie
//! ([`Storage`]), which chunks and segments belong together, and on which threads to work.

mod batch;
pub mod chunk;
mod error;
mod event;
pub mod group;
#[cfg(feature = "object-store")]
pub mod object_store;
mod plan;
pub mod scan;
mod schema;
mod segment;
mod source;
mod storage;
mod symbols;
pub mod synthetic;
mod texts;
mod wire;

pub use batch::{Batch, Column, Dictionary, Entry, Sets, Value};
pub use error::{Error, Result};
pub use event::{CHUNK_EVENTS, Event, Recorder};
pub use plan::{EventPosition, MAX_EVENTS, Plan, Question, Unit};
pub use schema::{ACTION, ColumnSpec, Kind, MODE, POLICY_IDS, POLICY_SET_VERSION, Schema};
pub use segment::{SEGMENT_EVENTS, Sealer, Segment, SegmentSummary};
pub use source::{Chunk, Source};
pub use storage::{Folder, Listable, Storage, StoredObject};
pub use symbols::Symbols;
pub use texts::Texts;
