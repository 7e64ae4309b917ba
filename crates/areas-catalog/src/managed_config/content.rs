//! What a release says: two classes of members, one canonical text, one digest (D8.2).

use super::views::Warning;
use provost_kernel::audit::hex;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::json;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// LIMIT: members, items and values of one content. A preview compares them within one unit of work.
const MAX_NODES: usize = 50_000;
/// The largest integer that every JSON reader keeps exactly, and RFC 8785 with it.
const MAX_EXACT: u64 = 1 << 53;

/// The content of a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Content {
    /// What a user cannot override.
    #[serde(deserialize_with = "object")]
    pub enforced: Map<String, Value>,
    /// Starting values that a user may change.
    #[serde(default, deserialize_with = "object")]
    pub defaults: Map<String, Value>,
}

/// Reads an object; a map of its own would take `null` for an empty one.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Map<String, Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(members) => Ok(members),
        _ => Err(serde::de::Error::custom("must be an object")),
    }
}

provost_kernel::word! {
    /// Which of the two classes a member belongs to.
    pub enum Class {
        /// A user cannot override it.
        Enforced = "enforced",
        /// A user may change it.
        Defaults = "defaults",
    }
}

/// One thing that is wrong with a content. The sentence quotes no value: any value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer into the content, for example `/enforced/permissions/deny`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl Fault {
    /// Returns a fault.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl Fault {
    /// Returns what a warning says as faults, one at each of its places.
    pub fn of_warning(warning: &Warning) -> impl Iterator<Item = Self> {
        warning
            .paths
            .iter()
            .map(|path| Self::new(path, warning.message.as_str()))
    }
}

/// Returns `invalid_definition` with every fault, its path put behind `base`.
pub fn refusal(code: Code, message: &'static str, base: &str, faults: &[Fault]) -> Error {
    faults.iter().fold(Error::new(code, message), |error, fault| {
        error.and_field(format!("{base}{}", fault.path), fault.message.clone())
    })
}

impl Content {
    /// Returns the content that a stored text spells.
    ///
    /// Errors: `Internal` when the row is damaged.
    pub fn from_store(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(Error::internal)
    }

    /// Returns the content as one document.
    pub fn document(&self) -> Value {
        serde_json::json!({ "enforced": self.enforced, "defaults": self.defaults })
    }

    /// Returns the members of a class as a document.
    pub fn of(&self, class: Class) -> Value {
        Value::Object(match class {
            Class::Enforced => self.enforced.clone(),
            Class::Defaults => self.defaults.clone(),
        })
    }

    /// Returns the canonical text (RFC 8785). Two contents are the same if and only if their texts are.
    pub fn canonical(&self) -> String {
        json::canonical(&self.document())
    }

    /// Returns what no target takes: numbers that JSON readers do not keep, too many values.
    pub fn faults(&self) -> Vec<Fault> {
        let (mut faults, mut nodes) = (Vec::new(), 0);
        for class in [Class::Enforced, Class::Defaults] {
            walk(
                &self.of(class),
                &format!("/{}", class.as_str()),
                &mut nodes,
                &mut faults,
            );
        }
        if nodes > MAX_NODES {
            faults.push(Fault::new("", format!("has more than {MAX_NODES} values")));
        }
        faults
    }
}

fn walk(value: &Value, path: &str, nodes: &mut usize, faults: &mut Vec<Fault>) {
    *nodes += 1;
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > MAX_EXACT) {
                faults.push(Fault::new(
                    path,
                    "is an integer that JSON readers do not keep exactly",
                ));
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                walk(item, &format!("{path}/{place}"), nodes, faults);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                walk(member, &step(path, name), nodes, faults);
            }
        }
        _ => {}
    }
}

/// Appends a member's name to a JSON Pointer (RFC 6901).
pub fn step(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Returns the SHA-256 of a text in lower-case hexadecimal.
pub fn sha256(text: &str) -> String {
    hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(enforced: &Value) -> Content {
        serde_json::from_value(json!({ "enforced": enforced })).unwrap()
    }

    #[test]
    fn one_document_in_two_spellings_has_one_digest() {
        let (a, b) = (
            content(&json!({ "b": 1.0, "a": [1] })),
            content(&json!({ "a": [1], "b": 1 })),
        );
        assert_eq!(a.canonical(), r#"{"defaults":{},"enforced":{"a":[1],"b":1}}"#);
        assert_eq!(sha256(&a.canonical()), sha256(&b.canonical()));
        assert_eq!(Content::from_store(&a.canonical()).unwrap(), b);
    }

    #[test]
    fn what_would_change_by_being_stored_is_refused() {
        let odd = content(&json!({ "x/~": [1, 9_007_199_254_740_993_u64, -9_007_199_254_740_993_i64] }));
        let paths: Vec<String> = odd.faults().into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["/enforced/x~1~0/1", "/enforced/x~1~0/2"]);
        assert_eq!(
            content(&json!({ "x": [0.5, 9_007_199_254_740_992_u64] })).faults(),
            []
        );
        let large = content(&json!({ "x": vec![0; MAX_NODES] }));
        assert_eq!(large.faults().len(), 1);
    }
}
