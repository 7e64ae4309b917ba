//! Bytes to a document, strictly.

use super::number::{Numbers, inexact, is_exact};
use super::{clipped, push_member, refusal};
use crate::error::Result;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::fmt;

/// Names that `serde_json`, or this module, gives a meaning of its own: as a member they would smuggle in unparsed text.
const RESERVED: &str = "$serde_json::private::";

/// Returns the document that `bytes` spell.
///
/// Refused: a byte order mark, text that is not UTF-8, more than one document, a member given twice, a
/// lone surrogate, a number beyond the range of a double, arrays and objects nested deeper than
/// `max_depth` (at most 127).
///
/// A number that no double is stands as an object with the member `INEXACT`, which [`super::decode`] takes for the nearest one.
///
/// Errors: `InvalidRequest` with a JSON Pointer where one is known.
pub fn parse(bytes: &[u8], max_depth: usize) -> Result<Value> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(refusal(String::new(), "must not start with a byte order mark"));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let message = format!("must be UTF-8; byte {} is not", e.valid_up_to());
        refusal(String::new(), &message)
    })?;
    let noted = RefCell::new(None);
    let numbers = RefCell::new(Numbers::default());
    let place = Place {
        parent: None,
        depth: 0,
        max_depth,
        noted: &noted,
        text,
        numbers: &numbers,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = place
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|e| {
        let Refusal { pointer, message } = noted.into_inner().unwrap_or_default();
        refusal(pointer, &message.unwrap_or_else(|| syntax(&e)))
    })
}

/// Returns the parser's words. They are fixed sentences: the visitor takes every value, so that the
/// parser never has one to complain about.
fn syntax(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    let (line, column) = (error.line(), error.column());
    format!("is not valid JSON at line {line}, column {column}: {words}")
}

/// The first refusal, noted where it happened; without a message it is the parser's.
#[derive(Default)]
struct Refusal {
    pointer: String,
    message: Option<String>,
}

/// Where in the document a value stands. Pointers are spelled only when something is refused.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<(&'a Place<'a>, Step<'a>)>,
    depth: usize,
    max_depth: usize,
    noted: &'a RefCell<Option<Refusal>>,
    text: &'a str,
    numbers: &'a RefCell<Numbers>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Place<'a> {
    fn below(&'a self, step: Step<'a>) -> Place<'a> {
        Place {
            parent: Some((self, step)),
            depth: self.depth + 1,
            ..*self
        }
    }

    fn pointer(&self) -> String {
        let Some((parent, step)) = self.parent else {
            return String::new();
        };
        let mut pointer = parent.pointer();
        match step {
            Step::Member(name) => push_member(&mut pointer, name),
            Step::Item(index) => push_member(&mut pointer, &index.to_string()),
        }
        pointer
    }

    fn note(&self, message: Option<String>) {
        self.noted.borrow_mut().get_or_insert_with(|| Refusal {
            pointer: self.pointer(),
            message,
        });
    }

    fn refuse<E: de::Error>(&self, message: impl Into<String>) -> E {
        self.note(Some(message.into()));
        E::custom("refused")
    }

    /// Notes where the parser stumbled, and passes its error on.
    fn passed_on<E>(&self, error: E) -> E {
        self.note(None);
        error
    }

    fn check_depth<E: de::Error>(&self) -> Result<(), E> {
        if self.depth >= self.max_depth {
            return Err(self.refuse(format!("is nested deeper than {} levels", self.max_depth)));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.numbers.borrow_mut().pass();
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.numbers.borrow_mut().pass();
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let Some(number) = serde_json::Number::from_f64(value) else {
            return Err(self.refuse("is not a finite number"));
        };
        // INVARIANT BY-5: what is rounded here is said to be.
        let written = self.numbers.borrow_mut().next(self.text);
        if is_exact(written, value) {
            return Ok(Value::Number(number));
        }
        Ok(inexact(written))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut array = Vec::new();
        loop {
            let place = self.below(Step::Item(array.len()));
            match items.next_element_seed(place).map_err(|e| place.passed_on(e))? {
                Some(item) => array.push(item),
                None => return Ok(Value::Array(array)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>().map_err(|e| self.passed_on(e))? {
            if name.starts_with(RESERVED) {
                return Err(self.refuse("has a member with a reserved name"));
            }
            if object.contains_key(&name) {
                return Err(self.refuse(format!("has the member `{}` twice", clipped(&name))));
            }
            let place = self.below(Step::Member(&name));
            let value = members.next_value_seed(place).map_err(|e| place.passed_on(e))?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
