//! An event of the history, as it is put together from attributes.
//!
//! INVARIANT OT-5: what an exporter hides, cuts or leaves out, and what it tells and cannot be read, is missing,
//! never absent.

use crate::attributes::AttributeValue;
use jiff::Timestamp;
use provost_policy::{Occasion, exact_document, exact_text, free_text};
use serde_json::{Map, Value as Json, json};

/// How long a content (a prompt, arguments, a result) may be. Units: bytes. Two of them and the names fit into the
/// 64 KiB that one imported event may have.
pub const MAX_CONTENT: usize = 28 << 10;

/// How long a name or an identifier may be. Units: bytes.
pub const MAX_NAME: usize = 256;

/// One event: what a policy would have been asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The source's own id of it: the span's, in hexadecimal.
    pub id: Option<String>,
    /// When it happened. Units: milliseconds since the Unix epoch, UTC.
    pub at_ms: i64,
    /// Where a policy would have judged it.
    pub occasion: Occasion,
    /// Attributes of the policy catalogue, by their flat names.
    pub attributes: Map<String, Json>,
    /// Names of attributes that it has and whose values the exporter does not tell (OT-5); sorted.
    pub missing: Vec<&'static str>,
    /// The conversation that it belongs to.
    pub session: Option<String>,
    /// The call that it belongs to: a tool's, or the model's.
    pub call_id: Option<String>,
    /// Whether a model's answer tells of it, and not the tool's own record.
    pub(crate) is_asked: bool,
    /// Whether its record tells of any message of the call of a model.
    pub(crate) tells_messages: bool,
    /// The span that tells of it, and the one in which that one lies.
    pub(crate) span: Option<SpanName>,
    pub(crate) parent: Option<SpanName>,
}

/// What a span is called in its payload. Whoever sends another resource cannot name it: a collector puts the records of several
/// services into one payload, and each of them knows ids of the others' spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanName {
    /// The place of the resource in the payload.
    pub resource: usize,
    /// The trace; 0 for one without a valid id.
    pub trace: u128,
    /// The id in the trace.
    pub id: u64,
}

impl Event {
    /// Returns an event without attributes.
    pub(crate) fn new(occasion: Occasion, at_ms: i64) -> Self {
        Self {
            id: None,
            at_ms,
            occasion,
            attributes: Map::new(),
            missing: Vec::new(),
            session: None,
            call_id: None,
            is_asked: false,
            tells_messages: false,
            span: None,
            parent: None,
        }
    }

    /// Returns the form in which events are imported.
    pub fn to_json(&self) -> Json {
        let mut json = Map::new();
        if let Some(id) = &self.id {
            json.insert("id".to_owned(), id.as_str().into());
        }
        let at = Timestamp::from_millisecond(self.at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        json.insert("at".to_owned(), at.to_string().into());
        json.insert("occasion".to_owned(), self.occasion.word().into());
        json.insert("attributes".to_owned(), Json::Object(self.attributes.clone()));
        if !self.missing.is_empty() {
            json.insert("missing".to_owned(), json!(self.missing));
        }
        if let Some(session) = &self.session {
            json.insert("session".to_owned(), session.as_str().into());
        }
        if let Some(call) = &self.call_id {
            json.insert("callId".to_owned(), call.as_str().into());
        }
        Json::Object(json)
    }

    /// Gives an attribute that events need not have; missing where something is told that cannot be read (OT-5).
    pub(crate) fn may(&mut self, field: &'static str, name: AttributeValue<&str>) {
        if name != AttributeValue::Nothing {
            self.must(field, name);
        }
    }

    /// Gives a name that such an event has; missing where it is not told or too long (OT-5).
    pub(crate) fn must(&mut self, field: &'static str, name: AttributeValue<&str>) {
        match name.value().filter(|name| name.len() <= MAX_NAME) {
            Some(name) => self.give(field, name.into()),
            None => self.lack(field),
        }
    }

    /// Gives a count that such an event has.
    pub(crate) fn count(&mut self, field: &'static str, count: AttributeValue<f64>) {
        match count.value() {
            Some(count) => self.give(field, count.into()),
            None => self.lack(field),
        }
    }

    /// Gives a content that such an event has; missing where it is not told, redacted or too long (OT-5).
    pub(crate) fn content(&mut self, field: &'static str, content: &AttributeValue<Json>) {
        let content = match content {
            AttributeValue::Value(content) => content_text(content),
            AttributeValue::Nothing | AttributeValue::Unreadable => None,
        };
        match content {
            Some(text) => self.give(field, text.into()),
            None => self.lack(field),
        }
    }

    /// Gives the input of a tool: as [`Self::content`], free text of a tool that takes it as an object.
    pub(crate) fn input(&mut self, tool: Option<&str>, content: &AttributeValue<Json>) {
        let content = match content {
            AttributeValue::Value(content) if !is_redacted(content) => {
                AttributeValue::Value(free_text(tool, content.clone()))
            }
            content => content.clone(),
        };
        self.content("tool.input", &content);
    }

    fn give(&mut self, field: &'static str, value: Json) {
        self.attributes.insert(field.to_owned(), value);
    }

    fn lack(&mut self, field: &'static str) {
        if let Err(at) = self.missing.binary_search(&field) {
            self.missing.insert(at, field);
        }
    }
}

/// Returns an identifier that is short enough to be kept.
pub fn short(id: &str) -> Option<String> {
    (id.len() <= MAX_NAME).then(|| id.to_owned())
}

fn is_redacted(content: &Json) -> bool {
    content == "[REDACTED]" || content == "<REDACTED>"
}

/// Returns a content as its text: of a document, and of a text that is exactly one, the canonical text, so that the same
/// arguments are the same text whoever exports them. A text about which readers differ stays what it is.
fn content_text(content: &Json) -> Option<String> {
    let text = match content {
        Json::Null => return None,
        redacted if is_redacted(redacted) => return None,
        Json::String(text) if text.len() > MAX_CONTENT => return None,
        Json::String(text) => document(text).map_or_else(|| text.clone(), |document| exact_text(&document)),
        document => exact_text(document),
    };
    (text.len() <= MAX_CONTENT).then_some(text)
}

/// Returns the object or list that a text is exactly.
pub fn document(text: &str) -> Option<Json> {
    exact_document(text)
}
