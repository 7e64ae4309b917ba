//! The decisions again, straight from the JSON of definitions and events, written for clarity alone.
//!
//! Nothing of the engine is used. An event is its attributes and the names of missing ones; the past is the list of
//! all events before it, read from its start for every question.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the documents say of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Three {
    No,
    Maybe,
    Yes,
}
use Three::{Maybe, No, Yes};

fn three(is: bool) -> Three {
    if is { Yes } else { No }
}

fn not(three: Three) -> Three {
    match three {
        No => Yes,
        Maybe => Maybe,
        Yes => No,
    }
}

/// One event as its sender would write it.
#[derive(Clone, Debug)]
pub struct Plain {
    pub at_ms: i64,
    pub family: &'static str,
    pub occasion: &'static str,
    pub attributes: Map<String, Value>,
    pub missing: Vec<&'static str>,
}

enum State<'a> {
    Absent,
    Missing,
    Present(&'a Value),
}

impl Plain {
    fn state(&self, name: &str) -> State<'_> {
        match self.attributes.get(name) {
            Some(value) => State::Present(value),
            None if self.missing.contains(&name) => State::Missing,
            None => State::Absent,
        }
    }

    /// Whose past it belongs to: `Err` for nobody knows, `Ok(None)` for nobody.
    fn subject(&self) -> Result<Option<(&'static str, &str)>, ()> {
        for name in ["identity.user_id", "identity.service_account_id", "device.id"] {
            match self.state(name) {
                State::Present(value) => return Ok(Some((name, value.as_str().unwrap()))),
                State::Missing => return Err(()),
                State::Absent => {}
            }
        }
        Ok(None)
    }
}

/// A decision.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    pub action: &'static str,
    pub unknown: bool,
    /// Ids of policies that match for sure, by their own rule.
    pub matched: BTreeSet<String>,
    /// (id, reason) of every policy with a part.
    pub findings: BTreeSet<(String, &'static str)>,
}

/// Weakest first.
pub const ACTIONS: [&str; 7] = [
    "allow",
    "flag_for_review",
    "nudge",
    "redact",
    "filter",
    "require_approval",
    "block",
];

/// Decides on `events[at]`.
pub fn judge(policies: &[(&'static str, Value)], events: &[Plain], at: usize) -> Verdict {
    let event = &events[at];
    let mut verdict = Verdict {
        action: "allow",
        unknown: false,
        matched: BTreeSet::new(),
        findings: BTreeSet::new(),
    };
    let mut lists: BTreeMap<String, Vec<(String, Three, Three)>> = BTreeMap::new();
    for (family, policy) in policies {
        if *family != event.family || policy["enabled"] == json!(false) || !is_here(family, policy, event) {
            continue;
        }
        let id = policy["id"].as_str().unwrap().to_owned();
        let see = Sight { events, at, policy };
        let (scope, condition) = if *family == "skill_acl" {
            let skill = json!({"field": "skill.id", "op": "eq", "value": policy["skillId"]});
            (covers(&policy["subjects"], event), see.node(&skill))
        } else {
            (
                covers(&policy["appliesTo"], event),
                see.node(&policy["conditions"]),
            )
        };
        let truth = scope.min(condition).min(not(see.excepted()));
        let action = ACTIONS
            .into_iter()
            .find(|a| policy["action"] == json!(a) || policy["effect"] == json!(a))
            .unwrap();
        let monitored = policy["enforcement"] == json!("monitor");
        add(&mut verdict, &id, action, truth, "matched", monitored);
        if truth == Yes {
            verdict.matched.insert(id.clone());
        }
        if action == "allow"
            && let Some(names) = list_names(family, policy)
        {
            lists
                .entry(names)
                .or_default()
                .push((id, condition, scope.min(condition)));
        }
    }
    for members in lists.values() {
        let named = members.iter().map(|m| m.1).max().unwrap();
        let covered = members.iter().map(|m| m.2).max().unwrap();
        for (id, _, _) in members {
            add(
                &mut verdict,
                id,
                "block",
                named.min(not(covered)),
                "not_allowed",
                false,
            );
        }
    }
    verdict
}

fn add(
    verdict: &mut Verdict,
    id: &str,
    action: &'static str,
    truth: Three,
    reason: &'static str,
    monitored: bool,
) {
    if truth == No {
        return;
    }
    let reason = if truth == Yes { reason } else { "evaluation_failed" };
    verdict.findings.insert((id.to_owned(), reason));
    if monitored {
        return;
    }
    let rank = |action: &str| ACTIONS.iter().position(|a| *a == action).unwrap();
    if rank(action) > rank(verdict.action) {
        verdict.action = action;
    }
    verdict.unknown |= truth == Maybe;
}

fn is_here(family: &str, policy: &Value, event: &Plain) -> bool {
    let listed = |name: &str| policy[name].as_array().unwrap().contains(&json!(event.occasion));
    match family {
        "content" => listed("evaluateOn"),
        "access" => listed("enforcementSurfaces"),
        _ => true,
    }
}

/// Whether the form of an access list is there, and what it names.
fn list_names(family: &str, policy: &Value) -> Option<String> {
    if family == "skill_acl" {
        return policy["skillId"].as_str().map(str::to_owned);
    }
    let is_list = family == "content"
        && policy["evaluateOn"] == json!(["pre_tool"])
        && policy.get("except").is_none()
        && policy["exceptions"].as_array().is_none_or(Vec::is_empty);
    let scope = policy["appliesTo"].as_object()?;
    let full: Vec<&str> = scope
        .iter()
        .filter(|(_, v)| !v.as_array().unwrap().is_empty())
        .map(|(k, _)| k.as_str())
        .collect();
    if !is_list || full.is_empty() || full.iter().any(|k| !matches!(*k, "users" | "groups")) {
        return None;
    }
    let conditions = &policy["conditions"];
    let nodes: Vec<&Value> = match conditions["all"].as_array() {
        Some(nodes) => nodes.iter().collect(),
        None => vec![conditions],
    };
    if nodes.len() > 2 || nodes[0]["field"] != json!("mcp.server_id") || nodes[0]["op"] != json!("eq") {
        return None;
    }
    if nodes.len() == 2 && (nodes[1]["field"] != json!("mcp.tool_id") || nodes[1]["op"] != json!("in")) {
        return None;
    }
    nodes[0]["value"].as_str().map(str::to_owned)
}

fn covers(scope: &Value, event: &Plain) -> Three {
    let names = |member: &str| -> Vec<String> {
        let items = scope[member].as_array().cloned().unwrap_or_default();
        let name = |item: &Value| item.as_str().or(item["name"].as_str()).unwrap().to_owned();
        items.iter().map(name).collect()
    };
    let one = |member: &str, field: &str| {
        let names = names(member);
        (!names.is_empty()).then(|| match event.state(field) {
            State::Absent => No,
            State::Missing => Maybe,
            State::Present(Value::Array(items)) => three(
                items
                    .iter()
                    .any(|i| names.contains(&i.as_str().unwrap().to_owned())),
            ),
            State::Present(value) => three(names.contains(&value.as_str().unwrap().to_owned())),
        })
    };
    let who = [
        ("users", "identity.user_id"),
        ("groups", "identity.group_ids"),
        ("serviceAccounts", "identity.service_account_id"),
    ];
    let who: Vec<Three> = who.into_iter().filter_map(|(m, f)| one(m, f)).collect();
    let what = [
        ("agents", "agent.id"),
        ("products", "product.id"),
        ("devices", "device.id"),
        ("resources", "resource.id"),
    ];
    let what = what
        .into_iter()
        .filter_map(|(m, f)| one(m, f))
        .min()
        .unwrap_or(Yes);
    who.into_iter().max().unwrap_or(Yes).min(what)
}

/// One policy at one event.
struct Sight<'a> {
    events: &'a [Plain],
    at: usize,
    policy: &'a Value,
}

impl Sight<'_> {
    fn event(&self) -> &Plain {
        &self.events[self.at]
    }

    fn excepted(&self) -> Three {
        let mut all = vec![No];
        if let Some(except) = self.policy.get("except") {
            all.push(self.node(except));
        }
        for exception in self.policy["exceptions"].as_array().into_iter().flatten() {
            let holds = exception["expiresAt"].as_str().is_none_or(|text| {
                let end: jiff::Timestamp = text.parse().unwrap();
                self.event().at_ms < end.as_millisecond()
            });
            if holds {
                all.push(self.node(&exception["conditions"]));
            }
        }
        all.into_iter().max().unwrap()
    }

    fn node(&self, node: &Value) -> Three {
        let object = node.as_object().unwrap();
        let (form, inner) = object
            .iter()
            .find(|(name, _)| !matches!(name.as_str(), "op" | "value"))
            .unwrap();
        match form.as_str() {
            "all" => inner
                .as_array()
                .unwrap()
                .iter()
                .map(|n| self.node(n))
                .min()
                .unwrap(),
            "any" => inner
                .as_array()
                .unwrap()
                .iter()
                .map(|n| self.node(n))
                .max()
                .unwrap(),
            "not" => not(self.node(inner)),
            "hasPriorEvent" => self.past("30d", |past| {
                past.iter().map(|at| self.then(*at, inner)).max().unwrap_or(No)
            }),
            "hasEventSequence" => self.past(text(inner, "within"), |past| self.sequence(past, inner)),
            "eventCount" => self.past(text(inner, "within"), |past| {
                let all: Vec<Three> = past.iter().map(|at| self.then(*at, &inner["where"])).collect();
                let least = all.iter().filter(|t| **t == Yes).count();
                let most = all.iter().filter(|t| **t != No).count();
                some_of(least..=most, inner)
            }),
            "priorDistinctValues" => self.past(text(inner, "within"), |past| self.distinct(past, inner)),
            _ => self.predicate(object),
        }
    }

    /// Asks a condition at an earlier event.
    fn then(&self, at: usize, node: &Value) -> Three {
        Sight { at, ..*self }.node(node)
    }

    /// Gives the earlier events of the same subject and family within a time.
    fn past(&self, within: &str, ask: impl Fn(&[usize]) -> Three) -> Three {
        let event = self.event();
        let Ok(subject) = event.subject() else {
            return Maybe;
        };
        if subject.is_none() {
            return ask(&[]);
        }
        let (digits, unit) = within.split_at(within.len() - 1);
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => 86_400,
        };
        let start = event.at_ms - digits.parse::<i64>().unwrap() * seconds * 1000;
        let is_past = |at: &usize| {
            let other = &self.events[*at];
            other.family == event.family && other.subject() == Ok(subject) && other.at_ms >= start
        };
        ask(&(0..self.at).filter(is_past).collect::<Vec<_>>())
    }

    fn sequence(&self, past: &[usize], inner: &Value) -> Three {
        let events = inner["events"].as_array().unwrap();
        let found = |least: Three| {
            if inner["ordered"] == json!(false) {
                return events
                    .iter()
                    .all(|node| past.iter().any(|at| self.then(*at, node) >= least));
            }
            // Greedy: the earliest next match leaves the most for the rest.
            let mut rest = past.iter();
            events
                .iter()
                .all(|node| rest.any(|at| self.then(*at, node) >= least))
        };
        if found(Yes) {
            Yes
        } else if found(Maybe) {
            Maybe
        } else {
            No
        }
    }

    fn distinct(&self, past: &[usize], inner: &Value) -> Three {
        let name = inner["field"].as_str().unwrap();
        let (mut sure, mut may) = (BTreeSet::new(), BTreeSet::new());
        let mut blank = 0;
        for at in past {
            let matches = inner.get("where").map_or(Yes, |node| self.then(*at, node));
            if matches == No {
                continue;
            }
            let sight = Sight { at: *at, ..*self };
            let values = match sight.value(name) {
                None => continue,
                Some(Err(())) => {
                    blank += if self.is_set(name) { 5000 } else { 1 };
                    continue;
                }
                Some(Ok(Value::Array(items))) => items,
                Some(Ok(value)) => vec![value],
            };
            for value in values {
                let key = value
                    .as_f64()
                    .map_or_else(|| value.to_string(), |n| format!("{n:?}"));
                if matches == Yes {
                    sure.insert(key.clone());
                }
                may.insert(key);
            }
        }
        some_of(sure.len()..=may.len() + blank, inner)
    }

    fn custom(&self, name: &str) -> Option<&Value> {
        self.policy["customFields"]
            .as_array()?
            .iter()
            .find(|c| c["field"] == json!(name))
    }

    fn is_set(&self, name: &str) -> bool {
        match self.custom(name) {
            Some(custom) => custom["valueType"] == json!("string_set"),
            None => SETS.contains(&name),
        }
    }

    /// `None` for absent, `Err` for nobody knows.
    fn value(&self, name: &str) -> Option<Result<Value, ()>> {
        let Some(custom) = self.custom(name) else {
            return match self.event().state(name) {
                State::Absent => None,
                State::Missing => Some(Err(())),
                State::Present(value) => Some(Ok(value.clone())),
            };
        };
        let input = match self.event().state("tool.input") {
            State::Absent => return None,
            State::Missing => return Some(Err(())),
            State::Present(value) => value,
        };
        let mut found = input;
        for part in name["tool.input.".len()..].split(['.', '[']) {
            found = match part.strip_suffix(']') {
                Some(index) => found.get(index.parse::<usize>().unwrap())?,
                None => found.get(part)?,
            };
        }
        let fits = match custom["valueType"].as_str().unwrap() {
            _ if found.is_null() => return None,
            "string" => found.is_string(),
            "number" => found.is_number(),
            "boolean" => found.is_boolean(),
            "object" => found.is_object(),
            "content" => true,
            _ => found
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
        };
        Some(if fits { Ok(found.clone()) } else { Err(()) })
    }

    fn predicate(&self, node: &Map<String, Value>) -> Three {
        let name = node["field"].as_str().unwrap();
        let value = match self.value(name) {
            None => return No,
            Some(Err(())) => return Maybe,
            Some(Ok(value)) => value,
        };
        let (op, wanted) = (
            node["op"].as_str().unwrap(),
            node.get("value").unwrap_or(&Value::Null),
        );
        three(match op {
            "exists" => true,
            "eq" if self.is_set(name) => members(&value) == members(wanted),
            "neq" if self.is_set(name) => members(&value) != members(wanted),
            "contains" if self.is_set(name) => members(&value).contains(wanted.as_str().unwrap()),
            "contains_any" => !members(&value).is_disjoint(&members(wanted)),
            "contains_all" => members(wanted).is_subset(&members(&value)),
            "eq" => same(&value, wanted),
            "neq" => !same(&value, wanted),
            "in" => wanted.as_array().unwrap().iter().any(|w| same(&value, w)),
            "not_in" => !wanted.as_array().unwrap().iter().any(|w| same(&value, w)),
            "contains" => plain(&value).contains(wanted.as_str().unwrap()),
            "starts_with" => plain(&value).starts_with(wanted.as_str().unwrap()),
            "ends_with" => plain(&value).ends_with(wanted.as_str().unwrap()),
            "matches" => regex::Regex::new(wanted.as_str().unwrap())
                .unwrap()
                .is_match(&plain(&value)),
            _ => compare(op, &value.as_f64().unwrap(), &wanted.as_f64().unwrap()),
        })
    }
}

/// The names of sets among the attributes that the generator uses.
const SETS: [&str; 4] = [
    "identity.group_ids",
    "event.labels",
    "request.postgres.tables",
    "source.capability",
];

fn members(value: &Value) -> BTreeSet<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_str().unwrap())
        .collect()
}

/// The text as which content is read.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // The generator writes keys in order and numbers that have one spelling.
        other => other.to_string(),
    }
}

fn same(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (value, Value::String(wanted)) => plain(value) == *wanted,
        _ => panic!("the generator compares equal types"),
    }
}

fn compare<T: PartialOrd>(op: &str, a: &T, b: &T) -> bool {
    match op {
        "eq" => a == b,
        "gt" => a > b,
        "gte" => a >= b,
        "lt" => a < b,
        _ => a <= b,
    }
}

fn some_of(counts: std::ops::RangeInclusive<usize>, inner: &Value) -> Three {
    let holds = |count: usize| {
        compare(
            inner["op"].as_str().unwrap(),
            &(count as u64),
            &inner["value"].as_u64().unwrap(),
        )
    };
    let answers: BTreeSet<bool> = counts.map(holds).collect();
    match (answers.contains(&true), answers.contains(&false)) {
        (true, false) => Yes,
        (false, _) => No,
        _ => Maybe,
    }
}

fn text<'a>(inner: &'a Value, name: &str) -> &'a str {
    inner[name].as_str().unwrap()
}
