//! What real clients do with each member of their settings, as data: `cargo xtask probe-clients` asks the programs themselves and
//! writes one file for each version. The newest one judges a release, or the one that the profile pins.
//!
//! A value that a client refuses or complains of is a fault. A value that it starts with is no fault by that alone: a client
//! may start without a word and guard nothing, so the schemas beside this file hold as well.

use super::findings::Findings;
use super::suggestion::nearest;
use crate::managed_config::content::{Class, Content, Fault, step};
use crate::managed_config::views::Warning;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

mod events;

/// The files, in any order.
const FILES: [&str; 2] = [
    include_str!("probed/claude_code_2.1.329.json"),
    include_str!("probed/codex_0.169.0.json"),
];

/// The word of a probe that no client knows.
const UNKNOWN: &str = "zzz-unknown";

/// LIMIT: words in one sentence.
const MAX_WORDS: usize = 12;

/// What a client did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It started and said nothing.
    Starts,
    /// It takes anything there, or reads nothing there.
    Ignores,
    /// It started, and said that the value has no effect.
    Complains,
    /// It did not start.
    Refuses,
}

impl Verdict {
    fn is_fault(self) -> bool {
        self >= Self::Complains
    }
}

/// What was tried, by what came of it.
type Tried = BTreeMap<Verdict, Vec<String>>;

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    client: String,
    version: String,
    #[serde(rename = "date")]
    _date: String,
    #[serde(rename = "source")]
    _source: String,
    enforced: WrittenClass,
    defaults: Option<WrittenClass>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    members: BTreeMap<String, Tried>,
    words: BTreeMap<String, Tried>,
    forms: BTreeMap<String, Tried>,
    names: BTreeMap<String, Tried>,
    /// Members whose right value could not be shown to be one: nothing is concluded about their types.
    unproven: Vec<String>,
}

/// One version of a client.
pub struct Probed {
    client: String,
    /// Its version.
    pub version: String,
    enforced: Member,
    /// Absent where both files have one form.
    defaults: Option<Member>,
}

/// A place in the settings and what is known of it.
#[derive(Clone, Default)]
struct Member {
    /// Members by their names.
    named: BTreeMap<String, Member>,
    /// What any other name stands for.
    any: Option<Box<Member>>,
    /// An item of a list.
    item: Option<Box<Member>>,
    types: BTreeMap<String, Verdict>,
    words: BTreeMap<String, Verdict>,
    forms: BTreeMap<String, Verdict>,
    names: BTreeMap<String, Verdict>,
}

static PROBED: LazyLock<Vec<Probed>> = LazyLock::new(|| FILES.iter().map(|text| read(text)).collect());

#[expect(
    clippy::expect_used,
    reason = "the files are constants, and a test reads each"
)]
fn read(text: &str) -> Probed {
    let written: Written = serde_json::from_str(text).expect("a file of verdicts");
    let mut enforced = Member::read(&written.enforced);
    let mut defaults = written.defaults.as_ref().map(Member::read);
    events::share(&written.client, &mut enforced, defaults.as_mut());
    Probed {
        client: written.client,
        version: written.version,
        enforced,
        defaults,
    }
}

/// Returns the versions of a client that were probed, the newest first.
pub fn versions(client: &str) -> Vec<&'static str> {
    let mut all: Vec<&Probed> = PROBED.iter().filter(|probed| probed.client == client).collect();
    let parts = |probed: &Probed| -> Vec<u64> {
        let parts = probed.version.split('.');
        parts.map(|part| part.parse().unwrap_or(0)).collect()
    };
    all.sort_by_key(|probed| std::cmp::Reverse(parts(probed)));
    all.into_iter().map(|probed| probed.version.as_str()).collect()
}

/// Returns a version of a client, the newest when none is named; `None` for a client that nobody probed, and for a version that is
/// no longer part of the program, which falls back on nothing weaker: the caller refuses to pin what is not here.
pub fn of(client: &str, version: Option<&str>) -> Option<&'static Probed> {
    let newest = *versions(client).first()?;
    let named = |wanted: &str| {
        let mut all = PROBED.iter();
        all.find(|probed| probed.client == client && probed.version == wanted)
    };
    version.and_then(named).or_else(|| named(newest))
}

impl Member {
    fn read(written: &WrittenClass) -> Self {
        let mut top = Self::default();
        for (path, tried) in &written.members {
            let place = top.at(path);
            place.types = flat(tried);
        }
        for path in &written.unproven {
            top.at(path).types.clear();
        }
        for (path, tried) in &written.words {
            top.at(path).words = flat(tried);
        }
        for (path, tried) in &written.forms {
            top.at(path).forms = flat(tried);
        }
        for (path, tried) in &written.names {
            top.at(path).names = flat(tried);
        }
        top
    }

    /// Returns the member at a path of the data, made where it is not there.
    fn at(&mut self, path: &str) -> &mut Self {
        let steps = path.split('/').filter(|step| !step.is_empty());
        steps.fold(self, |member, step| match step {
            "*" => member.any.get_or_insert_default(),
            "-" => member.item.get_or_insert_default(),
            name => {
                let name = name.replace("~1", "/").replace("~0", "~");
                member.named.entry(name).or_default()
            }
        })
    }

    /// Says whether the client knows the names of all members here.
    fn is_closed(&self) -> bool {
        self.names.len() > 1 || (self.any.is_none() && !self.named.is_empty())
    }

    fn knows(&self, name: &str) -> bool {
        self.named.contains_key(name) || (name != UNKNOWN && self.names.contains_key(name))
    }

    fn below(&self, name: &str) -> Option<&Self> {
        self.named.get(name).or(self.any.as_deref())
    }

    fn known_names(&self) -> impl Iterator<Item = &str> {
        let names = self.names.keys().filter(|name| *name != UNKNOWN);
        self.named.keys().chain(names).map(String::as_str)
    }

    /// Returns the paths at which a name is known, in any depth.
    fn places_of(&self, name: &str, path: &str, found: &mut Vec<String>) {
        for (own, member) in &self.named {
            let path = step(path, own);
            if own == name {
                found.push(path.clone());
            }
            member.places_of(name, &path, found);
        }
    }
}

fn flat(tried: &Tried) -> BTreeMap<String, Verdict> {
    let all = tried
        .iter()
        .flat_map(|(verdict, all)| all.iter().map(|one| (one.clone(), *verdict)));
    all.collect()
}

impl Probed {
    /// Returns what the client makes of a content.
    pub fn judge(&self, content: &Content) -> Findings {
        let mut findings = Findings::default();
        for class in [Class::Enforced, Class::Defaults] {
            let path = format!("/{}", class.as_str());
            self.walk(class, self.of(class), &content.of(class), &path, &mut findings);
        }
        findings
    }

    fn of(&self, class: Class) -> &Member {
        match (class, &self.defaults) {
            (Class::Defaults, Some(defaults)) => defaults,
            _ => &self.enforced,
        }
    }

    /// Says whether the client complained of every example of a form that was tried, and whether there was one: `Write(src/**)`
    /// among the rules of a list.
    pub fn complains_of(&self, list: &[&str], fits: impl Fn(&str) -> bool) -> bool {
        let member = list
            .iter()
            .try_fold(&self.enforced, |member, name| member.named.get(*name));
        let item = member.and_then(|member| member.item.as_deref());
        let forms = item.into_iter().flat_map(|item| &item.forms);
        let mut tried = forms.filter(|(form, _)| fits(form)).peekable();
        tried.peek().is_some() && tried.all(|(_, verdict)| verdict.is_fault())
    }

    /// Returns the client's name and version for a sentence.
    fn name(&self) -> String {
        let name = match self.client.as_str() {
            "claude_code" => "Claude Code",
            "codex" => "Codex",
            other => other,
        };
        format!("{name} {}", self.version)
    }

    fn walk(&self, class: Class, member: &Member, value: &Value, path: &str, findings: &mut Findings) {
        if let Some(verdict) = member
            .types
            .get(type_of(value))
            .filter(|verdict| verdict.is_fault())
        {
            let right = member.types.iter().filter(|(_, verdict)| !verdict.is_fault());
            let right: Vec<&str> = right.map(|(kind, _)| kind.as_str()).collect();
            let message = format!(
                "must be of the type {}: {}",
                right.join(" or "),
                self.does(*verdict)
            );
            findings.faults.push(Fault::new(path, message));
            return;
        }
        match value {
            Value::String(word) => self.word(member, word, path, findings),
            Value::Array(items) => {
                let Some(item) = &member.item else { return };
                for (place, value) in items.iter().enumerate() {
                    self.walk(class, item, value, &format!("{path}/{place}"), findings);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let path = step(path, name);
                    if member.is_closed() {
                        self.named(class, member, name, &path, findings);
                    }
                    if let Some(below) = member.below(name) {
                        self.walk(class, below, value, &path, findings);
                    }
                }
            }
            _ => {}
        }
    }

    /// Says what comes of a wrong value.
    fn does(&self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Refuses => format!("{} does not start with another one", self.name()),
            _ => format!("{} leaves another one out", self.name()),
        }
    }

    fn word(&self, member: &Member, word: &str, path: &str, findings: &mut Findings) {
        let Some(unknown) = member.words.get(UNKNOWN) else {
            return;
        };
        let known: Vec<&str> = member
            .words
            .iter()
            .filter(|(known, verdict)| !verdict.is_fault() && *known != UNKNOWN)
            .map(|(known, _)| known.as_str())
            .collect();
        let verdict = *member.words.get(word).unwrap_or(unknown);
        if verdict.is_fault() {
            let does = self.does(verdict);
            let message = format!("must be one of {}{}: {does}", list(&known), meant(word, &known));
            findings.faults.push(Fault::new(path, message));
        } else if !known.contains(&word)
            && let Some(near) = nearest(word, known.iter().copied())
        {
            let message = format!(
                "is no word that {} is known to take; did you mean {near}?",
                self.name()
            );
            findings.warn(|| Warning::at("unknown_word", path, message));
        }
    }

    fn named(&self, class: Class, member: &Member, name: &str, path: &str, findings: &mut Findings) {
        let listed = member.names.get(name).filter(|_| name != UNKNOWN);
        let is_known = member.knows(name);
        let verdict = listed.or_else(|| member.names.get(UNKNOWN).filter(|_| !is_known));
        let known: Vec<&str> = member.known_names().collect();
        if let Some(verdict) = verdict.filter(|verdict| verdict.is_fault()) {
            let does = match verdict {
                Verdict::Refuses => "does not start with it",
                _ => "leaves it out",
            };
            let message = format!(
                "is no member that {} knows, which {does}{}",
                self.name(),
                meant(name, &known)
            );
            findings.faults.push(Fault::new(path, message));
        } else if !is_known {
            findings.warn(|| self.unknown(class, name, path, &known));
        }
    }

    /// Says of a member that the client does not read what may have been meant.
    fn unknown(&self, class: Class, name: &str, path: &str, known: &[&str]) -> Warning {
        let client = self.name();
        if let Some(near) = nearest(name, known.iter().copied()) {
            let message =
                format!("{client} knows no member of this name, and it has no effect; did you mean {near}?");
            return Warning::at("unknown_member", path, message);
        }
        let other = match class {
            Class::Enforced => Class::Defaults,
            Class::Defaults => Class::Enforced,
        };
        let mut places = Vec::new();
        for class in [class, other] {
            self.of(class)
                .places_of(name, &format!("/{}", class.as_str()), &mut places);
        }
        if let Some(place) = places.first() {
            let message =
                format!("{client} does not read it here, and it has no effect; it is known as {place}");
            return Warning::at("misplaced_member", path, message);
        }
        let message = format!("{client} is not known to read a member of this name");
        Warning::at("unknown_member", path, message)
    }
}

/// Returns the words of a list for a sentence.
fn list(words: &[&str]) -> String {
    let shown: Vec<&str> = words.iter().take(MAX_WORDS).copied().collect();
    let more = if words.len() > MAX_WORDS { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn meant(word: &str, known: &[&str]) -> String {
    nearest(word, known.iter().copied()).map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

/// Returns the word that the data has for a type of JSON.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|n| n.fract() != 0.0) => {
            "fraction"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many members have a type that is refused.
    fn judged(member: &Member) -> usize {
        let below = member
            .named
            .values()
            .chain(member.any.as_deref())
            .chain(member.item.as_deref());
        usize::from(member.types.values().any(|verdict| verdict.is_fault()))
            + below.map(judged).sum::<usize>()
    }

    #[test]
    fn every_file_can_be_read_and_proves_something() {
        for probed in PROBED.iter() {
            for class in [Class::Enforced, Class::Defaults] {
                let member = probed.of(class);
                assert!(member.named.len() > 20, "{}", probed.name());
                assert!(judged(member) > 10, "{}", probed.name());
            }
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(versions("nobody"), Vec::<&str>::new());
        assert!(of("nobody", None).is_none());
        for client in ["claude_code", "codex"] {
            let newest = versions(client)[0];
            assert_eq!(of(client, None).unwrap().version, newest);
            assert_eq!(of(client, Some(newest)).unwrap().version, newest);
        }
    }
}
