//! Numbers that no double is (BY-5).
//!
//! A parser of JSON rounds them. Who only counts with a number takes the nearest one; who judges what somebody else will read
//! in the same bytes must not. So [`super::parse`] keeps such a number as it is written, in an object that no body can spell
//! ([`INEXACT`]), [`super::decode`] hands it out rounded, and only an [`ExactNumbers`] member sees it.
//!
//! INVARIANT BY-5: a number of a body that no double is, is missing where it is judged, through HTTP, MCP and
//! imports, and refused where a policy compares with it.

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

/// The only member of the object that stands for a number which no double is; its value is the text of the number. A body that
/// has a member of such a name is refused.
pub const INEXACT: &str = "$serde_json::private::provost::number";

/// The name by which a type asks [`super::decode`] for numbers as they are written.
pub(super) const UNROUNDED: &str = "$provost::Unrounded";

/// A member whose numbers are as they were written: one that no double is stands as an object with the member [`INEXACT`].
#[derive(Clone, Debug)]
pub struct ExactNumbers<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ExactNumbers<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Inner<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Inner<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
                T::deserialize(deserializer)
            }
        }
        deserializer
            .deserialize_newtype_struct(UNROUNDED, Inner(PhantomData))
            .map(Self)
    }
}

/// A document that is written with its numbers as they were written.
#[derive(Debug)]
pub struct ExactDocument<'a>(pub &'a Value);

impl Serialize for ExactDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                if let Some(number) = written(members) {
                    let number = RawValue::from_string(number.to_owned()).map_err(S::Error::custom)?;
                    return number.serialize(serializer);
                }
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &ExactDocument(value))?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&ExactDocument(item))?;
                }
                list.end()
            }
            value => value.serialize(serializer),
        }
    }
}

/// Puts the nearest double in place of each number of a document that none is.
pub fn round(document: &mut Value) {
    match document {
        Value::Object(members) => {
            match written(members).map(|number| number.parse::<f64>().unwrap_or(f64::NAN)) {
                Some(number) => *document = number.into(),
                None => members.values_mut().for_each(round),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        _ => {}
    }
}

/// Marks each whole number of a document that is beyond what doubles have, for who compares doubles with it. Says whether a
/// number of it, whole or not, is one that no double is.
pub fn mark_whole(document: &mut Value) -> bool {
    match document {
        Value::Object(members) if written(members).is_some() => true,
        Value::Object(members) => members
            .values_mut()
            .map(mark_whole)
            .fold(false, |any, is| any | is),
        Value::Array(items) => items.iter_mut().map(mark_whole).fold(false, |any, is| any | is),
        Value::Number(number) => {
            let text = number.to_string();
            let is_inexact =
                !number.is_f64() && number.as_f64().is_some_and(|double| !is_exact(&text, double));
            if is_inexact {
                *document = inexact(&text);
            }
            is_inexact
        }
        _ => false,
    }
}

/// Returns a number that no double is, as it stands in a document.
pub(super) fn inexact(written: &str) -> Value {
    Value::Object(Map::from_iter([(INEXACT.to_owned(), written.into())]))
}

/// Returns the text of the number that an object stands for, if it stands for one.
pub(super) fn written(members: &Map<String, Value>) -> Option<&str> {
    members.get(INEXACT).and_then(Value::as_str)
}

/// Returns whether the number that is written is the one that the shortest decimal form of its double spells.
pub(super) fn is_exact(written: &str, number: f64) -> bool {
    decimal(written) == decimal(&format!("{number:e}"))
}

/// Returns the digits of a decimal number without zeros at their ends, and the power of ten of the last one. The sign is never
/// lost.
fn decimal(written: &str) -> (String, i64) {
    let (mantissa, power) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.chars().chain(fraction.chars());
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return (String::new(), 0);
    }
    let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    // A power beyond 64 bits is that of no finite number but zero.
    let power: i64 = power.parse().unwrap_or(i64::MAX);
    let power = power.saturating_sub(count(fraction.len()));
    let behind = count(digits.len() - kept.len());
    (kept.to_owned(), power.saturating_add(behind))
}

/// A place in a text whose numbers are gone through in their order. The text is read a second time, up to the last number
/// that is asked for.
#[derive(Default)]
pub(super) struct Numbers {
    at: usize,
    /// How many were not asked for since the last one.
    passed: usize,
}

impl Numbers {
    /// Passes one by.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// Returns the next one as it is written, of a text that is JSON up to there.
    pub fn next<'a>(&mut self, text: &'a str) -> &'a str {
        for _ in 0..std::mem::take(&mut self.passed) {
            self.one(text);
        }
        self.one(text)
    }

    fn one<'a>(&mut self, text: &'a str) -> &'a str {
        let mut is_text = false;
        while let Some(byte) = text.as_bytes().get(self.at) {
            match byte {
                b'\\' if is_text => self.at += 1,
                b'"' => is_text = !is_text,
                b'-' | b'0'..=b'9' if !is_text => {
                    let rest = &text[self.at..];
                    let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
                    let number = &rest[..end.unwrap_or(rest.len())];
                    self.at += number.len();
                    return number;
                }
                _ => {}
            }
            self.at += 1;
        }
        ""
    }
}
