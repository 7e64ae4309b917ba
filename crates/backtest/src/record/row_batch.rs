//! Up to 4096 rows, of one batch of the history or of several, on their way to the policies.

use super::view::{AttributeProjection, View};
use provost_history::Batch as Rows;
use provost_policy::{BATCH_ROWS, Batch, BatchFault, Occasion, Value};
use std::collections::HashMap;
use std::ops::Range;

/// How many values a dictionary has at most to be taken over whole; a larger one is taken over value by value.
const WHOLE: usize = 1_024;
/// Up to here dictionaries are taken over whole: 4096 more values, one for each row, always fit into 16 bits.
const CODES: usize = 60_000;

/// Rows that are collected.
#[derive(Debug)]
pub struct RowBatch {
    at_ms: Vec<i64>,
    occasions: Vec<Occasion>,
    columns: Vec<Column>,
    /// Names the piece, so that codes of an earlier one are not taken for its own.
    number: u32,
}

#[derive(Debug, Default)]
struct Column {
    dictionary: Vec<Value>,
    codes: Vec<u16>,
    /// The code of `Missing`, once it was needed.
    missing: Option<u16>,
    /// The codes of values that follow from another attribute, by the digits of the value.
    followed: HashMap<[u64; 2], u16>,
}

/// Which codes the values of a view have in the piece at hand, column by column.
#[derive(Debug, Default)]
pub struct Codes(Vec<CodeMap>);

#[derive(Debug, Default)]
struct CodeMap {
    /// The piece for which the dictionary was taken over whole, and the code of its first value.
    whole: Option<(u32, u16)>,
    /// For each value the piece for which it was taken over, and its code.
    each: Vec<(u32, u16)>,
}

impl RowBatch {
    /// Returns a piece without rows.
    pub fn new(lens: &AttributeProjection) -> Self {
        Self {
            at_ms: Vec::with_capacity(BATCH_ROWS),
            occasions: Vec::with_capacity(BATCH_ROWS),
            columns: lens.fields().iter().map(|_| Column::default()).collect(),
            number: 1,
        }
    }

    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        self.at_ms.len()
    }

    /// Returns how many more rows it takes.
    pub fn room(&self) -> usize {
        BATCH_ROWS - self.rows()
    }

    /// Adds rows, at most as many as there is room for; one that names no occasion gets some.
    pub fn push(&mut self, view: &View, codes: &mut Codes, batch: &Rows, range: Range<usize>) {
        self.at_ms.extend_from_slice(&batch.at[range.clone()]);
        view.occasions(batch, &range, &mut self.occasions);
        codes.0.resize_with(self.columns.len(), CodeMap::default);
        for (place, (column, known)) in self.columns.iter_mut().zip(&mut codes.0).enumerate() {
            if view.follows(place) {
                column.follow(view, batch, place, range.clone());
                continue;
            }
            let values = &view.column(place).values;
            let theirs = &batch.columns[place + 2].codes[range.clone()];
            let start = column.codes.len();
            if let Some(base) = column.whole(known, values, self.number) {
                // A whole dictionary has at most 1024 values, and ends before 60 000.
                let code = |code: &u32| base.wrapping_add(u16::try_from(*code).unwrap_or(0));
                column.codes.extend(theirs.iter().map(code));
            } else {
                column.one_by_one(known, values, theirs, self.number);
            }
            if view.column(place).is_missing.is_some() {
                for (nth, row) in range.clone().enumerate() {
                    if theirs[nth] == 0 && view.column(place).is_missing_at(batch, row) {
                        column.codes[start + nth] = column.missing();
                    }
                }
            }
        }
    }

    /// Returns the batch of the rows, and is empty again.
    ///
    /// Errors: none, unless more rows were added than there was room for.
    pub fn take(&mut self, lens: &AttributeProjection) -> Result<Batch, BatchFault> {
        let mut batch = Batch::new(
            std::mem::take(&mut self.at_ms),
            std::mem::take(&mut self.occasions),
        )?;
        for (field, column) in lens.fields().iter().zip(&mut self.columns) {
            let Column {
                dictionary, codes, ..
            } = std::mem::take(column);
            batch.set(*field, dictionary, codes)?;
        }
        self.number = self.number.wrapping_add(1).max(1);
        Ok(batch)
    }
}

impl Column {
    /// Takes over all values if they are few; returns the code of the first.
    fn whole(&mut self, known: &mut CodeMap, values: &[Value], piece: u32) -> Option<u16> {
        if let Some((of, base)) = known.whole
            && of == piece
        {
            return Some(base);
        }
        if values.len() > WHOLE || self.dictionary.len() + values.len() > CODES {
            return None;
        }
        let base = u16::try_from(self.dictionary.len()).ok()?;
        self.dictionary.extend_from_slice(values);
        known.whole = Some((piece, base));
        Some(base)
    }

    /// Takes over the values that occur.
    fn one_by_one(&mut self, known: &mut CodeMap, values: &[Value], codes: &[u32], piece: u32) {
        known.each.resize(values.len(), (0, 0));
        let dictionary = &mut self.dictionary;
        self.codes.extend(codes.iter().map(|code| {
            let (of, ours) = &mut known.each[*code as usize];
            if *of != piece {
                *of = piece;
                *ours = u16::try_from(dictionary.len()).unwrap_or(u16::MAX);
                dictionary.push(values[*code as usize]);
            }
            *ours
        }));
    }

    /// Takes over the values of rows that follow from another attribute as well.
    fn follow(&mut self, view: &View, batch: &Rows, place: usize, range: Range<usize>) {
        let dictionary = &mut self.dictionary;
        self.codes.extend(range.map(|row| {
            // Nobody can say what a code that stands for nothing meant.
            let value = view.value(batch, place, row).unwrap_or(Value::Missing);
            *self.followed.entry(value.digits()).or_insert_with(|| {
                dictionary.push(value);
                // At most one for each row of a piece.
                u16::try_from(dictionary.len() - 1).unwrap_or(u16::MAX)
            })
        }));
    }

    fn missing(&mut self) -> u16 {
        let dictionary = &mut self.dictionary;
        *self.missing.get_or_insert_with(|| {
            dictionary.push(Value::Missing);
            u16::try_from(dictionary.len() - 1).unwrap_or(u16::MAX)
        })
    }
}
