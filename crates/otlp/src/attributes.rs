//! The attributes of a record or a resource, asked by name.

use crate::message::{AnyValue, KeyValue, Value};
use serde_json::{Map, Value as Json};

/// How deep a structured value is read; a deeper one is not known.
const MAX_DEPTH: usize = 32;

/// Attributes; of a name that is there twice the first one counts.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(pub &'a [KeyValue]);

impl<'a> Attributes<'a> {
    fn get(self, name: &str) -> Option<&'a Value> {
        let found = self.0.iter().find(|pair| pair.key == name)?;
        found.value.as_ref()?.value.as_ref()
    }

    /// Returns a text that is not empty.
    pub fn text(self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the first of these that is there and not empty.
    pub fn first(self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.text(name))
    }

    /// Returns a number of at least 0; also one that is written as a text, as Codex does.
    pub fn number(self, name: &str) -> Option<f64> {
        let number = match self.get(name)? {
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts and durations; 2^53 is far beyond them"
            )]
            Value::Whole(whole) => *whole as f64,
            Value::Number(number) => *number,
            Value::Text(text) => text.parse().ok()?,
            _ => return None,
        };
        (number.is_finite() && number >= 0.0).then_some(number)
    }

    /// Returns a value as JSON.
    pub fn json(self, name: &str) -> Option<Json> {
        to_json(self.get(name)?, 0)
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
                map.insert(pair.key.clone(), value);
            }
            Json::Object(map)
        }
    })
}
