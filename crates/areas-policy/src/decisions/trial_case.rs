//! The cases of a test: an event, what happened before it, and what its author expects.

use super::decide::{event_schema, of_imports, refuse};
use crate::history::{Fault, IncomingEvent};
use provost_kernel::Result;
use provost_kernel::json::ExactNumbers;
use provost_policy::{Action, language};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// LIMIT: cases of one request. Ours: a file that a person keeps.
pub const CASES: usize = 100;
/// LIMIT: earlier events of one case. Ours.
pub const EARLIER: usize = 50;
/// LIMIT: events of one request, earlier ones included; as many as a decision takes (D9.11).
const EVENTS: usize = 1_000;
/// LIMIT: characters of a case's name.
const NAME: usize = 256;

/// Cases as they were sent.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ExactNumbers<Vec<Value>>")]
pub struct Cases(Vec<Value>);

impl TryFrom<ExactNumbers<Vec<Value>>> for Cases {
    type Error = &'static str;
    fn try_from(ExactNumbers(cases): ExactNumbers<Vec<Value>>) -> std::result::Result<Self, Self::Error> {
        if cases.len() <= CASES {
            return Ok(Self(cases));
        }
        Err("must hold at most 100 cases")
    }
}

/// A time of at most 30 days, in each of its units.
const AGO: &str = "^(\
    ([1-9]|[12][0-9]|30)d|\
    ([1-9][0-9]?|[1-6][0-9]{2}|7[01][0-9]|720)h|\
    ([1-9][0-9]{0,3}|[1-3][0-9]{4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)m|\
    ([1-9][0-9]{0,5}|1[0-9]{6}|2[0-4][0-9]{5}|25[0-8][0-9]{4}|259[01][0-9]{3}|2592000)s)$";

impl schemars::JsonSchema for Cases {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Cases".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let earlier = json!({
            "type": "object",
            "properties": {
                "ago": { "type": "string", "pattern": AGO,
                    "description": "How long before the event of the case it happened: 90s, 15m, 2h, at most 30d." },
                "event": event_schema(),
            },
            "required": ["ago", "event"],
            "additionalProperties": false,
        });
        let expect = json!({
            "type": "object",
            "properties": {
                "action": { "enum": Action::ALL.map(Action::word) },
                "matched": { "type": "boolean", "description": "Whether some policy has a part in it." },
                "unknown": { "type": "boolean", "description": "Whether some policy could not be evaluated." },
            },
            "additionalProperties": false,
        });
        let case = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 1, "maxLength": NAME },
                "event": event_schema(),
                "earlier": { "type": "array", "items": earlier, "maxItems": EARLIER,
                    "description": "What conditions on the past see; nothing that was recorded is." },
                "expect": expect,
            },
            "required": ["event"],
            "additionalProperties": false,
        });
        schemars::json_schema!({ "type": "array", "items": case, "maxItems": CASES })
    }
}

/// What an author expects; what is not said may be anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expectation {
    /// The action.
    pub action: Option<Action>,
    /// Whether some policy has a part in it.
    pub matched: Option<bool>,
    /// Whether some policy could not be evaluated.
    pub unknown: Option<bool>,
}

/// A case that was read.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, for people.
    pub name: Option<String>,
    /// What is expected; nothing where nothing was said.
    pub expect: Option<Expectation>,
    /// Its events, the oldest first and the judged one last, each with the time between. Units: milliseconds.
    pub events: Vec<(i64, IncomingEvent)>,
}

impl Cases {
    /// Returns the cases.
    ///
    /// Errors: `InvalidRequest` with a pointer to each breach.
    pub fn read(&self) -> Result<Vec<Case>> {
        let (mut cases, mut faults) = (Vec::new(), Vec::new());
        for (at, sent) in self.0.iter().enumerate() {
            let place = format!("/cases/{at}");
            match case(sent) {
                Ok(case) => cases.push(case),
                Err(found) => faults.extend(
                    found
                        .into_iter()
                        .map(|(path, message)| (format!("{place}{path}"), message)),
                ),
            }
        }
        let events: usize = cases.iter().map(|case| case.events.len()).sum();
        if events > EVENTS {
            let message = format!("hold {events} events with those before them; a test takes {EVENTS}");
            faults.push(("/cases".to_owned(), message));
        }
        refuse(faults)?;
        Ok(cases)
    }
}

fn case(sent: &Value) -> std::result::Result<Case, Vec<Fault>> {
    let members = object(sent, "", &["name", "event", "earlier", "expect"])?;
    let mut faults = Vec::new();
    let name = match members.get("name") {
        None => None,
        Some(Value::String(name)) if (1..=NAME).contains(&name.chars().count()) => Some(name.clone()),
        Some(_) => {
            faults.push(fault("/name", "must be a text of 1 to 256 characters"));
            None
        }
    };
    let mut events = Vec::new();
    match members.get("earlier") {
        None => {}
        Some(Value::Array(earlier)) if earlier.len() <= EARLIER => {
            for (at, before) in earlier.iter().enumerate() {
                let place = format!("/earlier/{at}");
                match one_before(before) {
                    Ok(before) => events.push(before),
                    Err(found) => faults.extend(below(&place, found)),
                }
            }
        }
        Some(_) => faults.push(fault("/earlier", "must be an array of at most 50 events")),
    }
    // The oldest first; of one instant, as they were sent.
    events.sort_by_key(|(ago_ms, _)| std::cmp::Reverse(*ago_ms));
    match members.get("event") {
        None => faults.push(fault("/event", "is required")),
        Some(event) => match incoming(event) {
            Ok(event) => events.push((0, event)),
            Err(found) => faults.extend(below("/event", found)),
        },
    }
    let expect = match members.get("expect").map(expected).transpose() {
        Ok(expect) => expect,
        Err(found) => {
            faults.extend(below("/expect", found));
            None
        }
    };
    if faults.is_empty() {
        return Ok(Case { name, expect, events });
    }
    Err(faults)
}

fn one_before(sent: &Value) -> std::result::Result<(i64, IncomingEvent), Vec<Fault>> {
    let members = object(sent, "", &["ago", "event"])?;
    let ago = members
        .get("ago")
        .and_then(Value::as_str)
        .and_then(language::within_ms);
    let ago = ago.ok_or_else(|| {
        vec![fault(
            "/ago",
            "must be a time like 90s, 15m, 2h or 7d, at most 30d",
        )]
    })?;
    let event = members
        .get("event")
        .ok_or_else(|| vec![fault("/event", "is required")])?;
    let event = incoming(event).map_err(|found| below("/event", found).collect::<Vec<_>>())?;
    Ok((ago, event))
}

fn incoming(sent: &Value) -> std::result::Result<IncomingEvent, Vec<Fault>> {
    let event = IncomingEvent::parse(sent)?;
    let refused = of_imports(&event);
    if refused.is_empty() {
        Ok(event)
    } else {
        Err(refused)
    }
}

fn expected(sent: &Value) -> std::result::Result<Expectation, Vec<Fault>> {
    let members = object(sent, "", &["action", "matched", "unknown"])?;
    let mut faults = Vec::new();
    let mut boolean = |name: &str| match members.get(name) {
        None => None,
        Some(Value::Bool(is)) => Some(*is),
        Some(_) => {
            faults.push(fault(&format!("/{name}"), "must be true or false"));
            None
        }
    };
    let (matched, unknown) = (boolean("matched"), boolean("unknown"));
    let action = match members.get("action") {
        None => None,
        Some(word) => {
            let action = word.as_str().and_then(Action::named);
            if action.is_none() {
                let words = Action::ALL.map(Action::word).join(", ");
                faults.push(fault("/action", &format!("must be one of {words}")));
            }
            action
        }
    };
    if faults.is_empty() {
        return Ok(Expectation {
            action,
            matched,
            unknown,
        });
    }
    Err(faults)
}

/// Returns the members of an object that has no others than these.
fn object<'a>(
    sent: &'a Value,
    place: &str,
    names: &[&str],
) -> std::result::Result<&'a Map<String, Value>, Vec<Fault>> {
    let Value::Object(members) = sent else {
        return Err(vec![fault(place, "must be an object")]);
    };
    let others = members.keys().filter(|name| !names.contains(&name.as_str()));
    let faults: Vec<Fault> = others
        .map(|name| {
            let name = name.replace('~', "~0").replace('/', "~1");
            fault(&format!("{place}/{name}"), "is not a member of this object")
        })
        .collect();
    if faults.is_empty() {
        Ok(members)
    } else {
        Err(faults)
    }
}

fn below(place: &str, faults: Vec<Fault>) -> impl Iterator<Item = Fault> {
    let place = place.to_owned();
    faults
        .into_iter()
        .map(move |(path, message)| (format!("{place}{path}"), message))
}

fn fault(path: &str, message: &str) -> Fault {
    (path.to_owned(), message.to_owned())
}
