//! A document to a type, with refusals that a stranger can act on.
//!
//! The deserializer is our own, for its error type: serde hands an error what it found, and ours drops the
//! value. It also knows a body from a query, in which every value is text.

use super::number::{UNROUNDED, written};
use super::{clipped, push_member, refusal};
use crate::error::{Code, Error, Result};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde_json::Value;
use serde_path_to_error::Segment;
use std::fmt;

/// Returns the value of type `T` that a parsed document spells.
///
/// `base` is where the document stands: `""` for a body, else `/query`, `/path` or `/header`, in which
/// a number may also be its digits, a truth value its word, and a list its only item.
///
/// The sentences of a type's own `Deserialize` pass unchanged; they must not quote what they refuse.
///
/// Errors: `InvalidRequest` with a JSON Pointer; `UnknownParameter` for a name that the query does not have.
pub fn decode<T: DeserializeOwned>(value: Value, base: &str) -> Result<T> {
    let node = Node {
        value,
        is_text: !base.is_empty(),
        is_unrounded: false,
    };
    serde_path_to_error::deserialize(node).map_err(|e| refused(base, e.path(), e.inner()))
}

fn refused(base: &str, path: &serde_path_to_error::Path, why: &Refusal) -> Error {
    let mut pointer = base.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => push_member(&mut pointer, &index.to_string()),
            Segment::Map { key } => push_member(&mut pointer, key),
            Segment::Enum { variant } => push_member(&mut pointer, variant),
            Segment::Unknown => {}
        }
    }
    let is_query = base == "/query";
    let word = if is_query { "parameter" } else { "member" };
    match why {
        Refusal::Unknown(name) if is_query => {
            let message = format!("unknown parameter `{name}`");
            Error::new(Code::UnknownParameter, message.clone()).and_field(pointer, message)
        }
        Refusal::Unknown(name) => Error::invalid(pointer, format!("unknown member `{name}`")),
        Refusal::Missing(name) => {
            push_member(&mut pointer, name);
            Error::invalid(pointer, format!("the {word} `{name}` is required"))
        }
        Refusal::Wrong(message) => refusal(pointer, message),
    }
}

/// Why a document is not the type. Holds names and sentences, never a value of the document.
#[derive(Debug)]
enum Refusal {
    Unknown(String),
    Missing(&'static str),
    Wrong(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown member `{name}`"),
            Self::Missing(name) => write!(f, "the member `{name}` is required"),
            Self::Wrong(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        // serde's sentence for an untagged enum names the Rust type.
        if message.starts_with("data did not match any variant") {
            return Self::Wrong("has none of the accepted forms".to_owned());
        }
        Self::Wrong(message)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Wrong(format!("must be {}, not {}", plain(expected), kind(found)))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Wrong(format!("must be {}", plain(expected)))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::Wrong(format!(
            "has the wrong number of items; it must be {}",
            plain(expected)
        ))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        let words: Vec<_> = expected.iter().map(|word| format!("`{word}`")).collect();
        match words.as_slice() {
            [] => Self::Wrong("must be absent".to_owned()),
            [word] => Self::Wrong(format!("must be {word}")),
            words => Self::Wrong(format!("must be one of {}", words.join(", "))),
        }
    }

    fn unknown_field(name: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown(clipped(name))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::Missing(name)
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::Wrong(format!("has the member `{name}` twice"))
    }
}

/// Returns JSON's word for what was found.
fn kind(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map | Unexpected::StructVariant => "an object",
        _ => "this",
    }
}

/// Returns JSON's words for what Rust's derives expect: their own name Rust types.
fn plain(expected: &dyn Expected) -> String {
    let words = expected.to_string();
    let number = |from: &str, to: &str| format!("a whole number from {from} to {to}");
    match words.as_str() {
        "u8" => number("0", "255"),
        "u16" => number("0", "65535"),
        "u32" => number("0", "4294967295"),
        "u64" | "usize" => "a whole number of at least 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number in range".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "an object".to_owned(),
        "unit" => "null".to_owned(),
        _ if words.starts_with("struct ") => "an object".to_owned(),
        _ if words.starts_with("tuple ") || words.starts_with("an array of ") => "an array".to_owned(),
        _ if words.contains("enum ") || words.starts_with("variant ") => {
            "one of the accepted forms".to_owned()
        }
        _ => words,
    }
}

/// One value of the document, on its way to a type.
struct Node {
    value: Value,
    is_text: bool,
    /// Numbers that no double is stay as they are written.
    is_unrounded: bool,
}

impl Node {
    fn with(&self, value: Value) -> Node {
        Node {
            value,
            is_text: self.is_text,
            is_unrounded: self.is_unrounded,
        }
    }

    /// Hands over the text of a query, path or header as the integer that its digits spell.
    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::String(text) if self.is_text => {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                match text.parse::<u64>().ok().filter(|_| digits) {
                    Some(number) => visitor.visit_u64(number),
                    None => visitor.visit_str(text),
                }
            }
            Value::String(text) => Err(de::Error::invalid_type(Unexpected::Str(text), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }
}

impl IntoDeserializer<'_, Refusal> for Node {
    type Deserializer = Node;

    fn into_deserializer(self) -> Node {
        self
    }
}

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            self.integer(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Node {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let (is_text, is_unrounded) = (self.is_text, self.is_unrounded);
        let node = move |value| Node {
            value,
            is_text,
            is_unrounded,
        };
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(text) => visitor.visit_string(text),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(node));
                let value = visitor.visit_seq(&mut items)?;
                items.end().map(|()| value)
            }
            Value::Object(members) => {
                let rounded = written(&members).filter(|_| !is_unrounded);
                // It is a number of the grammar, which the parser has seen to be finite.
                if let Some(rounded) = rounded {
                    return visitor.visit_f64(rounded.parse().unwrap_or(f64::NAN));
                }
                let mut members = MapDeserializer::new(members.into_iter().map(|(name, v)| (name, node(v))));
                let value = visitor.visit_map(&mut members)?;
                members.end().map(|()| value)
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match &self.value {
            Value::String(text) if self.is_text && text == "true" => visitor.visit_bool(true),
            Value::String(text) if self.is_text && text == "false" => visitor.visit_bool(false),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let is_unrounded = self.is_unrounded || name == UNROUNDED;
        visitor.visit_newtype_struct(Self { is_unrounded, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.is_text && self.value.is_string() {
            return visitor.visit_seq(SeqDeserializer::new(std::iter::once(self)));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        // serde_json's own map would take `null` for an empty one.
        if self.value.is_null() {
            return Err(de::Error::invalid_type(Unexpected::Unit, &"an object"));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        // serde's derives would also take an array of the members in their order.
        if self.value.is_array() {
            return Err(de::Error::invalid_type(Unexpected::Seq, &"an object"));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.value {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            Value::Object(ref members) if members.len() == 1 => {
                let variant = members
                    .iter()
                    .map(|(name, value)| (name.clone(), self.with(value.clone())));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(variant)))
            }
            _ => Err(Refusal::Wrong("has none of the accepted forms".to_owned())),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}
