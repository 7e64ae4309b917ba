//! What came of a run, as it is shown and stored (D9.4): the record's `results`.
//!
//! The engine makes them; here they get their words for readers of the published document. They are stored without
//! their samples, which lie beside them, so that a list does not read what it does not show.

use provost_kernel::Timestamp;
use provost_kernel::error::{Error, Result};
use provost_policy::Action;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Results {
    /// Events that both sets judged: the sum of the next four.
    pub events_evaluated: u64,
    /// Events with the same decision.
    pub unchanged: u64,
    /// Events with different decisions.
    pub changed: u64,
    /// Recorded events that could not be read.
    pub errors: u64,
    /// Where they lie, at most 50 chunks and segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableSource>,
    /// Events that one of the sets could not judge, because a recorded attribute is missing.
    pub unknown: u64,
    /// Why policies could not judge events, at most 20 causes, those with the most events first. An event that several
    /// policies cannot judge, or that lacks several attributes, stands in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_failure: Vec<FailureCount>,
    /// Changed events by what became of what; changes that did not occur are left out.
    pub by_change: ByChange,
    /// When the newest event happened; absent without events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_event_at: Option<Timestamp>,
    /// When the oldest event happened; absent without events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_event_at: Option<Timestamp>,
    /// The policies of both sets that matched the most events, at most 50.
    pub by_policy: Vec<PolicyCount>,
    /// The subjects with the most changed events, at most 50.
    pub by_subject: Vec<SubjectCount>,
    /// The tools with the most changed events, at most 50.
    pub by_tool: Vec<ToolCount>,
    /// Every day with events, in order.
    pub by_day: Vec<DayCount>,
    /// Whether there were too many distinct changed behaviours to count each: the samples are those of a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples_capped: bool,
    /// Whether there were too many subjects or tools to count each: their lists are those of a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdowns_capped: bool,
    /// At most 100 examples of changed events, one for each distinct behaviour; a list of runs leaves them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<Sample>>,
}

/// A chunk or segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UnreadableSource {
    /// Its name.
    pub name: String,
    /// Its lost events.
    pub events: u64,
}

/// Why a policy could not judge events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct FailureCount {
    /// The policy.
    pub policy_id: String,
    /// `content`, `access`, `resource` or `skill_acl`.
    pub family: String,
    /// `missing_attribute`; `module_failed`, where a Rego module failed or had no time left; `undecided`, where a name means
    /// several records or what happened before is not known.
    pub cause: String,
    /// The attribute that the events have and whose value nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// Events that the baseline's policy could not judge for it.
    pub baseline: u64,
    /// Events that the candidate's policy could not judge for it.
    pub candidate: u64,
}

/// What a policy did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct PolicyCount {
    /// The policy.
    pub policy_id: String,
    /// `content`, `access`, `resource` or `skill_acl`.
    pub family: String,
    /// Events that it matched: the candidate's policy of this id if there is one, else the baseline's.
    pub matched: u64,
    /// Those of them with different decisions.
    pub changed: u64,
}

/// What a subject would notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct SubjectCount {
    /// The subject.
    pub subject_id: String,
    /// `user`, `service_account` or `device`.
    pub kind: String,
    /// Its events with different decisions.
    pub changed: u64,
    /// Its events.
    pub evaluated: u64,
}

/// What would become of a tool's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ToolCount {
    /// The tool.
    pub tool: String,
    /// Its events with different decisions.
    pub changed: u64,
    /// Its events.
    pub evaluated: u64,
}

/// A day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DayCount {
    /// The day in UTC, for example `2026-11-20`.
    pub day: String,
    /// Its events.
    pub evaluated: u64,
    /// Those of them with different decisions.
    pub changed: u64,
}

/// An example of changed events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Sample {
    /// The newest event of the behaviour.
    pub event_id: String,
    /// When it happened.
    pub at: Timestamp,
    /// Its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// `user`, `service_account` or `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The name under which the event came: `decisions`, `otlp`, or the source of an import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The principal that handed the event in; absent of events from before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
    /// Whether the event was imported: somebody told of it, and this server did not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// The occasion at which it was judged: `prompt`, `pre_tool`, `resource`, …
    pub action: String,
    /// How many events it stands for.
    pub count: u64,
    /// What the baseline decides.
    pub baseline: Judgement,
    /// What the candidate decides.
    pub candidate: Judgement,
}

/// What a set decides on an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Judgement {
    /// The action.
    pub decision: String,
    /// The policies that gave it.
    pub policy_ids: Vec<String>,
}

impl Sample {
    /// Says whether the sample is one of this change.
    pub fn is_change(&self, change: ChangeName) -> bool {
        self.baseline.decision == change.from.word() && self.candidate.decision == change.to.word()
    }
}

impl Results {
    /// Returns what the engine found, in the words of the wire.
    pub fn of(found: &provost_backtest::run::Results) -> Result<Self> {
        let text = serde_json::to_string(found).map_err(Error::internal)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// Returns stored results, with samples if they are given.
    ///
    /// Errors: `Internal` when the store does not hold results.
    pub fn from_store(results: &str, samples: Option<&str>) -> Result<Self> {
        let mut results: Self = serde_json::from_str(results).map_err(Error::internal)?;
        results.samples = samples.map(samples_from_store).transpose()?;
        Ok(results)
    }

    /// Returns the two texts that are stored.
    pub fn into_store(mut self) -> Result<(String, String)> {
        let samples = self.samples.take().unwrap_or_default();
        let write = |value: serde_json::Result<String>| value.map_err(Error::internal);
        Ok((
            write(serde_json::to_string(&self))?,
            write(serde_json::to_string(&samples))?,
        ))
    }
}

/// Returns stored samples.
///
/// Errors: as [`Results::from_store`].
pub fn samples_from_store(text: &str) -> Result<Vec<Sample>> {
    serde_json::from_str(text).map_err(Error::internal)
}

/// Events by what became of what, in the order of [`Action::ALL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByChange(Vec<(String, u64)>);

impl ByChange {
    /// Returns the counts.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(_, count)| *count)
    }
}

impl Serialize for ByChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name, count)))
    }
}

impl<'de> Deserialize<'de> for ByChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = ByChange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by change")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByChange, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(ByChange(all))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl JsonSchema for ByChange {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ByChange".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "enum": ChangeName::words() },
            "additionalProperties": { "type": "integer", "minimum": 1 },
        })
    }
}

/// A change of decisions, for example `allow_to_block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeName {
    from: Action,
    to: Action,
}

impl ChangeName {
    /// Returns the words of all changes.
    fn words() -> Vec<String> {
        let pairs = Action::ALL
            .iter()
            .flat_map(|from| Action::ALL.iter().map(move |to| (from, to)));
        pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| format!("{}_to_{}", from.word(), to.word()))
            .collect()
    }
}

impl<'de> Deserialize<'de> for ChangeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let pair = text.split_once("_to_");
        let found = pair.and_then(|(from, to)| Some((Action::named(from)?, Action::named(to)?)));
        found
            .filter(|(from, to)| from != to)
            .map(|(from, to)| Self { from, to })
            .ok_or_else(|| de::Error::custom("must be two different actions joined by `_to_`"))
    }
}

impl JsonSchema for ChangeName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ChangeName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::words() })
    }
}
