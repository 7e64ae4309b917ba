//! The request that is judged, as values of the catalogue's attributes.
//!
//! A row holds a time, an occasion and the attributes that are there or missing, sorted; what it does not hold is
//! absent (see `truth` for the difference). Values are small copies: texts and sets stand in a table of symbols.
//!
//! Attributes of a tool's input (`tool.input.command`, …) follow from `tool.input`: see `follow`.
//!
//! Absent on purpose: who sent it, its id, and what was decided; the history keeps these beside it.

use crate::catalogue::{Field, FieldType};
use crate::digest::{exact_text, inexact_number};
use crate::document::{DocumentReading, exact_number};
use crate::family::Occasion;
use crate::follow::{PathTarget, follow, found};
use crate::rego::{AttributeNames, Forms};
use crate::symbols::{SetSymbol, Symbol, Symbols};
use crate::violation::{Violations, member};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;

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
    /// A command that is a list of texts: the texts with blanks between, and each of them. What is asked of it holds
    /// if it holds of one of these, and what is denied does not.
    Line {
        /// The whole.
        whole: Symbol,
        /// The texts.
        words: SetSymbol,
    },
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
    /// As `TEXT_KEY`, of a line: the second number has 64 bits, as that of a number has.
    pub(crate) const LINE_KEY: u8 = 6;

    /// Returns numbers that are equal iff the values are, within one table of symbols.
    pub(crate) fn key(self) -> (u8, u64) {
        match self {
            Self::Absent => (0, 0),
            Self::Missing => (1, 0),
            Self::Text(symbol) => (Self::TEXT_KEY, u64::from(symbol.0)),
            Self::Set(set) => (3, u64::from(set.0)),
            Self::Number(number) => (4, number.to_bits()),
            Self::Boolean(is) => (5, u64::from(is)),
            Self::Line { whole, words } => (Self::LINE_KEY, u64::from(words.0) << 32 | u64::from(whole.0)),
        }
    }

    /// Returns two numbers that are equal iff the values are, within one table of symbols.
    pub fn digits(self) -> [u64; 2] {
        let (kind, bits) = self.key();
        [kind.into(), bits]
    }

    /// Returns the same value in another table.
    pub(crate) fn carried(self, from: &Symbols, to: &mut Symbols) -> Self {
        match self {
            Self::Text(symbol) => Self::Text(to.intern(from.text(symbol))),
            Self::Set(set) => {
                let texts = from.set(set).iter().map(|symbol| from.text(*symbol));
                Self::Set(to.intern_set(texts))
            }
            Self::Line { whole, words } => {
                let texts = from.set(words).iter().map(|symbol| from.text(*symbol));
                Self::Line {
                    whole: to.intern(from.text(whole)),
                    words: to.intern_set(texts),
                }
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
    /// Somebody whom this attribute names, and nobody can say who.
    Unknown(Field),
    /// Nobody.
    Nobody,
}

impl Subject {
    /// Returns whose past something with these attributes belongs to.
    pub fn of(symbols: &Symbols, get: impl Fn(Field) -> Value) -> Self {
        for field in [Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE] {
            match symbols.state(field, get(field)) {
                Value::Text(symbol) => return Self::Known(field, symbol),
                Value::Absent => {}
                _ => return Self::Unknown(field),
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
        event.follow_input(symbols);
        faults.or(Some(event))
    }

    /// Sets the attributes that follow from the tool's input, as far as they do (see `follow`).
    ///
    /// Whoever puts an event together attribute by attribute calls this when all are set.
    pub fn follow_input(&mut self, symbols: &mut Symbols) {
        let input = self.get(Field::TOOL_INPUT);
        if input == Value::Absent {
            return;
        }
        let fields: Vec<Field> = Field::below_input().collect();
        for (field, follows) in fields.iter().zip(follow(input, &fields, symbols)) {
            // What nobody sees, given beside the input, says nothing, and so the input speaks.
            let given = match self.get(*field) {
                Value::Text(symbol) if symbols.key(symbol).is_empty() => Value::Absent,
                given => given,
            };
            self.set(*field, follows.beside(given));
        }
    }

    /// Sets an attribute; a value of another type than the attribute's is missing.
    pub fn set(&mut self, field: Field, value: Value) {
        let fits = match (field.kind(), value) {
            (_, Value::Absent | Value::Missing)
            | (FieldType::Text | FieldType::Content, Value::Text(_))
            | (FieldType::Text, Value::Line { .. })
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
            (FieldType::Text, Value::Line { whole, words }) => {
                (whole.0 as usize) < symbols.len() && (words.0 as usize) < symbols.sets()
            }
            (FieldType::Set, Value::Set(set)) => (set.0 as usize) < symbols.sets(),
            (FieldType::Number, Value::Number(number)) => !number.is_nan(),
            _ => false,
        };
        is_sorted && self.values.iter().all(fits)
    }

    /// Returns whose past it belongs to: the user's, else the service account's, else the device's.
    pub(crate) fn subject(&self, symbols: &Symbols) -> Subject {
        Subject::of(symbols, |field| self.get(field))
    }

    /// Says whether it is somebody's of whom nobody can say who it is.
    pub fn is_of_somebody_unknown(&self, symbols: &Symbols) -> bool {
        matches!(self.subject(symbols), Subject::Unknown(_))
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

    /// Returns the attributes with a register of which somebody is named who has no record, or several.
    pub fn unresolved(&self, symbols: &Symbols) -> Vec<Field> {
        let is_one = |field: Field, symbol: Symbol| symbols.meant(field, symbol).len() == 1;
        let is_unresolved = |(field, value): &&(Field, Value)| match value {
            Value::Text(symbol) => !is_one(*field, *symbol),
            Value::Set(set) => !symbols.set(*set).iter().all(|symbol| is_one(*field, *symbol)),
            _ => false,
        };
        let named = self.values.iter().filter(|(field, _)| field.has_register());
        named.filter(is_unresolved).map(|(field, _)| *field).collect()
    }

    /// Returns what `lost` says as paths alone: one that goes on below what is no object says that only that is unknown.
    pub fn missing_paths(&self, symbols: &Symbols) -> Vec<Vec<String>> {
        let path = |lost: LostPath| {
            let mut path = lost.path;
            if lost.is_below {
                // Some member, whatever its name is.
                path.push(String::new());
            }
            path
        };
        self.lost(symbols).into_iter().map(path).collect()
    }

    /// Returns the attributes that the event has and of which some part could not be read for certain, sorted by name.
    ///
    /// Free text is what it is; of a tool's input, which has members, it is named as well.
    pub fn unreadable(&self, symbols: &Symbols) -> Vec<Field> {
        let is_unreadable = |(field, value): &&(Field, Value)| {
            let (FieldType::Content, Value::Text(symbol)) = (field.kind(), *value) else {
                return false;
            };
            let is_input = *field == Field::TOOL_INPUT;
            match symbols.reading(symbol) {
                DocumentReading::None => false,
                DocumentReading::Unreadable { .. } => true,
                DocumentReading::Text => is_input,
                DocumentReading::List(document) => is_input || !document.is_whole(),
                DocumentReading::Object(document) => {
                    let root = document.root(symbols.text(symbol));
                    let is_lost = |field| matches!(found(root, field), PathTarget::Missing(_));
                    !document.is_whole() || is_input && Field::below_input().any(is_lost)
                }
            }
        };
        let unreadable = self.values.iter().filter(is_unreadable);
        unreadable.map(|(field, _)| *field).collect()
    }

    /// Returns the nested form of the attributes, with `stage`: the input of Rego modules. What it does not say, and
    /// what nobody can say, `lost` tells apart.
    ///
    /// Content that is exactly one JSON object or list is given as such, other content as its text. A record is given by
    /// its id, and beside it stand the match keys of the id and of every word (`identity.user_words`, …).
    /// Source: client contract §3.10.
    pub fn nested(&self, symbols: &Symbols) -> Json {
        let mut root = Map::new();
        root.insert("stage".to_owned(), self.occasion.word().into());
        for (field, value) in &self.values {
            if *value == Value::Missing {
                continue;
            }
            let Some(known) = AttributeState::of(*field, *value, symbols) else {
                continue;
            };
            if let (AttributeState::Names { ids, words }, Some(path)) = (&known, words_path(*field)) {
                let json = match (value, ids.as_slice()) {
                    (Value::Text(_), [id]) => (*id).into(),
                    _ => ids.as_slice().into(),
                };
                insert(&mut root, field.name(), json);
                insert(&mut root, path, words.as_slice().into());
                continue;
            }
            let json = match value {
                Value::Absent | Value::Missing => continue,
                Value::Text(symbol) => match (field.kind(), symbols.reading(*symbol)) {
                    (
                        FieldType::Content,
                        DocumentReading::Object(document) | DocumentReading::List(document),
                    ) => {
                        // What is lost of it, `lost` says; an object or a list itself never is.
                        let parts = document.root(symbols.text(*symbol)).known_parts(&mut |_| {});
                        parts.unwrap_or_default()
                    }
                    _ => symbols.text(*symbol).into(),
                },
                Value::Line { whole, .. } => symbols.text(*whole).into(),
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

    /// Returns what the names of some attributes could be called; nothing of one that is absent, missing, or means several.
    pub(crate) fn spoken(&self, fields: &BTreeSet<Field>, symbols: &Symbols) -> Vec<AttributeNames> {
        let named = self.values.iter().filter(|(field, _)| fields.contains(field));
        let spoken = named.filter_map(|(field, value)| {
            AttributeState::of(*field, *value, symbols)?;
            let single;
            let (is_set, all) = match value {
                Value::Text(symbol) => {
                    single = [*symbol];
                    (false, &single[..])
                }
                Value::Set(set) => (true, symbols.set(*set)),
                _ => return None,
            };
            let forms = |symbol: &Symbol| {
                if let [one] = symbols.meant(*field, *symbol) {
                    let words = one.words().flat_map(|word| [&*word.text, &*word.key]);
                    Forms {
                        id: one.id().to_owned(),
                        words: words.map(str::to_owned).collect(),
                        keys: one.faces().map(|face| (*face.key).to_owned()).collect(),
                    }
                } else {
                    let key = symbols.name_key(*field, *symbol).to_owned();
                    Forms {
                        id: symbols.text(*symbol).to_owned(),
                        words: vec![key.clone()],
                        keys: vec![key],
                    }
                }
            };
            Some(AttributeNames {
                field: *field,
                is_set,
                names: all.iter().map(forms).collect(),
            })
        });
        spoken.collect()
    }

    /// Returns the paths of the nested form of which nobody can say what is there.
    pub fn lost(&self, symbols: &Symbols) -> Vec<LostPath> {
        let mut all = Vec::new();
        let has_members = self.input_has_members(symbols);
        for (field, value) in &self.values {
            let path = || {
                field
                    .name()
                    .split('.')
                    .map(str::to_owned)
                    .collect::<Vec<String>>()
            };
            let is_member = field.member_of_input().is_some();
            // A name that nobody sees, that means several records, or that is claimed is lost like one that is missing; its
            // words with it.
            if field.is_name()
                && (*value == Value::Missing || AttributeState::of(*field, *value, symbols).is_none())
            {
                let names = std::iter::once(field.name()).chain(words_path(*field));
                all.extend(names.map(|name| LostPath {
                    path: name.split('.').map(str::to_owned).collect(),
                    is_below: false,
                }));
                continue;
            }
            match value {
                // What the form of the input says of all its members is said once, of what is below it.
                Value::Missing if is_member && !has_members => {}
                Value::Missing => all.push(LostPath {
                    path: path(),
                    is_below: false,
                }),
                // Given beside an input that is a text: the nested form has place for one of them.
                Value::Text(_) if is_member && !has_members => {
                    let input: Vec<String> = path().into_iter().take(2).collect();
                    all.push(LostPath {
                        path: input,
                        is_below: false,
                    });
                }
                Value::Text(symbol) if field.kind() == FieldType::Content => match symbols.reading(*symbol) {
                    DocumentReading::None => {}
                    DocumentReading::Object(document) | DocumentReading::List(document) => {
                        let mut lose = |rest: &[String]| {
                            all.push(LostPath {
                                path: path().iter().chain(rest).cloned().collect(),
                                is_below: false,
                            });
                        };
                        document.root(symbols.text(*symbol)).known_parts(&mut lose);
                        // A list is seen whole; the members that an input has are below an object.
                        if *field == Field::TOOL_INPUT && !has_members {
                            all.push(LostPath {
                                path: path(),
                                is_below: true,
                            });
                        }
                    }
                    DocumentReading::Text | DocumentReading::Unreadable { .. } => all.push(LostPath {
                        path: path(),
                        is_below: true,
                    }),
                },
                _ => {}
            }
        }
        all
    }

    /// Returns whether the members of the tool's input are what follows from it, or was given without it.
    fn input_has_members(&self, symbols: &Symbols) -> bool {
        match self.get(Field::TOOL_INPUT) {
            Value::Text(symbol) => matches!(
                symbols.reading(symbol),
                DocumentReading::Object(_) | DocumentReading::None
            ),
            _ => true,
        }
    }
}

/// What a module is told of an attribute that is there.
enum AttributeState<'a> {
    /// Its value as it stands.
    Plain,
    /// The records, and the keys of their words; a word without a record stands for itself. Sorted.
    Names { ids: Vec<&'a str>, words: Vec<&'a str> },
}

impl<'a> AttributeState<'a> {
    /// Returns nothing where nobody can say: a name that nobody sees, that means several records, or that is claimed.
    fn of(field: Field, value: Value, symbols: &'a Symbols) -> Option<Self> {
        if !field.is_name() {
            return Some(Self::Plain);
        }
        let single;
        let names = match value {
            Value::Text(symbol) => {
                single = [symbol];
                &single[..]
            }
            Value::Set(set) => symbols.set(set),
            _ => return Some(Self::Plain),
        };
        let (mut ids, mut words) = (Vec::new(), Vec::new());
        for symbol in names {
            if symbols.state(field, Value::Text(*symbol)) == Value::Missing {
                return None;
            }
            if !field.has_register() {
                continue;
            }
            match symbols.meant(field, *symbol) {
                [] => {
                    ids.push(symbols.text(*symbol));
                    words.push(symbols.name_key(field, *symbol));
                }
                [one] if one.is_claim() => return None,
                [one] => {
                    ids.push(one.id());
                    words.extend(one.faces().map(|face| &*face.key));
                }
                _ => return None,
            }
        }
        if !field.has_register() {
            return Some(Self::Plain);
        }
        for list in [&mut ids, &mut words] {
            list.sort_unstable();
            list.dedup();
        }
        Some(Self::Names { ids, words })
    }
}

/// Returns where the words of an attribute's records stand in the input of modules.
pub(crate) fn words_path(field: Field) -> Option<&'static str> {
    Some(match field {
        Field::USER => "identity.user_words",
        Field::SERVICE_ACCOUNT => "identity.account_words",
        Field::GROUPS => "identity.group_words",
        Field::SKILL => "skill.words",
        Field::RESOURCE => "resource.words",
        _ => return None,
    })
}

/// A path of the nested form of which nobody can say what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPath {
    /// Names of members.
    pub path: Vec<String>,
    /// Whether what stands at the path is known, and only what is below it is not.
    pub is_below: bool,
}

/// Returns the value that a JSON value is for an attribute of a type; nothing where it is of another type.
pub(crate) fn value(symbols: &mut Symbols, kind: FieldType, json: &Json) -> Option<Value> {
    Some(match (kind, json) {
        (FieldType::Text | FieldType::Content, Json::String(text)) => Value::Text(symbols.intern(text)),
        (FieldType::Content, json) => Value::Text(symbols.intern(&exact_text(json))),
        (FieldType::Set, Json::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Json::as_str).collect();
            Value::Set(symbols.intern_set(texts?))
        }
        // A whole number whose nearest one is another number is there, and nobody can say it here.
        (FieldType::Number, Json::Number(number)) => {
            exact_number(&number.to_string()).map_or(Value::Missing, Value::Number)
        }
        (FieldType::Number, json) if inexact_number(json).is_some() => Value::Missing,
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
