//! The attributes of a record or a resource, asked by name.

use crate::message::{AnyValue, KeyValue, Value};
use serde_json::{Map, Value as Json};

/// How deep a structured value is read; a deeper one is not known.
const MAX_DEPTH: usize = 32;

/// Attributes; a name that is there twice, with two values, says nothing that could be relied on.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(pub &'a [KeyValue]);

/// What is told under a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue<T> {
    /// Nothing: the name is not there, or its text is empty.
    Nothing,
    /// Something that cannot be read: of another type, several things at once, or bytes.
    Unreadable,
    /// This.
    Value(T),
}

impl<T> AttributeValue<T> {
    /// Returns this if something is told, else the other.
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            told => told,
        }
    }

    /// Returns what is told, by reference.
    pub fn as_ref(&self) -> AttributeValue<&T> {
        match self {
            Self::Nothing => AttributeValue::Nothing,
            Self::Unreadable => AttributeValue::Unreadable,
            Self::Value(value) => AttributeValue::Value(value),
        }
    }

    /// Returns something else of what is told.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> AttributeValue<U> {
        match self {
            Self::Nothing => AttributeValue::Nothing,
            Self::Unreadable => AttributeValue::Unreadable,
            Self::Value(value) => AttributeValue::Value(of(value)),
        }
    }

    /// Returns the value, for whom what is not told and what cannot be read are both missing.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

impl<'a> Attributes<'a> {
    fn find(self, name: &str) -> AttributeValue<&'a Value> {
        let mut named = self.0.iter().filter(|pair| pair.key == name);
        let Some(first) = named.next() else {
            return AttributeValue::Nothing;
        };
        // Bytes are no value here: see `message`.
        let value = first.value.as_ref().and_then(|any| any.value.as_ref());
        match value {
            Some(value) if named.all(|other| other.value == first.value) => AttributeValue::Value(value),
            _ => AttributeValue::Unreadable,
        }
    }

    /// Returns what is told as a text.
    pub fn told(self, name: &str) -> AttributeValue<&'a str> {
        match self.find(name) {
            AttributeValue::Value(Value::Text(text)) if text.is_empty() => AttributeValue::Nothing,
            AttributeValue::Value(Value::Text(text)) => AttributeValue::Value(text),
            AttributeValue::Value(_) | AttributeValue::Unreadable => AttributeValue::Unreadable,
            AttributeValue::Nothing => AttributeValue::Nothing,
        }
    }

    /// Returns whether a text is this one.
    pub fn is(self, name: &str, text: &str) -> bool {
        self.told(name) == AttributeValue::Value(text)
    }

    /// Returns the first of these that is told; one that cannot be read is not passed over for the next.
    pub fn first(self, names: &[&str]) -> AttributeValue<&'a str> {
        let each = names.iter().map(|name| self.told(name));
        each.fold(AttributeValue::Nothing, AttributeValue::or)
    }

    /// Returns a number of at least 0; also one that is written as a text, as Codex does.
    pub fn number(self, name: &str) -> AttributeValue<f64> {
        let number = match self.find(name) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts and durations; 2^53 is far beyond them"
            )]
            AttributeValue::Value(Value::Whole(whole)) => Some(*whole as f64),
            AttributeValue::Value(Value::Number(number)) => Some(*number),
            // What is no number cannot be read.
            AttributeValue::Value(Value::Text(text)) => text.parse().ok(),
            AttributeValue::Value(_) | AttributeValue::Unreadable => None,
            AttributeValue::Nothing => return AttributeValue::Nothing,
        };
        match number {
            Some(number) if number.is_finite() && number >= 0.0 => AttributeValue::Value(number),
            _ => AttributeValue::Unreadable,
        }
    }

    /// Returns a value as JSON.
    pub fn json(self, name: &str) -> AttributeValue<Json> {
        match self.find(name) {
            AttributeValue::Value(value) => {
                to_json(value, 0).map_or(AttributeValue::Unreadable, AttributeValue::Value)
            }
            AttributeValue::Unreadable => AttributeValue::Unreadable,
            AttributeValue::Nothing => AttributeValue::Nothing,
        }
    }

    /// Returns the places of a list that is written as attributes of their own (`PREFIX.0.role`), in order.
    pub fn places(self, prefix: &str) -> Vec<usize> {
        let place = |pair: &KeyValue| {
            let rest = pair.key.strip_prefix(prefix)?.strip_prefix('.')?;
            rest.split('.').next()?.parse().ok()
        };
        let mut places: Vec<usize> = self.0.iter().filter_map(place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Returns the first of these that is told and is no empty text; one that cannot be read is not passed over.
    pub fn first_json(self, names: &[&str]) -> AttributeValue<Json> {
        let each = names.iter().map(|name| match self.json(name) {
            AttributeValue::Value(Json::String(text)) if text.is_empty() => AttributeValue::Nothing,
            told => told,
        });
        each.fold(AttributeValue::Nothing, AttributeValue::or)
    }
}

/// Returns a value as JSON; nothing of what JSON cannot write or of what is too deep.
pub fn json_of(value: &AnyValue) -> Option<Json> {
    to_json(value.value.as_ref()?, 0)
}

fn to_json(value: &Value, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    let inner = |value: &AnyValue| match &value.value {
        None => Some(Json::Null),
        Some(value) => to_json(value, depth + 1),
    };
    Some(match value {
        Value::Text(text) => text.as_str().into(),
        Value::Boolean(is) => (*is).into(),
        Value::Whole(whole) => (*whole).into(),
        Value::Number(number) => serde_json::Number::from_f64(*number)?.into(),
        Value::Array(list) => Json::Array(list.values.iter().map(inner).collect::<Option<_>>()?),
        Value::Map(list) => {
            let mut map = Map::new();
            for pair in &list.values {
                let value = pair.value.as_ref().map_or(Some(Json::Null), inner)?;
                // A name that is there twice: readers differ about which counts.
                if map.insert(pair.key.clone(), value).is_some() {
                    return None;
                }
            }
            Json::Object(map)
        }
    })
}
