//! A run as the server tells it (D9.3, D9.4): what the table and the page are made of.
//!
//! Members that are not known here are left aside, so that the run of a newer server is readable; what is absent
//! counts as nothing.

use crate::cli::Failure;
use serde::Deserialize;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The words of the actions, the weakest first (D9.10).
pub const ACTIONS: [&str; 7] = [
    "allow",
    "flag_for_review",
    "nudge",
    "redact",
    "filter",
    "require_approval",
    "block",
];

/// One run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "the members on the wire")]
pub struct RunView {
    pub id: String,
    pub organization_id: String,
    pub name: Option<String>,
    pub status: String,
    pub reason: Option<String>,
    pub created_at: Option<String>,
    pub created_by: Option<By>,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub canceled_at: Option<String>,
    pub cancel_reason: Option<String>,
    pub failure: Option<FailureView>,
    pub policy_set: PolicySets,
    pub window: Window,
    pub filters: Filters,
    pub limits: Limits,
    pub progress: ProgressView,
    pub results: Option<Results>,
    pub partial: bool,
    pub truncated: bool,
    pub truncated_by: Option<String>,
    pub attempt: Option<u64>,
    /// Whether what is compared differs in policies that read content.
    pub reads_content: bool,
    pub engine_version: Option<String>,
    pub dataset_digest: Option<String>,
    pub result_digest: Option<String>,
    pub live_enforcement_changed: bool,
    pub expires_at: Option<String>,
    /// Added by this program to a run that it saves.
    pub tried: Option<PolicyChanges>,
}

/// Which policies were tried.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PolicyChanges {
    pub changes: Vec<TriedPolicy>,
    /// Whether the server does not show them to who asked.
    pub withheld: bool,
}

/// One of them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriedPolicy {
    pub family: String,
    pub policy_id: String,
    /// Absent where the policy was taken out.
    pub definition: Option<Value>,
}

/// Who did it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct By {
    #[serde(rename = "type")]
    pub kind: String,
    pub id: String,
}

/// Why a run failed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FailureView {
    pub code: String,
    pub message: String,
}

/// What is compared.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PolicySets {
    pub baseline: PolicySet,
    pub candidate: PolicySet,
}

/// One of the two sets.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySet {
    pub kind: String,
    pub version_id: Option<String>,
    pub policy_ids: Vec<String>,
    pub digest: String,
}

/// From when to when.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Window {
    pub from: String,
    pub to: String,
}

/// Which events are looked at; an empty list looks at all.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filters {
    pub subject_ids: Vec<String>,
    pub tools: Vec<String>,
    pub resource_ids: Vec<String>,
}

/// How much a run may read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    pub max_events: Option<u64>,
    pub max_duration_seconds: Option<u64>,
}

/// How far a run is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProgressView {
    /// Absent where the results are restricted, as the total is.
    pub events_processed: Option<u64>,
    pub events_total: Option<u64>,
    pub percent: u64,
}

/// What came of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Results {
    pub events_evaluated: u64,
    pub unchanged: u64,
    pub changed: u64,
    pub errors: u64,
    pub unreadable: Vec<UnreadableRow>,
    pub unknown: u64,
    pub by_failure: Vec<FailureRow>,
    pub by_change: BTreeMap<String, u64>,
    pub newest_event_at: Option<String>,
    pub oldest_event_at: Option<String>,
    pub by_policy: Vec<PolicyRow>,
    pub by_subject: Vec<SubjectRow>,
    pub by_tool: Vec<ToolRow>,
    pub by_day: Vec<DayRow>,
    pub samples: Vec<Sample>,
    /// Whether the server shows totals alone.
    pub restricted: bool,
    /// Whether it shows no figure at all: what is absent is then not known, and no zero.
    #[serde(skip)]
    pub is_withheld: bool,
}

/// A piece of the history with events that could not be read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UnreadableRow {
    pub name: String,
    pub events: u64,
}

/// Why a policy could not judge events.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureRow {
    pub policy_id: String,
    pub family: String,
    pub cause: String,
    pub attribute: Option<String>,
    pub baseline: u64,
    pub candidate: u64,
}

impl FailureRow {
    /// Returns the cause in words.
    pub fn why(&self) -> String {
        match (self.cause.as_str(), &self.attribute) {
            ("missing_attribute", Some(attribute)) => format!("{attribute} is missing"),
            ("module_failed", _) => "the module failed".to_owned(),
            ("undecided", _) => "a name or the past is unclear".to_owned(),
            (word, _) => word.replace('_', " "),
        }
    }
}

/// What one policy did.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRow {
    pub policy_id: String,
    pub family: String,
    pub matched: u64,
    pub changed: u64,
}

/// What one subject would have met.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubjectRow {
    pub subject_id: String,
    pub kind: String,
    pub changed: u64,
    pub evaluated: u64,
}

/// What calls of one tool would have met.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolRow {
    pub tool: String,
    pub changed: u64,
    pub evaluated: u64,
}

/// What one day would have been.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct DayRow {
    /// `2026-11-20`.
    pub day: String,
    pub evaluated: u64,
    pub changed: u64,
}

/// One changed behaviour, by its newest event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sample {
    pub event_id: String,
    pub at: String,
    pub subject_id: Option<String>,
    pub tool: Option<String>,
    /// The occasion: `pre_tool`.
    pub action: Option<String>,
    pub count: Option<u64>,
    pub baseline: SetDecision,
    pub candidate: SetDecision,
}

/// How one set decides an event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetDecision {
    pub decision: String,
    pub policy_ids: Vec<String>,
}

/// One direction in which decisions change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub from: String,
    pub to: String,
    pub count: u64,
}

/// Whether a change lets less or more pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Stricter,
    Looser,
    /// One of the words is not known here.
    Other,
}

impl RunView {
    /// Reads the answer of the server, or a file that holds it.
    ///
    /// Errors: usage, when it is no run.
    pub fn read(json: &Value) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::usage(format!("that is no backtest: {why}"));
        let mut run = Self::deserialize(json).map_err(|error| wrong(&error.to_string()))?;
        if run.id.is_empty() || run.status.is_empty() {
            return Err(wrong("it has no id or no status"));
        }
        if let Some(results) = &mut run.results {
            results.is_withheld = results.restricted && json["results"]["eventsEvaluated"].is_null();
        }
        Ok(run)
    }

    /// Returns whether nothing will change any more (D9.2).
    pub fn is_final(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "failed" | "canceled")
    }
}

impl Results {
    /// Returns the directions that occurred, the most frequent first.
    pub fn changes(&self) -> Vec<Change> {
        let parsed = self.by_change.iter().filter(|(_, count)| **count > 0);
        let mut changes: Vec<Change> = parsed
            .map(|(name, count)| {
                let (from, to) = name.split_once("_to_").unwrap_or(("", name));
                Change {
                    from: from.to_owned(),
                    to: to.to_owned(),
                    count: *count,
                }
            })
            .collect();
        changes.sort_by_key(|change| Reverse(change.count));
        changes
    }

    /// Returns how many decisions changed in this direction.
    pub fn toward(&self, direction: Direction) -> u64 {
        let changes = self.changes();
        let those = changes.iter().filter(|change| change.direction() == direction);
        those.map(|change| change.count).sum()
    }

    /// Returns whether every event is the call of a tool, as far as the list of tools can say.
    pub fn is_all_tools(&self) -> bool {
        let calls: u64 = self.by_tool.iter().map(|row| row.evaluated).sum();
        calls > 0 && calls == self.events_evaluated
    }

    /// Returns the subjects, the most affected first.
    pub fn subjects(&self) -> Vec<&SubjectRow> {
        let mut rows: Vec<_> = self.by_subject.iter().collect();
        rows.sort_by_key(|row| (Reverse(row.changed), Reverse(row.evaluated)));
        rows
    }

    /// Returns the tools, the most affected first.
    pub fn tools(&self) -> Vec<&ToolRow> {
        let mut rows: Vec<_> = self.by_tool.iter().collect();
        rows.sort_by_key(|row| (Reverse(row.changed), Reverse(row.evaluated)));
        rows
    }

    /// Returns the policies, those that change most first.
    pub fn policies(&self) -> Vec<&PolicyRow> {
        let mut rows: Vec<_> = self.by_policy.iter().collect();
        rows.sort_by_key(|row| (Reverse(row.changed), Reverse(row.matched)));
        rows
    }
}

impl Change {
    pub fn direction(&self) -> Direction {
        match (rank(&self.from), rank(&self.to)) {
            (Some(from), Some(to)) if from < to => Direction::Stricter,
            (Some(from), Some(to)) if from > to => Direction::Looser,
            _ => Direction::Other,
        }
    }
}

/// Returns how much an action stops, of those known here.
pub fn rank(action: &str) -> Option<usize> {
    ACTIONS.iter().position(|known| *known == action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_run_of_a_newer_server_is_read() {
        let run = RunView::read(&json!({
            "id": "btr_1", "status": "succeeded", "colour": "blue",
            "results": { "changed": 3, "byChange": { "allow_to_block": 1, "block_to_require_approval": 2,
                "allow_to_sing": 0 }, "more": [] },
        }))
        .unwrap();
        let results = run.results.as_ref().unwrap();
        let changes = results.changes();
        assert_eq!(
            changes
                .iter()
                .map(|c| (c.from.as_str(), c.to.as_str(), c.count))
                .collect::<Vec<_>>(),
            [("block", "require_approval", 2), ("allow", "block", 1)]
        );
        assert_eq!(results.toward(Direction::Looser), 2);
        assert_eq!(results.toward(Direction::Stricter), 1);
        assert!(run.is_final());
    }

    #[test]
    fn what_is_no_run_is_refused() {
        for json in [
            json!({}),
            json!([]),
            json!({ "id": "btr_1" }),
            json!({ "id": 7, "status": "x" }),
        ] {
            assert!(RunView::read(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_word_from_elsewhere_is_neither_stricter_nor_looser() {
        let change = Change {
            from: "allow".into(),
            to: "sing".into(),
            count: 1,
        };
        assert_eq!(change.direction(), Direction::Other);
    }
}
