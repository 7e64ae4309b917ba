//! The request that is judged, as values of the catalogue's attributes.
//!
//! A row holds a time, an occasion and the attributes that are there or missing, sorted; what it does not hold is
//! absent (see `truth` for the difference). Values are small copies: texts and sets stand in a table of symbols.
//!
//! Attributes of a tool's input (`tool.input.command`, …) follow from `tool.input` where the caller did not give
//! them. A list of texts is read as one text with spaces between (`["rm", "-rf"]` is `rm -rf`), anything else that
//! is no text as its JSON, so that the form of a call does not slip past a policy.
//!
//! Absent on purpose: who sent it, its id, and what was decided; the history keeps these beside it.

use crate::catalogue::{Field, FieldType};
use crate::digest::canonical;
use crate::family::Occasion;
use crate::symbols::{SetSymbol, Symbol, Symbols};
use crate::violation::{Violations, member};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The request has no such attribute.
    Absent,
    /// It has one, and nobody can say its value.
    Missing,
    /// A text; of content, the canonical text of its JSON.
    Text(Symbol),
    /// A set of texts.
    Set(SetSymbol),
    /// A number; never a NaN.
    Number(f64),
    /// A truth value.
    Boolean(bool),
}

impl Value {
    /// The first of the two numbers of a text; the second is its symbol.
    pub(crate) const TEXT_KEY: u8 = 2;

    /// Returns numbers that are equal iff the values are, within one table of symbols.
    pub(crate) fn key(self) -> (u8, u64) {
        match self {
            Self::Absent => (0, 0),
            Self::Missing => (1, 0),
            Self::Text(symbol) => (Self::TEXT_KEY, u64::from(symbol.0)),
            Self::Set(set) => (3, u64::from(set.0)),
            Self::Number(number) => (4, number.to_bits()),
            Self::Boolean(is) => (5, u64::from(is)),
        }
    }

    /// Returns the same value in another table.
    pub(crate) fn carried(self, from: &Symbols, to: &mut Symbols) -> Self {
        match self {
            Self::Text(symbol) => Self::Text(to.intern(from.text(symbol))),
            Self::Set(set) => {
                let texts = from.set(set).iter().map(|symbol| from.text(*symbol));
                Self::Set(to.intern_set(texts))
            }
            value => value,
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    at_ms: i64,
    occasion: Occasion,
    values: Vec<(Field, Value)>,
}

/// Whose past a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// This user, service account or device.
    Known(Field, Symbol),
    /// Somebody, and nobody can say who.
    Unknown,
    /// Nobody.
    Nobody,
}

impl Subject {
    /// Returns whose past something with these attributes belongs to.
    pub fn of(get: impl Fn(Field) -> Value) -> Self {
        for field in [Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE] {
            match get(field) {
                Value::Text(symbol) => return Self::Known(field, symbol),
                Value::Absent => {}
                _ => return Self::Unknown,
            }
        }
        Self::Nobody
    }
}

impl Event {
    /// Returns a request without attributes.
    ///
    /// Units: milliseconds since the Unix epoch, UTC.
    pub fn new(at_ms: i64, occasion: Occasion) -> Self {
        Self {
            at_ms,
            occasion,
            values: Vec::new(),
        }
    }

    /// Returns the request whose attributes a flat document spells (`{"tool.id": "t", …}`); null is absent.
    ///
    /// `missing` names attributes that the request has and whose values nobody can say.
    ///
    /// Errors: a name that is not of the catalogue, a value of another type, an attribute both given and missing.
    pub fn read(
        symbols: &mut Symbols,
        at_ms: i64,
        occasion: Occasion,
        attributes: &Map<String, Json>,
        missing: &[&str],
    ) -> Result<Self, Violations> {
        let mut faults = Violations::default();
        let mut event = Self::new(at_ms, occasion);
        for (name, json) in attributes {
            let path = member("", name);
            match Field::named(name) {
                None => faults.add(path, "is no attribute of the catalogue"),
                Some(_) if json.is_null() => {}
                Some(field) => match value(symbols, field.kind(), json) {
                    Some(value) => event.set(field, value),
                    None => faults.add(path, "has another type"),
                },
            }
        }
        for (at, name) in missing.iter().enumerate() {
            match Field::named(name) {
                Some(field) if event.get(field) == Value::Absent => event.set(field, Value::Missing),
                Some(_) => faults.add(format!("/missing/{at}"), "is both given and missing"),
                None => faults.add(format!("/missing/{at}"), "is no attribute of the catalogue"),
            }
        }
        event.follow_input(symbols, attributes.get(Field::TOOL_INPUT.name()));
        faults.or(Some(event))
    }

    /// Fills what follows from the tool's input.
    fn follow_input(&mut self, symbols: &mut Symbols, input: Option<&Json>) {
        let parsed;
        let document = match (self.get(Field::TOOL_INPUT), input) {
            (Value::Text(_), Some(Json::String(text))) => {
                parsed = serde_json::from_str(text).unwrap_or(Json::Null);
                Some(&parsed)
            }
            (Value::Text(_), Some(json)) => Some(json),
            (Value::Missing, _) => None,
            _ => return,
        };
        let prefix = "tool.input.";
        for field in Field::all().filter(|field| field.name().starts_with(prefix)) {
            if self.get(field) != Value::Absent {
                continue;
            }
            let follows = match document.map(|document| document.get(&field.name()[prefix.len()..])) {
                None => Value::Missing,
                Some(None | Some(Json::Null)) => continue,
                Some(Some(json)) => Value::Text(symbols.intern(&as_text(json))),
            };
            self.set(field, follows);
        }
    }

    /// Sets an attribute; a value of another type than the attribute's is missing.
    pub fn set(&mut self, field: Field, value: Value) {
        let fits = match (field.kind(), value) {
            (_, Value::Absent | Value::Missing)
            | (FieldType::Text | FieldType::Content, Value::Text(_))
            | (FieldType::Set, Value::Set(_))
            | (FieldType::Boolean, Value::Boolean(_)) => value,
            // Adding zero turns minus zero into zero.
            (FieldType::Number, Value::Number(number)) if !number.is_nan() => Value::Number(number + 0.0),
            _ => Value::Missing,
        };
        match (self.values.binary_search_by_key(&field, |(f, _)| *f), fits) {
            (Ok(at), Value::Absent) => drop(self.values.remove(at)),
            (Err(_), Value::Absent) => {}
            (Ok(at), value) => self.values[at].1 = value,
            (Err(at), value) => self.values.insert(at, (field, value)),
        }
    }

    /// Returns an attribute.
    pub fn get(&self, field: Field) -> Value {
        match self.values.binary_search_by_key(&field, |(f, _)| *f) {
            Ok(at) => self.values[at].1,
            Err(_) => Value::Absent,
        }
    }

    /// Returns the attributes that are there or missing, sorted by name.
    pub fn values(&self) -> &[(Field, Value)] {
        &self.values
    }

    /// Returns when it happened. Units: milliseconds since the Unix epoch, UTC.
    pub fn at_ms(&self) -> i64 {
        self.at_ms
    }

    /// Returns where it is judged.
    pub fn occasion(&self) -> Occasion {
        self.occasion
    }

    /// Returns whether every symbol is one of this table, every attribute has a value of its type, and they are
    /// sorted; false of a stored row that was damaged or belongs to another table.
    pub fn fits(&self, symbols: &Symbols) -> bool {
        let is_sorted = self.values.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = |(field, value): &(Field, Value)| match (field.kind(), value) {
            (_, Value::Missing) | (FieldType::Boolean, Value::Boolean(_)) => true,
            (FieldType::Text | FieldType::Content, Value::Text(symbol)) => {
                (symbol.0 as usize) < symbols.len()
            }
            (FieldType::Set, Value::Set(set)) => (set.0 as usize) < symbols.sets(),
            (FieldType::Number, Value::Number(number)) => !number.is_nan(),
            _ => false,
        };
        is_sorted && self.values.iter().all(fits)
    }

    /// Returns whose past it belongs to: the user's, else the service account's, else the device's.
    pub(crate) fn subject(&self) -> Subject {
        Subject::of(|field| self.get(field))
    }

    /// Returns the request with these attributes alone (sorted), in another table.
    pub(crate) fn carried(&self, fields: &[Field], from: &Symbols, to: &mut Symbols) -> Self {
        let kept = self
            .values
            .iter()
            .filter(|(field, _)| fields.binary_search(field).is_ok());
        let values = kept.map(|(field, value)| (*field, value.carried(from, to)));
        Self {
            at_ms: self.at_ms,
            occasion: self.occasion,
            values: values.collect(),
        }
    }

    /// Moves it to another instant.
    pub(crate) fn put_at(&mut self, at_ms: i64) {
        self.at_ms = at_ms;
    }

    /// Returns whether some attribute is missing.
    pub(crate) fn has_missing(&self) -> bool {
        self.values.iter().any(|(_, value)| *value == Value::Missing)
    }

    /// Returns the nested form of the attributes, with `stage`: the input of Rego modules.
    ///
    /// Content that is a JSON object or array is given as such, other content as its text.
    /// Source: client contract §3.10.
    pub fn nested(&self, symbols: &Symbols) -> Json {
        let mut root = Map::new();
        root.insert("stage".to_owned(), self.occasion.word().into());
        for (field, value) in &self.values {
            let json = match value {
                Value::Absent | Value::Missing => continue,
                Value::Text(symbol) => match symbols.document(*symbol) {
                    Some(document) if field.kind() == FieldType::Content => document.clone(),
                    _ => symbols.text(*symbol).into(),
                },
                Value::Set(set) => {
                    let mut texts: Vec<&str> = symbols.set(*set).iter().map(|s| symbols.text(*s)).collect();
                    texts.sort_unstable();
                    texts.into()
                }
                Value::Number(number) => plain_number(*number),
                Value::Boolean(is) => (*is).into(),
            };
            insert(&mut root, field.name(), json);
        }
        Json::Object(root)
    }
}

/// Returns the text as which a member of a tool's input is read.
fn as_text(json: &Json) -> String {
    if let Json::String(text) = json {
        return text.clone();
    }
    let texts: Option<Vec<&str>> = json
        .as_array()
        .and_then(|items| items.iter().map(Json::as_str).collect());
    texts.map_or_else(|| canonical(json), |texts| texts.join(" "))
}

/// Returns the value that a JSON value is for an attribute of a type.
pub(crate) fn value(symbols: &mut Symbols, kind: FieldType, json: &Json) -> Option<Value> {
    Some(match (kind, json) {
        (FieldType::Text | FieldType::Content, Json::String(text)) => Value::Text(symbols.intern(text)),
        (FieldType::Content, json) => Value::Text(symbols.intern(&canonical(json))),
        (FieldType::Set, Json::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
            Value::Set(symbols.intern_set(texts?))
        }
        (FieldType::Number, Json::Number(number)) => Value::Number(number.as_f64()? + 0.0),
        (FieldType::Boolean, Json::Bool(is)) => Value::Boolean(*is),
        _ => return None,
    })
}

/// Returns a whole number as such: Rego tells `5` and `5.0` apart in texts.
fn plain_number(number: f64) -> Json {
    // 2^53: up to here whole numbers are exact.
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and in range, as just tested"
        )]
        return (number as i64).into();
    }
    number.into()
}

/// Puts a value at a dotted name; a parent that is no object gives way to one.
fn insert(root: &mut Map<String, Json>, name: &str, json: Json) {
    let Some((parent, rest)) = name.split_once('.') else {
        root.insert(name.to_owned(), json);
        return;
    };
    let inner = root.entry(parent).or_insert_with(|| Json::Object(Map::new()));
    if !inner.is_object() {
        *inner = Json::Object(Map::new());
    }
    if let Json::Object(inner) = inner {
        insert(inner, rest, json);
    }
}
