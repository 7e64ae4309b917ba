//! The words of policies and of the versions of their set, without storage.

use provost_areas_access::resources::ownership::Owner;
use provost_kernel::{OperationContext, Timestamp, id};
use provost_policy::contract::{MANAGED_BY_SERVICE, MANAGED_BY_TERRAFORM};
use provost_policy::{Definition, Family};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

id!(SetVersionId, "psv", "Names a version of the policy set.");

/// LIMIT: characters of an id (client contract §3.4).
const MAX_ID: usize = 256;

/// Names a policy: its author chose it, and it is unique in the organization, whatever the family.
///
/// In a path every text is one; text that no definition could have as its id names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyId(String);

impl PolicyId {
    /// Returns the id that a path spells; the empty one, which nothing has, when it is none.
    pub fn from_path(text: &str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._:@/-".contains(c);
        let is_id = text.len() <= MAX_ID
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(fits);
        Self(if is_id { text.to_owned() } else { String::new() })
    }

    /// Returns the id of a definition.
    pub fn of(definition: &Definition) -> Self {
        Self(definition.id().to_owned())
    }

    /// Returns the id that a row holds.
    pub fn from_store(text: String) -> Self {
        Self(text)
    }

    /// Returns the id as it stands on the wire and in the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PolicyId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PolicyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::from_path(&text))
    }
}

impl JsonSchema for PolicyId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PolicyId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_ID })
    }
}

/// The header that says which policy was found, in answers whose body does not.
pub const NAMED: &str = "X-Policy-Id";

/// Says in the answer which policy was found. Only what an id may hold can stand there.
pub fn name(ctx: &mut OperationContext<'_>, id: &PolicyId) {
    ctx.header("x-policy-id", id.as_str().to_owned());
}

/// A policy as it is stored, without its definition.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its id.
    pub id: PolicyId,
    /// Its family.
    pub family: Family,
    /// Its name; skill ACLs have none.
    pub name: Option<String>,
    /// What it does with a request that it matches.
    pub action: String,
    /// Whether it takes part in decisions.
    pub enabled: bool,
    /// The number of its newest revision, from 1 on without a gap.
    pub revision: i64,
    /// The digest of the newest definition as authored.
    pub definition_sha256: String,
    /// Who manages it.
    pub owner: Owner,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was deleted, if it was and did not come back.
    pub deleted_at: Option<Timestamp>,
}

impl Policy {
    /// Returns the policy that a definition begins.
    pub fn first(definition: &Definition, owner: Owner, now: Timestamp) -> Self {
        let mut policy = Self {
            id: PolicyId::of(definition),
            family: definition.family(),
            name: None,
            action: String::new(),
            enabled: false,
            revision: 0,
            definition_sha256: String::new(),
            owner,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        policy.revise(definition, now);
        policy
    }

    /// Makes a definition the policy's next revision.
    pub fn revise(&mut self, definition: &Definition, now: Timestamp) {
        // PostgreSQL takes no NUL in a text; the definition itself is kept as JSON, where it is escaped.
        let name = definition.authored()["name"].as_str();
        self.name = name.map(|name| name.replace('\0', "\u{fffd}"));
        definition.action().word().clone_into(&mut self.action);
        self.enabled = definition.is_enabled();
        self.revision += 1;
        definition.sha256().clone_into(&mut self.definition_sha256);
        self.updated_at = now.max(self.updated_at);
        self.deleted_at = None;
    }

    /// Says whether it exists for readers.
    pub fn is_there(&self) -> bool {
        self.deleted_at.is_none()
    }
}

/// Returns the word for who manages a policy. Source: client contract §3.3.
pub const fn management_mode(owner: &Owner) -> &'static str {
    match owner {
        Owner::Service => MANAGED_BY_SERVICE,
        Owner::Terraform { .. } => MANAGED_BY_TERRAFORM,
    }
}

/// What a revision adds to its policy's row.
#[derive(Clone, Debug)]
pub struct Revision {
    /// What was authored, as JSON text.
    pub definition: String,
    /// What decides, as JSON text, where it is something else.
    pub bound: Option<String>,
    /// The digest of what decides.
    pub bound_sha256: String,
    /// Where the author keeps it, as JSON text.
    pub source_ref: Option<String>,
}

/// A version of the set of enabled policies; it never changes (PO-1).
#[derive(Clone, Debug)]
pub struct SetVersion {
    /// Its number, from 1 on without a gap.
    pub sequence: i64,
    /// Its id.
    pub id: String,
    /// The digest of its policies as they decide.
    pub digest: String,
    /// How many there are.
    pub policies: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whose write: kind and id.
    pub created_by: (String, String),
}

/// The path of operations on one policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PolicyPath {
    /// The policy. An id that holds slashes may be written with or without escaping them; one that no path carries unchanged
    /// stands in the query, with - in its place.
    pub policy_id: PolicyId,
}

/// A family as a parameter or a member says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum FamilyWord {
    /// Prompts, tool calls, tool results, responses.
    Content,
    /// Use of an AI product or provider at all.
    Access,
    /// Requests to databases and HTTP resources.
    Resource,
    /// Who may use a skill.
    SkillAcl,
}

impl From<FamilyWord> for Family {
    fn from(word: FamilyWord) -> Self {
        match word {
            FamilyWord::Content => Self::Content,
            FamilyWord::Access => Self::Access,
            FamilyWord::Resource => Self::Resource,
            FamilyWord::SkillAcl => Self::SkillAcl,
        }
    }
}

/// A JSON object that is kept as it was sent.
#[derive(Clone, Debug)]
pub struct Document(pub serde_json::Map<String, Value>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A map alone would take null for an empty one.
        match Value::deserialize(deserializer)? {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(serde::de::Error::custom("must be an object")),
        }
    }
}

impl Document {
    /// Returns the object as a value.
    pub fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

impl JsonSchema for Document {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Document".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_policy_or_nothing() {
        let longest = "a".repeat(256);
        for id in [
            "a",
            "9",
            "a/b:c@d.e_f-g",
            "a/",
            "a//b",
            "a/../b",
            longest.as_str(),
        ] {
            assert_eq!(PolicyId::from_path(id).as_str(), id);
        }
        let too_long = "a".repeat(257);
        for text in [
            "",
            "/a",
            "-a",
            ".",
            "..",
            "a b",
            "a%2Fb",
            "é",
            "a\0",
            "a\u{fffd}",
            too_long.as_str(),
        ] {
            assert_eq!(PolicyId::from_path(text).as_str(), "", "{text}");
        }
    }
}
