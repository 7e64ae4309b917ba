//! Labels: short words by which people sort machines.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// LIMIT: labels of a device (F2.15).
const MOST: usize = 32;
/// LIMIT: characters of a label (F2.15).
const LONGEST: usize = 64;

/// A word by which people sort machines: small letters and digits, and between them `.`, `_`, `:`, `/` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(String);

impl Label {
    /// Returns the word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=LONGEST).contains(&text.len())
            && text.bytes().next().is_some_and(is_word)
            && text.bytes().all(|byte| is_word(byte) || b"._:/-".contains(&byte));
        fits.then(|| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(
                "must have 1 to 64 characters of a to z, 0 to 9 and ._:/- and begin with a letter or digit",
            )
        })
    }
}

impl JsonSchema for Label {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Label".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9._:/-]{0,63}$" })
    }
}

/// The labels of a machine, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels(BTreeSet<Label>);

impl Labels {
    /// Returns them in their order.
    pub fn to_list(&self) -> Vec<String> {
        self.0.iter().map(|label| label.0.clone()).collect()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let labels = Vec::<Label>::deserialize(deserializer)?;
        let count = labels.len();
        let labels: BTreeSet<Label> = labels.into_iter().collect();
        if count > MOST || labels.len() != count {
            return Err(de::Error::custom("must be at most 32 labels, each once"));
        }
        Ok(Self(labels))
    }
}

impl JsonSchema for Labels {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Labels".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let label = Label::json_schema(generator);
        json_schema!({ "type": "array", "items": label, "maxItems": MOST, "uniqueItems": true })
    }
}
