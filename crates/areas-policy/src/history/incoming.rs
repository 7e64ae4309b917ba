//! One event as it comes over the wire: of a decision, of an import, of a receiver.

use super::model::{EventId, NewEvent, Provenance};
use provost_areas_identity::words::Kind;
use provost_backtest::record::{Decision, Mode, OwnedRecord};
use provost_kernel::Timestamp;
use provost_policy::{
    Action, Field, Occasion, Register, SentAttributes, Violations, check_sent, sent_words, without_missing,
};
use serde_json::{Map, Value};

/// LIMIT: characters of a session, a call id, a machine and an external id; policies that decided.
const MAX_TEXT: usize = 256;
/// LIMIT: characters of a folder; no system has a longer path.
const MAX_FOLDER: usize = 4_096;
const MAX_EXTERNAL_ID: usize = 128;
const MAX_POLICIES: usize = 1_000;
/// LIMIT: bytes of a recorded event, those of the numbers and of what is absent included: a chunk takes 256 KiB.
const MAX_EVENT_BYTES: usize = 250 * 1024;

/// What is wrong with an event: a JSON Pointer into it, and a sentence.
pub type Fault = (String, String);

/// One event, parsed and not judged yet.
#[derive(Clone, Debug)]
pub struct IncomingEvent {
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
    /// The folder in which the call runs, in the caller's words. An approval binds it; the history has no place for it.
    pub folder: Option<String>,
    /// The machine on which the call runs, as [`Self::folder`].
    pub host: Option<String>,
    /// What was decided elsewhere.
    pub decision: Option<Decision>,
}

impl IncomingEvent {
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
            folder: None,
            host: None,
            decision: None,
        }
    }

    /// Returns the key of the MCP server that it names; `None` where nobody says it.
    pub fn mcp_package(&self) -> Option<&str> {
        let name = Field::MCP_PACKAGE.name();
        let is_missing = self.missing.iter().any(|missing| missing == name);
        let key = self.attributes.get(name).and_then(Value::as_str);
        key.filter(|_| !is_missing)
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
        let groups = [Field::GROUPS.name()];
        if let Err(found) = check_sent(event.occasion, &event.attributes, &groups) {
            faults.extend(self::faults(&found));
        }
        if faults.is_empty() { Ok(event) } else { Err(faults) }
    }

    fn set(&mut self, name: &str, member: Value) -> Result<(), Vec<Fault>> {
        match (name, member) {
            ("id", member) => self.external_id = Some(text("/id", member, MAX_EXTERNAL_ID)?),
            ("session", member) => self.session = Some(text("/session", member, MAX_TEXT)?),
            ("callId", member) => self.call_id = Some(text("/callId", member, MAX_TEXT)?),
            ("folder", member) => self.folder = Some(text("/folder", member, MAX_FOLDER)?),
            ("host", member) => self.host = Some(text("/host", member, MAX_TEXT)?),
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

    /// Returns the words by which the event names records of a kind: several of groups, one at most of the others.
    pub fn words(&self, kind: Kind) -> impl Iterator<Item = &str> {
        sent_words(&self.attributes, &self.missing, kind.field())
    }

    /// Puts in place what a register says of whom and what the event names.
    pub(super) fn name(&mut self, register: &Register) {
        let mut sent = SentAttributes {
            given: &mut self.attributes,
            missing: &mut self.missing,
        };
        sent.name(register);
    }

    /// Returns the event in the form in which it is kept, as of this instant. Units: milliseconds since the Unix epoch.
    ///
    /// An attribute that is both given and missing is missing: what cannot be relied on is not.
    ///
    /// Errors: attributes that are not of the catalogue or have another type; an event that is too large.
    pub fn record(&self, at_ms: i64, from: &Provenance) -> Result<OwnedRecord, Vec<Fault>> {
        let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        let attributes = without_missing(self.occasion, &self.attributes, &missing);
        let attributes = attributes.map_err(|found| faults(&found))?;
        let record = OwnedRecord::read(at_ms, self.occasion, &attributes, &missing);
        let mut record = record.map_err(|found| faults(&found))?;
        record.source = Some(from.source.clone());
        record.principal = Some(from.principal.clone());
        record.imported = Some(from.is_imported);
        record.session.clone_from(&self.session);
        record.call_id.clone_from(&self.call_id);
        record.external_id.clone_from(&self.external_id);
        record.decision.clone_from(&self.decision);
        if super::recorder::size_bytes(&record) > MAX_EVENT_BYTES {
            return Err(vec![fault("/attributes", "an event has at most 250 KiB")]);
        }
        Ok(record)
    }

    /// Returns the event under this id, ready to be recorded. Errors: as [`Self::record`].
    pub fn event(&self, id: &EventId, at_ms: i64, from: &Provenance) -> Result<NewEvent, Vec<Fault>> {
        Ok(NewEvent {
            id: id.as_str().to_owned(),
            record: self.record(at_ms, from)?,
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
        // By a bypass nothing passes but what a device tells of one.
        Some(word) => word
            .as_str()
            .and_then(Mode::named)
            .filter(|mode| *mode != Mode::Bypass),
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
                basis: None,
            })
        }
        _ => Err(faults),
    }
}
