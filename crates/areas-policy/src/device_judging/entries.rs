//! What a device tells, and whether it follows what it told before; pure.
//!
//! Keeps DJ-3.

use crate::history::{Fault, IncomingEvent};
use provost_areas_fleet::fleet::BypassId;
use provost_backtest::record::{self, Mode};
use provost_bundle::{CHAIN_START, entry_hash};
use provost_kernel::text::{LongName, Name};
use provost_kernel::{Timestamp, json, word};
use provost_policy::Action;
use serde::Deserialize;
use serde_json::{Map, Value};

/// LIMIT: levels of an entry: as of an event that is asked about.
const LEVELS: usize = 64;
/// LIMIT: how much one entry counts. Ours: nothing is called so often within a minute.
const MOST_COUNTED: i64 = 1_000_000;
/// LIMIT: characters of the id of a version, and of a reason.
const MAX_WORD: usize = 64;

/// How far a device has told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the entry that comes next.
    pub next: i64,
    /// The hash of the one before it.
    pub head: String,
}

impl Place {
    /// Returns that of a device that told nothing.
    pub fn first() -> Self {
        Self {
            next: 1,
            head: CHAIN_START.to_owned(),
        }
    }
}

/// Entries as they were sent.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The number of the first.
    pub from: i64,
    /// The hash of the one before it.
    pub previous: &'a str,
    /// Their texts; at least one.
    pub entries: &'a [String],
}

/// Whether entries follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follows {
    /// They do, behind so many that are known already.
    Behind(usize),
    /// Something between was never told.
    Gap,
    /// Something else was told in the same place, or long ago.
    Fork,
}

impl Told<'_> {
    /// Returns the hash of each entry.
    pub fn hashes(&self) -> Vec<String> {
        let mut hashes: Vec<String> = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            let previous = hashes.last().map_or(self.previous, String::as_str);
            let hash = entry_hash(previous, entry);
            hashes.push(hash);
        }
        hashes
    }

    /// Says whether they follow what was told until a place.
    ///
    /// ```text
    ///   known        … 15 16 | next 17, head = hash of 16
    ///   17 18        previous is the head              all of them
    ///   15 16 17 18  the hash of 16 is the head        the last two
    ///   15 16        the hash of 16 is the head        a repeat, none
    ///   18 19                                          a gap
    ///   else                                           a fork
    /// ```
    pub fn follow(&self, place: &Place, hashes: &[String]) -> Follows {
        if self.from > place.next {
            return Follows::Gap;
        }
        let known = usize::try_from(place.next - self.from).unwrap_or(usize::MAX);
        let before = match known.checked_sub(1) {
            None => Some(self.previous),
            Some(last) => hashes.get(last).map(String::as_str),
        };
        if before == Some(place.head.as_str()) {
            Follows::Behind(known)
        } else {
            Follows::Fork
        }
    }
}

word! {
    /// How a device came to what it did.
    pub enum Basis {
        /// It judged for certain.
        Judged = "judged",
        /// It asked and heard nothing: the strongest that could be held.
        Unanswered = "unanswered",
        /// As `unanswered`, by policies that were old.
        Expired = "expired",
        /// It had nothing to judge by.
        NoBundle = "no_bundle",
        /// Somebody had it let everything pass for a while.
        Bypass = "bypass",
        /// It could not judge.
        Failed = "failed",
    }
}

impl Basis {
    /// Returns on what a decision rests beside the policies that it names. What is judged for certain and refused without a policy is refused by a
    /// standing: nothing else does that.
    fn of_decision(self, decision: &record::Decision) -> Option<record::Basis> {
        let names_none = decision.policy_ids.is_empty();
        match self {
            Self::Judged => {
                (names_none && decision.action == Action::Block).then_some(record::Basis::Standing)
            }
            // That it passed the mode says; on what it rests are the policies.
            Self::Bypass => names_none.then_some(record::Basis::Bypass),
            Self::Unanswered => Some(record::Basis::Unanswered),
            Self::Expired => Some(record::Basis::Expired),
            Self::NoBundle => Some(record::Basis::NoBundle),
            Self::Failed => Some(record::Basis::Failed),
        }
    }
}

/// What an entry says.
#[derive(Debug)]
pub enum Entry {
    /// Something was judged.
    Event(Box<ToldEvent>),
    /// Something passed without a reason, so often.
    Count(Count),
    /// So many events are lost.
    Dropped(i64),
}

/// The text of an entry, and what it says, or why that cannot be read.
#[derive(Debug)]
pub struct EntryText {
    /// How long its text is. Units: bytes.
    pub bytes: usize,
    /// What it says.
    pub said: Result<Entry, Fault>,
}

impl EntryText {
    /// Returns what a text says.
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len(),
            said: Entry::read(text),
        }
    }
}

/// An event that a device judged.
#[derive(Debug)]
pub struct ToldEvent {
    /// The event, with what was decided; the version in it is the one that the device names.
    pub event: IncomingEvent,
    /// When it happened, by the device's clock.
    pub at: Timestamp,
    /// How the device came to its answer.
    pub basis: Basis,
    /// Whether the attributes are those that were judged.
    pub whole: bool,
    /// The bypass that let it pass, by the device's word.
    pub bypass: Option<BypassId>,
}

/// How often something passed within a minute.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Count {
    /// Who used it, in the device's words.
    pub user: Option<LongName>,
    /// The client.
    pub client: Name,
    /// The tool.
    pub tool: Option<LongName>,
    /// The minute.
    pub minute: Timestamp,
    /// How often.
    #[serde(rename = "count")]
    pub passed: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Dropped {
    events: i64,
    #[serde(rename = "why")]
    _why: Name,
}

impl Entry {
    /// Returns what a text says.
    ///
    /// Errors: where it is no entry, and why; it quotes nothing of it.
    pub fn read(text: &str) -> Result<Self, Fault> {
        let value = json::parse(text.as_bytes(), LEVELS);
        let value = value.map_err(|why| fault("", &why.message().replacen("the body ", "the entry ", 1)))?;
        let Value::Object(mut members) = value else {
            return Err(fault("", "must be an object"));
        };
        let kind = members.remove("kind");
        match kind.as_ref().and_then(Value::as_str) {
            Some("event") => ToldEvent::read(members).map(|event| Self::Event(Box::new(event))),
            Some("count") => {
                let count: Count = of_form(
                    members,
                    "a count has client, minute and count, and may have user and tool",
                )?;
                if !(1..=MOST_COUNTED).contains(&count.passed) {
                    return Err(fault("/count", "must be 1 to 1000000"));
                }
                Ok(Self::Count(count))
            }
            Some("dropped") => {
                let dropped: Dropped = of_form(members, "what was dropped has events and why")?;
                if !(1..=i64::from(u32::MAX)).contains(&dropped.events) {
                    return Err(fault("/events", "must be 1 to 4294967295"));
                }
                Ok(Self::Dropped(dropped.events))
            }
            _ => Err(fault("/kind", "must be one of event, count, dropped")),
        }
    }
}

impl ToldEvent {
    fn read(mut members: Map<String, Value>) -> Result<Self, Fault> {
        let basis = members.remove("basis");
        let basis = basis.as_ref().and_then(Value::as_str);
        let basis = basis.and_then(|word| Basis::ALL.into_iter().find(|basis| basis.as_str() == word));
        let basis = basis.ok_or_else(|| {
            let words = Basis::ALL.map(Basis::as_str).join(", ");
            fault("/basis", &format!("must be one of {words}"))
        })?;
        let whole = match members.remove("whole") {
            None => false,
            Some(Value::Bool(whole)) => whole,
            Some(_) => return Err(fault("/whole", "must be true or false")),
        };
        let bypass = match (basis, members.remove("bypass")) {
            (Basis::Bypass, Some(Value::String(id))) if (1..=MAX_WORD).contains(&id.chars().count()) => {
                Some(BypassId::from_text(&id))
            }
            (Basis::Bypass, _) => {
                return Err(fault("/bypass", "must be the id of the bypass that let it pass"));
            }
            (_, Some(_)) => return Err(fault("/bypass", "stands beside the basis bypass alone")),
            (_, None) => None,
        };
        let version = match members.get_mut("decision") {
            Some(Value::Object(decision)) => decision.remove("policySetVersion"),
            _ => return Err(fault("/decision", "must be an object with what was decided")),
        };
        let version = match version {
            None => None,
            Some(Value::String(id)) if (1..=MAX_WORD).contains(&id.chars().count()) => Some(id),
            Some(_) => {
                let message = "must be the id of a version, of 1 to 64 characters";
                return Err(fault("/decision/policySetVersion", message));
            }
        };
        let read = IncomingEvent::take(Value::Object(members));
        let mut event = read.map_err(|faults| faults.into_iter().next().unwrap_or_default())?;
        let at = event.at_ms.ok_or_else(|| fault("/at", "is missing"))?;
        let decision = event.decision.as_mut();
        let decision = decision.ok_or_else(|| fault("/decision", "is missing"))?;
        decision.policy_set_version = version;
        if bypass.is_some() {
            // Whatever it says of the mode: it passed.
            decision.mode = Mode::Bypass;
        }
        decision.basis = basis.of_decision(decision);
        // The history has no place for them.
        (event.folder, event.host) = (None, None);
        Ok(Self {
            event,
            at: Timestamp::from_ms(at),
            basis,
            whole,
            bypass,
        })
    }
}

fn of_form<T: for<'de> Deserialize<'de>>(members: Map<String, Value>, form: &str) -> Result<T, Fault> {
    serde_json::from_value(Value::Object(members)).map_err(|_| fault("", form))
}

fn fault(path: &str, message: &str) -> Fault {
    (path.to_owned(), message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns so many entries, and the hashes of a chain of them.
    fn chain(count: usize) -> (Vec<String>, Vec<String>) {
        let entries: Vec<String> = (0..count).map(|n| format!("entry {n}")).collect();
        let told = Told {
            from: 1,
            previous: CHAIN_START,
            entries: &entries,
        };
        let hashes = told.hashes();
        (entries, hashes)
    }

    /// Proves DJ-3.
    #[test]
    fn entries_follow_what_was_told_and_nothing_else() {
        const ALL: usize = 9;
        let (entries, hashes) = chain(ALL);
        let head = |number: usize| match number {
            0 => CHAIN_START.to_owned(),
            number => hashes[number - 1].clone(),
        };
        for known in 0..=ALL {
            let place = Place {
                next: i64::try_from(known).unwrap() + 1,
                head: head(known),
            };
            for first in 1..=ALL {
                for last in first..=ALL {
                    let before = head(first - 1);
                    let told = Told {
                        from: i64::try_from(first).unwrap(),
                        previous: &before,
                        entries: &entries[first - 1..last],
                    };
                    let expected = match known + 1 {
                        next if first > next => Follows::Gap,
                        // All that it tells is older than what is known.
                        next if last + 1 < next => Follows::Fork,
                        next => Follows::Behind(next - first),
                    };
                    let hashes = told.hashes();
                    assert_eq!(
                        told.follow(&place, &hashes),
                        expected,
                        "{known}: {first} to {last}"
                    );
                    // Another text somewhere before the place.
                    if first <= known && last >= known {
                        let mut other = told.entries.to_vec();
                        other[0].push('!');
                        let other = Told {
                            entries: &other,
                            ..told
                        };
                        assert_eq!(
                            other.follow(&place, &other.hashes()),
                            Follows::Fork,
                            "{known}: {first} to {last}"
                        );
                    }
                    let elsewhere = Told {
                        previous: &"f".repeat(64),
                        ..told
                    };
                    let follows = elsewhere.follow(&place, &elsewhere.hashes());
                    assert!(
                        matches!(follows, Follows::Gap | Follows::Fork),
                        "{known}: {first} to {last}"
                    );
                }
            }
        }
    }

    fn event(change: &Value) -> String {
        let mut event = json!({
            "kind": "event", "id": "e-1", "at": "2026-11-28T01:50:00.123Z", "occasion": "pre_tool",
            "attributes": {"tool.id": "Bash"}, "missing": ["device.id"],
            "decision": {"action": "block", "mode": "enforce", "policyIds": ["p"], "policySetVersion": "psv_1"},
            "basis": "judged", "whole": true,
        });
        for (name, value) in change.as_object().unwrap() {
            event[name] = value.clone();
            if value.is_null() {
                event.as_object_mut().unwrap().remove(name);
            }
        }
        event.to_string()
    }

    #[test]
    fn an_event_is_read_with_what_the_device_says_of_it() {
        let Ok(Entry::Event(told)) = Entry::read(&event(&json!({"folder": "/srv", "host": "h"}))) else {
            panic!("no event");
        };
        let decision = told.event.decision.unwrap();
        assert_eq!((told.basis, told.whole), (Basis::Judged, true));
        assert_eq!(decision.action, Action::Block);
        assert_eq!(decision.policy_set_version.as_deref(), Some("psv_1"));
        assert_eq!(told.at, Timestamp::parse("2026-11-28T01:50:00.123Z").unwrap());
        let Ok(Entry::Event(told)) = Entry::read(&event(&json!({"whole": null}))) else {
            panic!("no event");
        };
        assert!(!told.whole);
    }

    /// Proves VI-7.
    #[test]
    fn an_entry_says_on_what_its_decision_rests_beside_policies() {
        let bypass = "byp_01kaf9q2m4x7t8v3c5d6e0g1h2";
        let by = |basis: &str, action: &str, policies: &[&str]| {
            let mut change =
                json!({ "basis": basis, "decision": { "action": action, "policyIds": policies } });
            if basis == "bypass" {
                change["bypass"] = bypass.into();
            }
            let Ok(Entry::Event(told)) = Entry::read(&event(&change)) else {
                panic!("no event");
            };
            told.event.decision.unwrap().basis.map(record::Basis::word)
        };
        // Only what is certain, refused, and of no policy is of a standing.
        assert_eq!(by("judged", "block", &[]), Some("standing"));
        assert_eq!(by("judged", "block", &["p"]), None);
        assert_eq!(by("judged", "allow", &[]), None);
        assert_eq!(by("judged", "require_approval", &[]), None);
        assert_eq!(by("bypass", "block", &[]), Some("bypass"));
        assert_eq!(by("bypass", "block", &["p"]), None);
        for basis in ["unanswered", "expired", "no_bundle", "failed"] {
            assert_eq!(by(basis, "block", &[]), Some(basis));
            assert_eq!(by(basis, "block", &["p"]), Some(basis));
        }
    }

    #[test]
    fn what_passed_by_a_bypass_names_it_and_was_not_enforced_whatever_else_it_says() {
        let id = "byp_01kaf9q2m4x7t8v3c5d6e0g1h2";
        let text = event(&json!({"basis": "bypass", "bypass": id}));
        let Ok(Entry::Event(told)) = Entry::read(&text) else {
            panic!("no event");
        };
        assert_eq!(told.bypass.as_ref().map(BypassId::as_str), Some(id));
        let decision = told.event.decision.unwrap();
        assert_eq!((decision.action, decision.mode), (Action::Block, Mode::Bypass));
    }

    #[test]
    fn what_is_no_entry_says_where_and_quotes_nothing() {
        for (text, path) in [
            ("", ""),
            ("[]", ""),
            ("{\"kind\":\"event\",\"kind\":\"event\"}", ""),
            ("{}", "/kind"),
            ("{\"kind\":\"secret-word\"}", "/kind"),
            (&event(&json!({"basis": "secret-word"})), "/basis"),
            // Nothing passes by an approval on a device: the server alone uses one.
            (&event(&json!({"basis": "approved"})), "/basis"),
            (
                &event(&json!({"decision": {"action": "allow", "basis": "approved"}})),
                "/decision/basis",
            ),
            (&event(&json!({"basis": null})), "/basis"),
            (&event(&json!({"basis": "bypass"})), "/bypass"),
            (&event(&json!({"basis": "bypass", "bypass": 7})), "/bypass"),
            (&event(&json!({"bypass": "secret-word"})), "/bypass"),
            (
                &event(&json!({"decision": {"action": "block", "mode": "bypass"}})),
                "/decision/mode",
            ),
            (&event(&json!({"whole": "secret-word"})), "/whole"),
            (&event(&json!({"decision": null})), "/decision"),
            (
                &event(&json!({"decision": {"action": "secret-word"}})),
                "/decision/action",
            ),
            (
                &event(&json!({"decision": {"action": "block", "policySetVersion": 7}})),
                "/decision/policySetVersion",
            ),
            (&event(&json!({"at": null})), "/at"),
            (&event(&json!({"occasion": "secret-word"})), "/occasion"),
            (&event(&json!({"secret": "secret-word"})), "/secret"),
            (
                r#"{"kind":"count","client":"c","minute":"2026-11-28T01:50:00.000Z","count":0}"#,
                "/count",
            ),
            (
                r#"{"kind":"count","client":"c","minute":"2026-11-28T01:50:00.000Z","count":1,"secret-word":1}"#,
                "",
            ),
            (r#"{"kind":"dropped","events":-1,"why":"queue_full"}"#, "/events"),
            (r#"{"kind":"dropped","events":1}"#, ""),
        ] {
            let (at, message) = Entry::read(text)
                .err()
                .unwrap_or_else(|| panic!("{text} is an entry"));
            assert_eq!(at, path, "{text}: {message}");
            assert!(!message.contains("secret-word"), "{message}");
        }
    }
}
