//! The distinct combinations of codes of some columns, within one row group or chunk.

use crate::batch::Column;
use crate::segment::mix;
use hashbrown::HashTable;

/// For each row the number of its combination, and for each combination the first row that shows it.
pub(super) struct Local {
    pub(super) codes: Vec<u32>,
    pub(super) first_rows: Vec<u32>,
}

/// How many pairs of codes are looked up in an array, and not by hash: 4 MiB, about what a core keeps near.
const DENSE_PAIRS: usize = 1 << 20;

/// Returns the combinations of these columns, of `rows` rows each, numbered in the order of their appearance.
pub(super) fn combine(columns: &[Column], rows: usize) -> Local {
    let mut local = Local {
        codes: vec![0; rows],
        first_rows: vec![0; usize::from(rows > 0)],
    };
    for column in columns {
        let (left, right) = (local.first_rows.len(), column.dictionary.len() + 1);
        local = match left.checked_mul(right) {
            Some(pairs) if pairs <= DENSE_PAIRS => dense(&local.codes, &column.codes, right, pairs),
            _ => sparse(&local.codes, &column.codes),
        };
    }
    local
}

fn dense(left: &[u32], right: &[u32], width: usize, pairs: usize) -> Local {
    const NONE: u32 = u32::MAX;
    let mut numbers = vec![NONE; pairs];
    let (mut codes, mut first_rows) = (Vec::with_capacity(left.len()), Vec::new());
    for (row, (left, right)) in (0..).zip(left.iter().zip(right)) {
        let number = &mut numbers[*left as usize * width + *right as usize];
        if *number == NONE {
            *number = number_of(&first_rows);
            first_rows.push(row);
        }
        codes.push(*number);
    }
    Local { codes, first_rows }
}

fn sparse(left: &[u32], right: &[u32]) -> Local {
    let mut table: HashTable<(u32, u32, u32)> = HashTable::new();
    let (mut codes, mut first_rows) = (Vec::with_capacity(left.len()), Vec::new());
    let hash = |left: u32, right: u32| mix(mix(0, left), right);
    for (row, (left, right)) in (0..).zip(left.iter().zip(right)) {
        let entry = table.entry(
            hash(*left, *right),
            |known| known.0 == *left && known.1 == *right,
            |known| hash(known.0, known.1),
        );
        let known = entry.or_insert_with(|| {
            let number = number_of(&first_rows);
            first_rows.push(row);
            (*left, *right, number)
        });
        codes.push(known.get().2);
    }
    Local { codes, first_rows }
}

/// Returns the number of the next combination; there are never more than rows, and those are counted in 32 bits.
fn number_of(first_rows: &[u32]) -> u32 {
    u32::try_from(first_rows.len()).unwrap_or(u32::MAX)
}
