//! Events column by column: for each attribute the distinct values of the batch, and a code for each row.
//!
//! A predicate is asked once for each distinct value; rows then follow by their codes. Stored segments that keep
//! dictionaries fill columns without looking at a row.

use super::mask::BATCH_ROWS as ROWS;
use crate::catalogue::{FIELDS, Field};
use crate::event::{Event, Value};
use crate::family::Occasion;
use std::collections::HashMap;
use std::fmt;

pub use super::mask::BATCH_ROWS;

/// Up to 4096 events.
#[derive(Debug)]
pub struct Batch {
    at_ms: Vec<i64>,
    occasions: Vec<Occasion>,
    columns: Vec<Option<Column>>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub dictionary: Vec<Value>,
    pub codes: Vec<u16>,
    /// Whether the value of row `r` stands at `r` of the dictionary.
    pub is_by_row: bool,
}

impl Column {
    fn new(dictionary: Vec<Value>, codes: Vec<u16>) -> Self {
        Self {
            is_by_row: dictionary.len() >= codes.len() && (0..).zip(&codes).all(|(row, code)| row == *code),
            dictionary,
            codes,
        }
    }
}

/// Why something is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFault {
    /// It has more than 4096 rows.
    TooManyRows,
    /// The columns have different lengths.
    UnevenColumns,
    /// A code stands for nothing.
    UnknownCode,
}

impl fmt::Display for BatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyRows => "a batch has at most 4096 rows",
            Self::UnevenColumns => "all columns of a batch have the same number of rows",
            Self::UnknownCode => "a code of a column is not in its dictionary",
        })
    }
}

impl std::error::Error for BatchFault {}

impl Batch {
    /// Returns a batch whose events have no attributes yet.
    ///
    /// Errors: more than 4096 rows, or as many times as occasions are not given.
    pub fn new(at_ms: Vec<i64>, occasions: Vec<Occasion>) -> Result<Self, BatchFault> {
        if at_ms.len() > ROWS {
            return Err(BatchFault::TooManyRows);
        }
        if at_ms.len() != occasions.len() {
            return Err(BatchFault::UnevenColumns);
        }
        Ok(Self {
            at_ms,
            occasions,
            columns: (0..FIELDS).map(|_| None).collect(),
        })
    }

    /// Sets the column of an attribute.
    ///
    /// Errors: another number of rows, or a code that is not in the dictionary.
    pub fn set(&mut self, field: Field, dictionary: Vec<Value>, codes: Vec<u16>) -> Result<(), BatchFault> {
        if codes.len() != self.rows() {
            return Err(BatchFault::UnevenColumns);
        }
        if codes
            .iter()
            .max()
            .is_some_and(|most| usize::from(*most) >= dictionary.len())
        {
            return Err(BatchFault::UnknownCode);
        }
        self.columns[field.index()] = Some(Column::new(dictionary, codes));
        Ok(())
    }

    /// Returns the batch of some events, with these attributes.
    ///
    /// Errors: more than 4096 events.
    pub fn of(events: &[Event], fields: &[Field]) -> Result<Self, BatchFault> {
        let at_ms = events.iter().map(Event::at_ms).collect();
        let mut batch = Self::new(at_ms, events.iter().map(Event::occasion).collect())?;
        for field in fields {
            let mut codes = Vec::with_capacity(events.len());
            let mut dictionary = Vec::new();
            let mut places = HashMap::new();
            for event in events {
                let value = event.get(*field);
                let code = *places.entry(value.key()).or_insert_with(|| {
                    dictionary.push(value);
                    dictionary.len() - 1
                });
                // At most 4096 distinct values.
                codes.push(u16::try_from(code).unwrap_or(u16::MAX));
            }
            batch.columns[field.index()] = Some(Column::new(dictionary, codes));
        }
        Ok(batch)
    }

    /// Returns how many events there are.
    pub fn rows(&self) -> usize {
        self.at_ms.len()
    }

    pub(super) fn times(&self) -> &[i64] {
        &self.at_ms
    }

    pub(super) fn occasions(&self) -> &[Occasion] {
        &self.occasions
    }

    pub(super) fn column(&self, field: Field) -> Option<&Column> {
        self.columns[field.index()].as_ref()
    }

    /// Returns where an event is judged; the first occasion for a row that the batch does not have.
    pub fn occasion(&self, row: usize) -> Occasion {
        self.occasions.get(row).copied().unwrap_or(Occasion::ALL[0])
    }

    /// Returns an attribute of an event; absent where the batch does not have it.
    pub fn value(&self, field: Field, row: usize) -> Value {
        let found = self.column(field).and_then(|column| {
            let code = column.codes.get(row)?;
            column.dictionary.get(usize::from(*code)).copied()
        });
        // `set` takes no code that stands for nothing: what is not found is a column that nobody reads.
        found.unwrap_or(Value::Absent)
    }

    /// Returns an event with the attributes that the batch has.
    pub(super) fn event(&self, row: usize) -> Event {
        let mut event = Event::new(self.at_ms[row], self.occasions[row]);
        for field in Field::all() {
            event.set(field, self.value(field, row));
        }
        event
    }
}
