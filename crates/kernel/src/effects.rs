//! What a run of an operation leaves behind beside its rows: the unit of work makes entries, events, jobs and the stored
//! answer of it.

use crate::auth::{Actor, Origin};
use crate::error::Result;
use crate::event::{EventData, EventKind, EventOf};
use crate::fence::TargetKind;
use crate::job::NewJob;
use crate::secret::Secret;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::pin::Pin;

/// The rest of an answer, once it is there.
pub(crate) struct DeferredResponse {
    /// The media type of the bytes, where it is not the one that the operation declares.
    pub media_type: Option<&'static str>,
    pub bytes: Pin<Box<dyn Future<Output = Result<Bytes>> + Send>>,
}

/// What one run of an operation leaves behind beside its rows.
#[derive(Default)]
pub(crate) struct Effects {
    pub target: Option<(&'static TargetKind, String)>,
    pub changes: Vec<Change>,
    pub events: Vec<Event>,
    /// Events that are emitted if the unit is refused.
    pub alarms: Vec<Event>,
    /// Whose request the program's own unit serves, and where that came from.
    pub served: Option<(Actor, Option<Origin>)>,
    pub jobs: Vec<NewJob>,
    pub wakes: Vec<&'static str>,
    pub headers: Vec<(&'static str, String)>,
    pub action: Option<&'static str>,
    pub status: Option<u16>,
    pub content: Option<Bytes>,
    pub later: Option<DeferredResponse>,
    pub reveal: Option<Reveal>,
    pub secret_at: Option<usize>,
    /// The unit changed what more callers may do than its target.
    pub credentials_invalidated: bool,
    /// The answer is not kept under the key of the request, which acts later.
    pub is_unkept: bool,
    /// Tokens whose replay cells the unit erased.
    pub erased: Vec<String>,
}

/// One changed member of a record, for the audit entry. Values are for people; secrets never stand here.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) after: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) before: Value,
    pub(crate) path: &'static str,
}

/// One outgoing event; becomes an outbox row of the same transaction (D12.2).
#[derive(Clone, Debug)]
pub struct Event {
    pub(crate) kind: &'static EventKind,
    pub(crate) data: Value,
}

impl Event {
    pub(crate) fn of<D: EventData>(kind: &'static EventOf<D>, data: &D) -> Self {
        Self {
            kind: kind.kind(),
            data: json!(data),
        }
    }
}

/// A secret that the answer shows once, and how long a replay may repeat it (D4.8).
pub(crate) struct Reveal {
    pub token_id: String,
    pub secret: Secret<String>,
    pub mark: String,
    pub replay_secs: i64,
}

/// The place in an answer where a secret will stand. Serializes as a mark that the framework replaces.
#[derive(Clone, Debug)]
pub struct SecretPlaceholder(pub(crate) String);

impl Serialize for SecretPlaceholder {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl schemars::JsonSchema for SecretPlaceholder {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Revealed".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1 })
    }
}
