//! Bytes of our own making: little-endian numbers, variable-length counts, columns.
//!
//! INVARIANT HI-1: reading a chunk, a table or a column is total: any bytes give a value or a refusal, without a
//! panic and without an allocation that the bytes do not justify.
//! Keeps HI-3.

use crate::batch::{Column, Dictionary, Values};
use crate::error::{Error, Result};
use crate::schema::Kind;
use crate::texts::Texts;
use std::sync::Arc;

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(Error::Corrupt("length"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self
            .bytes
            .split_first_chunk::<N>()
            .ok_or(Error::Corrupt("length"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Returns a number in base 128, least significant digit first.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let digit = u64::from(byte & 0x7f);
            if digit << shift >> shift != digit {
                return Err(Error::Corrupt("number"));
            }
            number |= digit << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Corrupt("number"))
    }

    /// Returns a number in base 128 that counts something in memory.
    pub(crate) fn size(&mut self) -> Result<usize> {
        usize::try_from(self.varint()?).map_err(|_| Error::Corrupt("count"))
    }

    /// Returns a number whose sign stands in its lowest bit, in base 128.
    pub(crate) fn zigzag(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Returns a count of things of at least one byte each, so at most the number of bytes left.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.size()?;
        if count > self.bytes.len() {
            return Err(Error::Corrupt("count"));
        }
        Ok(count)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Appends a number in base 128, least significant digit first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Appends a length or count.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    put_varint(out, count as u64);
}

/// Appends a column: its type, its dictionary, its codes in one, two or four bytes each.
pub(crate) fn put_column(out: &mut Vec<u8>, column: &Column) {
    let dictionary = &column.dictionary;
    out.push(dictionary.kind.tag());
    match &dictionary.values {
        Values::Texts(texts) => put_texts(out, texts),
        Values::Numbers(numbers) => {
            put_count(out, numbers.len());
            out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        Values::Instants(instants) => {
            put_count(out, instants.len());
            out.extend(instants.iter().flat_map(|at| at.to_le_bytes()));
        }
        Values::Booleans => {}
    }
    let width = code_bytes(dictionary.len());
    column
        .codes
        .iter()
        .for_each(|code| out.extend_from_slice(&code.to_le_bytes()[..width]));
}

/// Returns a column of `rows` rows, which must be of this type.
pub(crate) fn column(reader: &mut Reader<'_>, kind: Kind, rows: usize) -> Result<Column> {
    if reader.u8()? != kind.tag() {
        return Err(Error::Corrupt("type of a column"));
    }
    let values = match kind {
        Kind::Text | Kind::TextSet | Kind::Json => Values::Texts(texts(reader)?),
        Kind::Number => Values::Numbers(numbers(eights(reader)?)?),
        Kind::Instant => Values::Instants(eights(reader)?.map(i64::from_le_bytes).collect()),
        Kind::Boolean => Values::Booleans,
    };
    let dictionary = Dictionary { kind, values };
    let width = code_bytes(dictionary.len());
    let bytes = reader.take(rows.checked_mul(width).ok_or(Error::Corrupt("count"))?)?;
    let codes: Vec<u32> = match width {
        1 => bytes.iter().map(|byte| u32::from(*byte)).collect(),
        2 => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| u32::from(u16::from_le_bytes(*pair)))
            .collect(),
        _ => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| u32::from_le_bytes(*four))
            .collect(),
    };
    if codes.iter().any(|code| *code as usize > dictionary.len()) {
        return Err(Error::Corrupt("code"));
    }
    Ok(Column {
        codes,
        dictionary: Arc::new(dictionary),
    })
}

/// Passes over a column of `rows` rows, which must be of this type.
pub(crate) fn skip_column(reader: &mut Reader<'_>, kind: Kind, rows: usize) -> Result<()> {
    if reader.u8()? != kind.tag() {
        return Err(Error::Corrupt("type of a column"));
    }
    let values = match kind {
        Kind::Text | Kind::TextSet | Kind::Json => {
            let count = reader.count()?;
            let mut bytes = 0_usize;
            for _ in 0..count {
                bytes = bytes.saturating_add(reader.count()?);
            }
            reader.take(bytes)?;
            count
        }
        Kind::Number | Kind::Instant => eights(reader)?.len(),
        Kind::Boolean => 2,
    };
    let bytes = rows
        .checked_mul(code_bytes(values))
        .ok_or(Error::Corrupt("count"))?;
    reader.take(bytes).map(drop)
}

fn code_bytes(values: usize) -> usize {
    match values {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

fn put_texts(out: &mut Vec<u8>, texts: &Texts) {
    put_count(out, texts.len());
    texts.iter().for_each(|text| put_count(out, text.len()));
    texts
        .iter()
        .for_each(|text| out.extend_from_slice(text.as_bytes()));
}

fn texts(reader: &mut Reader<'_>) -> Result<Texts> {
    let count = reader.count()?;
    let mut lengths = Vec::with_capacity(count);
    let mut bytes = 0_usize;
    for _ in 0..count {
        let length = reader.count()?;
        bytes = bytes.saturating_add(length);
        lengths.push(length);
    }
    let mut rest = Reader::new(reader.take(bytes)?);
    let mut texts = Texts::with_capacity(count, bytes);
    for length in lengths {
        texts.push_bytes(rest.take(length)?)?;
    }
    Ok(texts)
}

fn eights<'a>(reader: &mut Reader<'a>) -> Result<impl ExactSizeIterator<Item = [u8; 8]> + use<'a>> {
    let count = reader.count()?;
    let bytes = reader.take(count.checked_mul(8).ok_or(Error::Corrupt("count"))?)?;
    Ok(bytes.as_chunks::<8>().0.iter().copied())
}

/// Returns the numbers that these bytes spell.
///
/// Errors: `Corrupt` for one that no recorder takes: not finite, or a negative zero.
pub(crate) fn numbers(bytes: impl Iterator<Item = [u8; 8]>) -> Result<Vec<f64>> {
    let numbers: Vec<f64> = bytes.map(f64::from_le_bytes).collect();
    let is_taken = |number: &f64| number.is_finite() && number.to_bits() != (-0.0_f64).to_bits();
    if numbers.iter().all(is_taken) {
        Ok(numbers)
    } else {
        Err(Error::Corrupt("number"))
    }
}

/// Returns what zstd packed, which must have exactly this many bytes.
///
/// The length was read from a place that a checksum covers, and a limit bounds it before anything is allocated.
pub(crate) fn unpack(packed: &[u8], length: usize, limit: usize) -> Result<Vec<u8>> {
    if length > limit {
        return Err(Error::Corrupt("length"));
    }
    let raw = zstd::bulk::decompress(packed, length).map_err(|_| Error::Corrupt("compressed bytes"))?;
    if raw.len() != length {
        return Err(Error::Corrupt("length"));
    }
    Ok(raw)
}

/// Returns these bytes packed with zstd.
pub(crate) fn pack(raw: &[u8], level: i32) -> Result<Vec<u8>> {
    Ok(zstd::bulk::compress(raw, level)?)
}
