//! The decisions again, straight from the JSON of definitions and events, written for clarity alone.
//!
//! Nothing of the engine is used; `document` reads inputs. An event is its attributes and the names of missing ones; the
//! past is the list of all events before it, read from its start for every question.

use super::document::{Input, Tree, document, input};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the documents say of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TruthValue {
    No,
    Maybe,
    Yes,
}
use TruthValue::{Maybe, No, Yes};

fn three(is: bool) -> TruthValue {
    if is { Yes } else { No }
}

fn not(three: TruthValue) -> TruthValue {
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

/// Somebody or something that words can mean.
#[derive(Clone, Debug)]
pub struct NamedRecord {
    pub field: &'static str,
    pub id: String,
    pub words: Vec<String>,
    pub groups: Option<Vec<String>>,
}

/// Everybody who has a record.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub all: Vec<NamedRecord>,
    /// Everybody who may act is there.
    pub is_complete: bool,
    /// It is known which words several have.
    pub tells_shared: bool,
}

/// Which record each ambiguous word means: (attribute, folded word, id).
type Choice = Vec<(String, String, String)>;

pub const NAMES: [&str; 16] = [
    "classification.state",
    "destination.domain",
    "request.postgres.command",
    "request.postgres.tables",
    "resource.protocol",
    "identity.user_id",
    "identity.group_ids",
    "identity.service_account_id",
    "tool.id",
    "mcp.server_id",
    "mcp.tool_id",
    "device.id",
    "resource.id",
    "agent.id",
    "product.id",
    "skill.id",
];

/// The words of closed lists.
pub const CLOSED: [(&str, &[&str]); 2] = [
    (
        "classification.state",
        &[
            "known_ai",
            "candidate_ai",
            "known_not_ai",
            "uncertain",
            "no_catalog_match",
        ],
    ),
    ("resource.protocol", &["postgres", "mysql", "redis", "http"]),
];

pub const REGISTERS: [&str; 5] = [
    "identity.user_id",
    "identity.service_account_id",
    "identity.group_ids",
    "skill.id",
    "resource.id",
];

/// The form in which names are compared: of the spellings that the generator knows.
pub fn fold(text: &str) -> String {
    fold_part(text).trim().to_owned()
}

/// The group that a word claims, folded.
fn claimed(field: &str, word: &str) -> Option<String> {
    let key = fold(word);
    let claimed = key
        .strip_prefix("claimed:")
        .filter(|_| field == "identity.group_ids");
    claimed.map(str::to_owned)
}

fn fold_part(text: &str) -> String {
    text.replace(['\u{200b}', '\u{ad}'], "")
        .replace("e\u{301}", "é")
        .to_lowercase()
}

impl World {
    pub fn meant(&self, field: &str, word: &str) -> Vec<&NamedRecord> {
        let key = fold(word);
        let has = |one: &&NamedRecord| {
            one.field == field && (fold(&one.id) == key || one.words.iter().any(|word| fold(word) == key))
        };
        self.all.iter().filter(has).collect()
    }

    /// Whether two records have the word.
    pub fn is_shared(&self, field: &str, word: &str) -> bool {
        self.tells_shared && self.meant(field, word).len() > 1
    }

    fn is_nobody(&self, field: &str, word: &str) -> bool {
        let is_unheard = || {
            self.is_complete
                && matches!(field, "identity.user_id" | "identity.service_account_id")
                && self.meant(field, word).is_empty()
        };
        let is_strange = || {
            let mut closed = CLOSED.iter();
            closed.any(|(of, words)| *of == field && !words.contains(&fold(word).as_str()))
        };
        NAMES.contains(&field) && (fold(word).is_empty() || is_strange() || is_unheard())
    }

    /// What a word is called when its events are remembered.
    fn stream(&self, field: &str, word: &str) -> String {
        match self.meant(field, word).as_slice() {
            [one] => fold(&one.id),
            _ => fold(word),
        }
    }

    /// Every way in which the words of an event can be meant.
    fn choices(&self, event: &Plain) -> Vec<Choice> {
        let mut all = vec![Vec::new()];
        for field in REGISTERS {
            let words = match event.state(field) {
                State::Present(Value::Array(items)) => items.clone(),
                State::Present(word) => vec![word.clone()],
                _ => continue,
            };
            let words: BTreeSet<String> = words.iter().map(|word| fold(word.as_str().unwrap())).collect();
            for word in words {
                let meant = self.meant(field, &word);
                if meant.len() < 2 {
                    continue;
                }
                let with = |choice: &Choice, one: &NamedRecord| {
                    let mut choice = choice.clone();
                    choice.push((field.to_owned(), word.clone(), one.id.clone()));
                    choice
                };
                all = all
                    .iter()
                    .flat_map(|choice| meant.iter().map(move |one| with(choice, one)))
                    .collect();
            }
        }
        all
    }
}

impl Plain {
    fn state(&self, name: &str) -> State<'_> {
        match self.attributes.get(name) {
            Some(value) => State::Present(value),
            None if self.missing.contains(&name) => State::Missing,
            None => State::Absent,
        }
    }

    /// Whose past it belongs to: `Err` with an attribute whose name nobody can say, `Ok(None)` for nobody.
    fn subject(&self, world: &World) -> Result<Option<(&'static str, &str)>, &'static str> {
        for name in ["identity.user_id", "identity.service_account_id", "device.id"] {
            match self.state(name) {
                State::Present(value) if world.is_nobody(name, value.as_str().unwrap()) => return Err(name),
                State::Present(value) => return Ok(Some((name, value.as_str().unwrap()))),
                State::Missing => return Err(name),
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
pub fn judge(world: &World, policies: &[(&'static str, Value)], events: &[Plain], at: usize) -> Verdict {
    let event = &events[at];
    let mut verdict = Verdict {
        action: "allow",
        unknown: false,
        matched: BTreeSet::new(),
        findings: BTreeSet::new(),
    };
    let choices = world.choices(event);
    // What is not known otherwise is asked for each way in which the words can be meant.
    let decide = |ask: &dyn Fn(Option<&Choice>) -> TruthValue| {
        let first = ask(None);
        if first != Maybe || choices.len() == 1 || choices.len() > 32 {
            return first;
        }
        let all: BTreeSet<TruthValue> = choices.iter().map(|choice| ask(Some(choice))).collect();
        if all.len() == 1 {
            all.into_iter().next().unwrap()
        } else {
            Maybe
        }
    };
    let mut lists: BTreeMap<String, Vec<(String, &Value, &str)>> = BTreeMap::new();
    for (family, policy) in policies {
        if *family != event.family || policy["enabled"] == json!(false) || !is_here(family, policy, event) {
            continue;
        }
        let id = policy["id"].as_str().unwrap().to_owned();
        let truth = decide(&|choice| {
            let see = Sight {
                world,
                events,
                at,
                policy,
                choice,
            };
            see.scope(family)
                .min(see.condition(family))
                .min(not(see.excepted()))
        });
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
            lists.entry(fold(&names)).or_default().push((id, policy, family));
        }
    }
    for members in lists.values() {
        let truth = decide(&|choice| {
            let each = members.iter().map(|(_, policy, family)| {
                let see = Sight {
                    world,
                    events,
                    at,
                    policy,
                    choice,
                };
                let condition = see.condition(family);
                (condition, condition.min(see.scope(family)))
            });
            let each: Vec<(TruthValue, TruthValue)> = each.collect();
            let named = each.iter().map(|one| one.0).max().unwrap();
            named.min(not(each.iter().map(|one| one.1).max().unwrap()))
        });
        for (id, _, _) in members {
            add(&mut verdict, id, "block", truth, "not_allowed", false);
        }
    }
    verdict
}

fn add(
    verdict: &mut Verdict,
    id: &str,
    action: &'static str,
    truth: TruthValue,
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

/// One policy at one event.
#[derive(Clone, Copy)]
struct Sight<'a> {
    world: &'a World,
    events: &'a [Plain],
    at: usize,
    policy: &'a Value,
    choice: Option<&'a Choice>,
}

impl Sight<'_> {
    fn event(&self) -> &Plain {
        &self.events[self.at]
    }

    fn condition(&self, family: &str) -> TruthValue {
        if family == "skill_acl" {
            return self.node(&json!({"field": "skill.id", "op": "eq", "value": self.policy["skillId"]}));
        }
        self.node(&self.policy["conditions"])
    }

    fn scope(&self, family: &str) -> TruthValue {
        let scope = &self.policy[if family == "skill_acl" {
            "subjects"
        } else {
            "appliesTo"
        }];
        let names = |member: &str| -> Vec<Value> {
            let items = scope[member].as_array().cloned().unwrap_or_default();
            items
                .into_iter()
                .map(|item| {
                    if item.is_string() {
                        item
                    } else {
                        item["name"].clone()
                    }
                })
                .collect()
        };
        let one = |member: &str, field: &str| {
            let names = names(member);
            let op = if member == "groups" { "contains_any" } else { "in" };
            let node = json!({"field": field, "op": op, "value": names});
            (!names.is_empty()).then(|| self.predicate(node.as_object().unwrap()))
        };
        let who = [
            ("users", "identity.user_id"),
            ("groups", "identity.group_ids"),
            ("serviceAccounts", "identity.service_account_id"),
        ];
        let who: Vec<TruthValue> = who.into_iter().filter_map(|(m, f)| one(m, f)).collect();
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

    /// Those whom a word means, as far as nothing is chosen.
    fn meant(&self, field: &str, word: &str) -> Vec<&NamedRecord> {
        let mut meant = self.world.meant(field, word);
        let chosen = self.choice.into_iter().flatten();
        for (of, key, id) in chosen {
            if of == field && *key == fold(word) {
                meant.retain(|one| one.id == *id);
            }
        }
        meant
    }

    /// Whether something holds for a word, for what it means.
    fn holds(&self, field: &str, word: &str, is: &dyn Fn(&str) -> bool) -> TruthValue {
        if self.world.is_nobody(field, word) {
            return Maybe;
        }
        if let Some(claimed) = claimed(field, word) {
            let meant = self.world.meant(field, &claimed);
            let named = meant.iter().flat_map(|one| one.words.iter().chain([&one.id]));
            let mut words = named.map(String::as_str).chain([claimed.as_str()]);
            let may = words.any(|word| !fold(word).is_empty() && is(word)) || is(word);
            return if may { Maybe } else { No };
        }
        let meant = self.meant(field, word);
        if meant.is_empty() {
            return three(is(word));
        }
        let each = meant.iter().map(|one| {
            let sure = is(&one.id)
                || one
                    .words
                    .iter()
                    .any(|word| !fold(word).is_empty() && is(word) && !self.world.is_shared(field, word));
            let may = one.words.iter().any(|word| !fold(word).is_empty() && is(word));
            match (sure, may) {
                (true, _) => Yes,
                (false, true) => Maybe,
                _ => No,
            }
        });
        let each: BTreeSet<TruthValue> = each.collect();
        if each.len() == 1 {
            each.into_iter().next().unwrap()
        } else {
            Maybe
        }
    }

    fn name(&self, field: &str, op: &str, value: &Value, wanted: &Value) -> TruthValue {
        let list = |wanted: &Value| -> Vec<String> {
            match wanted {
                Value::Array(items) => items.iter().map(|item| fold(item.as_str().unwrap())).collect(),
                Value::String(text) => vec![fold(text)],
                _ => Vec::new(),
            }
        };
        let wanted_names = list(wanted);
        if let Value::Array(members) = value {
            let words: Vec<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
            let any = |of: &[String]| {
                let each = words
                    .iter()
                    .map(|word| self.holds(field, word, &|face| of.contains(&fold(face))));
                each.max().unwrap_or(No)
            };
            let every = || {
                wanted_names
                    .iter()
                    .map(|one| any(std::slice::from_ref(one)))
                    .min()
                    .unwrap_or(Yes)
            };
            let within = || {
                let each = words
                    .iter()
                    .map(|word| self.holds(field, word, &|face| wanted_names.contains(&fold(face))));
                each.min().unwrap_or(Yes)
            };
            return match op {
                "exists" if !words.is_empty() && words.iter().all(|word| claimed(field, word).is_some()) => {
                    Maybe
                }
                "exists" => Yes,
                "contains" | "contains_any" => any(&wanted_names),
                "contains_all" => every(),
                "eq" => every().min(within()),
                _ => not(every().min(within())),
            };
        }
        let word = value.as_str().unwrap();
        let holds = |is: &dyn Fn(&str) -> bool| self.holds(field, word, is);
        let part = |trim: fn(&str) -> &str| {
            let folded = fold_part(wanted.as_str().unwrap());
            trim(&folded).to_owned()
        };
        let is_unseen = |part: &str| part.is_empty() && wanted != "";
        match op {
            "exists" if self.world.is_nobody(field, word) => Maybe,
            "exists" => Yes,
            "eq" | "in" => holds(&|face| wanted_names.contains(&fold(face))),
            "neq" | "not_in" => not(holds(&|face| wanted_names.contains(&fold(face)))),
            "contains" => match part(|text| text) {
                part if is_unseen(&part) => Maybe,
                part => holds(&|face| fold(face).contains(&part)),
            },
            "starts_with" => match part(str::trim_start) {
                part if is_unseen(&part) => Maybe,
                part => holds(&|face| fold(face).starts_with(&part)),
            },
            "ends_with" => match part(str::trim_end) {
                part if is_unseen(&part) => Maybe,
                part => holds(&|face| fold(face).ends_with(&part)),
            },
            _ => {
                // Of RE2, whose blanks are those of ASCII.
                let source = wanted.as_str().unwrap().replace("\\s", "[\\t\\n\\f\\r ]");
                let pattern = regex::Regex::new(&format!("(?i:{source})")).unwrap();
                holds(&|face| pattern.is_match(face) || pattern.is_match(&fold(face)))
            }
        }
    }

    /// The groups of the user who is chosen.
    fn chosen_groups(&self) -> Option<Value> {
        let (_, _, id) = self
            .choice?
            .iter()
            .find(|(field, _, _)| field == "identity.user_id")?;
        let user = self.world.all.iter().find(|one| one.id == *id)?;
        user.groups.as_ref().map(|groups| json!(groups))
    }

    fn excepted(&self) -> TruthValue {
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

    fn node(&self, node: &Value) -> TruthValue {
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
            "hasPriorEvent" => self.past("30d", |past, _| {
                past.iter().map(|at| self.then(*at, inner)).max().unwrap_or(No)
            }),
            "hasEventSequence" => {
                self.past(text(inner, "within"), |past, all| self.sequence(past, all, inner))
            }
            "eventCount" => self.past(text(inner, "within"), |past, _| {
                let all: Vec<TruthValue> = past.iter().map(|at| self.then(*at, &inner["where"])).collect();
                let least = all.iter().filter(|t| **t == Yes).count();
                let most = all.iter().filter(|t| **t != No).count();
                some_of(least..=most, inner)
            }),
            "priorDistinctValues" => self.past(text(inner, "within"), |past, _| self.distinct(past, inner)),
            _ => self.predicate(object),
        }
    }

    /// Asks a condition at an earlier event.
    fn then(&self, at: usize, node: &Value) -> TruthValue {
        let then = Sight {
            at,
            choice: None,
            ..*self
        };
        self.of_whom(at, then.node(node))
    }

    /// What an earlier event is worth: that of somebody unknown may be anybody's.
    fn of_whom(&self, at: usize, matches: TruthValue) -> TruthValue {
        match self.events[at].subject(self.world) {
            Ok(_) => matches,
            Err(_) => matches.min(Maybe),
        }
    }

    /// Gives the earlier events of the same subject and family within a time, and all of them.
    fn past(&self, within: &str, ask: impl Fn(&[usize], &[usize]) -> TruthValue) -> TruthValue {
        let event = self.event();
        let Ok(subject) = event.subject(self.world) else {
            return Maybe;
        };
        let Some((field, word)) = subject else {
            return ask(&[], &[]);
        };
        let meant = self.meant(field, word);
        let names = |one: &&NamedRecord| -> Vec<String> {
            let words = one.words.iter().map(String::as_str);
            words.chain([one.id.as_str(), word]).map(fold).collect()
        };
        let each: Vec<Vec<String>> = match meant.as_slice() {
            [] => vec![vec![fold(word)]],
            meant => meant.iter().map(names).collect(),
        };
        let start = event.at_ms - span(within);
        let answers = each.into_iter().map(|names| {
            let is_own = |at: &usize| {
                let other = &self.events[*at];
                let is_named =
                    |(of, word): (&str, &str)| of == field && names.contains(&self.world.stream(field, word));
                let is_anybodys_or_own = match other.subject(self.world) {
                    Ok(subject) => subject.is_some_and(is_named),
                    Err(unknown) => unknown == field,
                };
                other.family == event.family && is_anybodys_or_own
            };
            let all: Vec<usize> = (0..self.at).filter(is_own).collect();
            let within: Vec<usize> = all
                .iter()
                .copied()
                .filter(|at| self.events[*at].at_ms >= start)
                .collect();
            ask(&within, &all)
        });
        let answers: BTreeSet<TruthValue> = answers.collect();
        if answers.len() == 1 {
            answers.into_iter().next().unwrap()
        } else {
            Maybe
        }
    }

    fn sequence(&self, past: &[usize], all: &[usize], inner: &Value) -> TruthValue {
        let events = inner["events"].as_array().unwrap();
        let is_ordered = inner["ordered"] == json!(true);
        let found = |past: &[usize], least: TruthValue, is_ordered: bool| {
            if !is_ordered {
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
        // Events under several names: their order is not remembered.
        let apart = |past: &[usize]| {
            let mut streams: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for at in past {
                let stream = match self.events[*at].subject(self.world) {
                    Ok(subject) => {
                        let (field, word) = subject.unwrap();
                        self.world.stream(field, word)
                    }
                    Err(_) => String::new(),
                };
                streams.entry(stream).or_default().push(*at);
            }
            streams
        };
        if is_ordered && self.is_seen_apart(&apart(all), events) {
            if apart(past).values().any(|past| found(past, Yes, true)) {
                return Yes;
            }
            return if found(past, Maybe, false) { Maybe } else { No };
        }
        if found(past, Yes, is_ordered) {
            Yes
        } else if found(past, Maybe, is_ordered) {
            Maybe
        } else {
            No
        }
    }

    /// Whether events under more than one name may match something.
    fn is_seen_apart(&self, streams: &BTreeMap<String, Vec<usize>>, events: &[Value]) -> bool {
        let matches = |past: &&Vec<usize>| {
            past.iter()
                .any(|at| events.iter().any(|node| self.then(*at, node) != No))
        };
        streams.values().filter(matches).count() > 1
    }

    fn distinct(&self, past: &[usize], inner: &Value) -> TruthValue {
        let name = inner["field"].as_str().unwrap();
        let (mut sure, mut may) = (BTreeSet::new(), BTreeSet::new());
        let mut blank = 0;
        for at in past {
            let matches = match inner.get("where") {
                Some(node) => self.then(*at, node),
                None => self.of_whom(*at, Yes),
            };
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
                // A command is one value, whatever its form.
                Some(Ok(Value::Array(items))) if name == "tool.input.command" => {
                    vec![
                        items
                            .iter()
                            .map(|v| v.as_str().unwrap())
                            .collect::<Vec<_>>()
                            .join(" ")
                            .into(),
                    ]
                }
                Some(Ok(Value::Array(items))) => items,
                Some(Ok(value)) => vec![value],
            };
            let values = if NAMES.contains(&name) {
                let known = |value: Value| {
                    let word = value.as_str().unwrap();
                    let meant = self.world.meant(name, word);
                    let is_known =
                        !self.world.is_nobody(name, word) && meant.len() < 2 && claimed(name, word).is_none();
                    is_known.then(|| json!(self.world.stream(name, word)))
                };
                if let Some(values) = values.into_iter().map(known).collect::<Option<Vec<Value>>>() {
                    values
                } else {
                    blank += if self.is_set(name) { 5000 } else { 1 };
                    continue;
                }
            } else {
                values
            };
            for value in values {
                let value = if DOCUMENTS.contains(&name) {
                    let text = plain(&value);
                    let is_document = text.trim_start().starts_with(['{', '[']);
                    let same = document(&text).ok().and_then(|tree| canonical(&tree));
                    json!(same.filter(|_| is_document).unwrap_or(text))
                } else {
                    value
                };
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
                _ if name.starts_with("tool.input.") => self.followed(name),
                State::Absent => None,
                State::Missing => Some(Err(())),
                State::Present(value) => Some(Ok(value.clone())),
            };
        };
        let tree = match self.event().state("tool.input") {
            State::Absent => return None,
            State::Missing => return Some(Err(())),
            State::Present(value) => match input(value) {
                Input::Nothing => return None,
                Input::Unsaid(_) => return Some(Err(())),
                Input::Object(tree) => tree,
            },
        };
        let mut found = &tree;
        for part in name["tool.input.".len()..].split(['.', '[']) {
            found = match (part.strip_suffix(']'), found) {
                (_, Tree::Null) => return None,
                (_, Tree::Text(units)) if String::from_utf16(units).is_ok_and(|t| t.trim().is_empty()) => {
                    return None;
                }
                (Some(index), Tree::List(items)) => items.get(index.parse::<usize>().unwrap())?,
                (None, Tree::Object(_)) => found.member(part)?,
                _ => return Some(Err(())),
            };
        }
        let fits = match custom["valueType"].as_str().unwrap() {
            _ if *found == Tree::Null => return None,
            "string" => matches!(found, Tree::Text(_)),
            "number" => return Some(found.number().map(|number| json!(number)).ok_or(())),
            "boolean" => matches!(found, Tree::Boolean(_)),
            // Of an object only its being there is asked.
            "object" if matches!(found, Tree::Object(_)) => return Some(Ok(json!({}))),
            "object" => false,
            "content" => true,
            _ => match found {
                Tree::List(items) => items.iter().all(|item| matches!(item, Tree::Text(_))),
                _ => false,
            },
        };
        Some(found.exact().filter(|_| fits).ok_or(()))
    }

    /// A member of the input that the catalogue knows: what was sent beside the input, else what the input says. A list
    /// is a command with its words.
    fn followed(&self, name: &str) -> Option<Result<Value, ()>> {
        let given = match self.event().state(name) {
            State::Missing => return Some(Err(())),
            State::Absent => None,
            State::Present(value) => Some(value),
        };
        let beside = |said: Option<Result<Value, ()>>| match given {
            Some(value) => Some(Ok(value.clone())),
            None => said,
        };
        let tree = match self.event().state("tool.input") {
            State::Absent => return beside(None),
            State::Missing => return beside(Some(Err(()))),
            State::Present(value) => match input(value) {
                Input::Nothing => return beside(None),
                Input::Unsaid(true) => return Some(Err(())),
                Input::Unsaid(false) => return beside(Some(Err(()))),
                Input::Object(tree) => tree,
            },
        };
        let is_command = name == "tool.input.command";
        let exact = match tree.member(&name["tool.input.".len()..]) {
            None | Some(Tree::Null) => return beside(None),
            Some(member) => member.exact(),
        };
        let words = |items: &[Value]| {
            items
                .iter()
                .map(|i| i.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        };
        match exact {
            Some(Value::String(text)) => beside(Some(Ok(text.into()))),
            Some(Value::Array(items)) => match words(&items) {
                // What was sent beside it is this very list, or something else.
                Some(words) if given.is_none_or(|given| *given == json!(words.join(" "))) => {
                    Some(if is_command { Ok(items.into()) } else { Err(()) })
                }
                None if given == Some(&json!(Value::from(items.clone()).to_string())) => Some(Err(())),
                _ => beside(Some(Err(()))),
            },
            Some(object @ Value::Object(_))
                if given.is_none_or(|given| *given == json!(object.to_string())) =>
            {
                Some(Err(()))
            }
            Some(Value::Object(_)) | None => beside(Some(Err(()))),
            Some(word) => beside(Some(Ok(word.to_string().into()))),
        }
    }

    fn predicate(&self, node: &Map<String, Value>) -> TruthValue {
        let name = node["field"].as_str().unwrap();
        let value = match self.value(name) {
            None => return No,
            Some(Err(())) => match self.chosen_groups() {
                Some(groups) if name == "identity.group_ids" => groups,
                _ => return Maybe,
            },
            Some(Ok(value)) => value,
        };
        let (op, wanted) = (
            node["op"].as_str().unwrap(),
            node.get("value").unwrap_or(&Value::Null),
        );
        if NAMES.contains(&name) {
            return self.name(name, op, &value, wanted);
        }
        if DOCUMENTS.contains(&name) {
            return self.document(name, op, &value, wanted);
        }
        if name == "tool.input.command" && value.is_array() {
            let mut texts: Vec<&str> = value
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_str().unwrap())
                .collect();
            let whole = texts.join(" ");
            texts.push(&whole);
            let any = |op| {
                texts
                    .iter()
                    .any(|text| self.value_holds(name, op, &json!(text), wanted))
            };
            return three(match op {
                "neq" => !any("eq"),
                "not_in" => !any("in"),
                op => any(op),
            });
        }
        three(self.value_holds(name, op, &value, wanted))
    }

    /// Content that may be a document.
    fn document(&self, name: &str, op: &str, value: &Value, wanted: &Value) -> TruthValue {
        if op == "exists" {
            return Yes;
        }
        let text = plain(value);
        let is_asked = |text: &str| self.value_holds(name, op, &json!(text), wanted);
        let begin = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if !begin.starts_with(['{', '[']) {
            return three(is_asked(&text));
        }
        let read = document(&text);
        let canonical = read.as_ref().ok().and_then(canonical);
        let is_unread = canonical.is_none() && (read.is_ok() || name.starts_with("tool."));
        let is = |wanted: &Value| {
            let wanted = wanted.as_str().unwrap();
            let is_document = wanted.trim_start().starts_with(['{', '[']);
            let same = document(wanted)
                .ok()
                .and_then(|tree| crate::naive::canonical(&tree));
            let same = same.filter(|_| is_document).unwrap_or_else(|| wanted.to_owned());
            if *canonical.as_ref().unwrap_or(&text) == same {
                Yes
            } else if is_unread && is_document && begin.chars().next() == wanted.trim_start().chars().next() {
                Maybe
            } else {
                No
            }
        };
        match op {
            "eq" => return is(wanted),
            "neq" => return not(is(wanted)),
            "in" => return wanted.as_array().unwrap().iter().map(is).max().unwrap(),
            "not_in" => return not(wanted.as_array().unwrap().iter().map(is).max().unwrap()),
            _ => {}
        }
        let mut parts = Vec::new();
        if let Ok(tree) = &read {
            tree.each_part(&mut |part, is_text| parts.push((part, is_text)));
        }
        let asks_for_ends = op == "starts_with"
            || op == "ends_with"
            || op == "matches" && wanted.as_str().unwrap().contains(['^', '$']);
        let in_quotes =
            |(part, is_text): &(String, bool)| *is_text && !asks_for_ends && is_asked(&format!("\"{part}\""));
        if is_asked(&text) || canonical.as_deref().is_some_and(is_asked) || parts.iter().any(in_quotes) {
            return Yes;
        }
        let wanted = wanted.as_str().unwrap();
        let may = match (&read, op) {
            (Ok(_), _) => is_unread || parts.iter().any(|(part, _)| is_asked(part)),
            (Err(_), _) if !is_unread => false,
            (Err(_), _) if text.contains('\\') => true,
            (Err(_), "starts_with" | "ends_with") => text.contains(wanted),
            (Err(_), "matches") => wanted.contains(['^', '$']),
            (Err(_), _) => false,
        };
        if may { Maybe } else { No }
    }

    fn value_holds(&self, name: &str, op: &str, value: &Value, wanted: &Value) -> bool {
        match op {
            "exists" => true,
            "eq" if self.is_set(name) => members(value) == members(wanted),
            "neq" if self.is_set(name) => members(value) != members(wanted),
            "contains" if self.is_set(name) => members(value).contains(wanted.as_str().unwrap()),
            "contains_any" => !members(value).is_disjoint(&members(wanted)),
            "contains_all" => members(wanted).is_subset(&members(value)),
            "eq" => same(value, wanted),
            "neq" => !same(value, wanted),
            "in" => wanted.as_array().unwrap().iter().any(|w| same(value, w)),
            "not_in" => !wanted.as_array().unwrap().iter().any(|w| same(value, w)),
            "contains" => plain(value).contains(wanted.as_str().unwrap()),
            "starts_with" => plain(value).starts_with(wanted.as_str().unwrap()),
            "ends_with" => plain(value).ends_with(wanted.as_str().unwrap()),
            "matches" => regex::Regex::new(wanted.as_str().unwrap())
                .unwrap()
                .is_match(&plain(value)),
            _ => compare(op, &value.as_f64().unwrap(), &wanted.as_f64().unwrap()),
        }
    }
}

/// What may be a document, of what the generator uses.
const DOCUMENTS: [&str; 2] = ["request.prompt", "tool.input"];

/// The text that every spelling of a document has.
fn canonical(tree: &Tree) -> Option<String> {
    (tree.levels() <= 127).then(|| tree.exact().map(|value| shortest(value).to_string()))?
}

fn shortest(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(shortest).collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, v)| (name, shortest(v))).collect())
        }
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
            Some(f) if number.is_f64() && f.fract() == 0.0 && f.abs() < 1e18 => json!(f as i64),
            _ => number.into(),
        },
        other => other,
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

fn some_of(counts: std::ops::RangeInclusive<usize>, inner: &Value) -> TruthValue {
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

/// Units: milliseconds.
fn span(within: &str) -> i64 {
    let (digits, unit) = within.split_at(within.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 86_400,
    };
    digits.parse::<i64>().unwrap() * seconds * 1000
}
