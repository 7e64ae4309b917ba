//! From the answers on a column's distinct values to the answers on its rows.
//!
//! Where several predicates read a column, its rows are sorted by code once, and each predicate touches only the rows
//! that it changes; where few do, or many rows change, each row looks its answer up.

use super::batch::Column;
use super::mask::{Bits, Mask, WORDS, pack, put};
use crate::condition::{Check, Operand};
use crate::event::Value;
use crate::set::Test;
use crate::symbols::Symbols;
use crate::truth::Truth;

/// How many predicates have to read a column for sorting to pay.
pub(super) const SORT_READERS: usize = 4;

/// What a predicate said before, by symbol: 0 for nothing yet.
#[derive(Clone, Default)]
pub(super) struct Known {
    texts: Vec<u8>,
    sets: Vec<u8>,
}

const FALSE: u8 = 1;
const UNKNOWN: u8 = 2;
const TRUE: u8 = 3;

fn code(truth: Truth) -> u8 {
    match truth {
        Truth::False => FALSE,
        Truth::Unknown => UNKNOWN,
        Truth::True => TRUE,
    }
}

impl Known {
    /// Returns the answer for each value of a column's dictionary.
    pub fn judge(&mut self, test: &Test, column: &Column, symbols: &Symbols) -> Vec<u8> {
        let values = column.dictionary.iter();
        match (&test.operand, &test.check) {
            // Numbers are rarely repeated: the short way is worth having.
            (
                Operand::Field(_),
                Check::Number {
                    order,
                    value,
                    negated,
                },
            ) => {
                let holds = |number: &f64| code((order.holds(number, value) != *negated).into());
                let judge = |found: &Value| match found {
                    Value::Number(number) => holds(number),
                    other => code(test.judge_value(*other, symbols)),
                };
                values.map(judge).collect()
            }
            _ => values.map(|value| self.one(test, *value, symbols)).collect(),
        }
    }

    fn one(&mut self, test: &Test, value: Value, symbols: &Symbols) -> u8 {
        let (known, at) = match value {
            Value::Text(symbol) => (&mut self.texts, symbol.0 as usize),
            Value::Set(set) => (&mut self.sets, set.0 as usize),
            _ => return code(test.judge_value(value, symbols)),
        };
        if known.len() <= at {
            known.resize(at + 1, 0);
        }
        if known[at] == 0 {
            known[at] = code(test.judge_value(value, symbols));
        }
        known[at]
    }
}

/// The rows of a column by their codes.
pub(super) struct Sorted {
    /// For each code the place of its first row in `rows`, and the end.
    starts: Vec<u16>,
    rows: Vec<u16>,
}

impl Sorted {
    pub fn new(column: &Column) -> Self {
        // A batch has at most 4096 rows: places fit into 16 bits.
        let mut starts = vec![0_u16; column.dictionary.len() + 1];
        for code in &column.codes {
            starts[usize::from(*code) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; column.codes.len()];
        for (row, code) in (0_u16..).zip(&column.codes) {
            let place = &mut next[usize::from(*code)];
            rows[usize::from(*place)] = row;
            *place += 1;
        }
        Self { starts, rows }
    }

    fn of(&self, code: usize) -> &[u16] {
        &self.rows[usize::from(self.starts[code])..usize::from(self.starts[code + 1])]
    }
}

/// Returns the rows whose codes are true, and those whose codes are not false.
pub(super) fn spread(column: &Column, sorted: Option<&Sorted>, truths: &[u8], rows: &Bits) -> Option<Mask> {
    let are = |wanted: u8| (0..truths.len()).filter(move |at| truths[*at] == wanted);
    let mut seen = [false; 4];
    for truth in truths {
        seen[usize::from(*truth)] = true;
    }
    match seen {
        [_, _, false, false] => return None,
        [_, false, false, true] => {
            return Some(Mask {
                sure: *rows,
                may: *rows,
            });
        }
        _ => {}
    }
    let touched = |sorted: &Sorted, wanted: u8| are(wanted).map(|code| sorted.of(code).len()).sum::<usize>();
    let mut sure = [0; WORDS];
    match sorted {
        Some(sorted) if touched(sorted, TRUE) <= column.codes.len() / 4 => {
            for row in are(TRUE).flat_map(|code| sorted.of(code)) {
                put(&mut sure, usize::from(*row));
            }
        }
        _ => look_up(&mut sure, column, truths, TRUE),
    }
    let mut may = sure;
    if seen[usize::from(UNKNOWN)] {
        look_up(&mut may, column, truths, UNKNOWN);
    }
    Some(Mask { sure, may })
}

/// Adds the rows whose codes have an answer.
fn look_up(bits: &mut Bits, column: &Column, truths: &[u8], wanted: u8) {
    let table: Vec<u8> = truths.iter().map(|truth| u8::from(*truth == wanted)).collect();
    let (chunks, rest) = column.codes.as_chunks::<64>();
    for (at, chunk) in chunks.iter().enumerate() {
        bits[at] |= pack(&chunk.map(|code| table[usize::from(code)]));
    }
    for (at, code) in rest.iter().enumerate() {
        bits[chunks.len()] |= u64::from(table[usize::from(*code)]) << at;
    }
}
