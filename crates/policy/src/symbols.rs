//! The texts and sets that events share: each is kept once and named by a number.
//!
//! Events of one batch, segment or log share one table, so that equal values are equal numbers and whatever was
//! found out about a text is found out once.
//!
//! A table may have a register, which says what names mean. It is no part of what is stored.
//!
//! Absent on purpose: forgetting. A table lives as long as the batch, segment or scan that it belongs to.
//!
//! Keeps NW-3.

use crate::catalogue::Field;
use crate::document::{self, DocumentReading, Meaning};
use crate::event::Value;
use crate::matching;
use crate::register::{NamedRecord, Register, of_key};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A text of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Symbol(pub(crate) u32);

impl Symbol {
    /// Returns the place of the text in its table, from 0 on.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of texts of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SetSymbol(pub(crate) u32);

impl SetSymbol {
    /// Returns the place of the set in its table, from 0 on.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of texts and sets.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredSymbols", into = "StoredSymbols")]
pub struct Symbols {
    texts: Vec<Text>,
    places: HashMap<Arc<str>, u32>,
    sets: Vec<Arc<[Symbol]>>,
    set_places: HashMap<Arc<[Symbol]>, u32>,
    bytes: usize,
    /// Who is meant by names.
    register: Arc<Register>,
}

#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "a text is what it is")]
struct Text {
    text: Arc<str>,
    /// Its match key, once somebody asked; nothing where that is the text itself.
    key: OnceLock<Option<Arc<str>>>,
    /// What the text says as a document, once somebody asked.
    reading: OnceLock<DocumentReading>,
    /// What it means as a document, once somebody asked.
    meaning: OnceLock<Option<Meaning>>,
}

/// The table as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredSymbols {
    texts: Vec<Arc<str>>,
    sets: Vec<Vec<u32>>,
}

impl Symbols {
    /// Returns an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty table whose names mean what this register says.
    pub fn knowing(register: Arc<Register>) -> Self {
        Self {
            register,
            ..Self::default()
        }
    }

    /// Says what the names of this table mean. Whatever was found out about them before is out of date: a walk over
    /// batches has one register from its start to its end.
    pub fn know(&mut self, register: Arc<Register>) {
        self.register = register;
    }

    /// Returns what the names of this table mean.
    pub fn register(&self) -> &Arc<Register> {
        &self.register
    }

    /// Returns the match key of a text.
    pub(crate) fn key(&self, symbol: Symbol) -> &str {
        let Some(kept) = self.texts.get(symbol.0 as usize) else {
            return "";
        };
        let key = kept.key.get_or_init(|| match matching::key(&kept.text) {
            Cow::Borrowed(key) if key.len() == kept.text.len() => None,
            key => Some(key.as_ref().into()),
        });
        key.as_deref().unwrap_or(&kept.text)
    }

    /// Returns the key of a text as the name that an attribute has.
    pub(crate) fn name_key(&self, field: Field, symbol: Symbol) -> &str {
        of_key(field, self.key(symbol))
    }

    /// Returns the value of an attribute as it is judged: a name that nobody sees is missing, and so is a word that is none of
    /// a closed list's, and a user or service account without a record where everybody who may act has one.
    pub(crate) fn state(&self, field: Field, value: Value) -> Value {
        match value {
            Value::Text(symbol) if self.is_nobody(field, symbol) => Value::Missing,
            value => value,
        }
    }

    fn is_nobody(&self, field: Field, symbol: Symbol) -> bool {
        if !field.is_name() {
            return false;
        }
        let key = self.name_key(field, symbol);
        // What is none of a closed list's words may be any of them, in a spelling that nobody knows here.
        let is_strange = || !field.words().is_empty() && !field.words().contains(&key);
        key.is_empty()
            || is_strange()
            || (self.register.misses_strangers(field) && self.meant(field, symbol).is_empty())
    }

    /// Returns the records that a text means as the name that an attribute has, by id.
    pub(crate) fn meant(&self, field: Field, symbol: Symbol) -> &[Arc<NamedRecord>] {
        self.register.by_key(field, self.name_key(field, symbol))
    }

    /// Returns the symbol of a text, and keeps the text if it is new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(at) = self.places.get(text) {
            return Symbol(*at);
        }
        // Four billion distinct texts do not fit into memory.
        let at = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.places.insert(Arc::clone(&text), at);
        self.texts.push(Text {
            text,
            key: OnceLock::new(),
            reading: OnceLock::new(),
            meaning: OnceLock::new(),
        });
        Symbol(at)
    }

    /// Returns the symbol of a set of texts, in any order, and keeps it if it is new.
    pub fn intern_set<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> SetSymbol {
        let mut set: Vec<Symbol> = texts.into_iter().map(|text| self.intern(text)).collect();
        set.sort_unstable();
        set.dedup();
        self.keep_set(set)
    }

    fn keep_set(&mut self, set: Vec<Symbol>) -> SetSymbol {
        if let Some(at) = self.set_places.get(set.as_slice()) {
            return SetSymbol(*at);
        }
        let at = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        let set: Arc<[Symbol]> = set.into();
        self.set_places.insert(Arc::clone(&set), at);
        self.sets.push(set);
        SetSymbol(at)
    }

    /// Returns the symbol of a text that is kept.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.places.get(text).copied().map(Symbol)
    }

    /// Returns the text of a symbol; the empty text for one of another table (see `Event::fits`).
    pub fn text(&self, symbol: Symbol) -> &str {
        self.texts.get(symbol.0 as usize).map_or("", |kept| &kept.text)
    }

    /// Returns the members of a set; nothing for one of another table.
    pub fn set(&self, set: SetSymbol) -> &[Symbol] {
        self.sets.get(set.0 as usize).map_or(&[], |kept| kept)
    }

    /// Returns what a text says as a document; nothing for a symbol of another table.
    pub(crate) fn reading(&self, symbol: Symbol) -> &DocumentReading {
        match self.texts.get(symbol.0 as usize) {
            Some(kept) => kept.reading.get_or_init(|| document::read(&kept.text)),
            None => &DocumentReading::None,
        }
    }

    /// Returns what a text means as a document; nothing where it is none.
    ///
    /// Cost: once for each text; of what does not begin like a document, a look at its first character.
    pub(crate) fn meaning(&self, symbol: Symbol) -> Option<&Meaning> {
        let kept = self.texts.get(symbol.0 as usize)?;
        let meaning = kept
            .meaning
            .get_or_init(|| self.reading(symbol).meaning(&kept.text));
        meaning.as_ref()
    }

    /// Returns how many texts are kept.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns how many bytes the kept texts have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns how many sets are kept.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
}

impl Clone for Symbols {
    fn clone(&self) -> Self {
        let mut copy = Self::knowing(Arc::clone(&self.register));
        for text in &self.texts {
            copy.intern(&text.text);
        }
        for set in &self.sets {
            copy.keep_set(set.to_vec());
        }
        copy
    }
}

impl From<Symbols> for StoredSymbols {
    fn from(symbols: Symbols) -> Self {
        let sets = symbols.sets.iter().map(|set| set.iter().map(|s| s.0).collect());
        Self {
            sets: sets.collect(),
            texts: symbols.texts.into_iter().map(|kept| kept.text).collect(),
        }
    }
}

impl TryFrom<StoredSymbols> for Symbols {
    type Error = &'static str;

    fn try_from(stored: StoredSymbols) -> Result<Self, Self::Error> {
        let mut symbols = Self::new();
        for (at, text) in stored.texts.iter().enumerate() {
            if symbols.intern(text).0 as usize != at {
                return Err("a table of symbols holds a text twice");
            }
        }
        for (at, set) in stored.sets.into_iter().enumerate() {
            let is_sorted = set.windows(2).all(|pair| pair[0] < pair[1]);
            if !is_sorted || set.last().is_some_and(|last| *last as usize >= symbols.len()) {
                return Err("a table of symbols holds a set that is none");
            }
            let set: Vec<Symbol> = set.into_iter().map(Symbol).collect();
            if symbols.keep_set(set).0 as usize != at {
                return Err("a table of symbols holds a set twice");
            }
        }
        Ok(symbols)
    }
}
