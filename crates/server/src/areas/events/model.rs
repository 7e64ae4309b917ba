//! An event as it is shown.

use provost_kernel::{Error, Result, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One event, in the form in which webhooks carry it, with its id.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Event {
    /// The same at every delivery.
    pub id: String,
    /// For example `service_account.token.rotated`; more may come.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: Timestamp,
    pub data: Data,
    /// The data are not for this reader: the sequence alone is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// What happened: ids and states, and the event's number in its organization.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Data(Map<String, Value>);

impl Data {
    /// Returns the stored members with the sequence.
    ///
    /// Errors: `Internal` when the stored text is no JSON object.
    pub(super) fn of(text: &str, sequence: i64) -> Result<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(text).map_err(Error::internal)?;
        members.insert("sequence".into(), sequence.into());
        Ok(Self(members))
    }

    /// Returns the sequence alone.
    pub(super) fn withheld(self) -> Self {
        let mut members = self.0;
        members.retain(|name, _| name == "sequence");
        Self(members)
    }

    /// Returns a member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl JsonSchema for Data {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "EventData".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": ["sequence"],
            "properties": { "sequence": { "type": "integer", "minimum": 1 } },
        })
    }
}
