//! Sealing: many chunks become one segment.

use super::columns::{self, failed, write, write_column};
use super::{
    ByteRange, FORMAT, HEADER_KEY, Header, LEVEL, ROW_GROUP_EVENTS, RowGroup, SEAL, Table, behaviour,
};
use crate::batch::{Batch, Column, Values};
use crate::error::{Error, Result, invalid};
use crate::event::order;
use crate::schema::Schema;
use crate::storage::Storage;
use crate::symbols::Symbols;
use crate::texts::Texts;
use crate::wire;
use aws_lc_rs::digest;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use std::sync::Arc;

/// How many events a segment holds at most.
pub const SEGMENT_EVENTS: usize = 1_048_576;
// LIMIT: 96 MiB of distinct texts and ids. A segment is made in memory, beside whatever else the server does.
const SEGMENT_BYTES: usize = 96 * 1024 * 1024;
// LIMIT: the texts of a row group, repetition counted, stay below the 2 GiB that a page of Parquet can have.
const ROW_GROUP_BYTES: usize = 256 * 1024 * 1024;

/// What a sealed segment is, for the database row that lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// How many events it holds.
    pub rows: u32,
    /// The instant of the oldest event. Units: milliseconds since the Unix epoch.
    pub min_at: i64,
    /// The instant of the newest event. Units: milliseconds since the Unix epoch.
    pub max_at: i64,
    /// The size of the file.
    pub size_bytes: u64,
    /// How many distinct behaviours the events show, if the segment knows.
    pub behaviours: Option<u32>,
    /// SHA-256 of the content, in hexadecimal; also written in the segment, which `Segment::verify` compares.
    pub digest: String,
}

/// Collects the events of one segment.
#[derive(Debug)]
pub struct Sealer {
    schema: Arc<Schema>,
    at: Vec<i64>,
    ids: Texts,
    codes: Vec<Vec<u32>>,
    symbols: Vec<Symbols>,
}

impl Sealer {
    /// Returns an empty sealer.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            at: Vec::new(),
            ids: Texts::default(),
            codes: schema.columns().iter().map(|_| Vec::new()).collect(),
            symbols: schema
                .columns()
                .iter()
                .map(|column| Symbols::new(column.kind))
                .collect(),
            schema,
        }
    }

    /// Returns how many events were taken.
    pub fn rows(&self) -> usize {
        self.at.len()
    }

    /// Returns whether this batch still fits.
    pub fn fits(&self, batch: &Batch) -> bool {
        let bytes = self.ids.bytes() + self.symbols.iter().map(Symbols::memory).sum::<usize>();
        self.rows() + batch.rows() <= SEGMENT_EVENTS && bytes < SEGMENT_BYTES
    }

    /// Takes the events of a batch that has all columns of the schema and ids, as `chunk::decode` returns it.
    ///
    /// Errors: `Invalid` when it does not fit or is of another schema. After an error the sealer is of no use.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        let is_whole = batch.columns.len() == self.codes.len() && batch.ids.len() == batch.rows();
        if !is_whole || !self.fits(batch) {
            return invalid("the batch does not fit into the segment");
        }
        for ((codes, symbols), column) in self.codes.iter_mut().zip(&mut self.symbols).zip(&batch.columns) {
            let translated = symbols.translate(&column.dictionary)?;
            codes.extend(column.codes.iter().map(|code| translated[*code as usize]));
        }
        batch.ids.iter().try_for_each(|id| self.ids.push(id))?;
        self.at.extend_from_slice(&batch.at);
        Ok(())
    }

    /// Writes the segment under this name, durably, and returns what it is.
    ///
    /// The bytes depend on the events and the order in which they were added, on nothing else.
    ///
    /// Errors: `Invalid` without events; `Storage` when it cannot be written, and then sealing anew repairs.
    pub fn seal(self, storage: &dyn Storage, name: &str) -> Result<SegmentSummary> {
        let (bytes, sealed) = self.bytes()?;
        storage.put(name, &mut |out| Ok(out.write_all(&bytes)?))?;
        Ok(sealed)
    }

    /// Returns the bytes of the segment.
    fn bytes(mut self) -> Result<(Vec<u8>, SegmentSummary)> {
        if self.at.is_empty() {
            return invalid("a segment has at least one event");
        }
        self.sort()?;
        let rows = self.rows();
        let keys: Vec<&[u32]> = self
            .behaviour_columns()
            .map(|index| self.codes[index].as_slice())
            .collect();
        // Where fewer than half of the events repeat another one, a table would be longer than what it saves.
        let distinct = behaviour::distinct(&keys, rows, rows / 2);
        let mut file = columns::begin(&self.schema, distinct.is_some())?;
        for range in self.row_groups() {
            self.write_row_group(&mut file, &range, distinct.as_ref())?;
        }
        file.flush()?;
        let table = distinct
            .as_ref()
            .map(|distinct| self.write_table(&mut file, distinct))
            .transpose()?;
        file.flush()?;
        let header = self.header(&file, table)?;
        let sealed = SegmentSummary {
            rows: header.rows,
            min_at: header.min_at,
            max_at: header.max_at,
            size_bytes: 0,
            behaviours: header.behaviours.as_ref().map(|table| table.rows),
            digest: header.digest.clone(),
        };
        let text = serde_json::to_string(&header)
            .map_err(|_| Error::Invalid("the header cannot be written".into()))?;
        file.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), text));
        file.write_all(SEAL)?;
        file.write_all(&[0; 4])?;
        let seal_at = file.bytes_written() - 4;
        let mut bytes = file.into_inner().map_err(failed)?;
        let checksum = crc32fast::hash(&bytes[seal_at + 4..]);
        bytes[seal_at..seal_at + 4].copy_from_slice(&checksum.to_le_bytes());
        let size_bytes = bytes.len() as u64;
        Ok((bytes, SegmentSummary { size_bytes, ..sealed }))
    }

    /// Puts the events into the order of (instant, event id).
    fn sort(&mut self) -> Result<()> {
        let is_sorted = (1..self.at.len())
            .all(|row| (self.at[row - 1], self.ids.get(row - 1)) <= (self.at[row], self.ids.get(row)));
        if is_sorted {
            return Ok(());
        }
        let order = order(&self.at, &self.ids);
        let mut ids = Texts::with_capacity(self.ids.len(), self.ids.bytes());
        order
            .iter()
            .try_for_each(|row| ids.push(self.ids.get(*row as usize)))?;
        self.ids = ids;
        self.at = order.iter().map(|row| self.at[*row as usize]).collect();
        for codes in &mut self.codes {
            *codes = order.iter().map(|row| codes[*row as usize]).collect();
        }
        Ok(())
    }

    fn behaviour_columns(&self) -> impl Iterator<Item = usize> {
        let columns = self.schema.columns().iter().enumerate();
        columns
            .filter(|(_, column)| column.behaviour)
            .map(|(index, _)| index)
    }

    /// Returns the ranges of rows that become row groups.
    fn row_groups(&self) -> Vec<std::ops::Range<usize>> {
        let mut bytes: Vec<usize> = (0..self.rows()).map(|row| self.ids.get(row).len()).collect();
        for (codes, symbols) in self.codes.iter().zip(&self.symbols) {
            if let Values::Texts(texts) = &symbols.dictionary().values {
                let length = |code: u32| {
                    (code as usize)
                        .checked_sub(1)
                        .map_or(0, |index| texts.get(index).len())
                };
                bytes
                    .iter_mut()
                    .zip(codes)
                    .for_each(|(bytes, code)| *bytes += length(*code));
            }
        }
        let (mut ranges, mut start, mut sum) = (Vec::new(), 0, 0);
        for (row, bytes) in bytes.iter().enumerate() {
            if row - start == ROW_GROUP_EVENTS || sum + bytes > ROW_GROUP_BYTES {
                ranges.push(start..row);
                (start, sum) = (row, 0);
            }
            sum += bytes;
        }
        ranges.push(start..self.rows());
        ranges
    }

    fn write_row_group(
        &self,
        file: &mut SerializedFileWriter<Vec<u8>>,
        range: &std::ops::Range<usize>,
        distinct: Option<&behaviour::Distinct>,
    ) -> Result<()> {
        let mut group = file.next_row_group().map_err(failed)?;
        let ids: Vec<ByteArray> = range
            .clone()
            .map(|row| ByteArray::from(self.ids.get(row)))
            .collect();
        write::<ByteArrayType>(&mut group, &ids, None)?;
        write::<Int64Type>(&mut group, &self.at[range.clone()], None)?;
        for (codes, symbols) in self.codes.iter().zip(&self.symbols) {
            write_column(&mut group, &codes[range.clone()], symbols.dictionary())?;
        }
        if let Some(distinct) = distinct {
            let codes: Vec<i32> = distinct.codes[range.clone()]
                .iter()
                .map(|code| code.cast_signed())
                .collect();
            write::<Int32Type>(&mut group, &codes, None)?;
        }
        group.close().map_err(failed)?;
        Ok(())
    }

    /// Writes the table of the distinct behaviours and returns where it is.
    fn write_table(
        &self,
        file: &mut SerializedFileWriter<Vec<u8>>,
        distinct: &behaviour::Distinct,
    ) -> Result<Table> {
        let mut columns = Vec::new();
        for index in self.behaviour_columns() {
            let mut symbols = Symbols::new(self.schema.columns()[index].kind);
            let translated = symbols.translate(self.symbols[index].dictionary())?;
            let codes = distinct
                .first_rows
                .iter()
                .map(|row| translated[self.codes[index][*row as usize] as usize]);
            columns.push(Column {
                codes: codes.collect(),
                dictionary: Arc::new(symbols.into_dictionary()),
            });
        }
        let raw = behaviour::encode(&columns);
        let packed = wire::pack(&raw, LEVEL)?;
        let offset = file.bytes_written() as u64;
        file.write_all(&packed)?;
        Ok(Table {
            piece: ByteRange {
                offset,
                length: small(packed.len())?,
                crc: crc32fast::hash(&packed),
            },
            raw_bytes: small(raw.len())?,
            rows: small(distinct.first_rows.len())?,
        })
    }

    /// Returns the header of the file that was written so far.
    fn header(&self, file: &SerializedFileWriter<Vec<u8>>, behaviours: Option<Table>) -> Result<Header> {
        let bytes = file.inner();
        let mut row_groups = Vec::new();
        let mut start = 0;
        for group in file.flushed_row_groups() {
            let rows = usize::try_from(group.num_rows()).map_err(|_| Error::Corrupt("count"))?;
            let mut columns = Vec::new();
            for column in group.columns() {
                let (offset, length) = column.byte_range();
                let part = usize::try_from(offset)
                    .ok()
                    .and_then(|from| bytes.get(from..))
                    .unwrap_or_default();
                let part = part
                    .get(..usize::try_from(length).unwrap_or(usize::MAX))
                    .ok_or(Error::Corrupt("length"))?;
                columns.push(ByteRange {
                    offset,
                    length: small(part.len())?,
                    crc: crc32fast::hash(part),
                });
            }
            let (min_at, max_at) = (self.at[start], self.at[start + rows - 1]);
            row_groups.push(RowGroup {
                rows: small(rows)?,
                min_at,
                max_at,
                columns,
            });
            start += rows;
        }
        Ok(Header {
            format: FORMAT,
            schema: (*self.schema).clone(),
            rows: small(self.rows())?,
            min_at: self.at[0],
            max_at: self.at[self.rows() - 1],
            row_groups,
            behaviours,
            digest: hex(digest::digest(&digest::SHA256, bytes).as_ref()),
        })
    }
}

fn small(count: usize) -> Result<u32> {
    u32::try_from(count).or_else(|_| invalid("a part of the segment is too large"))
}

/// Returns the bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
