//! Chunks: the durable form of a batch of at most 5 000 events until it is sealed, one BLOB of a database row.
//!
//! ```text
//! "PVHC" · format 1 · schema version u32 · fingerprint u32 · columns u16 · rows u32 · min at i64 · max at i64
//!        · raw length u32 · CRC-32 of all other bytes · zstd(ids, instants, columns)
//! ```
//!
//! The columns have dictionaries, ids and instants are differences to the one before; zstd packs the rest. The
//! checksum tells damage from data, and decoding is total without it too (HI-1).
//!
//! Keeps HI-1.

use crate::batch::{Batch, Column};
use crate::error::{Error, Result, invalid};
use crate::event::CHUNK_EVENTS;
use crate::schema::Schema;
use crate::texts::Texts;
use crate::wire::{self, Reader};

const MAGIC: &[u8; 4] = b"PVHC";
const FORMAT: u8 = 1;
const CHECKSUM_AT: usize = 39;
const HEADER_BYTES: usize = CHECKSUM_AT + 4;
// LIMIT: 64 MiB unpacked. A recorder stops at 32 MiB of texts; codes, instants and lengths stay far below as much.
const RAW_BYTES: usize = 64 * 1024 * 1024;
/// The level of compression, zstd's default: a chunk waits for it before it is durable, and lives until it is sealed.
const LEVEL: i32 = 3;

/// What a chunk says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The version of the schema with which it was written.
    pub schema_version: u32,
    /// How many events it holds.
    pub rows: u32,
    /// The instant of the oldest event. Units: milliseconds since the Unix epoch.
    pub min_at: i64,
    /// The instant of the newest event. Units: milliseconds since the Unix epoch.
    pub max_at: i64,
}

/// Returns the batch, which has all columns of the schema and ids, as the bytes of a chunk.
///
/// Errors: `Invalid` when the batch is empty, too large, or not of the schema.
pub fn encode(schema: &Schema, batch: &Batch) -> Result<Vec<u8>> {
    let (Some(min_at), Some(max_at)) = (batch.at.first(), batch.at.last()) else {
        return invalid("a chunk has at least one event");
    };
    let rows = batch.rows();
    let is_of_schema = batch.columns.len() == schema.columns().len()
        && batch
            .columns
            .iter()
            .zip(schema.columns())
            .all(|(column, spec)| column.dictionary.kind == spec.kind);
    if rows > CHUNK_EVENTS || batch.ids.len() != rows || !is_of_schema || !batch.at.is_sorted() {
        return invalid("the batch is no chunk of this schema");
    }
    let raw = body(batch);
    if raw.len() > RAW_BYTES {
        return invalid("the events of a chunk are too large");
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + raw.len() / 4);
    bytes.extend_from_slice(MAGIC);
    bytes.push(FORMAT);
    bytes.extend_from_slice(&schema.version().to_le_bytes());
    bytes.extend_from_slice(&schema.fingerprint(batch.columns.len()).to_le_bytes());
    bytes.extend_from_slice(
        &u16::try_from(batch.columns.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    bytes.extend_from_slice(&u32::try_from(rows).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&min_at.to_le_bytes());
    bytes.extend_from_slice(&max_at.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(raw.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&wire::pack(&raw, LEVEL)?);
    let checksum = checksum(&bytes);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Returns what the chunk says about itself, without unpacking it.
///
/// Errors: `Corrupt` when the bytes are no chunk or do not match their checksum.
pub fn summary(bytes: &[u8]) -> Result<Summary> {
    Ok(Header::read(bytes)?.summary)
}

/// Returns the events of the chunk with all columns of the schema; those that it lacks are missing.
///
/// Errors: `Corrupt` when the bytes are no chunk, do not match their checksum or contradict themselves; `Newer`
/// when a later schema or program wrote them.
pub fn decode(schema: &Schema, bytes: &[u8]) -> Result<Batch> {
    let header = Header::read(bytes)?;
    if header.summary.schema_version > schema.version() || header.columns > schema.columns().len() {
        return Err(Error::Newer);
    }
    if header.fingerprint != schema.fingerprint(header.columns) {
        return Err(Error::Corrupt("schema"));
    }
    let rows = header.summary.rows as usize;
    let raw = wire::unpack(
        bytes.get(HEADER_BYTES..).unwrap_or_default(),
        header.raw_bytes,
        RAW_BYTES,
    )?;
    let mut reader = Reader::new(&raw);
    let at = instants(&mut reader, rows)?;
    if at.first() != Some(&header.summary.min_at) || at.last() != Some(&header.summary.max_at) {
        return Err(Error::Corrupt("instants"));
    }
    let ids = ids(&mut reader, rows)?;
    let mut columns = Vec::with_capacity(schema.columns().len());
    for (index, spec) in schema.columns().iter().enumerate() {
        columns.push(if index < header.columns {
            wire::column(&mut reader, spec.kind, rows)?
        } else {
            Column::missing(spec.kind, rows)
        });
    }
    if !reader.is_at_end() {
        return Err(Error::Corrupt("length"));
    }
    Ok(Batch { at, ids, columns })
}

struct Header {
    summary: Summary,
    fingerprint: u32,
    columns: usize,
    raw_bytes: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if &reader.array::<4>()? != MAGIC {
            return Err(Error::Corrupt("beginning of a chunk"));
        }
        let format = reader.u8()?;
        let schema_version = reader.u32()?;
        let fingerprint = reader.u32()?;
        let columns = usize::from(u16::from_le_bytes(reader.array()?));
        let rows = reader.u32()?;
        let (min_at, max_at) = (reader.i64()?, reader.i64()?);
        let raw_bytes = reader.u32()? as usize;
        if reader.u32()? != checksum(bytes) {
            return Err(Error::Corrupt("checksum of a chunk"));
        }
        if format != FORMAT {
            return Err(Error::Newer);
        }
        if rows == 0 || rows as usize > CHUNK_EVENTS {
            return Err(Error::Corrupt("count"));
        }
        Ok(Self {
            summary: Summary {
                schema_version,
                rows,
                min_at,
                max_at,
            },
            fingerprint,
            columns,
            raw_bytes,
        })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes.get(..CHECKSUM_AT).unwrap_or_default());
    hasher.update(bytes.get(HEADER_BYTES..).unwrap_or_default());
    hasher.finalize()
}

fn body(batch: &Batch) -> Vec<u8> {
    let mut raw = Vec::new();
    let mut before = 0_i64;
    for at in &batch.at {
        wire::put_varint(&mut raw, at.wrapping_sub(before).cast_unsigned());
        before = *at;
    }
    let mut before = "";
    for id in batch.ids.iter() {
        let shared = id.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
        wire::put_count(&mut raw, shared);
        wire::put_count(&mut raw, id.len() - shared);
        raw.extend_from_slice(&id.as_bytes()[shared..]);
        before = id;
    }
    batch
        .columns
        .iter()
        .for_each(|column| wire::put_column(&mut raw, column));
    raw
}

fn instants(reader: &mut Reader<'_>, rows: usize) -> Result<Vec<i64>> {
    let mut at = Vec::with_capacity(rows);
    let mut before = 0_i64;
    for _ in 0..rows {
        before = before.wrapping_add(reader.varint()?.cast_signed());
        at.push(before);
    }
    if !at.is_sorted() {
        return Err(Error::Corrupt("instants"));
    }
    Ok(at)
}

fn ids(reader: &mut Reader<'_>, rows: usize) -> Result<Texts> {
    let mut ids = Texts::with_capacity(rows, rows * 26);
    let mut id = Vec::new();
    for _ in 0..rows {
        let shared = usize::try_from(reader.varint()?).map_err(|_| Error::Corrupt("count"))?;
        if shared > id.len() {
            return Err(Error::Corrupt("count"));
        }
        id.truncate(shared);
        let rest = reader.count()?;
        id.extend_from_slice(reader.take(rest)?);
        ids.push_bytes(&id)?;
    }
    Ok(ids)
}
