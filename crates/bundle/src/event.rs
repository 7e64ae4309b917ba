//! An event that is asked about, in the form in which hooks send it.

use provost_policy::{Occasion, Violations};
use serde_json::{Map, Value};
use std::fmt;

/// One event, not judged yet.
#[derive(Clone, Debug)]
pub struct AskedEvent {
    /// Where it is judged.
    pub occasion: Occasion,
    /// The attributes by their flat names.
    pub attributes: Map<String, Value>,
    /// The names of attributes that exist and whose values nobody can say.
    pub missing: Vec<String>,
}

/// Why an event cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableEvent(pub String);

impl fmt::Display for UnreadableEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnreadableEvent {}

impl From<Violations> for UnreadableEvent {
    fn from(violations: Violations) -> Self {
        Self(violations.to_string())
    }
}

impl AskedEvent {
    /// Returns the events of a request for decisions: `{"events": […]}`.
    ///
    /// Numbers are as `provost_words::json::parse` gives them. What only tells calls apart is not read.
    ///
    /// Errors: one of them is none, or there is none.
    pub fn all(request: &Value) -> Result<Vec<Self>, UnreadableEvent> {
        let events = request.get("events").and_then(Value::as_array);
        let events = events.filter(|events| !events.is_empty());
        let none = || UnreadableEvent("the request asks about no event".to_owned());
        events.ok_or_else(none)?.iter().map(Self::of).collect()
    }

    /// Returns the event that a member of such a request spells.
    ///
    /// Errors: it is none.
    pub fn of(event: &Value) -> Result<Self, UnreadableEvent> {
        let unreadable = |why: &str| UnreadableEvent(why.to_owned());
        let word = event.get("occasion").and_then(Value::as_str);
        let occasion = word.and_then(|word| Occasion::ALL.into_iter().find(|one| one.word() == word));
        let attributes = match event.get("attributes") {
            None => Map::new(),
            Some(Value::Object(attributes)) => attributes.clone(),
            Some(_) => return Err(unreadable("the attributes of an event are no object")),
        };
        let missing = match event.get("missing") {
            None => Vec::new(),
            Some(names) => serde_json::from_value(names.clone())
                .map_err(|_| unreadable("what an event misses is no list of names"))?,
        };
        Ok(Self {
            occasion: occasion.ok_or_else(|| unreadable("an event has no occasion"))?,
            attributes,
            missing,
        })
    }
}
