//! One event as it comes over the wire: of a decision, of an import, of a receiver.

use super::model::{EventId, NewEvent};
use provost_kernel::Timestamp;
use provost_kernel::entropy::UnitRng;
use provost_policy::{Action, Field, Occasion, Violations};
use provost_replay::record::{Decision, Mode, Owned};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// LIMIT: characters of a session, a call id and an external id; policies that decided.
const MAX_TEXT: usize = 256;
const MAX_EXTERNAL_ID: usize = 128;
const MAX_POLICIES: usize = 1_000;
/// LIMIT: bytes of a recorded event, those of the numbers and of what is absent included: a chunk takes 256 KiB.
const MAX_EVENT_BYTES: usize = 250 * 1024;

/// What is wrong with an event: a JSON Pointer into it, and a sentence.
pub type Fault = (String, String);

/// One event, parsed and not judged yet.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The source's own id.
    pub external_id: Option<String>,
    /// When it happened, if the caller says. Units: milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// Where it was judged or is to be judged.
    pub occasion: Occasion,
    /// The attributes by their flat names; [`Self::record`] checks them.
    pub attributes: Map<String, Value>,
    /// The names of attributes that exist and whose values nobody can say.
    pub missing: Vec<String>,
    /// The session, in the caller's words.
    pub session: Option<String>,
    /// The call, in the caller's words.
    pub call_id: Option<String>,
    /// What was decided elsewhere.
    pub decision: Option<Decision>,
}

impl Incoming {
    /// Returns an event without attributes.
    pub fn new(occasion: Occasion) -> Self {
        Self {
            external_id: None,
            at_ms: None,
            occasion,
            attributes: Map::new(),
            missing: Vec::new(),
            session: None,
            call_id: None,
            decision: None,
        }
    }

    /// Parses the wire form. Which of `id`, `at` and `decision` may be there, the caller says.
    ///
    /// Errors: every member that breaks the schema.
    pub fn parse(value: &Value) -> Result<Self, Vec<Fault>> {
        Self::take(value.clone())
    }

    /// As [`Self::parse`], of a value that is needed no more.
    pub fn take(value: Value) -> Result<Self, Vec<Fault>> {
        let Value::Object(mut members) = value else {
            return Err(vec![fault("", "must be an object")]);
        };
        let mut faults = Vec::new();
        let occasion = match members.remove("occasion") {
            Some(Value::String(word)) => Occasion::ALL.into_iter().find(|one| one.word() == word),
            _ => None,
        };
        let mut event = Self::new(occasion.unwrap_or(Occasion::ALL[0]));
        if occasion.is_none() {
            let words = Occasion::ALL.map(Occasion::word).join(", ");
            faults.push(fault("/occasion", &format!("must be one of {words}")));
        }
        for (name, member) in members {
            if let Err(found) = event.set(&name, member) {
                faults.extend(found);
            }
        }
        // The directory's word replaces what is claimed of groups; what is no list of groups is refused all the same.
        if let Err(found) = event.check(&[Field::GROUPS.name()]) {
            faults.extend(found);
        }
        if faults.is_empty() { Ok(event) } else { Err(faults) }
    }

    /// Reads attributes that are not kept. Errors: as [`Self::record`].
    fn check(&self, names: &[&str]) -> Result<(), Vec<Fault>> {
        let given = names
            .iter()
            .filter_map(|name| self.attributes.get_key_value(*name));
        let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        if given.is_empty() {
            return Ok(());
        }
        Owned::read(0, self.occasion, &given, &[])
            .map_err(|found| faults(&found))
            .map(drop)
    }

    fn set(&mut self, name: &str, member: Value) -> Result<(), Vec<Fault>> {
        match (name, member) {
            ("id", member) => self.external_id = Some(text("/id", member, MAX_EXTERNAL_ID)?),
            ("session", member) => self.session = Some(text("/session", member, MAX_TEXT)?),
            ("callId", member) => self.call_id = Some(text("/callId", member, MAX_TEXT)?),
            ("at", member) => {
                let at = member.as_str().and_then(Timestamp::parse);
                let at = at.ok_or_else(|| {
                    vec![fault(
                        "/at",
                        "must be a date-time such as 2026-11-20T03:15:00.000Z",
                    )]
                })?;
                self.at_ms = Some(at.as_ms());
            }
            ("attributes", Value::Object(attributes)) => self.attributes = attributes,
            ("attributes", _) => return Err(vec![fault("/attributes", "must be an object")]),
            ("missing", member) => {
                let Value::Array(names) = member else {
                    return Err(vec![fault("/missing", "must be an array of attributes' names")]);
                };
                let mut faults = Vec::new();
                for (place, name) in names.into_iter().enumerate() {
                    match name {
                        Value::String(name) => self.missing.push(name),
                        _ => faults.push(fault(&format!("/missing/{place}"), "must be a text")),
                    }
                }
                if !faults.is_empty() {
                    return Err(faults);
                }
            }
            ("decision", member) => self.decision = Some(decision(member)?),
            (name, _) => {
                let name = name.replace('~', "~0").replace('/', "~1");
                return Err(vec![fault(&format!("/{name}"), "is not a member of an event")]);
            }
        }
        Ok(())
    }

    /// Returns whom the event names as its user.
    pub(super) fn user(&self) -> Option<&str> {
        self.attributes.get(Field::USER.name())?.as_str()
    }

    pub(super) fn set_user(&mut self, id: &str, groups: &[String]) {
        self.attributes.insert(Field::USER.name().to_owned(), id.into());
        self.attributes
            .insert(Field::GROUPS.name().to_owned(), groups.into());
        self.missing.retain(|name| name != Field::GROUPS.name());
    }

    /// Takes away groups that are nobody's; those of somebody unknown stay.
    pub(super) fn have_no_user(&mut self) {
        if self.missing.iter().any(|name| name == Field::USER.name()) {
            self.miss_groups();
            return;
        }
        self.attributes.remove(Field::GROUPS.name());
        self.missing.retain(|name| name != Field::GROUPS.name());
    }

    pub(super) fn miss_groups(&mut self) {
        let name = Field::GROUPS.name();
        let is_said = self.attributes.get(name).is_some_and(|groups| !groups.is_null());
        if !is_said && !self.missing.iter().any(|missing| missing == name) {
            self.missing.push(name.to_owned());
        }
    }

    /// Returns the event in the form in which it is kept, as of this instant. Units: milliseconds since the Unix epoch.
    ///
    /// An attribute that is both given and missing is missing: what cannot be relied on is not.
    ///
    /// Errors: attributes that are not of the catalogue or have another type; an event that is too large.
    pub fn record(&self, at_ms: i64, source: &str) -> Result<Owned, Vec<Fault>> {
        let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        let mut attributes = Cow::Borrowed(&self.attributes);
        if missing.iter().any(|name| attributes.contains_key(*name)) {
            self.check(&missing)?;
            attributes
                .to_mut()
                .retain(|name, _| !missing.contains(&name.as_str()));
        }
        let record = Owned::read(at_ms, self.occasion, &attributes, &missing);
        let mut record = record.map_err(|found| faults(&found))?;
        record.source = Some(source.to_owned());
        record.session.clone_from(&self.session);
        record.call_id.clone_from(&self.call_id);
        record.external_id.clone_from(&self.external_id);
        record.decision.clone_from(&self.decision);
        if super::recorder::size_bytes(&record) > MAX_EVENT_BYTES {
            return Err(vec![fault("/attributes", "an event has at most 250 KiB")]);
        }
        Ok(record)
    }

    /// Returns the event with a new id, ready to be recorded. Errors: as [`Self::record`].
    pub fn event(&self, at_ms: i64, source: &str, rng: &mut UnitRng) -> Result<NewEvent, Vec<Fault>> {
        Ok(NewEvent {
            id: EventId::at(at_ms, rng).as_str().to_owned(),
            record: self.record(at_ms, source)?,
        })
    }
}

fn faults(violations: &Violations) -> Vec<Fault> {
    let pointer = |path: &str| match path {
        path if path.starts_with("/missing/") => path.to_owned(),
        path => format!("/attributes{path}"),
    };
    let kept = violations.kept().iter();
    kept.map(|one| (pointer(&one.path), one.message.clone()))
        .collect()
}

fn fault(path: &str, message: &str) -> Fault {
    (path.to_owned(), message.to_owned())
}

fn text(path: &str, member: Value, max: usize) -> Result<String, Vec<Fault>> {
    match member {
        Value::String(text) if !text.is_empty() && text.chars().count() <= max => Ok(text),
        _ => Err(vec![fault(
            path,
            &format!("must be a text of 1 to {max} characters"),
        )]),
    }
}

fn decision(member: Value) -> Result<Decision, Vec<Fault>> {
    let Value::Object(mut members) = member else {
        return Err(vec![fault("/decision", "must be an object")]);
    };
    let mut faults = Vec::new();
    let action = members.remove("action");
    let action = action.as_ref().and_then(Value::as_str).and_then(Action::named);
    if action.is_none() {
        let words = Action::ALL.map(Action::word).join(", ");
        faults.push(fault("/decision/action", &format!("must be one of {words}")));
    }
    let mode = match members.remove("mode") {
        None => Some(Mode::Enforce),
        Some(word) => word.as_str().and_then(Mode::named),
    };
    if mode.is_none() {
        faults.push(fault("/decision/mode", "must be enforce or monitor"));
    }
    let ids = match members.remove("policyIds") {
        None => Some(Vec::new()),
        Some(Value::Array(ids)) if ids.len() <= MAX_POLICIES => ids
            .into_iter()
            .map(|id| match id {
                Value::String(id) if !id.is_empty() && id.chars().count() <= MAX_TEXT => Some(id),
                _ => None,
            })
            .collect(),
        Some(_) => None,
    };
    if ids.is_none() {
        let message = "must be an array of at most 1000 ids of 1 to 256 characters";
        faults.push(fault("/decision/policyIds", message));
    }
    for name in members.keys() {
        let name = name.replace('~', "~0").replace('/', "~1");
        faults.push(fault(
            &format!("/decision/{name}"),
            "is not a member of a decision",
        ));
    }
    match (action, mode, ids) {
        (Some(action), Some(mode), Some(mut policy_ids)) if faults.is_empty() => {
            policy_ids.sort_unstable();
            policy_ids.dedup();
            Ok(Decision {
                action,
                policy_ids,
                policy_set_version: None,
                mode,
            })
        }
        _ => Err(faults),
    }
}
