//! The distinct behaviours of the events of a segment.

use crate::batch::Column;
use crate::error::Result;
use crate::wire;
use hashbrown::HashTable;

/// For each row the code of its behaviour, and for each behaviour the first row that shows it.
pub(super) struct Distinct {
    pub(super) codes: Vec<u32>,
    pub(super) first_rows: Vec<u32>,
}

/// Returns the distinct behaviours of the rows over these columns, in the order of their first appearance; none
/// when there are more than `limit`.
pub(super) fn distinct(columns: &[&[u32]], rows: usize, limit: usize) -> Option<Distinct> {
    let mut hashes = vec![0_u64; rows];
    for column in columns {
        for (hash, code) in hashes.iter_mut().zip(*column) {
            *hash = mix(*hash, *code);
        }
    }
    let mut table: HashTable<u32> = HashTable::new();
    let mut found = Distinct {
        codes: Vec::with_capacity(rows),
        first_rows: Vec::new(),
    };
    for (row, hash) in hashes.iter().enumerate() {
        let equals = |code: &u32| {
            let first = found.first_rows[*code as usize] as usize;
            columns.iter().all(|column| column[first] == column[row])
        };
        if let Some(code) = table.find(*hash, equals) {
            found.codes.push(*code);
            continue;
        }
        let code = u32::try_from(found.first_rows.len())
            .ok()
            .filter(|code| (*code as usize) < limit)?;
        found.first_rows.push(u32::try_from(row).ok()?);
        table.insert_unique(*hash, code, |code| {
            hashes[found.first_rows[*code as usize] as usize]
        });
        found.codes.push(code);
    }
    Some(found)
}

/// Returns a hash of a hash and one more code. Codes are ours, counted from one: nobody aims at collisions.
pub(crate) fn mix(hash: u64, code: u32) -> u64 {
    let mixed = (hash.rotate_left(23) ^ u64::from(code)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Returns the table's bytes before packing: the columns, one row for each behaviour.
pub(super) fn encode(columns: &[Column]) -> Vec<u8> {
    let mut raw = Vec::new();
    for column in columns {
        wire::put_column(&mut raw, column);
    }
    raw
}

/// Returns the columns of the table, of these types, with `rows` behaviours: those that are wanted.
pub(super) fn decode(
    raw: &[u8],
    kinds: impl Iterator<Item = crate::schema::Kind>,
    rows: usize,
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Option<Column>>> {
    let mut reader = wire::Reader::new(raw);
    let mut columns = Vec::new();
    for (place, kind) in kinds.enumerate() {
        // A table has dozens of columns, of which a question reads a few.
        columns.push(if is_wanted(place) {
            Some(wire::column(&mut reader, kind, rows)?)
        } else {
            wire::skip_column(&mut reader, kind, rows)?;
            None
        });
    }
    if reader.is_at_end() {
        Ok(columns)
    } else {
        Err(crate::error::Error::Corrupt("length"))
    }
}
