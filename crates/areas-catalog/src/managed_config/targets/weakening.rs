//! Which changes of the enforced members guard less than before (D8.6).
//!
//! A target gives a table: the path of a member and what its value means. What no rule names is judged by one
//! thing alone: an enforced member that is gone no longer binds anybody. A rule that is missing from a table
//! therefore costs a warning about a changed value, never one about a lost member.

use crate::managed_config::content::step;
use crate::managed_config::redact::holds_mark;
use crate::managed_config::views::Warning;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What the value of a member means. A `*` in a path stands for any one name.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// A list of what is forbidden or watched: an item that goes away weakens.
    Forbids,
    /// A list of what is allowed: an item that is added weakens. Without the list nothing is allowed by it.
    Allows,
    /// The same, but without the list everything is allowed: its loss weakens, and a first one never does.
    Limits,
    /// An object whose members are allowances, everything being allowed without it.
    LimitsTo,
    /// An object of verdicts by name; this one allows, all others forbid.
    Verdicts(&'static str),
    /// A switch that guards while it has this value.
    Guards(&'static str),
    /// A switch that guards while it is true.
    On,
    /// A switch that opens something: true weakens, and so does the loss of false.
    Off,
    /// One of these, from strict to loose; what is not among them counts as the loosest.
    Ranked(&'static [&'static str]),
    /// A value that must stay: any change weakens.
    Pinned,
    /// Guards nothing.
    Free,
}

impl Rule {
    /// Says whether a member of this meaning guards anything by itself.
    pub fn is_guard(self) -> bool {
        matches!(
            self,
            Self::Forbids | Self::Limits | Self::LimitsTo | Self::Guards(_) | Self::On
        )
    }

    /// Says whether a guard with this value does.
    pub fn guards(self, value: &Value) -> bool {
        match self {
            Self::Forbids => value.as_array().is_some_and(|items| !items.is_empty()),
            Self::Limits => value.is_array(),
            Self::LimitsTo => value.is_object(),
            Self::Guards(word) => value == word,
            Self::On => value == &Value::Bool(true),
            _ => false,
        }
    }
}

/// One place that guards less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ManagedConfigWeakening")]
pub struct Weakening {
    /// JSON Pointer into the content.
    pub path: String,
    /// What is lost there.
    pub message: String,
}

/// LIMIT: paths in one warning.
const MAX_PATHS: usize = 50;

/// Returns the warning that says how many places guard less, if any does.
pub fn warning(weakened: &[Weakening]) -> Option<Warning> {
    let paths = weakened
        .iter()
        .take(MAX_PATHS)
        .map(|weakened| weakened.path.clone());
    (!weakened.is_empty()).then(|| Warning {
        code: "weakens_enforcement",
        message: format!("{} enforced members would guard less than now", weakened.len()),
        paths: paths.collect(),
    })
}

/// Returns what `after` guards less than `before`, sorted by path. Where `before` has the mark of a hidden value, nothing is
/// compared.
pub fn between(rules: &[(&str, Rule)], before: &Value, after: &Value) -> Vec<Weakening> {
    let mut found = Vec::new();
    walk(rules, "/enforced", Some(before), Some(after), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(
    rules: &[(&str, Rule)],
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Weakening>,
) {
    if before == after {
        return;
    }
    let mut lost = |message: &str| {
        found.push(Weakening {
            path: path.to_owned(),
            message: message.to_owned(),
        });
    };
    if let Some(rule) = rule_of(rules, path) {
        // A hidden value is not compared: what it guards may be lost, whatever takes its place.
        if before.is_some_and(holds_mark) {
            if !matches!(rule, Rule::Free) {
                lost("holds a hidden value, and may guard less than before");
            }
        } else if let Some(message) = judge(rule, before, after) {
            lost(message);
        }
        return;
    }
    let none = Map::new();
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            members(rules, path, before, after, found);
        }
        // A member that was an object and is gone has lost what its own members said, and no more than that.
        (Some(Value::Object(before)), None) if !before.is_empty() => {
            members(rules, path, before, &none, found);
        }
        (None, Some(Value::Object(after))) => members(rules, path, &none, after, found),
        (Some(_), None) => lost("is no longer enforced"),
        _ => {}
    }
}

fn members(
    rules: &[(&str, Rule)],
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    found: &mut Vec<Weakening>,
) {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    for name in gone.chain(after.keys()) {
        walk(rules, &step(path, name), before.get(name), after.get(name), found);
    }
}

/// Returns the values at the places of a pattern in the members of one class, each with its path.
pub fn places<'a>(document: &'a Value, pattern: &str) -> Vec<(String, &'a Value)> {
    let names = pattern.split('/').skip(1);
    names.fold(vec![(String::new(), document)], |found, name| {
        let below = found.into_iter().flat_map(|(path, value)| {
            let members = value.as_object().into_iter().flatten();
            let members = members.filter(|(own, _)| name == "*" || *own == name);
            members.map(move |(own, value)| (step(&path, own), value))
        });
        below.collect()
    })
}

fn rule_of(rules: &[(&str, Rule)], path: &str) -> Option<Rule> {
    let path = path.strip_prefix("/enforced")?;
    let matches = |pattern: &str| {
        let same = |(a, b): (&str, &str)| a == "*" || a == b;
        pattern.split('/').count() == path.split('/').count()
            && pattern.split('/').zip(path.split('/')).all(same)
    };
    rules
        .iter()
        .find(|(pattern, _)| matches(pattern))
        .map(|(_, rule)| *rule)
}

fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn lacks(some: &[Value], others: &[Value]) -> bool {
    others.iter().any(|other| !some.contains(other))
}

fn judge(rule: Rule, before: Option<&Value>, after: Option<&Value>) -> Option<&'static str> {
    let (was, is) = (items(before), items(after));
    let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
    match rule {
        Rule::Forbids => lacks(is, was).then_some("no longer forbids all that it forbade"),
        Rule::Allows => lacks(was, is).then_some("allows more than before"),
        Rule::Limits => match (before, after) {
            (Some(_), None) => Some("no longer limits what is allowed"),
            (Some(_), Some(_)) => lacks(was, is).then_some("allows more than before"),
            _ => None,
        },
        Rule::LimitsTo => match (
            before.and_then(Value::as_object),
            after.and_then(Value::as_object),
        ) {
            (Some(_), None) => Some("no longer limits what is allowed"),
            (Some(was), Some(is)) => {
                let more = is.iter().any(|(name, value)| was.get(name) != Some(value));
                more.then_some("allows more than before")
            }
            _ => None,
        },
        Rule::Verdicts(allows) => {
            let none = Map::new();
            let was = before.and_then(Value::as_object).unwrap_or(&none);
            let is = after.and_then(Value::as_object).unwrap_or(&none);
            let opens = is
                .iter()
                .any(|(name, value)| value == allows && was.get(name) != Some(value));
            let forgets = was
                .iter()
                .any(|(name, value)| value != allows && !is.contains_key(name));
            (opens || forgets).then_some("allows more than before")
        }
        Rule::Guards(word) => (before.is_some_and(|v| v == word) && after.is_none_or(|v| v != word))
            .then_some("is switched off"),
        Rule::On => (is_true(before) && !is_true(after)).then_some("is switched off"),
        Rule::Off => {
            let opened = is_true(after) && !is_true(before);
            let freed = before == Some(&Value::Bool(false)) && after.is_none();
            (opened || freed).then_some("is no longer switched off")
        }
        Rule::Ranked(words) => {
            let rank = |value: Option<&Value>| {
                let place = words.iter().position(|word| value.is_some_and(|v| v == word));
                place.unwrap_or(words.len())
            };
            (before.is_some() && rank(after) > rank(before)).then_some("is less strict than before")
        }
        Rule::Pinned => before.is_some().then_some("is no longer pinned to its value"),
        Rule::Free => None,
    }
}
