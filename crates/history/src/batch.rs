//! Events in memory, column by column.
//!
//! A column is a dictionary of distinct values and, for each row, a code into it. Code 0 says that the row has no
//! value; code `c` stands for the value `c - 1` of the dictionary. So whoever judges events judges each dictionary
//! entry once, with one more answer for "missing", and then looks up codes.
//!
//! INVARIANT HI-3: every code of a column is at most the length of its dictionary; decoding checks it, so that a
//! reader may index with codes.

use crate::error::{Error, Result};
use crate::schema::Kind;
use crate::texts::Texts;
use std::sync::Arc;

/// The distinct values of a column, or of a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary {
    pub(crate) kind: Kind,
    pub(crate) values: Values,
}

/// The values of a dictionary. Sets are spelled as JSON arrays, sorted and without repetition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Texts(Texts),
    Numbers(Vec<f64>),
    Instants(Vec<i64>),
    /// False and true, always both.
    Booleans,
}

/// One value of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The event has no value in this column.
    Missing,
    /// A text.
    Text(&'a str),
    /// A set of texts, in any order.
    Set(&'a [&'a str]),
    /// A finite number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A JSON document.
    Json(&'a str),
    /// Milliseconds since the Unix epoch.
    Instant(i64),
}

/// A value of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<'a> {
    /// No value.
    Missing,
    /// A text.
    Text(&'a str),
    /// The members of a set, sorted, without repetition.
    Set(Vec<String>),
    /// A finite number; zero is never negative.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A JSON document as it was spelled.
    Json(&'a str),
    /// Milliseconds since the Unix epoch.
    Instant(i64),
}

/// The sets of a dictionary, side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    /// The members of all sets, one set after the other.
    pub members: Texts,
    /// Where each set ends in `members`; it begins where the one before ends.
    pub ends: Vec<u32>,
}

impl Dictionary {
    /// Returns the dictionary of a column in which no row has a value.
    pub(crate) fn empty(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text | Kind::TextSet | Kind::Json => Values::Texts(Texts::default()),
            Kind::Number => Values::Numbers(Vec::new()),
            Kind::Instant => Values::Instants(Vec::new()),
            Kind::Boolean => Values::Booleans,
        };
        Self { kind, values }
    }

    /// Returns the type of the values.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns how many values there are; codes go from 0 (missing) to this number.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Texts(texts) => texts.len(),
            Values::Numbers(numbers) => numbers.len(),
            Values::Instants(instants) => instants.len(),
            Values::Booleans => 2,
        }
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value that the code stands for.
    ///
    /// Errors: `Corrupt` when a set is not spelled as one.
    pub fn entry(&self, code: u32) -> Result<Entry<'_>> {
        let Some(index) = (code as usize).checked_sub(1) else {
            return Ok(Entry::Missing);
        };
        if index >= self.len() {
            return Err(Error::Corrupt("code"));
        }
        Ok(match &self.values {
            Values::Texts(texts) => match self.kind {
                Kind::TextSet => Entry::Set(members(texts.get(index))?),
                Kind::Json => Entry::Json(texts.get(index)),
                _ => Entry::Text(texts.get(index)),
            },
            Values::Numbers(numbers) => Entry::Number(numbers[index]),
            Values::Instants(instants) => Entry::Instant(instants[index]),
            Values::Booleans => Entry::Boolean(index == 1),
        })
    }

    /// Returns the texts of a column of texts or JSON documents: the value of code `c` stands at `c - 1`.
    pub fn texts(&self) -> Option<&Texts> {
        match (&self.values, self.kind) {
            (Values::Texts(texts), Kind::Text | Kind::Json) => Some(texts),
            _ => None,
        }
    }

    /// Returns the numbers of a column of numbers.
    pub fn numbers(&self) -> Option<&[f64]> {
        match &self.values {
            Values::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// Returns the instants of a column of instants. Units: milliseconds since the Unix epoch.
    pub fn instants(&self) -> Option<&[i64]> {
        match &self.values {
            Values::Instants(instants) => Some(instants),
            _ => None,
        }
    }

    /// Returns the sets of a column of sets; none for another column.
    ///
    /// Errors: `Corrupt` when one is not spelled as a set.
    pub fn sets(&self) -> Result<Option<Sets>> {
        let (Values::Texts(texts), Kind::TextSet) = (&self.values, self.kind) else {
            return Ok(None);
        };
        let mut sets = Sets::default();
        for text in texts.iter() {
            for member in members(text)? {
                sets.members.push(&member)?;
            }
            sets.ends
                .push(u32::try_from(sets.members.len()).map_err(|_| Error::Corrupt("set"))?);
        }
        Ok(Some(sets))
    }
}

/// Returns the members of the set that is spelled so.
fn members(spelled: &str) -> Result<Vec<String>> {
    serde_json::from_str(spelled).map_err(|_| Error::Corrupt("set"))
}

/// Returns how a set is spelled: equal sets are spelled equally.
pub(crate) fn spell(set: &[&str]) -> String {
    let mut sorted = set.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    serde_json::Value::from(sorted).to_string()
}

/// One column of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// For each row the code of its value; 0 where it is missing.
    pub codes: Vec<u32>,
    /// What the codes stand for. Batches of one row group share it: compare with `Arc::ptr_eq`.
    pub dictionary: Arc<Dictionary>,
}

impl Column {
    /// Returns a column of `rows` rows of which none has a value.
    pub(crate) fn missing(kind: Kind, rows: usize) -> Self {
        Self {
            codes: vec![0; rows],
            dictionary: Arc::new(Dictionary::empty(kind)),
        }
    }

    /// Returns a bitmap of the rows without a value: row `r` is bit `r % 64` of word `r / 64`.
    pub fn missing_bitmap(&self) -> Vec<u64> {
        self.codes
            .chunks(64)
            .map(|word| {
                word.iter()
                    .enumerate()
                    .fold(0, |bits, (bit, code)| bits | u64::from(*code == 0) << bit)
            })
            .collect()
    }

    /// Keeps the rows of this range.
    pub(crate) fn trim(&mut self, range: &std::ops::Range<usize>) {
        self.codes.truncate(range.end);
        self.codes.drain(..range.start);
    }
}

/// Events, column by column, in the order of (instant, event id).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The instant of each event, ascending. Units: milliseconds since the Unix epoch.
    pub at: Vec<i64>,
    /// The id of each event; empty when the reader did not ask for ids.
    pub ids: Texts,
    /// The columns that were asked for.
    pub columns: Vec<Column>,
}

impl Batch {
    /// Returns how many events there are.
    pub fn rows(&self) -> usize {
        self.at.len()
    }

    /// Returns the ranges of at most `rows` rows that make up the batch.
    pub fn pieces(&self, rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (total, step) = (self.rows(), rows.max(1));
        (0..total)
            .step_by(step)
            .map(move |start| start..total.min(start + step))
    }
}
