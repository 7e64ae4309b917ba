//! What the naive evaluator finds: every count of the results, event by event.

use crate::naive::{self, Plain, Verdict};
use crate::support::{Policies, id, occasion, plain};
use provost_backtest::record::OwnedRecord;
use provost_backtest::run::{Question, SubjectKind};
use provost_policy::{Event, Family, Field, PolicySet, Projection, Symbols, Value as AttributeValue};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// A question to the naive evaluator.
pub struct Naive<'a> {
    pub policies: [&'a Policies; 2],
    pub sets: [&'a Arc<PolicySet>; 2],
    pub events: &'a [Plain],
    pub question: &'a Question,
}

/// Evaluated, or matched; and changed.
type Pair = (u64, u64);

#[derive(Default)]
struct Counts<'a> {
    by_word: BTreeMap<&'static str, u64>,
    by_change: BTreeMap<String, u64>,
    /// By the baseline and by the candidate.
    by_policy: BTreeMap<(&'static str, String), [Pair; 2]>,
    /// By family, policy, cause and attribute: of the baseline and of the candidate.
    failures: BTreeMap<(usize, String, &'static str, Option<&'static str>), [u64; 2]>,
    by_subject: BTreeMap<(SubjectKind, &'a str), Pair>,
    by_tool: BTreeMap<&'a str, Pair>,
    by_day: BTreeMap<i64, Pair>,
    behaviours: BTreeMap<String, (u64, Value)>,
}

fn text<'a>(event: &'a Plain, name: &str) -> Option<&'a str> {
    event.attributes.get(name).and_then(Value::as_str)
}

/// The subject of an event: nothing where nobody knows.
fn subject(event: &Plain) -> Option<(SubjectKind, &str)> {
    for (name, kind) in [
        ("identity.user_id", SubjectKind::User),
        ("identity.service_account_id", SubjectKind::ServiceAccount),
        ("device.id", SubjectKind::Device),
    ] {
        if event.missing.contains(&name) {
            return None;
        }
        if let Some(id) = text(event, name) {
            return Some((kind, id));
        }
    }
    None
}

fn tool(event: &Plain) -> Option<&str> {
    text(event, "tool.id").or_else(|| text(event, "mcp.tool_id"))
}

fn instant(at_ms: i64) -> String {
    let instant = jiff::Timestamp::from_millisecond(at_ms).unwrap();
    format!("{instant:.3}")
}

/// The policies whose action is the decision.
fn deciding(policies: &Policies, verdict: &Verdict) -> BTreeSet<String> {
    let acts = |(id, reason): &&(String, &'static str)| {
        let (_, policy) = policies.iter().find(|(_, p)| p["id"] == json!(id)).unwrap();
        let action = policy["action"].as_str().or(policy["effect"].as_str()).unwrap();
        match *reason {
            "not_allowed" => verdict.action == "block",
            _ => action == verdict.action && policy["enforcement"] != json!("monitor"),
        }
    };
    let found = verdict.findings.iter().filter(acts);
    found.map(|(id, _)| id.clone()).collect()
}

impl Naive<'_> {
    /// The results as JSON, in the order of `plain`.
    pub fn results(&self) -> Value {
        let question = self.question;
        let window = question.from_ms..question.to_ms;
        let all: Vec<usize> = (0..self.events.len())
            .filter(|at| window.contains(&self.events[*at].at_ms))
            .collect();
        let most = usize::try_from(question.max_events).unwrap();
        let read = &all[all.len().saturating_sub(most)..];
        let start = if read.len() < all.len() {
            self.events[read[0]].at_ms
        } else {
            question.from_ms
        };
        let start = start.saturating_sub(30 * DAY_MS);
        let first = self.events.partition_point(|event| event.at_ms < start);
        let known = &self.events[first..];
        let mut counts = Counts::default();
        for at in read.iter().filter(|at| self.is_asked_for(&self.events[**at])) {
            let verdicts = self
                .policies
                .map(|policies| naive::judge(&naive::World::default(), policies, known, at - first));
            self.count(&mut counts, *at, &verdicts);
        }
        let mut results = self.render(counts);
        if let (Some(oldest), Some(newest)) = (read.first(), read.last()) {
            results["oldestEventAt"] = json!(instant(self.events[*oldest].at_ms));
            results["newestEventAt"] = json!(instant(self.events[*newest].at_ms));
        }
        plain(results)
    }

    fn is_asked_for(&self, event: &Plain) -> bool {
        let filters = &self.question.filters;
        let has = |list: &[String], one: Option<&str>| {
            list.is_empty() || one.is_some_and(|one| list.iter().any(|item| item == one))
        };
        has(&filters.subject_ids, subject(event).map(|(_, id)| id))
            && has(&filters.tools, tool(event))
            && has(&filters.resource_ids, text(event, "resource.id"))
    }

    fn count<'e>(&'e self, counts: &mut Counts<'e>, at: usize, verdicts: &[Verdict; 2]) {
        let event = &self.events[at];
        let [before, after] = verdicts;
        let word = match () {
            () if before.unknown || after.unknown => "unknown",
            () if before.action == after.action => "unchanged",
            () => "changed",
        };
        let is_changed = word == "changed";
        *counts.by_word.entry(word).or_default() += 1;
        let add = |sums: &mut Pair| *sums = (sums.0 + 1, sums.1 + u64::from(is_changed));
        for (which, verdict) in verdicts.iter().enumerate() {
            for id in &verdict.matched {
                let mut policies = self.policies[which].iter();
                let (of, _) = policies.find(|(_, p)| p["id"] == json!(id)).unwrap();
                add(&mut counts.by_policy.entry((of, id.clone())).or_default()[which]);
            }
        }
        for (which, verdict) in verdicts.iter().enumerate() {
            self.fail(counts, which, event, verdict);
        }
        if let Some(subject) = subject(event) {
            add(counts.by_subject.entry(subject).or_default());
        }
        if let Some(tool) = tool(event) {
            add(counts.by_tool.entry(tool).or_default());
        }
        add(counts.by_day.entry(event.at_ms.div_euclid(DAY_MS)).or_default());
        if is_changed {
            let change = format!("{}_to_{}", before.action, after.action);
            *counts.by_change.entry(change.clone()).or_default() += 1;
            let key = format!(
                "{} {change} {:?} {:?}",
                self.projection(event),
                subject(event),
                tool(event)
            );
            // Events come oldest first, and in the order of their ids.
            let known = counts.behaviours.entry(key).or_default();
            *known = (known.0 + 1, self.sample(at, verdicts));
        }
    }

    /// Counts why enforced policies could not judge an event.
    fn fail(&self, counts: &mut Counts<'_>, which: usize, event: &Plain, verdict: &Verdict) {
        let failed = verdict
            .findings
            .iter()
            .filter(|(_, reason)| *reason == "evaluation_failed");
        for (id, _) in failed {
            let (of, policy) = self.policies[which]
                .iter()
                .find(|(_, p)| p["id"] == json!(id))
                .unwrap();
            if policy["enforcement"] == json!("monitor") {
                continue;
            }
            let place = Family::ALL
                .iter()
                .position(|family| family.word() == *of)
                .unwrap();
            let set = self.sets[which].policies().iter();
            let compiled = set.clone().find(|policy| policy.id() == id.as_str()).unwrap();
            let read: Vec<&str> = compiled.fields().iter().map(|field| field.name()).collect();
            // An attribute below the tool's input is missing with it, and where the input has it in no readable form.
            let mut symbols = Symbols::new();
            let whole = (&event.attributes, &event.missing);
            let whole = Event::read(&mut symbols, event.at_ms, occasion(event), whole.0, whole.1).unwrap();
            let lacking = Field::all().filter(|field| whole.get(*field) == AttributeValue::Missing);
            let lacking = lacking
                .map(Field::name)
                .filter(|name| compiled.is_rego() || read.contains(name));
            let mut causes: Vec<_> = lacking.map(|name| ("missing_attribute", Some(name))).collect();
            if causes.is_empty() {
                let word = if compiled.is_rego() {
                    "module_failed"
                } else {
                    "undecided"
                };
                causes.push((word, None));
            }
            for (word, attribute) in causes {
                let key = (place, id.clone(), word, attribute);
                counts.failures.entry(key).or_default()[which] += 1;
            }
        }
    }

    fn projection(&self, event: &Plain) -> String {
        let mut symbols = Symbols::new();
        let owned =
            OwnedRecord::read(event.at_ms, occasion(event), &event.attributes, &event.missing).unwrap();
        let event = owned.event(&mut symbols);
        Projection::of(&[self.sets[0], self.sets[1]]).digest(&event, &symbols)
    }

    fn sample(&self, at: usize, verdicts: &[Verdict; 2]) -> Value {
        let event = &self.events[at];
        let decision = |which: usize| {
            let verdict = &verdicts[which];
            json!({"decision": verdict.action, "policyIds": deciding(self.policies[which], verdict)})
        };
        let mut sample = json!({"eventId": id(at), "at": instant(event.at_ms), "action": event.occasion, "imported": false,
            "baseline": decision(0), "candidate": decision(1)});
        if let Some((kind, id)) = subject(event) {
            sample["subjectId"] = json!(id);
            sample["kind"] = json!(kind);
        }
        if let Some(tool) = tool(event) {
            sample["tool"] = json!(tool);
        }
        sample
    }

    fn render(&self, counts: Counts<'_>) -> Value {
        let count = |word: &str| counts.by_word.get(word).copied().unwrap_or(0);
        let pair = |name: &str, id: &str, (evaluated, differing): Pair| json!({name: id, "evaluated": evaluated, "changed": differing});
        let with_kind = |(kind, id): (SubjectKind, &str), sums| {
            let mut line = pair("subjectId", id, sums);
            line["kind"] = json!(kind);
            line
        };
        let days = counts.by_day.iter();
        let samples = counts.behaviours.into_values().map(|(count, mut sample)| {
            sample["count"] = json!(count);
            sample
        });
        let mut failures: Vec<_> = counts.failures.iter().collect();
        failures.sort_by_key(|(_, [before, after])| std::cmp::Reverse(*before.max(after)));
        let failures = failures.into_iter().take(20).map(
            |((place, id, cause, attribute), [before, after])| {
                let mut line = json!({"policyId": id, "family": Family::ALL[*place].word(), "cause": cause,
                "baseline": before, "candidate": after});
                if let Some(attribute) = attribute {
                    line["attribute"] = json!(attribute);
                }
                line
            },
        );
        let failures: Vec<Value> = failures.collect();
        let mut results = json!({
            "eventsEvaluated": counts.by_word.values().sum::<u64>(), "unchanged": count("unchanged"),
            "changed": count("changed"), "errors": 0, "unknown": count("unknown"), "byChange": counts.by_change,
            "byPolicy": self.policies_of(&counts.by_policy),
            "bySubject": ranked(counts.by_subject.into_iter().map(|(key, sums)| with_kind(key, sums)), "evaluated"),
            "byTool": ranked(counts.by_tool.into_iter().map(|(id, sums)| pair("tool", id, sums)), "evaluated"),
            "byDay": days.map(|(day, sums)| pair("day", &instant(day * DAY_MS)[..10], *sums)).collect::<Vec<_>>(),
            "samples": samples.collect::<Vec<_>>(),
        });
        if !failures.is_empty() {
            results["byFailure"] = json!(failures);
        }
        results
    }

    /// The policies of both sets, the candidate's where both have one.
    fn policies_of(&self, by_policy: &BTreeMap<(&'static str, String), [Pair; 2]>) -> Vec<Value> {
        let mut lines: BTreeMap<(usize, String), Value> = BTreeMap::new();
        for (which, set) in self.sets.iter().enumerate() {
            for policy in set.policies() {
                let (of, id) = (policy.family(), policy.id().to_owned());
                let sums = by_policy.get(&(of.word(), id.clone()));
                let (matched, differing) = sums.map_or((0, 0), |both| both[which]);
                let place = Family::ALL.iter().position(|family| *family == of).unwrap();
                let line =
                    json!({"policyId": id, "family": of.word(), "matched": matched, "changed": differing});
                lines.insert((place, id), line);
            }
        }
        ranked(lines.into_values(), "matched")
    }
}

/// Those with the most changed events first; else they stay in their order, that of their ids.
fn ranked(lines: impl Iterator<Item = Value>, of: &str) -> Vec<Value> {
    let mut lines: Vec<Value> = lines.collect();
    lines.sort_by_key(|line| {
        let number = |name: &str| line[name].as_u64().unwrap();
        let id = line.get("subjectId").and_then(Value::as_str).unwrap_or_default();
        (std::cmp::Reverse((number("changed"), number(of))), id.to_owned())
    });
    lines
}
