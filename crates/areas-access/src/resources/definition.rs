//! The words of definitions, and how a definition's breaches are told.

use provost_kernel::error::{Code, Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;

/// A text of `MIN` to `MAX` characters without control characters or line separators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SingleLine<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> SingleLine<MIN, MAX> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for SingleLine<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        if (MIN..=MAX).contains(&text.chars().count()) && !text.contains(breaks) {
            return Ok(Self(text.into_owned()));
        }
        Err(de::Error::custom(format!(
            "must have {MIN} to {MAX} characters, on one line without control characters"
        )))
    }
}

impl<const MIN: usize, const MAX: usize> JsonSchema for SingleLine<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Line_{MIN}_{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": MIN, "maxLength": MAX,
            "pattern": r"^[^\u0000-\u001F\u007F-\u009F\u2028\u2029]*$",
        })
    }
}

/// A list of at most `MAX` items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AtMost<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> Default for AtMost<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize> std::ops::Deref for AtMost<T, MAX> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let items = Vec::deserialize(deserializer)?;
        if items.len() <= MAX {
            return Ok(Self(items));
        }
        Err(de::Error::custom(format!("must have at most {MAX} items")))
    }
}

impl<T: JsonSchema, const MAX: usize> JsonSchema for AtMost<T, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("AtMost_{MAX}_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>(), "maxItems": MAX })
    }
}

/// What breaks a definition's contract beyond its schema, each with its JSON Pointer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Breaches(Vec<(String, &'static str)>);

impl Breaches {
    /// Notes a breach. The sentence must not quote what it is about.
    pub fn add(&mut self, path: impl Into<String>, message: &'static str) {
        self.0.push((path.into(), message));
    }

    /// Notes a breach unless `holds`.
    pub fn unless(&mut self, holds: bool, path: &'static str, message: &'static str) {
        if !holds {
            self.add(path, message);
        }
    }

    /// Returns the pointers, for tests.
    #[cfg(test)]
    pub fn paths(&self) -> Vec<&str> {
        self.0.iter().map(|(path, _)| path.as_str()).collect()
    }

    /// Refuses a definition that has breaches.
    ///
    /// Errors: `InvalidDefinition` with every breach.
    pub fn refuse(self) -> Result<()> {
        let Some((path, message)) = self.0.first() else {
            return Ok(());
        };
        let whole = format!("the definition breaks its contract: {path} {message}");
        let error = Error::new(Code::InvalidDefinition, whole);
        Err(self
            .0
            .into_iter()
            .fold(error, |error, (path, message)| error.and_field(path, message)))
    }
}
