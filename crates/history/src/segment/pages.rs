//! From the bytes of a Parquet column to codes and a dictionary.
//!
//! Parquet's own reader gives a value for each row; a scan wants the code that stands in the file. So the pages are
//! split and unpacked by the library, and the few encodings that our writer uses are decoded here: dictionaries in
//! plain encoding, runs and bit-packed groups of codes, bit-packed booleans, differences. Anything else is refused.
//!
//! Keeps HI-1.

use super::delta;
use crate::batch::{Column, Dictionary, Values};
use crate::error::{Error, Result};
use crate::schema::Kind;
use crate::texts::Texts;
use crate::wire;
use bytes::{Buf, Bytes};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// The bytes of one column of one row group, which stand at `base` in the file.
pub(super) struct Slice {
    pub(super) base: u64,
    pub(super) bytes: Bytes,
}

impl Length for Slice {
    fn len(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

impl ChunkReader for Slice {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let skip = start
            .checked_sub(self.base)
            .and_then(|skip| usize::try_from(skip).ok());
        match skip.filter(|skip| *skip <= self.bytes.len()) {
            Some(skip) => Ok(self.bytes.slice(skip..).reader()),
            None => Err(ParquetError::EOF("outside of the column".into())),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let mut rest = self.get_read(start)?.into_inner();
        if length > rest.len() {
            return Err(ParquetError::EOF("outside of the column".into()));
        }
        Ok(rest.split_to(length))
    }
}

/// Returns the pages of the column.
fn pages(slice: Slice, meta: &ColumnChunkMetaData, rows: usize) -> Result<SerializedPageReader<Slice>> {
    SerializedPageReader::new(Arc::new(slice), meta, rows, None).map_err(|_| Error::Corrupt("column"))
}

/// Returns the instants of all rows.
pub(super) fn instants(slice: Slice, meta: &ColumnChunkMetaData, rows: usize) -> Result<Vec<i64>> {
    let mut reader = pages(slice, meta, rows)?;
    let mut at = Vec::with_capacity(rows);
    while let Some(page) = reader.get_next_page().map_err(|_| Error::Corrupt("instants"))? {
        match page {
            Page::DataPage {
                buf,
                encoding: Encoding::DELTA_BINARY_PACKED,
                ..
            } => delta::numbers(&mut wire::Reader::new(&buf), rows - at.len(), &mut at)?,
            _ => return Err(Error::Corrupt("encoding of a page")),
        }
    }
    if at.len() == rows {
        Ok(at)
    } else {
        Err(Error::Corrupt("instants"))
    }
}

/// Returns the ids of some rows; their numbers ascend.
///
/// Cost: the pages in which they are are unpacked, and no other.
pub(super) fn ids(
    slice: Slice,
    meta: &ColumnChunkMetaData,
    rows: usize,
    wanted: impl Iterator<Item = usize>,
) -> Result<Texts> {
    let damaged = |_| Error::Corrupt("event ids");
    let mut reader = pages(slice, meta, rows)?;
    let mut wanted = wanted.peekable();
    let (mut ids, mut start) = (Texts::default(), 0);
    while let Some(row) = wanted.peek() {
        let page = reader.peek_next_page().map_err(damaged)?;
        let count = page
            .and_then(|page| page.num_levels)
            .ok_or(Error::Corrupt("event ids"))?;
        if start + count <= *row {
            reader.skip_next_page().map_err(damaged)?;
        } else if let Some(Page::DataPage {
            buf,
            encoding: Encoding::DELTA_BYTE_ARRAY,
            ..
        }) = reader.get_next_page().map_err(damaged)?
        {
            delta::texts(&buf, start, count, &mut wanted, &mut ids)?;
        } else {
            return Err(Error::Corrupt("encoding of a page"));
        }
        start += count;
    }
    Ok(ids)
}

/// Returns a column of the schema.
pub(super) fn column(slice: Slice, meta: &ColumnChunkMetaData, rows: usize, kind: Kind) -> Result<Column> {
    let is_optional = meta.column_descr().max_def_level() == 1;
    let mut reader = pages(slice, meta, rows)?;
    let mut dictionary = Dictionary::empty(kind);
    let mut codes = Vec::with_capacity(rows);
    while let Some(page) = reader.get_next_page().map_err(|_| Error::Corrupt("page"))? {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                dictionary.values = plain(&buf, num_values, kind)?;
            }
            Page::DataPage { num_values, .. } if num_values as usize > rows - codes.len() => {
                return Err(Error::Corrupt("count"));
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                let part = DataPage {
                    bytes: &buf,
                    rows: num_values as usize,
                    is_optional,
                };
                if kind == Kind::Boolean {
                    part.booleans(encoding, &mut codes)?;
                } else {
                    part.codes(encoding, dictionary.len(), &mut codes)?;
                }
            }
            Page::DataPageV2 { .. } => return Err(Error::Corrupt("kind of a page")),
        }
    }
    if codes.len() != rows {
        return Err(Error::Corrupt("count"));
    }
    Ok(Column {
        codes,
        dictionary: Arc::new(dictionary),
    })
}

/// Returns the column of whole numbers, as a dictionary and codes from 1 on.
pub(super) fn integers(
    slice: Slice,
    meta: &ColumnChunkMetaData,
    rows: usize,
) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut reader = pages(slice, meta, rows)?;
    let (mut dictionary, mut codes) = (Vec::new(), Vec::with_capacity(rows));
    while let Some(page) = reader.get_next_page().map_err(|_| Error::Corrupt("page"))? {
        match page {
            Page::DictionaryPage { buf, .. } => {
                dictionary = buf
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|four| u32::from_le_bytes(*four))
                    .collect();
            }
            Page::DataPage { num_values, .. } if num_values as usize > rows - codes.len() => {
                return Err(Error::Corrupt("count"));
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                let part = DataPage {
                    bytes: &buf,
                    rows: num_values as usize,
                    is_optional: false,
                };
                part.codes(encoding, dictionary.len(), &mut codes)?;
            }
            Page::DataPageV2 { .. } => return Err(Error::Corrupt("kind of a page")),
        }
    }
    if codes.len() != rows {
        return Err(Error::Corrupt("count"));
    }
    Ok((dictionary, codes))
}

/// Returns the values of a dictionary page.
fn plain(bytes: &[u8], count: u32, kind: Kind) -> Result<Values> {
    let count = count as usize;
    let values = match kind {
        Kind::Number => Values::Numbers(wire::numbers(bytes.as_chunks::<8>().0.iter().copied())?),
        Kind::Instant => Values::Instants(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|b| i64::from_le_bytes(*b))
                .collect(),
        ),
        Kind::Boolean => return Err(Error::Corrupt("kind of a page")),
        Kind::Text | Kind::TextSet | Kind::Json => {
            let mut texts = Texts::with_capacity(count.min(bytes.len()), bytes.len());
            let mut rest = bytes;
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let length = u32::from_le_bytes(*length) as usize;
                let (text, after) = after.split_at_checked(length).ok_or(Error::Corrupt("text"))?;
                texts.push_bytes(text)?;
                rest = after;
            }
            Values::Texts(texts)
        }
    };
    let dictionary = Dictionary { kind, values };
    if dictionary.len() == count {
        Ok(dictionary.values)
    } else {
        Err(Error::Corrupt("count"))
    }
}

/// The unpacked bytes of a data page of version 1.
struct DataPage<'a> {
    bytes: &'a [u8],
    rows: usize,
    is_optional: bool,
}

/// Which rows of a page have a value.
enum Present {
    All,
    None,
    /// 1 for a row that has one.
    Some(Vec<u32>),
}

impl<'a> DataPage<'a> {
    /// Returns which rows have a value, and the bytes of the values.
    fn levels(&self) -> Result<(Present, &'a [u8])> {
        if !self.is_optional {
            return Ok((Present::All, self.bytes));
        }
        let (length, rest) = self
            .bytes
            .split_first_chunk::<4>()
            .ok_or(Error::Corrupt("length"))?;
        let (levels, values) = rest
            .split_at_checked(u32::from_le_bytes(*length) as usize)
            .ok_or(Error::Corrupt("length"))?;
        // Mostly one run says it of all rows.
        let mut run = wire::Reader::new(levels);
        let present = match (run.size(), run.u8()) {
            (Ok(header), Ok(level)) if header & 1 == 0 && header >> 1 >= self.rows.max(1) && level < 2 => {
                if level == 1 {
                    Present::All
                } else {
                    Present::None
                }
            }
            _ => {
                let mut present = Vec::with_capacity(self.rows);
                hybrid(levels, 1, self.rows, &mut present)?;
                Present::Some(present)
            }
        };
        Ok((present, values))
    }

    /// Appends the codes of the rows, 0 where a value is missing.
    fn codes(&self, encoding: Encoding, values: usize, codes: &mut Vec<u32>) -> Result<()> {
        if !matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) {
            return Err(Error::Corrupt("encoding of a page"));
        }
        let (present, bytes) = self.levels()?;
        let count = match &present {
            Present::All => self.rows,
            Present::None => {
                codes.resize(codes.len() + self.rows, 0);
                return Ok(());
            }
            Present::Some(present) => present.iter().filter(|level| **level == 1).count(),
        };
        let start = codes.len();
        if count > 0 {
            let (width, bytes) = bytes.split_first().ok_or(Error::Corrupt("length"))?;
            hybrid(bytes, *width, count, codes)?;
        }
        // Code 0 is "missing", so every code of the file becomes one more; no code may pass the dictionary.
        let largest = codes[start..].iter_mut().fold(0, |largest, code| {
            *code = code.saturating_add(1);
            largest.max(*code)
        });
        if largest as usize > values {
            return Err(Error::Corrupt("code"));
        }
        if let Present::Some(present) = present {
            spread(codes, start, &present);
        }
        Ok(())
    }

    /// Appends 0 for missing, 1 for false, 2 for true.
    fn booleans(&self, encoding: Encoding, codes: &mut Vec<u32>) -> Result<()> {
        if encoding != Encoding::PLAIN {
            return Err(Error::Corrupt("encoding of a page"));
        }
        let (present, bytes) = self.levels()?;
        let mut bits = bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1)));
        for row in 0..self.rows {
            let is_present = match &present {
                Present::All => true,
                Present::None => false,
                Present::Some(present) => present[row] == 1,
            };
            codes.push(if is_present {
                1 + bits.next().ok_or(Error::Corrupt("length"))?
            } else {
                0
            });
        }
        Ok(())
    }
}

/// Moves the codes from `start` on to the rows that have a value and puts 0 into the others.
fn spread(codes: &mut Vec<u32>, start: usize, present: &[u32]) {
    let mut from = codes.len();
    codes.resize(start + present.len(), 0);
    for row in (0..present.len()).rev() {
        if present[row] == 1 {
            from -= 1;
            codes[start + row] = codes[from];
        } else {
            codes[start + row] = 0;
        }
    }
}

/// Appends `count` numbers of `width` bits from runs and bit-packed groups of eight.
fn hybrid(mut bytes: &[u8], width: u8, count: usize, out: &mut Vec<u32>) -> Result<()> {
    if width > 32 {
        return Err(Error::Corrupt("width"));
    }
    let end = out.len() + count;
    let value_bytes = usize::from(width).div_ceil(8);
    while out.len() < end {
        let mut reader = crate::wire::Reader::new(bytes);
        let header = usize::try_from(reader.varint()?).map_err(|_| Error::Corrupt("run"))?;
        let left = end - out.len();
        if header & 1 == 0 {
            let mut value = [0; 4];
            value[..value_bytes].copy_from_slice(reader.take(value_bytes)?);
            if header >> 1 == 0 {
                return Err(Error::Corrupt("run"));
            }
            out.resize(out.len() + left.min(header >> 1), u32::from_le_bytes(value));
        } else {
            let groups = header >> 1;
            // The writer may leave out the padding of the last group.
            let wanted = left.min(groups.saturating_mul(8));
            let packed_bytes = groups.saturating_mul(usize::from(width));
            let least_bytes = (wanted * usize::from(width)).div_ceil(8);
            let packed = reader.take(packed_bytes).or_else(|_| reader.take(least_bytes))?;
            if wanted == 0 {
                return Err(Error::Corrupt("run"));
            }
            unpack(packed, width, wanted, out);
        }
        bytes = reader.rest();
    }
    Ok(())
}

/// Appends `count` numbers of `width` bits each; the bytes are enough for them.
fn unpack(bytes: &[u8], width: u8, count: usize, out: &mut Vec<u32>) {
    let width = usize::from(width);
    let mask = (1_u64 << width) - 1;
    // A number of at most 32 bits that begins inside a byte fits into the eight bytes from there.
    let whole = if width == 0 {
        0
    } else {
        count.min((bytes.len().saturating_sub(7) * 8).div_ceil(width))
    };
    out.extend((0..whole).map(|index| {
        let bit = index * width;
        let word = bytes[bit >> 3..]
            .first_chunk::<8>()
            .map_or(0, |word| u64::from_le_bytes(*word));
        low(word >> (bit & 7) & mask)
    }));
    out.extend((whole..count).map(|index| {
        let bit = index * width;
        let mut word = [0; 8];
        let rest = &bytes[(bit >> 3).min(bytes.len())..];
        let rest = &rest[..rest.len().min(8)];
        word[..rest.len()].copy_from_slice(rest);
        low(u64::from_le_bytes(word) >> (bit & 7) & mask)
    }));
}

#[expect(clippy::cast_possible_truncation, reason = "the mask leaves at most 32 bits")]
fn low(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_numbers_come_back(width in 0_u8..=32, seeds in prop::collection::vec(any::<u32>(), 0..100)) {
            let mask = u32::try_from((1_u64 << width) - 1).unwrap();
            let numbers: Vec<u32> = seeds.iter().map(|seed| seed & mask).collect();
            let mut bytes = vec![0_u8; (numbers.len() * usize::from(width)).div_ceil(8)];
            for (index, number) in numbers.iter().enumerate() {
                for bit in 0..usize::from(width) {
                    let at = index * usize::from(width) + bit;
                    bytes[at / 8] |= u8::from(number >> bit & 1 == 1) << (at % 8);
                }
            }
            let mut back = Vec::new();
            unpack(&bytes, width, numbers.len(), &mut back);
            prop_assert_eq!(back, numbers);
        }

        #[test]
        fn any_bytes_are_runs_or_refused(bytes: Vec<u8>, width: u8, count in 0_usize..10_000) {
            let mut out = Vec::new();
            if hybrid(&bytes, width, count, &mut out).is_ok() {
                prop_assert_eq!(out.len(), count);
            }
        }

        /// Proves HI-1, HI-3.
        #[test]
        fn any_bytes_are_a_page_or_refused(bytes: Vec<u8>, rows in 0_usize..10_000, is_optional: bool) {
            let page = DataPage { bytes: &bytes, rows, is_optional };
            let mut codes = Vec::new();
            if page.codes(Encoding::RLE_DICTIONARY, 7, &mut codes).is_ok() {
                prop_assert!(codes.len() == rows && codes.iter().all(|code| *code <= 7));
            }
            let mut codes = Vec::new();
            if page.booleans(Encoding::PLAIN, &mut codes).is_ok() {
                prop_assert_eq!(codes.len(), rows);
            }
        }
    }
}
