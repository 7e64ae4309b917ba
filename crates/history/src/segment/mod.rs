//! Segments: sealed history, one immutable Parquet file of at most 1 048 576 events each.
//!
//! Any reader of Parquet can read one: `event_id`, `occurred_at`, the columns of the schema (sets and JSON documents
//! as JSON text). What our reader knows beyond that stands where others do not look:
//!
//! ```text
//! "PAR1" · row groups of ≤ 131 072 events · behaviour table · seal of the footer (8 bytes) · footer with our header
//! ```
//!
//! * Events are in the order of (instant, event id). Every column but `event_id` and `occurred_at` has a dictionary, in
//!   every row group, so that decoding gives codes and never a value per row.
//! * The **behaviour** of an event is its values in the columns that the schema marks so. Where events repeat, the
//!   file has a table of the distinct behaviours and a column of codes into it: whoever groups events by any of
//!   those columns reads that one column and projects the table.
//! * The header has offsets and checksums of every part; the seal is the checksum of the footer itself.
//!
//! INVARIANT HI-4: no byte of a segment is decoded before its checksum is verified. Parquet's own decoders are
//! written for well-formed files, and this way they only see what we wrote.
//!
//! What a person can ask of `DuckDB` in a folder of segments:
//!
//! ```sql
//! SELECT tool, count(*) AS events, max(occurred_at) AS newest FROM 'segment-*.parquet'
//! WHERE occurred_at >= TIMESTAMPTZ '2026-05-29' GROUP BY tool ORDER BY events DESC;
//!
//! SELECT member, count(*) AS events
//! FROM (SELECT unnest(from_json("groups", '["VARCHAR"]')) AS member FROM 'segment-*.parquet') GROUP BY member;
//! ```
//!
//! Absent on purpose: the organization (a segment belongs to whom the database says), changing or merging segments.

mod behaviour;
mod columns;
mod delta;
mod pages;
mod read;
mod seal;

pub(crate) use behaviour::mix;
pub use read::Segment;
pub use seal::{SEGMENT_EVENTS, Sealer, SegmentSummary};

use crate::schema::Schema;
use serde::{Deserialize, Serialize};

/// How many events a row group has at most.
pub(crate) const ROW_GROUP_EVENTS: usize = 131_072;
/// The level of compression of pages and tables, above zstd's default of 3: a segment is written once.
const LEVEL: i32 = 6;
/// The layout of the header and of what it points to.
const FORMAT: u32 = 1;
/// The keys of the footer's metadata.
const HEADER_KEY: &str = "provost.history";
/// The first half of the seal; the second is the CRC-32 of the footer.
const SEAL: &[u8; 4] = b"PVHS";
/// Milliseconds in a day, UTC.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// What a segment says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    format: u32,
    pub(crate) schema: Schema,
    pub(crate) rows: u32,
    pub(crate) min_at: i64,
    pub(crate) max_at: i64,
    pub(crate) row_groups: Vec<RowGroup>,
    behaviours: Option<Table>,
    /// SHA-256 of all bytes before the seal, in hexadecimal.
    digest: String,
}

/// Some of the events of a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowGroup {
    pub(crate) rows: u32,
    pub(crate) min_at: i64,
    pub(crate) max_at: i64,
    /// One for each column of the file: ids, instants, those of the schema, behaviour.
    columns: Vec<ByteRange>,
}

/// Some bytes of the file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ByteRange {
    offset: u64,
    length: u32,
    crc: u32,
}

/// Where the distinct behaviours are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    piece: ByteRange,
    raw_bytes: u32,
    rows: u32,
}
