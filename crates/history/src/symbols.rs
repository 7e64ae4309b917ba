//! One code for each distinct value of a column, over many events, chunks or segments.
//!
//! Codes are given in the order of first appearance, so they do not depend on the hash function; the hash is keyed
//! at random because the values come from strangers.

use crate::batch::{Dictionary, Entry, Value, Values, spell};
use crate::error::{Error, Result, invalid};
use crate::schema::Kind;
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// The distinct values of a column seen so far.
#[derive(Debug)]
pub struct Symbols {
    dictionary: Dictionary,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Symbols {
    /// Returns an empty collection for values of this type.
    pub fn new(kind: Kind) -> Self {
        Self {
            dictionary: Dictionary::empty(kind),
            table: HashTable::new(),
            hasher: RandomState::new(),
        }
    }

    /// Returns the values: code `c` stands for the value `c - 1`.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Returns the values, and forgets how to find them.
    pub(crate) fn into_dictionary(self) -> Dictionary {
        self.dictionary
    }

    /// Returns about how many bytes of memory the values and their index take.
    pub fn memory(&self) -> usize {
        let values = match &self.dictionary.values {
            Values::Texts(texts) => texts.bytes() + 4 * texts.len(),
            Values::Numbers(numbers) => 8 * numbers.len(),
            Values::Instants(instants) => 8 * instants.len(),
            Values::Booleans => 0,
        };
        values + 5 * self.table.capacity()
    }

    /// Refuses a value that the column cannot hold.
    ///
    /// Errors: `Invalid` when the value is not of the column's type, not finite, or not JSON.
    pub fn check(&self, value: &Value<'_>) -> Result<()> {
        match (self.dictionary.kind, value) {
            (_, Value::Missing)
            | (Kind::Text, Value::Text(_))
            | (Kind::TextSet, Value::Set(_))
            | (Kind::Instant, Value::Instant(_))
            | (Kind::Boolean, Value::Boolean(_)) => Ok(()),
            (Kind::Json, Value::Json(text)) => {
                if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
                    return invalid("the value is not a JSON document");
                }
                Ok(())
            }
            (Kind::Number, Value::Number(number)) if number.is_finite() => Ok(()),
            (Kind::Number, Value::Number(_)) => invalid("the number is not finite"),
            (kind, _) => invalid(format!("the value is not of the column's type {kind:?}")),
        }
    }

    /// Returns the code of a value that `check` accepted, a new one if it was not seen before.
    ///
    /// Errors: `Corrupt` when the value is of another type, `Invalid` when there are too many.
    pub fn intern(&mut self, value: &Value<'_>) -> Result<u32> {
        match value {
            Value::Missing => Ok(0),
            Value::Text(text) | Value::Json(text) => self.text(text),
            Value::Set(set) => self.text(&spell(set)),
            Value::Number(number) => self.number(*number),
            Value::Instant(at) => self.instant(*at),
            Value::Boolean(is_true) => Ok(1 + u32::from(*is_true)),
        }
    }

    /// Returns for each code of the dictionary the code here: once per entry, never per row.
    ///
    /// Errors: `Corrupt` when the dictionary is of another type.
    pub fn translate(&mut self, dictionary: &Dictionary) -> Result<Vec<u32>> {
        if dictionary.kind != self.dictionary.kind {
            return Err(Error::Corrupt("type of a column"));
        }
        let mut codes = Vec::with_capacity(dictionary.len() + 1);
        codes.push(0);
        match &dictionary.values {
            Values::Texts(texts) => texts
                .iter()
                .try_for_each(|text| self.text(text).map(|code| codes.push(code)))?,
            Values::Numbers(all) => all
                .iter()
                .try_for_each(|one| self.number(*one).map(|code| codes.push(code)))?,
            Values::Instants(all) => all
                .iter()
                .try_for_each(|one| self.instant(*one).map(|code| codes.push(code)))?,
            Values::Booleans => codes.extend([1, 2]),
        }
        Ok(codes)
    }

    /// Returns the value of a code.
    ///
    /// Errors: `Corrupt` when there is none.
    pub fn entry(&self, code: u32) -> Result<Entry<'_>> {
        self.dictionary.entry(code)
    }

    fn text(&mut self, text: &str) -> Result<u32> {
        let Values::Texts(texts) = &mut self.dictionary.values else {
            return Err(Error::Corrupt("type of a column"));
        };
        let hash = self.hasher.hash_one(text);
        if let Some(code) = self
            .table
            .find(hash, |code| texts.get(*code as usize - 1) == text)
        {
            return Ok(*code);
        }
        texts.push(text)?;
        let code = next(texts.len())?;
        let hasher = &self.hasher;
        self.table
            .insert_unique(hash, code, |code| hasher.hash_one(texts.get(*code as usize - 1)));
        Ok(code)
    }

    fn number(&mut self, number: f64) -> Result<u32> {
        let Values::Numbers(all) = &mut self.dictionary.values else {
            return Err(Error::Corrupt("type of a column"));
        };
        let number = number + 0.0; // Negative zero becomes zero; every other number stays.
        let hash = self.hasher.hash_one(number.to_bits());
        if let Some(code) = self
            .table
            .find(hash, |code| all[*code as usize - 1].to_bits() == number.to_bits())
        {
            return Ok(*code);
        }
        all.push(number);
        let code = next(all.len())?;
        let hasher = &self.hasher;
        self.table.insert_unique(hash, code, |code| {
            hasher.hash_one(all[*code as usize - 1].to_bits())
        });
        Ok(code)
    }

    fn instant(&mut self, at: i64) -> Result<u32> {
        let Values::Instants(all) = &mut self.dictionary.values else {
            return Err(Error::Corrupt("type of a column"));
        };
        let hash = self.hasher.hash_one(at);
        if let Some(code) = self.table.find(hash, |code| all[*code as usize - 1] == at) {
            return Ok(*code);
        }
        all.push(at);
        let code = next(all.len())?;
        let hasher = &self.hasher;
        self.table
            .insert_unique(hash, code, |code| hasher.hash_one(all[*code as usize - 1]));
        Ok(code)
    }
}

/// Returns the code of the newest of `count` values.
fn next(count: usize) -> Result<u32> {
    u32::try_from(count).or_else(|_| invalid("a column has too many distinct values"))
}
