//! Public keys that somebody sends as a JWK Set.

use provost_oauth::{KeySet, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JWK Set of public keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Jwks(pub serde_json::Map<String, Value>);

impl JsonSchema for Jwks {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Jwks".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        // What keys are accepted no schema says: they are judged with the rest of the client.
        schemars::json_schema!({ "type": "object" })
    }
}

impl Jwks {
    /// Reads the keys.
    ///
    /// Errors: those of [`KeySet::parse`].
    pub fn parse(&self) -> Result<KeySet, Refusal> {
        KeySet::parse(Value::Object(self.0.clone()).to_string().as_bytes())
    }
}
