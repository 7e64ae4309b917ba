//! The attributes that a request can have and that conditions can read.
//!
//! A name means the same in every family that has it; its type and, where it is closed, its words are fixed.
//! Source: client contract §3.9.
//!
//! Absent on purpose: closed lists that the contract only counts (`route.posture` has eight words, which are not
//! written down); such a field accepts any text, so that no definition is refused that the client lets pass.
//! Two attributes belong to no condition: `agent.id` and `skill.id` are read by scopes and ACLs alone.
//!
//! INVARIANT NW-3: words that their own standards, or closed lists, compare in any case are compared so, and a word
//! that a closed list does not have is missing.
//! INVARIANT PC-2: each attribute is declared as a fact or as content, in which a secret can stand.

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
    sight: Sight,
}

/// What a question about an attribute can find out. INVARIANT PC-2: an attribute is declared as one of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Who, what, where and when, and words of a catalogue.
    Fact,
    /// Free text that a person, a model, a tool or a request brought, in which a secret can stand.
    Content,
}

const C: u8 = Family::Content.bit();
const A: u8 = Family::Access.bit();
const R: u8 = Family::Resource.bit();

const fn fact(families: u8, kind: FieldType, name: &'static str) -> Entry {
    closed(families, kind, name, &[])
}

const fn closed(families: u8, kind: FieldType, name: &'static str, words: &'static [&'static str]) -> Entry {
    Entry {
        name,
        kind,
        families,
        words,
        sight: Sight::Fact,
    }
}

const fn content(families: u8, kind: FieldType, name: &'static str) -> Entry {
    Entry {
        sight: Sight::Content,
        ..fact(families, kind, name)
    }
}

use FieldType::{Boolean, Content, Number, Set, Text};

/// Sorted by name: `Field::named` searches it.
static ENTRIES: [Entry; 93] = [
    fact(A, Text, "account.access_state"),
    fact(A, Text, "account.posture"),
    fact(A, Set, "account.profile_id"),
    fact(0, Text, "agent.id"),
    fact(A, Text, "browser.account_domain"),
    fact(A, Text, "browser.account_id"),
    fact(A, Text, "browser.account_state"),
    fact(A, Text, "browser.account_truth_state"),
    fact(A, Text, "browser.extension_id"),
    fact(A, Text, "browser.extension_identity_id"),
    fact(A, Text, "browser.extension_surface"),
    fact(C, Set, "classification.categories"),
    fact(C, Set, "classification.data_labels"),
    fact(C, Set, "classification.data_source_kinds"),
    fact(C, Boolean, "classification.has_unresolved_sensitive_content"),
    fact(C, Text, "classification.proof_strength"),
    fact(C, Set, "classification.provider_actions"),
    fact(C, Set, "classification.sensitivity_labels"),
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
    fact(A, Text, "control.path_kind"),
    fact(A | R, Text, "destination.domain"),
    fact(A, Text, "destination.ip"),
    fact(A, Number, "destination.port"),
    closed(
        A,
        Text,
        "destination.protocol",
        &["tcp", "udp", "https_visible_sni"],
    ),
    fact(A | R, Text, "device.id"),
    fact(A, Text, "device.platform"),
    fact(C, Text, "event.kind"),
    fact(C, Set, "event.labels"),
    fact(C, Text, "event.severity"),
    content(C, Text, "event.summary"),
    content(C, Text, "event.title"),
    fact(C | A | R, Set, "identity.group_ids"),
    fact(C | R, Text, "identity.service_account_id"),
    fact(C | A | R, Text, "identity.user_id"),
    fact(C, Number, "llm.input_tokens"),
    fact(C, Text, "llm.model"),
    fact(C, Number, "llm.output_tokens"),
    fact(C, Text, "llm.provider"),
    fact(A, Text, "local_model.governance_state"),
    fact(A, Set, "local_model.name"),
    fact(A, Text, "local_model.proof_level"),
    fact(C, Text, "mcp.gateway_endpoint_id"),
    fact(C, Text, "mcp.package_id"),
    fact(C, Text, "mcp.package_version"),
    content(C, Text, "mcp.remote_url"),
    fact(C, Text, "mcp.server_id"),
    fact(C, Text, "mcp.tool_id"),
    fact(A, Text, "process.entrypoint_id"),
    fact(A | R, Text, "process.id"),
    fact(A, Number, "process.local_port"),
    fact(A, Text, "process.name"),
    fact(A, Text, "process.path"),
    fact(A | R, Text, "product.id"),
    fact(A, Text, "provider.id"),
    fact(R, Text, "request.http.content_type"),
    fact(R, Text, "request.http.method"),
    content(R, Text, "request.http.path"),
    fact(R, Text, "request.mysql.command"),
    fact(R, Text, "request.mysql.database"),
    content(R, Text, "request.mysql.fingerprint"),
    fact(R, Set, "request.mysql.tables"),
    fact(R, Text, "request.mysql.user"),
    fact(R, Text, "request.postgres.command"),
    fact(R, Text, "request.postgres.database"),
    content(R, Text, "request.postgres.fingerprint"),
    fact(R, Set, "request.postgres.schemas"),
    fact(R, Set, "request.postgres.tables"),
    fact(R, Text, "request.postgres.user"),
    content(C, Text, "request.prompt"),
    fact(R, Text, "request.redis.command"),
    fact(R, Number, "request.redis.database"),
    fact(R, Text, "request.redis.user"),
    fact(R, Text, "resource.id"),
    closed(
        R,
        Text,
        "resource.protocol",
        &["postgres", "mysql", "redis", "http"],
    ),
    content(C, Text, "response.content"),
    fact(A, Text, "route.posture"),
    fact(0, Text, "skill.id"),
    fact(A, Set, "source.capability"),
    fact(A, Text, "source.family"),
    fact(A, Text, "source.health_state"),
    fact(C, Text, "tool.id"),
    content(C, Content, "tool.input"),
    content(C, Text, "tool.input.approval"),
    content(C, Text, "tool.input.command"),
    content(C, Content, "tool.input.env"),
    content(C, Text, "tool.input.file_path"),
    content(C, Text, "tool.input.script"),
    content(C, Text, "tool.input.surface_key"),
    content(C, Text, "tool.input.surface_kind"),
    content(C, Text, "tool.input.url"),
    content(C, Text, "tool.input.workdir"),
    content(C, Content, "tool.result"),
    fact(C, Text, "tool.server_id"),
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

    /// Returns the attributes that are members of a tool's input, sorted by name.
    pub fn below_input() -> impl Iterator<Item = Self> {
        // They follow it: only they begin with its name.
        (Self::TOOL_INPUT.0 + 1..)
            .map(Self)
            .take_while(|field| field.index() < ENTRIES.len() && field.member_of_input().is_some())
    }

    /// Returns the member of a tool's input that the attribute is; nothing of any other attribute.
    pub fn member_of_input(self) -> Option<&'static str> {
        self.name().strip_prefix("tool.input.")
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

    /// Returns whether it is content: whoever may ask questions about it can read it, one question after the other.
    pub fn is_content(self) -> bool {
        self.entry().sight == Sight::Content
    }

    /// Returns whether a text of it that is exactly one JSON document is judged by what the document says.
    pub(crate) fn is_document(self) -> bool {
        self.kind() == FieldType::Content || matches!(self, Self::PROMPT | Self::RESPONSE)
    }

    /// Returns whether its texts name somebody or something: they are matched in any spelling.
    pub(crate) fn is_name(self) -> bool {
        NAMES.contains(&self)
    }

    /// Returns whether it is a domain: a final dot says nothing.
    pub(crate) fn is_domain(self) -> bool {
        matches!(self, Self::ACCOUNT_DOMAIN | Self::DESTINATION_DOMAIN)
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
    ACCOUNT_DOMAIN = "browser.account_domain";
    AGENT = "agent.id";
    CLASSIFICATION_STATE = "classification.state";
    DESTINATION_DOMAIN = "destination.domain";
    DESTINATION_PROTOCOL = "destination.protocol";
    DEVICE = "device.id";
    GROUPS = "identity.group_ids";
    LLM_MODEL = "llm.model";
    LLM_PROVIDER = "llm.provider";
    MCP_ENDPOINT = "mcp.gateway_endpoint_id";
    MCP_PACKAGE = "mcp.package_id";
    MCP_SERVER = "mcp.server_id";
    MCP_TOOL = "mcp.tool_id";
    METHOD = "request.http.method";
    MYSQL_COMMAND = "request.mysql.command";
    POSTGRES_COMMAND = "request.postgres.command";
    POSTGRES_SCHEMAS = "request.postgres.schemas";
    POSTGRES_TABLES = "request.postgres.tables";
    PRODUCT = "product.id";
    PROMPT = "request.prompt";
    PROVIDER = "provider.id";
    REDIS_COMMAND = "request.redis.command";
    RESOURCE = "resource.id";
    RESOURCE_PROTOCOL = "resource.protocol";
    RESPONSE = "response.content";
    SERVICE_ACCOUNT = "identity.service_account_id";
    SKILL = "skill.id";
    TOOL = "tool.id";
    TOOL_COMMAND = "tool.input.command";
    TOOL_INPUT = "tool.input";
    TOOL_SERVER = "tool.server_id";
    USER = "identity.user_id";
}

/// The attributes whose texts are names: of somebody or something, and words that are the same in any case by their own
/// standards (domains, methods, commands, identifiers of SQL, providers and their models) or because the list is closed.
///
/// INVARIANT NW-3: such words are matched in any spelling; one that a closed list does not have is missing.
const NAMES: [Field; 28] = [
    Field::ACCOUNT_DOMAIN,
    Field::AGENT,
    Field::CLASSIFICATION_STATE,
    Field::DESTINATION_DOMAIN,
    Field::DESTINATION_PROTOCOL,
    Field::DEVICE,
    Field::GROUPS,
    Field::LLM_MODEL,
    Field::LLM_PROVIDER,
    Field::MCP_ENDPOINT,
    Field::MCP_PACKAGE,
    Field::MCP_SERVER,
    Field::MCP_TOOL,
    Field::METHOD,
    Field::MYSQL_COMMAND,
    Field::POSTGRES_COMMAND,
    Field::POSTGRES_SCHEMAS,
    Field::POSTGRES_TABLES,
    Field::PRODUCT,
    Field::PROVIDER,
    Field::REDIS_COMMAND,
    Field::RESOURCE,
    Field::RESOURCE_PROTOCOL,
    Field::SERVICE_ACCOUNT,
    Field::SKILL,
    Field::TOOL,
    Field::TOOL_SERVER,
    Field::USER,
];

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
    fn the_members_of_an_input_follow_it() {
        let all = Field::all().filter(|field| field.name().starts_with("tool.input."));
        assert!(Field::below_input().eq(all));
        assert_eq!(Field::below_input().count(), 9);
    }

    /// Proves PC-2.
    #[test]
    fn free_text_and_what_a_tool_is_given_are_content() {
        let content: Vec<&str> = Field::all().filter(|f| f.is_content()).map(Field::name).collect();
        assert_eq!(
            content,
            [
                "event.summary",
                "event.title",
                "mcp.remote_url",
                "request.http.path",
                "request.mysql.fingerprint",
                "request.postgres.fingerprint",
                "request.prompt",
                "response.content",
                "tool.input",
                "tool.input.approval",
                "tool.input.command",
                "tool.input.env",
                "tool.input.file_path",
                "tool.input.script",
                "tool.input.surface_key",
                "tool.input.surface_kind",
                "tool.input.url",
                "tool.input.workdir",
                "tool.result",
            ]
        );
        // A document is content whatever it is called, and so is every member of a tool's input.
        let must_be = |f: &Field| f.kind() == FieldType::Content || f.member_of_input().is_some();
        assert!(Field::all().filter(must_be).all(Field::is_content));
        // A name is a fact: who reads recorded events sees it.
        assert!(!NAMES.into_iter().any(Field::is_content));
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
