//! Words of the audit log: an entry as it is shown, the filters, the moment for a checkpoint.
//!
//! Keeps AL-2, AL-4.

use provost_kernel::audit::hex;
use provost_kernel::auth::Role;
use provost_kernel::merkle::Hash;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{Error, Result, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

provost_kernel::id!(AuditEntryId, "aud", "An entry of the audit log.");

/// The largest integer that every JSON reader keeps exactly.
pub(super) const MAX_EXACT: i64 = (1 << 53) - 1;

/// Who may read the log.
pub(super) const READERS: &[Role] = &[Role::Admin, Role::Operator, Role::Auditor];

/// The action of a checkpoint's own entry, and the type of its event.
pub(super) const CHECKPOINT_CREATED: &str = "audit.checkpoint.created";

/// A checkpoint is due when so many entries are open (D12.5) …
pub(super) const CHECKPOINT_ENTRIES: i64 = 1000;
/// … or when the oldest open one is this old. Units: milliseconds.
pub(super) const CHECKPOINT_AGE_MS: i64 = 60_000;

/// A place in a chain: the number of an entry, or of entries.
pub(super) type ChainRange<const MIN: i64> = IntegerBetween<MIN, MAX_EXACT>;

/// Returns the name under which the checkpoints of a chain are signed.
pub fn origin(organization: &str) -> String {
    format!("provost.audit/{organization}")
}

/// Says whether a checkpoint is due, given what came since the last one.
///
/// `oldest` is the time of the oldest open entry that is not a checkpoint's own; without one there is nothing
/// new to vouch for (AL-2).
pub(super) fn is_due(open_entries: i64, oldest: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(oldest) = oldest else { return false };
    open_entries >= CHECKPOINT_ENTRIES || now.as_ms() - oldest.as_ms() >= CHECKPOINT_AGE_MS
}

provost_kernel::word! {
    /// What came of a request, as a filter.
    pub(super) enum Outcome {
        Allowed = "allowed",
        Denied = "denied",
        Refused = "refused",
        IdempotentReplay = "idempotent_replay",
        Failed = "failed",
    }
}

/// What a filter compares with: 1–256 characters on one line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Term(String);

impl Term {
    /// Returns the text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Term {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let fits = matches!(text.chars().count(), 1..=256) && !text.contains(char::is_control);
        if fits {
            Ok(Self(text))
        } else {
            Err("must have 1 to 256 characters and no control character")
        }
    }
}

impl JsonSchema for Term {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Term".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$",
        })
    }
}

/// One entry as the store holds it, with the hash of its predecessor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub seq: i64,
    /// The canonical text that the hash covers.
    pub entry: String,
    pub hash: Hash,
    /// Zeros before the first entry.
    pub previous: Hash,
}

impl Record {
    /// Returns the line of an export: the canonical text, then the two hashes (AL-4).
    pub(super) fn line(&self) -> Result<String> {
        let members = self.entry.strip_suffix('}');
        let members = members.ok_or_else(|| Error::internal("a stored audit entry is no JSON object"))?;
        Ok(format!(
            r#"{members},"previousHash":"{}","hash":"{}"}}"#,
            hex(&self.previous),
            hex(&self.hash)
        ))
    }
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct AuditEvent(Map<String, Value>);

/// What stays of an entry whose details are withheld. A list of what stays: a member that is added later is withheld.
const KEPT: [&str; 6] = ["id", "seq", "time", "organizationId", "action", "outcome"];

impl AuditEvent {
    /// Returns the stored members with the two hashes.
    ///
    /// Errors: `Internal` when the stored text is no JSON object.
    pub(super) fn of(record: &Record) -> Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(&record.entry).map_err(Error::internal)?;
        members.insert("previousHash".into(), hex(&record.previous).into());
        members.insert("hash".into(), hex(&record.hash).into());
        Ok(Self(members))
    }

    /// Returns the entry without its details.
    pub(super) fn withheld(self) -> Self {
        let hashes = ["previousHash", "hash"];
        let mut members = self.0;
        members.retain(|name, _| KEPT.contains(&name.as_str()) || hashes.contains(&name.as_str()));
        members.insert("withheld".into(), true.into());
        Self(members)
    }

    /// Returns the entry without the changes of these paths, or as it is when it has none of them.
    pub(super) fn without_changes(mut self, is_withheld: impl Fn(&str) -> bool) -> Self {
        let Some(Value::Array(changes)) = self.0.get_mut("changes") else {
            return self;
        };
        let count = changes.len();
        changes.retain(|change| !change["path"].as_str().is_some_and(&is_withheld));
        if changes.len() < count {
            if changes.is_empty() {
                self.0.remove("changes");
            }
            self.0.insert("withheld".into(), true.into());
        }
        self
    }

    /// Returns the entry's id.
    pub(super) fn id(&self) -> Option<&str> {
        self.0.get("id").and_then(Value::as_str)
    }

    /// Returns what was done.
    pub(super) fn action(&self) -> Option<&str> {
        self.0.get("action").and_then(Value::as_str)
    }

    /// Returns kind and id of the record that the entry is about.
    pub(super) fn target(&self) -> Option<(&str, &str)> {
        let target = self.0.get("target")?;
        Some((target.get("type")?.as_str()?, target.get("id")?.as_str()?))
    }
}

// Written by hand: members pass through from the store, so no struct of them exists to derive from.
impl JsonSchema for AuditEvent {
    fn schema_name() -> Cow<'static, str> {
        "AuditEvent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = || json_schema!({ "type": "string" });
        let hash = || json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
        json_schema!({
            "type": "object",
            "required": ["id", "seq", "time", "organizationId", "action", "outcome", "previousHash", "hash"],
            "properties": {
                "id": text(),
                "seq": { "type": "integer", "minimum": 1 },
                "time": { "type": "string", "format": "date-time" },
                "organizationId": text(),
                "actor": {
                    "type": "object",
                    "required": ["type", "id", "display", "role"],
                    "properties": {
                        "type": text(), "id": text(), "display": text(), "role": text(),
                        "tokenId": text(), "tokenPrefix": text(),
                        "scopes": { "type": "array", "items": { "type": "string" } },
                        "allOfRole": { "type": "boolean" },
                    },
                },
                "action": text(),
                "target": {
                    "type": "object",
                    "required": ["type", "id"],
                    "properties": { "type": text(), "id": text() },
                },
                "outcome": {
                    "type": "object",
                    "required": ["decision", "status"],
                    "properties": {
                        "decision": {
                            "type": "string",
                            "description": "allowed, denied, refused, idempotent_replay or failed; more may come",
                        },
                        "status": { "type": "integer" },
                        "code": text(),
                    },
                },
                "reason": text(),
                "idempotencyKeyHash": hash(),
                "requestId": text(),
                "salt": {
                    "type": "string",
                    "description": "of an entry without a request: its hash cannot be found by trying",
                },
                "clientRequestId": text(),
                "sourceIp": text(),
                "userAgent": text(),
                "manager": {
                    "type": "object",
                    "description": "the labels that a managing program such as Terraform gave itself and its workspace",
                    "properties": { "id": text(), "instance": text() },
                },
                "changes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["path"],
                        "properties": { "path": { "type": "string" }, "before": true, "after": true },
                    },
                },
                "count": { "type": "integer", "minimum": 1 },
                "replayOf": text(),
                "withheld": {
                    "const": true,
                    "description": "details are not for this reader: either all but place, sequence, time, action and \
                                    outcome, or some of the changes",
                },
                "previousHash": hash(),
                "hash": hash(),
            },
        })
    }
}

/// A checkpoint in a line of `checkpoints.jsonl` (D12.5). Members that a later version adds are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckpointLine {
    /// The store that it is about; lines of earlier builds name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    /// The store's epoch; among the lines of earlier builds those of restores alone name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_epoch: Option<i64>,
    pub organization_id: String,
    pub size: u64,
    pub root_hash: String,
    pub note: String,
    pub time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_checkpoint_is_due_after_a_thousand_entries_or_a_minute() {
        assert!(!is_due(999, Some(at(1)), at(60_000)));
        assert!(is_due(1000, Some(at(1)), at(2)));
        assert!(is_due(1, Some(at(1)), at(60_001)));
        assert!(
            !is_due(5000, None, at(1_000_000)),
            "checkpoints alone cause no checkpoint"
        );
    }

    /// Proves AL-4.
    #[test]
    fn an_exported_line_is_the_stored_text_with_its_hashes() {
        let record = Record {
            seq: 1,
            entry: r#"{"a":1.0}"#.into(),
            hash: [0xab; 32],
            previous: [0; 32],
        };
        let (zeros, hash) = ("00".repeat(32), "ab".repeat(32));
        assert_eq!(
            record.line().unwrap(),
            format!(r#"{{"a":1.0,"previousHash":"{zeros}","hash":"{hash}"}}"#)
        );
    }

    #[test]
    fn the_filter_words_are_those_of_the_log() {
        use provost_kernel::audit::Decision;
        let pairs = [
            (Outcome::Allowed, Decision::Allowed),
            (Outcome::Denied, Decision::Denied),
            (Outcome::Refused, Decision::Refused),
            (Outcome::IdempotentReplay, Decision::Replayed),
            (Outcome::Failed, Decision::Failed),
        ];
        for (outcome, decision) in pairs {
            assert_eq!(outcome.as_str(), decision.as_str());
            let word = serde_json::Value::from(outcome.as_str());
            assert_eq!(serde_json::from_value::<Outcome>(word).unwrap(), outcome);
        }
    }
}
