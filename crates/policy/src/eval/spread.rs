//! From the answers on a column's distinct values to the answers on its rows.
//!
//! Where several predicates read a column, its rows are sorted by code once, and each predicate touches only the rows
//! that it changes; where few do, or many rows change, each row looks its answer up.

use super::batch::Column;
use super::mask::{Bits, Mask, pack, put};
use crate::condition::Order;
use crate::event::Value;
use crate::set::Test;
use crate::symbols::Symbols;
use crate::truth::Truth;

/// How many predicates have to read a column for sorting to pay.
pub(super) const SORT_READERS: usize = 4;

/// What a predicate said before, by symbol.
#[derive(Clone, Default)]
pub(super) struct PredicateCache {
    texts: Vec<Option<Truth>>,
    sets: Vec<Option<Truth>>,
}

/// The codes of a column whose values pass a predicate, and those of which nobody can say.
#[derive(Default)]
pub(super) struct PassingCodes {
    sure: Codes,
    unknown: Codes,
}

/// Some codes.
enum Codes {
    List(Vec<u16>),
    /// One byte for each code, 1 for those that are meant.
    Table(Vec<u8>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl PredicateCache {
    /// Returns which values of a column's dictionary pass.
    pub fn judge(&mut self, test: &Test, column: &Column, symbols: &Symbols) -> PassingCodes {
        let (mut sure, mut unknown) = (Vec::new(), Vec::new());
        for (code, found) in (0_u16..).zip(&column.dictionary) {
            match self.one(test, *found, symbols) {
                Truth::False => {}
                Truth::Unknown => unknown.push(code),
                Truth::True => sure.push(code),
            }
        }
        PassingCodes {
            sure: Codes::List(sure),
            unknown: Codes::List(unknown),
        }
    }

    fn one(&mut self, test: &Test, value: Value, symbols: &Symbols) -> Truth {
        let (known, at) = match value {
            Value::Text(symbol) => (&mut self.texts, symbol.0 as usize),
            Value::Set(set) => (&mut self.sets, set.0 as usize),
            _ => return test.judge_value(value, symbols),
        };
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        *known[at].get_or_insert_with(|| test.judge_value(value, symbols))
    }
}

/// The numbers of a column's dictionary, for several predicates.
pub(super) struct Numbers {
    /// By code; a NaN, which no number is, for what is none.
    values: Vec<f64>,
    /// The codes of values that nobody can say.
    unknown: Vec<u16>,
}

impl Numbers {
    pub fn new(column: &Column) -> Self {
        let number = |found: &Value| match found {
            Value::Number(number) => *number,
            _ => f64::NAN,
        };
        let is_unknown = |found: &Value| !matches!(found, Value::Number(_) | Value::Absent);
        let unknown = (0_u16..)
            .zip(&column.dictionary)
            .filter(|(_, found)| is_unknown(found));
        Self {
            values: column.dictionary.iter().map(number).collect(),
            unknown: unknown.map(|(code, _)| code).collect(),
        }
    }

    /// Returns which pass. Numbers are rarely repeated: a table costs less than a list of half of them.
    pub fn judge(&self, order: Order, value: f64, negated: bool) -> PassingCodes {
        let table = match order {
            Order::Equal => self.table(negated, |number| order.holds(&number, &value)),
            Order::Greater => self.table(negated, |number| number > value),
            Order::AtLeast => self.table(negated, |number| number >= value),
            Order::Less => self.table(negated, |number| number < value),
            Order::AtMost => self.table(negated, |number| number <= value),
        };
        PassingCodes {
            sure: Codes::Table(table),
            unknown: Codes::List(self.unknown.clone()),
        }
    }

    /// Returns a byte for each code: whether there is a number, and it passes or, negated, does not.
    fn table(&self, negated: bool, passes: impl Fn(f64) -> bool) -> Vec<u8> {
        let one = |number: &f64| u8::from((passes(*number) != negated) & !number.is_nan());
        self.values.iter().map(one).collect()
    }
}

/// The rows of a column by their codes.
pub(super) struct SortedRows {
    /// For each code the place of its first row in `rows`, and the end.
    starts: Vec<u16>,
    rows: Vec<u16>,
}

impl SortedRows {
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

    /// Returns how many rows have one of some codes; above `most` just more than that.
    fn rows_of(&self, codes: &[u16], most: usize) -> usize {
        let mut rows = 0;
        for code in codes {
            rows += self.of(*code).len();
            if rows > most {
                break;
            }
        }
        rows
    }

    fn of(&self, code: u16) -> &[u16] {
        let code = usize::from(code);
        &self.rows[usize::from(self.starts[code])..usize::from(self.starts[code + 1])]
    }
}

/// Returns the rows whose values pass, and those whose values may.
pub(super) fn spread(
    column: &Column,
    sorted: Option<&SortedRows>,
    passing: &PassingCodes,
    rows: &Bits,
) -> Option<Mask> {
    let PassingCodes { sure, unknown } = passing;
    if let (Codes::List(sure), Codes::List(unknown)) = (sure, unknown) {
        if sure.is_empty() && unknown.is_empty() {
            return None;
        }
        if sure.len() == column.dictionary.len() {
            return Some(Mask {
                sure: *rows,
                may: *rows,
            });
        }
    }
    let mut mask = Mask::FALSE;
    add(&mut mask.sure, column, sorted, sure);
    mask.may = mask.sure;
    add(&mut mask.may, column, sorted, unknown);
    Some(mask)
}

/// Adds the rows that have one of some codes.
fn add(bits: &mut Bits, column: &Column, sorted: Option<&SortedRows>, codes: &Codes) {
    let few = column.codes.len() / 4;
    match (codes, sorted) {
        (Codes::List(list), _) if list.is_empty() => {}
        (Codes::Table(table), _) => look_up(bits, column, table),
        (Codes::List(list), Some(sorted)) if sorted.rows_of(list, few) <= few => {
            for row in list.iter().flat_map(|code| sorted.of(*code)) {
                put(bits, usize::from(*row));
            }
        }
        (Codes::List(list), _) => {
            let mut table = vec![0; column.dictionary.len()];
            for code in list {
                table[usize::from(*code)] = 1;
            }
            look_up(bits, column, &table);
        }
    }
}

/// Adds the rows whose codes have a 1 in the table.
fn look_up(bits: &mut Bits, column: &Column, table: &[u8]) {
    if column.is_by_row {
        let (chunks, rest) = table[..column.codes.len()].as_chunks::<64>();
        for (at, chunk) in chunks.iter().enumerate() {
            bits[at] |= pack(chunk);
        }
        for (at, passes) in rest.iter().enumerate() {
            bits[chunks.len()] |= u64::from(*passes) << at;
        }
        return;
    }
    let (chunks, rest) = column.codes.as_chunks::<64>();
    for (at, chunk) in chunks.iter().enumerate() {
        bits[at] |= pack(&chunk.map(|code| table[usize::from(code)]));
    }
    for (at, code) in rest.iter().enumerate() {
        bits[chunks.len()] |= u64::from(table[usize::from(*code)]) << at;
    }
}
