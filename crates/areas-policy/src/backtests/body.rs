//! What a caller sends to ask for a run, and what the schema alone can refuse of it.

use provost_kernel::Timestamp;
use provost_kernel::error::{Error, Result};
use provost_kernel::text::{IntegerBetween, Name};
use provost_policy::Family;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// LIMIT: policies of a candidate set, and changes of a candidate.
pub const MAX_POLICIES: usize = 1000;
/// LIMIT: values of one filter.
pub const MAX_FILTER: usize = 256;
/// LIMIT: events of a run, and how many there are by default (D9.5).
pub const MAX_EVENTS: i64 = 1_000_000_000;
/// LIMIT: the longest work on a run. Units: seconds (D9.5).
pub const MAX_DURATION_SECS: i64 = 3600;
/// The longest work on a run when its caller does not say. Units: seconds (D9.5).
const DEFAULT_DURATION_SECS: i64 = 300;

/// What is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// A name for people.
    pub name: Option<Name>,
    /// The policies that are tried.
    pub candidate: CandidateBody,
    /// The policies that they are compared with; the live set of this moment when absent.
    pub baseline: Option<BaselineBody>,
    /// Which recorded events are judged again.
    pub window: Window,
    /// Which of them; all when absent.
    pub filters: Option<Filters>,
    /// How much work it may be.
    pub limits: Option<Limits>,
}

/// The form of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CandidateKind {
    /// A stored policy, as if it were enabled, in or among the live ones.
    Draft,
    /// A definition, as if it were enabled, in or among the live ones.
    Inline,
    /// Several changes of the live set.
    Changes,
    /// A whole set in place of the live one.
    Set,
}

/// The policies that are tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["policyId"], "properties": {
        "kind": { "const": "draft" }, "policyId": { "type": "string" }, "definition": { "type": "null" },
        "changes": { "type": "null" }, "policies": { "type": "null" } } },
    { "required": ["family", "definition"], "properties": {
        "kind": { "const": "inline" }, "family": { "type": "string" }, "definition": { "type": "object" },
        "policyId": { "type": "null" }, "changes": { "type": "null" }, "policies": { "type": "null" } } },
    { "required": ["changes"], "properties": {
        "kind": { "const": "changes" }, "changes": { "type": "array" }, "policyId": { "type": "null" },
        "family": { "type": "null" }, "definition": { "type": "null" }, "policies": { "type": "null" } } },
    { "required": ["policies"], "properties": {
        "kind": { "const": "set" }, "policies": { "type": "array" }, "policyId": { "type": "null" },
        "family": { "type": "null" }, "definition": { "type": "null" }, "changes": { "type": "null" } } },
]))]
pub struct CandidateBody {
    /// Which of the other members say it.
    pub kind: CandidateKind,
    /// `draft`: the stored policy.
    pub policy_id: Option<Word>,
    /// `inline`: the definition's family. `draft`: the policy's, where several families have its id.
    #[schemars(with = "Option<FamilyWord>")]
    pub family: Option<Family>,
    /// `inline`: the definition, as it is written to the family's collection.
    pub definition: Option<Map<String, Value>>,
    /// `changes`: what is put into the live set and what is taken out, in this order.
    pub changes: Option<Items<ChangeBody, 1>>,
    /// `set`: the whole set.
    pub policies: Option<Items<PolicyBody, 0>>,
}

/// One change of the live set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["family", "definition"], "properties": {
        "op": { "const": "set" }, "family": { "type": "string" }, "definition": { "type": "object" },
        "policyId": { "type": "null" } } },
    { "required": ["policyId"], "properties": {
        "op": { "const": "remove" }, "policyId": { "type": "string" }, "definition": { "type": "null" } } },
]))]
pub struct ChangeBody {
    /// What is done.
    pub op: ChangeOp,
    /// `set`: the definition's family. `remove`: the policy's, where several families have its id.
    #[schemars(with = "Option<FamilyWord>")]
    pub family: Option<Family>,
    /// `set`: the definition; a policy of its id and family is replaced.
    pub definition: Option<Map<String, Value>>,
    /// `remove`: the policy that is taken out.
    pub policy_id: Option<Word>,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ChangeOp {
    /// Adds or replaces.
    Set,
    /// Takes out.
    Remove,
}

/// One policy of a candidate set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PolicyBody {
    /// Its family.
    #[schemars(with = "FamilyWord")]
    pub family: Family,
    /// Its definition; one that is not enabled takes no part.
    pub definition: Map<String, Value>,
}

/// A family of policies.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(
    dead_code,
    reason = "describes provost_policy::Family in the published schema"
)]
enum FamilyWord {
    /// What flows through prompts, tools and responses.
    Content,
    /// Which AI products are used at all.
    Access,
    /// Operations on data systems.
    Resource,
    /// Who may use a skill.
    SkillAcl,
}

/// The policies that a candidate is compared with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "properties": { "kind": { "const": "live" }, "versionId": { "type": "null" } } },
    { "required": ["versionId"], "properties": { "kind": { "const": "version" }, "versionId": { "type": "string" } } },
]))]
pub struct BaselineBody {
    /// Which of the two forms it is.
    pub kind: BaselineKind,
    /// `version`: the policy-set version.
    pub version_id: Option<Word>,
}

/// The form of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum BaselineKind {
    /// The live set at the moment of creation.
    Live,
    /// A policy-set version.
    Version,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Window {
    /// The first instant that counts.
    pub from: Timestamp,
    /// The first instant that counts no more; not in the future.
    pub to: Timestamp,
}

/// Which events count; an event must be named by every filter that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Filters {
    /// Ids of users, service accounts and devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_ids: Option<Words>,
    /// Ids of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Words>,
    /// Ids of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_ids: Option<Words>,
}

impl Filters {
    /// Returns the filters in the engine's words.
    pub fn to_engine(&self) -> provost_backtest::run::Filters {
        let list = |words: &Option<Words>| words.as_ref().map_or(Vec::new(), |words| words.0.clone());
        provost_backtest::run::Filters {
            subject_ids: list(&self.subject_ids),
            tools: list(&self.tools),
            resource_ids: list(&self.resource_ids),
        }
    }
}

/// How much work a run may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Limits {
    /// How many events are judged at most; the newest of the window. 1 000 000 000 when absent.
    pub max_events: Option<IntegerBetween<1, MAX_EVENTS>>,
    /// How long workers may be at it. Units: seconds; 300 when absent.
    pub max_duration_seconds: Option<IntegerBetween<1, MAX_DURATION_SECS>>,
}

impl Limits {
    /// Returns how many events are judged at most.
    pub fn events(self) -> i64 {
        self.max_events.map_or(MAX_EVENTS, IntegerBetween::get)
    }

    /// Returns how long workers may be at it. Units: seconds.
    pub fn duration_secs(self) -> i64 {
        self.max_duration_seconds
            .map_or(DEFAULT_DURATION_SECS, IntegerBetween::get)
    }
}

impl CreateBody {
    /// Refuses what the published schema refuses and no single member's type can.
    ///
    /// Errors: `InvalidRequest` with a JSON Pointer.
    pub fn check(&self) -> Result<()> {
        let of = &self.candidate;
        let members = [
            ("policyId", of.policy_id.is_some()),
            ("family", of.family.is_some()),
            ("definition", of.definition.is_some()),
            ("changes", of.changes.is_some()),
            ("policies", of.policies.is_some()),
        ];
        let (needed, allowed): (&[&str], &[&str]) = match of.kind {
            CandidateKind::Draft => (&["policyId"], &["family"]),
            CandidateKind::Inline => (&["family", "definition"], &[]),
            CandidateKind::Changes => (&["changes"], &[]),
            CandidateKind::Set => (&["policies"], &[]),
        };
        check_members("/candidate", &members, needed, allowed)?;
        for (place, change) in of.changes.iter().flat_map(Items::get).enumerate() {
            let members = [
                ("family", change.family.is_some()),
                ("definition", change.definition.is_some()),
                ("policyId", change.policy_id.is_some()),
            ];
            let (needed, allowed): (&[&str], &[&str]) = match change.op {
                ChangeOp::Set => (&["family", "definition"], &[]),
                ChangeOp::Remove => (&["policyId"], &["family"]),
            };
            check_members(&format!("/candidate/changes/{place}"), &members, needed, allowed)?;
        }
        if let Some(baseline) = &self.baseline {
            let needed: &[&str] = match baseline.kind {
                BaselineKind::Live => &[],
                BaselineKind::Version => &["versionId"],
            };
            let members = [("versionId", baseline.version_id.is_some())];
            check_members("/baseline", &members, needed, &[])?;
        }
        if self.window.from >= self.window.to {
            return Err(Error::invalid("/window/from", "must lie before `to`"));
        }
        Ok(())
    }
}

fn check_members(base: &str, members: &[(&str, bool)], needed: &[&str], allowed: &[&str]) -> Result<()> {
    for (name, is_there) in members {
        let pointer = format!("{base}/{name}");
        if !is_there && needed.contains(name) {
            return Err(Error::invalid(
                pointer,
                format!("the member `{name}` is required here"),
            ));
        }
        if *is_there && !needed.contains(name) && !allowed.contains(name) {
            return Err(Error::invalid(pointer, "does not belong to this kind"));
        }
    }
    Ok(())
}

/// An id that somebody else chose, or a word of a filter: 1 to 256 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(String);

impl Word {
    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer).map(Self)
    }
}

impl JsonSchema for Word {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 })
    }
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    if !(1..=256).contains(&text.chars().count()) {
        return Err(de::Error::custom("must have 1 to 256 characters"));
    }
    Ok(text.into_owned())
}

/// 1 to 256 different words of 1 to 256 characters, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<Word>::deserialize(deserializer)?;
        if !(1..=MAX_FILTER).contains(&words.len()) {
            return Err(de::Error::custom("must have 1 to 256 items"));
        }
        let mut words: Vec<String> = words.into_iter().map(|word| word.0).collect();
        words.sort_unstable();
        words.dedup();
        Ok(Self(words))
    }
}

impl JsonSchema for Words {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = Word::json_schema(generator);
        json_schema!({ "type": "array", "minItems": 1, "maxItems": MAX_FILTER, "items": item })
    }
}

/// `MIN` to 1 000 items.
#[derive(Debug)]
pub struct Items<T, const MIN: usize>(Vec<T>);

impl<T, const MIN: usize> Items<T, MIN> {
    /// Returns the items.
    pub fn get(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const MIN: usize> Deserialize<'de> for Items<T, MIN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::<T>::deserialize(deserializer)?;
        if !(MIN..=MAX_POLICIES).contains(&items.len()) {
            let message = format!("must have {MIN} to {MAX_POLICIES} items");
            return Err(de::Error::custom(message));
        }
        Ok(Self(items))
    }
}

impl<T: JsonSchema, const MIN: usize> JsonSchema for Items<T, MIN> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Items_{MIN}_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "minItems": MIN, "maxItems": MAX_POLICIES, "items": item })
    }
}
