//! What a run found, in the form of the wire. Source: D9.4.

use super::failures::{ByFailure, causes};
use super::totals::{Behaviour, Name, SubjectKind, Totals, ids};
use super::work::is_lost;
use super::{Engine, judge};
use crate::record::{self, Origin};
use provost_history::{EventPosition, Plan, Result};
use provost_policy::{Action, Family, PolicySet, document_sha256};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// LIMIT: lines of a breakdown, and samples. Source: D9.4.
const LINES: usize = 50;
const SAMPLES: usize = 100;

/// What a run found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// Events that were asked for: the sum of the next four.
    pub events_evaluated: u64,
    /// Events with the same decision.
    pub unchanged: u64,
    /// Events with different decisions.
    pub changed: u64,
    /// Recorded events that cannot be read.
    pub errors: u64,
    /// The chunks and segments in which they lie, those with the most first. An event that was read and names no occasion is
    /// in none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableSource>,
    /// Events that one of the two sets could not judge.
    pub unknown: u64,
    /// Why policies could not judge events, those causes with the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_failure: Vec<ByFailure>,
    /// Changed events by `<from>_to_<to>`; those that occur.
    pub by_change: ByChange,
    /// The instant of the newest event that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_event_at: Option<String>,
    /// The instant of the oldest event that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_event_at: Option<String>,
    /// Policies of both sets, those with the most changed events first.
    pub by_policy: Vec<ByPolicy>,
    /// Subjects, those with the most changed events first.
    pub by_subject: Vec<BySubject>,
    /// Tools, those with the most changed events first.
    pub by_tool: Vec<ByTool>,
    /// Days with events, ascending, UTC.
    pub by_day: Vec<ByDay>,
    /// The most frequent changed behaviours, each with its newest event.
    pub samples: Vec<Sample>,
    /// Whether there were too many changed behaviours to count each: the samples are those of a part, chosen by digest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples_capped: bool,
    /// Whether there were too many subjects or tools to count each: the breakdowns are those of a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breakdowns_capped: bool,
}

/// A chunk or segment with events that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableSource {
    /// Its name.
    pub name: String,
    /// How many of its events cannot be read.
    pub events: u64,
}

/// Counts of changes, in the order of the actions, the baseline's first.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(with = "BTreeMap<String, u64>")]
pub struct ByChange(pub Vec<(Action, Action, u64)>);

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByPolicy {
    /// Its id.
    pub policy_id: String,
    /// Its family.
    pub family: String,
    /// Events that it matches for sure: the candidate's policy, or the baseline's where the candidate has none.
    pub matched: u64,
    /// Changed events that it matches for sure.
    pub changed: u64,
}

/// A subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BySubject {
    /// Its id.
    pub subject_id: String,
    /// What it is.
    pub kind: SubjectKind,
    /// Its changed events.
    pub changed: u64,
    /// Its events that could be read.
    pub evaluated: u64,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByTool {
    /// Its id.
    pub tool: String,
    /// Its changed events.
    pub changed: u64,
    /// Its events that could be read.
    pub evaluated: u64,
}

/// A day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByDay {
    /// The date, UTC.
    pub day: String,
    /// Events that could be read.
    pub evaluated: u64,
    /// Changed events.
    pub changed: u64,
}

/// A changed behaviour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Its newest event.
    pub event_id: String,
    /// When that happened.
    pub at: String,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// What the subject is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SubjectKind>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The name under which the event came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The principal that handed it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
    /// Whether it was imported; nothing where that cannot be read any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    /// Where it is judged.
    pub action: String,
    /// How many events behave so.
    pub count: u64,
    /// What the baseline decides.
    pub baseline: SampleDecision,
    /// What the candidate decides.
    pub candidate: SampleDecision,
}

/// What a set decides on a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SampleDecision {
    /// The action.
    pub decision: String,
    /// The policies whose action it is.
    pub policy_ids: Vec<String>,
}

impl Results {
    /// Returns the SHA-256 of the canonical JSON, in hexadecimal. Source: D9.6.
    pub fn digest(&self) -> String {
        document_sha256(&serde_json::to_value(self).unwrap_or_default())
    }

    pub(super) fn of(engine: &Engine<'_>, mut totals: Totals, plan: &Plan) -> Result<Self> {
        totals.behaviours.cut();
        totals.subjects.cut();
        totals.tools.cut();
        let sums = &totals.comparison;
        let mut changes = Vec::new();
        for (from, row) in Action::ALL.into_iter().zip(&sums.by_change) {
            let row = Action::ALL.into_iter().zip(row);
            changes.extend(
                row.filter(|(_, count)| **count > 0)
                    .map(|(to, count)| (from, to, *count)),
            );
        }
        Ok(Self {
            events_evaluated: sums.evaluated + totals.errors,
            unchanged: sums.unchanged,
            changed: sums.changed,
            errors: totals.errors,
            unreadable: lost(&totals),
            unknown: sums.unknown,
            by_failure: causes(engine, &totals),
            by_change: ByChange(changes),
            newest_event_at: totals.span.map(|span| instant(span.1)),
            oldest_event_at: totals.span.map(|span| instant(span.0)),
            by_policy: policies(engine, &totals),
            by_subject: subjects(&totals),
            by_tool: tools(&totals),
            by_day: totals
                .days
                .iter()
                .map(|(day, (evaluated, changed))| ByDay {
                    day: instant(day.saturating_mul(judge::DAY_MS))
                        .chars()
                        .take(10)
                        .collect(),
                    evaluated: *evaluated,
                    changed: *changed,
                })
                .collect(),
            samples: samples(engine, &totals, plan)?,
            samples_capped: totals.behaviours.is_capped(),
            breakdowns_capped: totals.subjects.is_capped() || totals.tools.is_capped(),
        })
    }
}

fn lost(totals: &Totals) -> Vec<UnreadableSource> {
    let lost = totals.lost.iter().map(|(name, events)| UnreadableSource {
        name: name.clone(),
        events: *events,
    });
    let mut lost: Vec<UnreadableSource> = lost.collect();
    lost.sort_by_key(|lost| std::cmp::Reverse(lost.events));
    lost.truncate(LINES);
    lost
}

fn policies(engine: &Engine<'_>, totals: &Totals) -> Vec<ByPolicy> {
    let sums = &totals.comparison;
    let sets = [
        (
            engine.baseline,
            &sums.matched_by_baseline,
            &sums.changed_by_baseline,
        ),
        (
            engine.candidate,
            &sums.matched_by_candidate,
            &sums.changed_by_candidate,
        ),
    ];
    // The candidate comes second and replaces what the baseline said.
    let mut lines: BTreeMap<(Family, &str), (u64, u64)> = BTreeMap::new();
    for (set, matched, changed) in sets {
        for (at, policy) in set.policies().iter().enumerate() {
            let of = |list: &[u64]| list.get(at).copied().unwrap_or(0);
            lines.insert((policy.family(), policy.id()), (of(matched), of(changed)));
        }
    }
    let mut lines: Vec<ByPolicy> = lines
        .into_iter()
        .map(|((family, id), (matched, changed))| ByPolicy {
            policy_id: id.to_owned(),
            family: family.word().to_owned(),
            matched,
            changed,
        })
        .collect();
    // The sort is stable: what agrees in both stays in the order of family and id.
    lines.sort_by_key(|line| std::cmp::Reverse((line.changed, line.matched)));
    lines.truncate(LINES);
    lines
}

fn first<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<&'a Name> {
    let mut all: Vec<&Name> = names.collect();
    all.sort_by(|a, b| {
        let counts = (b.changed, b.evaluated).cmp(&(a.changed, a.evaluated));
        counts.then_with(|| (&a.text, a.kind).cmp(&(&b.text, b.kind)))
    });
    all.truncate(LINES);
    all
}

fn subjects(totals: &Totals) -> Vec<BySubject> {
    let names = first(totals.subjects.iter().map(|(_, name)| name)).into_iter();
    let line = |name: &Name| {
        Some(BySubject {
            subject_id: name.text.to_string(),
            kind: name.kind?,
            changed: name.changed,
            evaluated: name.evaluated,
        })
    };
    names.filter_map(line).collect()
}

fn tools(totals: &Totals) -> Vec<ByTool> {
    let names = first(totals.tools.iter().map(|(_, name)| name)).into_iter();
    names
        .map(|name| ByTool {
            tool: name.text.to_string(),
            changed: name.changed,
            evaluated: name.evaluated,
        })
        .collect()
}

fn samples(engine: &Engine<'_>, totals: &Totals, plan: &Plan) -> Result<Vec<Sample>> {
    let mut all: Vec<(u128, &Behaviour)> = totals.behaviours.iter().collect();
    let order = |(mark, behaviour): &(u128, &Behaviour)| (std::cmp::Reverse(behaviour.count), *mark);
    if all.len() > SAMPLES {
        all.select_nth_unstable_by_key(SAMPLES, order);
        all.truncate(SAMPLES);
    }
    all.sort_unstable_by_key(order);
    let nameless: Vec<_> = all
        .iter()
        .filter(|(_, behaviour)| behaviour.whence.id.is_none())
        .filter_map(|(_, behaviour)| behaviour.whence.place())
        .collect();
    let mut found = ids(plan, &nameless)?.into_iter();
    let origins = origins(plan, all.iter().filter_map(|(_, one)| one.whence.place()))?;
    let mut samples = Vec::with_capacity(all.len());
    for (_, behaviour) in all {
        let id = match &behaviour.whence.id {
            Some(id) => Some(id.to_string()),
            None => found.next().flatten(),
        };
        // Without an id there is nothing to show; its events are counted all the same.
        if let Some(event_id) = id.filter(|id| !id.is_empty()) {
            let place = behaviour.whence.place();
            let origin = place.and_then(|place| origins.get(&place)).cloned();
            samples.push(sample(engine, behaviour, event_id, origin));
        }
    }
    Ok(samples)
}

/// Returns where the events at these places come from; what cannot be read is left out.
fn origins(
    plan: &Plan,
    places: impl Iterator<Item = EventPosition>,
) -> Result<BTreeMap<EventPosition, Origin>> {
    let mut places: Vec<EventPosition> = places.collect();
    let columns = record::origin_positions();
    let mut origins = BTreeMap::new();
    for (places, batch) in plan.rows(&mut places, &columns) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(cause) if is_lost(&cause) => continue,
            Err(cause) => return Err(cause),
        };
        let first = places.first().map_or(0, |place| place.row);
        for place in places {
            let row = (place.row - first) as usize;
            origins.insert(*place, record::origin(&batch, row)?);
        }
    }
    Ok(origins)
}

fn sample(engine: &Engine<'_>, behaviour: &Behaviour, event_id: String, origin: Option<Origin>) -> Sample {
    let decision = |set: &PolicySet, action: Action, deciding: &[u32]| SampleDecision {
        decision: action.word().to_owned(),
        policy_ids: deciding
            .iter()
            .filter_map(|at| set.policies().get(*at as usize))
            .map(|policy| policy.id().to_owned())
            .collect(),
    };
    let [before, after] = &behaviour.deciding;
    let imported = origin.as_ref().map(|origin| origin.is_imported);
    let (source, principal_id) = origin.map_or((None, None), |origin| (origin.source, origin.principal));
    Sample {
        event_id,
        at: instant(behaviour.at_ms),
        subject_id: behaviour.subject.as_ref().map(|(_, id)| id.to_string()),
        kind: behaviour.subject.as_ref().map(|(kind, _)| *kind),
        tool: behaviour.tool.as_ref().map(ToString::to_string),
        source,
        principal_id,
        imported,
        action: behaviour.occasion.word().to_owned(),
        count: behaviour.count,
        baseline: decision(engine.baseline, behaviour.from, before),
        candidate: decision(engine.candidate, behaviour.to, after),
    }
}

/// Returns an instant as the wire spells it: RFC 3339, UTC, three fractional digits.
fn instant(at_ms: i64) -> String {
    static PRINTER: jiff::fmt::temporal::DateTimePrinter =
        jiff::fmt::temporal::DateTimePrinter::new().precision(Some(3));
    let bound = if at_ms < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    };
    PRINTER.timestamp_to_string(&jiff::Timestamp::from_millisecond(at_ms).unwrap_or(bound))
}

impl Serialize for ByChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let each = self.0.iter();
        serializer
            .collect_map(each.map(|(from, to, count)| (format!("{}_to_{}", from.word(), to.word()), count)))
    }
}

impl<'de> Deserialize<'de> for ByChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut all = Vec::new();
        for from in Action::ALL {
            for to in Action::ALL {
                if let Some(count) = counts.get(&format!("{}_to_{}", from.word(), to.word())) {
                    all.push((from, to, *count));
                }
            }
        }
        if all.len() == counts.len() {
            Ok(Self(all))
        } else {
            Err(serde::de::Error::custom(
                "a change is `<from>_to_<to>` of two actions",
            ))
        }
    }
}
