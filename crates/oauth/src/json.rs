//! Strict JSON: what two parsers could read differently is refused.
//!
//! A name that stands twice in one object is refused, however it is escaped; so is what is nested deeper than
//! [`MAX_DEPTH`], what follows the value, and a number outside of what an `f64` holds.
//!
//! INVARIANT OA-3: a token has one reading.

use crate::error::Refusal;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// LIMIT: objects and arrays inside each other; tokens and key sets need four.
pub const MAX_DEPTH: u8 = 16;

/// An object: names and values.
pub type Object = Map<String, Value>;

/// Parses one object that fills `bytes`.
///
/// Errors: `Json`.
pub fn object(bytes: &[u8]) -> Result<Object, Refusal> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let value = Level(MAX_DEPTH)
        .deserialize(&mut parser)
        .map_err(|_| Refusal::Json)?;
    parser.end().map_err(|_| Refusal::Json)?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Refusal::Json),
    }
}

/// How many levels may still open.
#[derive(Clone, Copy)]
struct Level(u8);

impl Level {
    fn inner<E: Error>(self) -> Result<Self, E> {
        let left = self.0.checked_sub(1);
        left.map(Self).ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("not a number"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    // INVARIANT OA-3: names are compared after their escapes are read.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Object::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a name stands twice"));
            }
        }
        Ok(Value::Object(object))
    }
}
