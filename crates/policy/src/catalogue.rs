//! The attributes that a request can have and that conditions can read.
//!
//! A name means the same in every family that has it; its type and, where it is closed, its words are fixed.
//! Source: client contract §3.9.
//!
//! Absent on purpose: closed lists that the contract only counts (`route.posture` has eight words, which are not
//! written down); such a field accepts any text, so that no definition is refused that the client lets pass.
//! Two attributes belong to no condition: `agent.id` and `skill.id` are read by scopes and ACLs alone.

use crate::Family;
use serde::{Deserialize, Serialize};

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// One text.
    Text,
    /// A set of texts.
    Set,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A text, or a JSON document that is read as its canonical text.
    Content,
    /// A JSON object; of custom fields only.
    Object,
}

impl FieldType {
    /// Returns the type that a custom field names. Source: client contract §3.5.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::Text,
            "string_set" => Self::Set,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "content" => Self::Content,
            _ => return None,
        })
    }

    /// Returns the operators that a predicate on this type can have. Source: client contract §3.9.
    pub const fn operators(self) -> &'static [&'static str] {
        match self {
            Self::Boolean => &["eq", "neq", "exists"],
            Self::Content => &[
                "eq",
                "neq",
                "contains",
                "starts_with",
                "ends_with",
                "matches",
                "exists",
            ],
            Self::Number => &["eq", "neq", "in", "not_in", "gt", "gte", "lt", "lte", "exists"],
            Self::Object => &["exists"],
            Self::Text => &[
                "eq",
                "neq",
                "in",
                "not_in",
                "contains",
                "starts_with",
                "ends_with",
                "matches",
                "exists",
            ],
            Self::Set => &["eq", "neq", "contains", "contains_any", "contains_all", "exists"],
        }
    }
}

/// One attribute of the catalogue; on the wire and in storage it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct Field(u8);

struct Entry {
    name: &'static str,
    kind: FieldType,
    families: u8,
    words: &'static [&'static str],
}

const C: u8 = Family::Content.bit();
const A: u8 = Family::Access.bit();
const R: u8 = Family::Resource.bit();

const fn entry(families: u8, kind: FieldType, name: &'static str) -> Entry {
    closed(families, kind, name, &[])
}

const fn closed(families: u8, kind: FieldType, name: &'static str, words: &'static [&'static str]) -> Entry {
    Entry {
        name,
        kind,
        families,
        words,
    }
}

use FieldType::{Boolean, Content, Number, Set, Text};

/// Sorted by name: `Field::named` searches it.
static ENTRIES: [Entry; 93] = [
    entry(A, Text, "account.access_state"),
    entry(A, Text, "account.posture"),
    entry(A, Set, "account.profile_id"),
    entry(0, Text, "agent.id"),
    entry(A, Text, "browser.account_domain"),
    entry(A, Text, "browser.account_id"),
    entry(A, Text, "browser.account_state"),
    entry(A, Text, "browser.account_truth_state"),
    entry(A, Text, "browser.extension_id"),
    entry(A, Text, "browser.extension_identity_id"),
    entry(A, Text, "browser.extension_surface"),
    entry(C, Set, "classification.categories"),
    entry(C, Set, "classification.data_labels"),
    entry(C, Set, "classification.data_source_kinds"),
    entry(C, Boolean, "classification.has_unresolved_sensitive_content"),
    entry(C, Text, "classification.proof_strength"),
    entry(C, Set, "classification.provider_actions"),
    entry(C, Set, "classification.sensitivity_labels"),
    closed(
        A,
        Text,
        "classification.state",
        &[
            "known_ai",
            "candidate_ai",
            "known_not_ai",
            "uncertain",
            "no_catalog_match",
        ],
    ),
    entry(A, Text, "control.path_kind"),
    entry(A | R, Text, "destination.domain"),
    entry(A, Text, "destination.ip"),
    entry(A, Number, "destination.port"),
    closed(
        A,
        Text,
        "destination.protocol",
        &["tcp", "udp", "https_visible_sni"],
    ),
    entry(A | R, Text, "device.id"),
    entry(A, Text, "device.platform"),
    entry(C, Text, "event.kind"),
    entry(C, Set, "event.labels"),
    entry(C, Text, "event.severity"),
    entry(C, Text, "event.summary"),
    entry(C, Text, "event.title"),
    entry(C | A | R, Set, "identity.group_ids"),
    entry(C | R, Text, "identity.service_account_id"),
    entry(C | A | R, Text, "identity.user_id"),
    entry(C, Number, "llm.input_tokens"),
    entry(C, Text, "llm.model"),
    entry(C, Number, "llm.output_tokens"),
    entry(C, Text, "llm.provider"),
    entry(A, Text, "local_model.governance_state"),
    entry(A, Set, "local_model.name"),
    entry(A, Text, "local_model.proof_level"),
    entry(C, Text, "mcp.gateway_endpoint_id"),
    entry(C, Text, "mcp.package_id"),
    entry(C, Text, "mcp.package_version"),
    entry(C, Text, "mcp.remote_url"),
    entry(C, Text, "mcp.server_id"),
    entry(C, Text, "mcp.tool_id"),
    entry(A, Text, "process.entrypoint_id"),
    entry(A | R, Text, "process.id"),
    entry(A, Number, "process.local_port"),
    entry(A, Text, "process.name"),
    entry(A, Text, "process.path"),
    entry(A | R, Text, "product.id"),
    entry(A, Text, "provider.id"),
    entry(R, Text, "request.http.content_type"),
    entry(R, Text, "request.http.method"),
    entry(R, Text, "request.http.path"),
    entry(R, Text, "request.mysql.command"),
    entry(R, Text, "request.mysql.database"),
    entry(R, Text, "request.mysql.fingerprint"),
    entry(R, Set, "request.mysql.tables"),
    entry(R, Text, "request.mysql.user"),
    entry(R, Text, "request.postgres.command"),
    entry(R, Text, "request.postgres.database"),
    entry(R, Text, "request.postgres.fingerprint"),
    entry(R, Set, "request.postgres.schemas"),
    entry(R, Set, "request.postgres.tables"),
    entry(R, Text, "request.postgres.user"),
    entry(C, Text, "request.prompt"),
    entry(R, Text, "request.redis.command"),
    entry(R, Number, "request.redis.database"),
    entry(R, Text, "request.redis.user"),
    entry(R, Text, "resource.id"),
    closed(
        R,
        Text,
        "resource.protocol",
        &["postgres", "mysql", "redis", "http"],
    ),
    entry(C, Text, "response.content"),
    entry(A, Text, "route.posture"),
    entry(0, Text, "skill.id"),
    entry(A, Set, "source.capability"),
    entry(A, Text, "source.family"),
    entry(A, Text, "source.health_state"),
    entry(C, Text, "tool.id"),
    entry(C, Content, "tool.input"),
    entry(C, Text, "tool.input.approval"),
    entry(C, Text, "tool.input.command"),
    entry(C, Content, "tool.input.env"),
    entry(C, Text, "tool.input.file_path"),
    entry(C, Text, "tool.input.script"),
    entry(C, Text, "tool.input.surface_key"),
    entry(C, Text, "tool.input.surface_kind"),
    entry(C, Text, "tool.input.url"),
    entry(C, Text, "tool.input.workdir"),
    entry(C, Content, "tool.result"),
    entry(C, Text, "tool.server_id"),
];

impl Field {
    /// Returns the attribute that has this name.
    pub fn named(name: &str) -> Option<Self> {
        let at = ENTRIES.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
        u8::try_from(at).ok().map(Self)
    }

    /// Returns every attribute, sorted by name.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..ENTRIES.len()).filter_map(|at| u8::try_from(at).ok().map(Self))
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the type.
    pub fn kind(self) -> FieldType {
        self.entry().kind
    }

    /// Returns whether conditions of this family can read it.
    pub fn is_in(self, family: Family) -> bool {
        self.entry().families & family.bit() != 0
    }

    /// Returns the only texts it can have, or nothing where it is open.
    pub fn words(self) -> &'static [&'static str] {
        self.entry().words
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    fn entry(self) -> &'static Entry {
        &ENTRIES[self.index()]
    }
}

impl TryFrom<String> for Field {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::named(&name).ok_or("is no attribute of the catalogue")
    }
}

impl From<Field> for &'static str {
    fn from(field: Field) -> Self {
        field.name()
    }
}

/// How many attributes there are.
pub(crate) const FIELDS: usize = ENTRIES.len();

/// The attributes that the engine itself reads.
macro_rules! known {
    ($($constant:ident = $name:literal;)*) => {
        impl Field {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Self = Self(place($name));
            )*
        }
    };
}

known! {
    AGENT = "agent.id";
    DEVICE = "device.id";
    GROUPS = "identity.group_ids";
    MCP_SERVER = "mcp.server_id";
    MCP_TOOL = "mcp.tool_id";
    PRODUCT = "product.id";
    RESOURCE = "resource.id";
    SERVICE_ACCOUNT = "identity.service_account_id";
    SKILL = "skill.id";
    TOOL = "tool.id";
    TOOL_INPUT = "tool.input";
    USER = "identity.user_id";
}

/// Returns the place of a name; a name that is not there does not compile.
const fn place(name: &str) -> u8 {
    let mut at: u8 = 0;
    while (at as usize) < ENTRIES.len() {
        if is_same(ENTRIES[at as usize].name.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no such attribute")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_at_its_place() {
        for (at, field) in Field::all().enumerate() {
            assert_eq!(
                Field::named(field.name()),
                Some(field),
                "{} is not sorted",
                field.name()
            );
            assert_eq!(field.index(), at);
        }
        assert_eq!(Field::USER.name(), "identity.user_id");
        assert_eq!(Field::named("identity.user"), None);
    }

    #[test]
    fn the_families_have_the_attributes_of_the_contract() {
        let count = |family| Field::all().filter(|f| f.is_in(family)).count();
        assert_eq!(count(Family::Content), 40);
        assert_eq!(count(Family::Access), 34);
        assert_eq!(count(Family::Resource), 26);
        assert_eq!(count(Family::SkillAcl), 0);
    }
}
