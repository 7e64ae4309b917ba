//! What a reader sees of an event.

use super::model;
use super::sources::Unreadable;
use provost_backtest::record::{Basis, OwnedRecord};
use provost_kernel::Timestamp;
use provost_policy::{Field, claimed};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// An event without its attributes.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct EventView {
    event_id: String,
    /// When it happened.
    #[schemars(with = "Timestamp")]
    at: String,
    /// Where it was judged.
    occasion: String,
    /// The name under which it came: `decisions`, `otlp`, `device:` and the id of a device that judged it, or the source of an import.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The principal that handed it in; absent of events from before that was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal_id: Option<String>,
    /// Whether it was imported: somebody told of it, and this server did not see it.
    imported: bool,
    /// The source's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// Whose event it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectView>,
    /// The tool, by its own id or by the one it has at its MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_id: Option<String>,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SubjectView {
    /// `user`, `service_account` or `device`.
    kind: String,
    id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct DecisionView {
    action: String,
    /// The policies whose action it was; with the basis `approved` those too that had asked for the approval.
    policy_ids: Vec<String>,
    /// The version of the policies that decided; absent of a decision that was made elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_set_version_id: Option<String>,
    /// `enforce`; `monitor` for a decision that was only reported, and `bypass` for one that was because a bypass of the device was on. Open.
    mode: String,
    /// On what it rests beside policies: `standing` where an MCP server is denied, `approved` where somebody's approval was used, or why a device
    /// could not judge for certain. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    basis: Option<&'static str>,
}

/// An event with everything that is known of it.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WholeEvent {
    #[serde(flatten)]
    event: EventView,
    /// By their flat names.
    attributes: Map<String, Value>,
    /// Attributes that the event has and whose values nobody can say.
    missing: Vec<String>,
}

impl EventView {
    pub(super) fn of(id: &str, event: &OwnedRecord) -> Self {
        let (kind, subject) = model::subject(event).unzip();
        Self {
            event_id: id.to_owned(),
            at: Timestamp::from_ms(event.at_ms).to_rfc3339(),
            occasion: event.occasion.word().to_owned(),
            source: event.source.clone(),
            principal_id: event.principal.clone(),
            imported: event.is_imported(),
            external_id: event.external_id.clone(),
            session: event.session.clone(),
            call_id: event.call_id.clone(),
            subject: kind.zip(subject).map(|(kind, id)| SubjectView {
                kind: kind.to_owned(),
                id: id.to_owned(),
            }),
            tool: model::tool(event).map(str::to_owned),
            resource_id: model::text(event, Field::RESOURCE).map(str::to_owned),
            decision: event.decision.as_ref().map(|decision| DecisionView {
                action: decision.action.word().to_owned(),
                policy_ids: decision.policy_ids.clone(),
                policy_set_version_id: decision.policy_set_version.clone(),
                mode: decision.mode.word().to_owned(),
                basis: decision.basis.map(Basis::word),
            }),
        }
    }
}

impl WholeEvent {
    pub(super) fn of(id: &str, event: &OwnedRecord) -> Self {
        Self {
            event: EventView::of(id, event),
            attributes: as_sent(event.flat()),
            missing: event
                .missing()
                .iter()
                .map(|field| field.name().to_owned())
                .collect(),
        }
    }
}

/// Returns attributes with claimed groups as they were sent.
pub(crate) fn as_sent(mut attributes: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(groups)) = attributes.get_mut(Field::GROUPS.name()) {
        for group in groups {
            if let Some(sent) = group.as_str().and_then(claimed).map(str::to_owned) {
                *group = sent.into();
            }
        }
    }
    attributes
}

/// A part of the history that cannot be read (HS-7).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UnreadableView {
    /// The chunk or the file.
    name: String,
    /// How many events are in it.
    events: u32,
    /// When the oldest of them happened.
    oldest_event_at: Timestamp,
    /// When the newest of them happened.
    newest_event_at: Timestamp,
}

impl From<Unreadable> for UnreadableView {
    fn from(unreadable: Unreadable) -> Self {
        Self {
            name: unreadable.name,
            events: unreadable.rows,
            oldest_event_at: Timestamp::from_ms(unreadable.min_at),
            newest_event_at: Timestamp::from_ms(unreadable.max_at),
        }
    }
}
