//! What writers of policies send, with its limits.
//!
//! Keeps PO-9.

use super::model::Document;
use super::references;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_kernel::Result;
use provost_kernel::error::Error;
use provost_kernel::json::{self, ExactNumbers};
use provost_kernel::text::IntegerBetween;
use provost_policy::{Definition, Family};
use provost_words::url::fits_path;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The number of a revision that there is.
pub type RevisionNumber = IntegerBetween<1, 9_007_199_254_740_991>;
/// The number of a revision, or 0 for none.
pub type ExpectedRevision = IntegerBetween<0, 9_007_199_254_740_991>;

/// LIMIT: bytes and nesting of what holds a definition; a module alone may have a quarter of a million characters.
pub const DEFINITION_LIMIT: (usize, usize) = (2 << 20, 64);

/// A text of `MIN` to `MAX` characters, line ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for Text<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if (MIN..=MAX).contains(&text.chars().count()) {
            return Ok(Self(text.into_owned()));
        }
        Err(de::Error::custom(format!("must have {MIN} to {MAX} characters")))
    }
}

impl<const MIN: usize, const MAX: usize> JsonSchema for Text<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Text_{MIN}_{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": MIN, "maxLength": MAX })
    }
}

/// A definition as it was sent, read once: on the thread that decodes the request, not on the writer's.
#[derive(Debug)]
pub struct AuthoredDefinition {
    document: Value,
    /// The same with its numbers as they were written, where one of them is none of 64-bit floating point.
    unrounded: Option<Value>,
    read: OnceLock<Arc<Definition>>,
}

impl AuthoredDefinition {
    /// Returns the definition.
    ///
    /// Errors: `InvalidDefinition` with every broken rule, behind `/definition`.
    pub fn definition(&self, family: Family) -> Result<&Arc<Definition>> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        if let Some(unrounded) = &self.unrounded {
            // A policy with such a number would guard another one than its author wrote. Where nothing is compared with it (a
            // description), it is rounded as ever.
            let read = Definition::read(family, unrounded);
            read.map_err(|violations| references::violated(&violations, "/definition"))?;
        }
        let read = Definition::read(family, &self.document);
        let read = read.map_err(|violations| references::violated(&violations, "/definition"))?;
        Ok(self.read.get_or_init(|| Arc::new(read)))
    }
}

impl<'de> Deserialize<'de> for AuthoredDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ExactNumbers(Document(document)) = ExactNumbers::<Document>::deserialize(deserializer)?;
        let mut unrounded = Value::Object(document);
        let mut document = unrounded.clone();
        let is_inexact = json::mark_whole(&mut unrounded);
        json::round(&mut document);
        Ok(Self {
            document,
            unrounded: is_inexact.then_some(unrounded),
            read: OnceLock::new(),
        })
    }
}

impl JsonSchema for AuthoredDefinition {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Authored".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Document::json_schema(generator)
    }
}

/// A token that a plan answered. Malformed ones are of no plan, which is told with the others (PO-5).
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PlanToken(Vec<u8>);

impl PlanToken {
    /// LIMIT: characters that are looked at; a token has 43.
    const LIMIT: usize = 512;

    /// Returns the token of these bytes, as text.
    pub fn text(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the bytes; none when the text is no token.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<String> for PlanToken {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        if (1..=Self::LIMIT).contains(&text.chars().count()) {
            return Ok(Self(URL_SAFE_NO_PAD.decode(text).unwrap_or_default()));
        }
        Err("must have 1 to 512 characters")
    }
}

impl JsonSchema for PlanToken {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PlanToken".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": Self::LIMIT })
    }
}

/// Refuses the id of a new policy that proxies would make another policy's: a request for `a//b` is one for `a/b` behind an
/// ordinary proxy, and a deletion deletes that.
///
/// Errors: `InvalidDefinition`.
pub fn must_fit_a_path(id: &str) -> Result<()> {
    if fits_path(id) {
        return Ok(());
    }
    let message = "must have no empty segment, none of a dot or two, and no slash at its end: proxies would make another id of it";
    Err(references::refusal([(
        "/definition/id".to_owned(),
        message.to_owned(),
    )]))
}

/// Returns the stale-revision refusal of every write.
pub fn stale(current: i64, expected: i64) -> Error {
    let message = format!("the policy is at revision {current}, not {expected}; read it and plan again");
    Error::new(provost_kernel::Code::Conflict, message).with("currentRevision", current)
}
