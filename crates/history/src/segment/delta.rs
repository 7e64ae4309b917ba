//! Numbers and texts that stand in a page as differences: `DELTA_BINARY_PACKED` and `DELTA_BYTE_ARRAY` of Parquet.
//!
//! Parquet's own decoder makes each text an allocation of its own; here those that nobody asked for are passed over.

use crate::error::{Error, Result};
use crate::texts::Texts;
use crate::wire::Reader;
use std::iter::Peekable;

/// Appends the numbers that stand first in `reader`.
///
/// Errors: `Corrupt` when there are more than `most`.
pub(super) fn numbers(reader: &mut Reader<'_>, most: usize, out: &mut Vec<i64>) -> Result<()> {
    let block = reader.size()?;
    let parts = reader.size()?;
    let count = reader.size()?;
    if count > most {
        return Err(Error::Corrupt("count"));
    }
    let mut number = reader.zigzag()?;
    let Some(end) = count.checked_sub(1).map(|rest| out.len() + 1 + rest) else {
        return Ok(());
    };
    out.push(number);
    // The format says multiples of 32; what matters here is that a part begins at a byte.
    let part = block.checked_div(parts).filter(|part| *part > 0 && part % 8 == 0);
    let part = part.ok_or(Error::Corrupt("block"))?;
    while out.len() < end {
        let least = reader.zigzag()?;
        for width in reader.take(parts)? {
            // The writer leaves out the parts that nothing stands in.
            let wanted = part.min(end - out.len());
            if wanted == 0 {
                break;
            }
            let packed = reader.take((part / 8).saturating_mul(usize::from(*width)))?;
            differences(packed, *width, wanted, |difference| {
                number = number.wrapping_add(least).wrapping_add(difference.cast_signed());
                out.push(number);
            })?;
        }
    }
    Ok(())
}

/// Gives the first `count` numbers of `width` bits each; the bytes are enough for them.
fn differences(bytes: &[u8], width: u8, count: usize, mut take: impl FnMut(u64)) -> Result<()> {
    let width = usize::from(width);
    if width == 0 {
        (0..count).for_each(|_| take(0));
        return Ok(());
    }
    if width > 64 {
        return Err(Error::Corrupt("width"));
    }
    let mask = u64::MAX >> (64 - width);
    for bit in (0..count).map(|index| index * width) {
        let rest = &bytes[bit >> 3..];
        let shift = bit & 7;
        let low = word(rest) >> shift;
        // A number of more than 57 bits may end in the ninth byte.
        let number = match rest.get(8) {
            Some(ninth) if shift + width > 64 => low | u64::from(*ninth) << (64 - shift),
            _ => low,
        };
        take(number & mask);
    }
    Ok(())
}

/// Returns the first eight bytes as a number; those that are not there are 0.
fn word(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

/// Appends those texts of a page whose rows are wanted; its first row has the number `start`, and it has `rows`.
///
/// `wanted` ascends, and is left at the first row behind the page.
pub(super) fn texts(
    page: &[u8],
    start: usize,
    rows: usize,
    wanted: &mut Peekable<impl Iterator<Item = usize>>,
    out: &mut Texts,
) -> Result<()> {
    let mut reader = Reader::new(page);
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    numbers(&mut reader, rows, &mut shared)?;
    numbers(&mut reader, rows, &mut own)?;
    if shared.len() != rows || own.len() != rows {
        return Err(Error::Corrupt("count"));
    }
    let length = |length: i64| usize::try_from(length).map_err(|_| Error::Corrupt("length"));
    let mut text = Vec::new();
    for (row, (shared, own)) in (start..).zip(shared.into_iter().zip(own)) {
        let Some(next) = wanted.peek().filter(|next| **next < start + rows) else {
            return Ok(());
        };
        let shared = length(shared)?;
        if shared > text.len() {
            return Err(Error::Corrupt("length"));
        }
        text.truncate(shared);
        text.extend_from_slice(reader.take(length(own)?)?);
        if *next == row {
            out.push_bytes(&text)?;
            wanted.next();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // What a writer makes is read in the tests of segments, page by page, with instants of every size.
    proptest! {
        #[test]
        fn any_bytes_are_numbers_or_refused(bytes: Vec<u8>, most in 0_usize..10_000) {
            let mut out = Vec::new();
            if numbers(&mut Reader::new(&bytes), most, &mut out).is_ok() {
                prop_assert!(out.len() <= most);
            }
        }

        #[test]
        fn any_bytes_are_texts_or_refused(bytes: Vec<u8>, rows in 0_usize..1_000, wanted in 0_usize..1_000) {
            let mut out = Texts::default();
            let mut rest = std::iter::once(wanted).peekable();
            if texts(&bytes, 0, rows, &mut rest, &mut out).is_ok() {
                prop_assert_eq!(out.len(), usize::from(wanted < rows));
            }
        }

        #[test]
        fn numbers_of_every_width_come_back(width in 1_u8..=64, seeds in prop::collection::vec(any::<u64>(), 0..100)) {
            let all: Vec<u64> = seeds.iter().map(|seed| seed >> (64 - width)).collect();
            let mut bytes = vec![0_u8; (all.len() * usize::from(width)).div_ceil(8)];
            for (index, number) in all.iter().enumerate() {
                for bit in 0..usize::from(width) {
                    let at = index * usize::from(width) + bit;
                    bytes[at / 8] |= u8::from(number >> bit & 1 == 1) << (at % 8);
                }
            }
            let mut back = Vec::new();
            differences(&bytes, width, all.len(), |number| back.push(number)).unwrap();
            prop_assert_eq!(back, all);
        }
    }
}
