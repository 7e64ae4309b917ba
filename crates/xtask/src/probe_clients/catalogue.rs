//! The members that are probed, with right values: `crates/xtask/clients/settings`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Context, Outcome};
use crate::process;

/// Stands where a word or a name is that no client knows.
const UNKNOWN: &str = "zzz-unknown";

/// The right values of one file of one client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    /// Names that stand for any name.
    folded: BTreeSet<String>,
    pub documents: Vec<Value>,
    /// Words of members that take some and no others.
    words: BTreeMap<String, Vec<String>>,
    /// Examples of texts whose form a client judges.
    #[serde(default)]
    forms: BTreeMap<String, Vec<String>>,
    /// Names of members of an object that takes some and no others.
    names: BTreeMap<String, Names>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    with: Value,
    names: Vec<String>,
}

/// What a probe is about: a place, `*` for any name and `-` for any item of a list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    Member(String),
    Word(String),
    /// A text of a form of which there are any number.
    Form(String),
    Name(String),
}

impl Subject {
    pub fn path(&self) -> &str {
        match self {
            Self::Member(path) | Self::Word(path) | Self::Form(path) | Self::Name(path) => path,
        }
    }
}

/// One file that a client reads.
#[derive(Debug)]
pub struct Probe {
    pub subject: Subject,
    /// The type, the word or the name that is tried.
    pub tried: String,
    /// The catalogue says that this is right.
    pub is_right: bool,
    pub document: Value,
    /// Which right document it was made of, unless it is one of its own.
    pub made_of: Option<usize>,
    /// Where the tried value stands in that document, for a wrong type.
    steps: Option<Vec<Step>>,
}

/// A probe by its number, and its place in a document.
type Place = (usize, Vec<Step>);

/// Wrong values of one type in several places of a document at once, where none lies in another.
#[derive(Clone)]
pub struct Batch {
    right: Value,
    wrong: Value,
    /// The probes that it stands for, and their places.
    probes: Vec<Place>,
}

impl Batch {
    /// Returns the document.
    pub fn document(&self) -> Value {
        let steps = self.probes.iter().map(|(_, steps)| steps);
        steps.fold(self.right.clone(), |document, steps| {
            with(&document, steps, self.wrong.clone())
        })
    }

    /// Returns the probes that it stands for, each with the words by which a client names its place.
    pub fn probes(&self) -> impl Iterator<Item = (usize, String)> {
        self.probes.iter().map(|(probe, steps)| (*probe, named(steps)))
    }

    /// Returns the batch without some of its probes.
    pub fn without<T>(&self, known: &BTreeMap<usize, T>) -> Self {
        let mut rest = self.clone();
        rest.probes.retain(|(probe, _)| !known.contains_key(probe));
        rest
    }

    /// Says whether it stands for no probe.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// Returns the document with what is right in each place.
    pub fn right(&self) -> &Value {
        &self.right
    }

    /// Returns its two halves by members of the top; none when all of it lies in one.
    pub fn halves(&self) -> Option<[Self; 2]> {
        let tops: BTreeSet<&str> = self.probes.iter().map(|(_, steps)| top(steps)).collect();
        let first: BTreeSet<&str> = tops.iter().take(tops.len() / 2).copied().collect();
        let half = |is_first: bool| {
            let probes = self
                .probes
                .iter()
                .filter(|(_, steps)| first.contains(top(steps)) == is_first);
            Self {
                right: self.right.clone(),
                wrong: self.wrong.clone(),
                probes: probes.cloned().collect(),
            }
        };
        (!first.is_empty()).then(|| [half(true), half(false)])
    }
}

/// One step from the top of a document to a member.
#[derive(Clone, PartialEq, Debug)]
enum Step {
    Name(String),
    Item(usize),
}

/// A value of every type of JSON; what a fraction is to one reader is an integer to another.
fn samples() -> [(&'static str, Value); 7] {
    [
        ("null", Value::Null),
        ("boolean", json!(true)),
        ("integer", json!(7)),
        ("fraction", json!(1.5)),
        ("string", json!("zzz")),
        ("array", json!(["zzz"])),
        ("object", json!({ "zzz": "zzz" })),
    ]
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Catalogue {
    /// Returns the catalogue of a file.
    ///
    /// # Errors
    /// When it is no catalogue.
    pub fn read(name: &str) -> Outcome<Self> {
        let path = process::root().join(format!("crates/xtask/clients/settings/{name}.json"));
        let text = std::fs::read_to_string(&path).context(format_args!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).context(format_args!("{} is no catalogue", path.display()))
    }

    /// Every file that is tried.
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = Vec::new();
        for (number, document) in self.documents.iter().enumerate() {
            self.of_names(number, document, &[], &mut probes);
            for steps in places(document) {
                self.of_member(number, document, &steps, &mut probes);
            }
        }
        for (path, object) in &self.names {
            for name in object.names.iter().map(String::as_str).chain([UNKNOWN]) {
                let member = path.trim_start_matches('/');
                probes.push(Probe {
                    subject: Subject::Name(path.clone()),
                    tried: name.to_owned(),
                    is_right: false,
                    document: json!({ member: { name: object.with } }),
                    made_of: None,
                    steps: None,
                });
            }
        }
        probes
    }

    /// Returns files that try many wrong values at once, for a client that names the places of what it does not take.
    pub fn batches(&self, probes: &[Probe]) -> Vec<Batch> {
        let mut batches: BTreeMap<(usize, &str, usize), Vec<Place>> = BTreeMap::new();
        for (place, probe) in probes.iter().enumerate().filter(|(_, probe)| !probe.is_right) {
            if let (Some(number), Some(steps)) = (probe.made_of, &probe.steps) {
                let key = (number, probe.tried.as_str(), steps.len());
                batches.entry(key).or_default().push((place, steps.clone()));
            }
        }
        let large = batches.into_iter().filter(|(_, places)| places.len() > 1);
        large
            .filter_map(|((number, tried, _), places)| {
                let (_, sample) = samples().into_iter().find(|(kind, _)| *kind == tried)?;
                Some(Batch {
                    right: self.documents.get(number)?.clone(),
                    wrong: sample,
                    probes: places,
                })
            })
            .collect()
    }

    fn of_member(&self, number: usize, document: &Value, steps: &[Step], probes: &mut Vec<Probe>) {
        let Some(right) = at(document, steps) else { return };
        let path = self.pattern(steps);
        let member = Subject::Member(path.clone());
        for (kind, sample) in samples() {
            let is_right = kind == type_of(right);
            let is_number = ["integer", "fraction"].contains(&type_of(right));
            let is_known = |probe: &Probe| probe.subject == member && probe.tried == kind;
            // A wrong type is tried once; a fraction only where it could be taken for the number that is right.
            if !is_right && ((kind == "fraction" && !is_number) || probes.iter().any(is_known)) {
                continue;
            }
            let value = if is_right { right.clone() } else { sample };
            probes.push(Probe {
                subject: member.clone(),
                tried: kind.to_owned(),
                is_right,
                document: with(document, steps, value),
                made_of: Some(number),
                steps: Some(steps.to_vec()),
            });
        }
        self.of_names(number, document, steps, probes);
        if !right.is_string() {
            return;
        }
        let words = self.words.get(&path).into_iter().flatten().map(String::as_str);
        let unknown = self.words.contains_key(&path).then_some(UNKNOWN);
        let words = words.chain(unknown);
        Self::of_words(
            (number, document),
            steps,
            &Subject::Word(path.clone()),
            words,
            probes,
        );
        let forms = self.forms.get(&path).into_iter().flatten().map(String::as_str);
        Self::of_words(
            (number, document),
            steps,
            &Subject::Form(path.clone()),
            forms,
            probes,
        );
    }

    /// Words are tried in the first document that has a word there.
    fn of_words<'a>(
        (number, document): (usize, &Value),
        steps: &[Step],
        subject: &Subject,
        words: impl Iterator<Item = &'a str>,
        probes: &mut Vec<Probe>,
    ) {
        if probes.iter().any(|probe| probe.subject == *subject) {
            return;
        }
        for word in words {
            probes.push(Probe {
                subject: subject.clone(),
                tried: word.to_owned(),
                is_right: false,
                document: match steps.split_last() {
                    // A list may need what it has: a word is one more of its items.
                    Some((Step::Item(_), list)) => with_item(document, list, json!(word)),
                    _ => with(document, steps, json!(word)),
                },
                made_of: Some(number),
                steps: None,
            });
        }
    }

    /// An object that has no free names gets one more member that nobody knows.
    fn of_names(&self, number: usize, document: &Value, steps: &[Step], probes: &mut Vec<Probe>) {
        let Some(Value::Object(members)) = at(document, steps) else {
            return;
        };
        let subject = Subject::Name(self.pattern(steps));
        let is_free = members.keys().any(|name| self.folded.contains(name));
        let is_known = probes.iter().any(|probe| probe.subject == subject);
        if is_free || is_known || self.names.contains_key(subject.path()) {
            return;
        }
        let mut members = members.clone();
        members.insert(UNKNOWN.to_owned(), json!("zzz"));
        probes.push(Probe {
            subject,
            tried: UNKNOWN.to_owned(),
            is_right: false,
            document: with(document, steps, Value::Object(members)),
            made_of: Some(number),
            steps: None,
        });
    }

    fn pattern(&self, steps: &[Step]) -> String {
        steps.iter().fold(String::new(), |path, step| match step {
            Step::Item(_) => path + "/-",
            Step::Name(name) if self.folded.contains(name) => path + "/*",
            Step::Name(name) => path + "/" + &name.replace('~', "~0").replace('/', "~1"),
        })
    }
}

/// The member of the top in which a place lies.
fn top(steps: &[Step]) -> &str {
    match steps.first() {
        Some(Step::Name(name)) => name,
        _ => "",
    }
}

/// A place as Claude Code names it where it complains.
fn named(steps: &[Step]) -> String {
    let words = steps.iter().map(|step| match step {
        Step::Name(name) => name.clone(),
        Step::Item(place) => place.to_string(),
    });
    format!(" › {}: ", words.collect::<Vec<_>>().join("."))
}

/// Every place of a document but its top.
fn places(document: &Value) -> Vec<Vec<Step>> {
    fn walk(value: &Value, steps: &mut Vec<Step>, all: &mut Vec<Vec<Step>>) {
        let mut below = |step: Step, member: &Value| {
            steps.push(step);
            all.push(steps.clone());
            walk(member, steps, all);
            steps.pop();
        };
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    below(Step::Name(name.clone()), member);
                }
            }
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate() {
                    below(Step::Item(place), item);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk(document, &mut Vec::new(), &mut all);
    all
}

fn at<'a>(document: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(document, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Item(place) => value.get(place),
    })
}

/// Returns a document with one more item at the end of a list.
fn with_item(document: &Value, list: &[Step], item: Value) -> Value {
    let mut items = at(document, list).cloned().unwrap_or_default();
    if let Some(items) = items.as_array_mut() {
        items.push(item);
    }
    with(document, list, items)
}

/// Returns a document with another value in one place.
fn with(document: &Value, steps: &[Step], value: Value) -> Value {
    let mut document = document.clone();
    let place = steps.iter().try_fold(&mut document, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Item(place) => value.get_mut(*place),
    });
    if let Some(place) = place {
        *place = value;
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_document_is_tried_with_every_type() {
        let catalogue: Catalogue = serde_json::from_value(json!({
            "about": "x", "folded": ["anyname"], "documents": [{ "env": { "anyname": "x" }, "mode": "a" }],
            "words": { "/mode": ["a", "b"] }, "names": { "/hooks": { "with": [], "names": ["Stop"] } },
        }))
        .unwrap();
        let probes = catalogue.probes();
        let of = |subject: Subject| -> Vec<&str> {
            let of_it = probes.iter().filter(|probe| probe.subject == subject);
            of_it.map(|probe| probe.tried.as_str()).collect()
        };
        let types = ["null", "boolean", "integer", "string", "array", "object"];
        assert_eq!(of(Subject::Member("/env/*".into())), types);
        assert_eq!(of(Subject::Word("/mode".into())), ["a", "b", UNKNOWN]);
        assert_eq!(of(Subject::Name("/hooks".into())), ["Stop", UNKNOWN]);
        let right: Vec<_> = probes.iter().filter(|probe| probe.is_right).collect();
        assert!(
            right
                .iter()
                .all(|probe| probe.document == json!({ "env": { "anyname": "x" }, "mode": "a" }))
        );
        assert_eq!(right.len(), 3);
    }

    #[test]
    fn the_catalogues_can_be_read() {
        for name in ["claude_code", "codex_requirements", "codex_config"] {
            assert!(Catalogue::read(name).unwrap().probes().len() > 100, "{name}");
        }
    }
}
