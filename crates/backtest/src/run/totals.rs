//! What was counted, of a part of the events or of all; parts are added in any order.

use super::checkpoint_state::{CheckpointState, Fingerprint, StoredCheckpoint};
use provost_history::{EventPosition, Plan, Result};
use provost_policy::{Action, Comparison, FailureCause, Occasion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// LIMIT: behaviours, subjects and tools that are counted one by one, 65 536 and twice as many subjects: some
/// 100 MiB together with what two threads hold.
const BEHAVIOURS: usize = 65_536;
const SUBJECTS: usize = 131_072;
const TOOLS: usize = 65_536;

/// Sums over events.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    /// Events that were read, counted or not, and those that could not be.
    pub read: u64,
    /// Events that could not be read.
    pub errors: u64,
    /// Where they lie, as far as that is known: names of chunks and segments.
    pub lost: BTreeMap<String, u64>,
    pub comparison: Comparison,
    /// Events that policies could not judge, by the set (0 is the baseline), the place of the policy in it, and the cause: no
    /// more than there are policies and attributes.
    pub failures: BTreeMap<Failure, u64>,
    /// The instants of the oldest and the newest event that was read.
    pub span: Option<(i64, i64)>,
    /// By day since the Unix epoch, UTC: evaluated, changed.
    pub days: BTreeMap<i64, (u64, u64)>,
    pub subjects: CheckpointState<Name>,
    pub tools: CheckpointState<Name>,
    pub behaviours: CheckpointState<Behaviour>,
}

/// The set, the place of the policy, the cause.
type Failure = (usize, u32, FailureCause);

/// What is counted of a subject or tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Name {
    /// Of a subject.
    pub kind: Option<SubjectKind>,
    pub text: Box<str>,
    pub evaluated: u64,
    pub changed: u64,
}

/// What a subject is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A person.
    User,
    /// A service account.
    ServiceAccount,
    /// A device.
    Device,
}

/// A distinct behaviour that changed, with its newest event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Behaviour {
    pub count: u64,
    pub at_ms: i64,
    pub whence: Provenance,
    pub occasion: Occasion,
    pub from: Action,
    pub to: Action,
    /// Places of the deciding policies in the baseline and in the candidate.
    pub deciding: [Vec<u32>; 2],
    pub subject: Option<(SubjectKind, Box<str>)>,
    pub tool: Option<Box<str>>,
}

/// Which event it is: its place, its id once it was needed, or both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Provenance {
    /// Source, row group, row.
    pub place: Option<(u32, u32, u32)>,
    pub id: Option<Box<str>>,
}

impl Provenance {
    pub fn at(place: EventPosition) -> Self {
        Self {
            place: Some((place.source, place.group, place.row)),
            id: None,
        }
    }

    pub fn place(&self) -> Option<EventPosition> {
        self.place
            .map(|(source, group, row)| EventPosition { source, group, row })
    }
}

impl Behaviour {
    /// Returns whether this event is newer, or as new with a higher id; nothing when ids have to tell.
    fn is_newer(&self, other: &Self) -> Option<bool> {
        if self.at_ms != other.at_ms {
            return Some(self.at_ms > other.at_ms);
        }
        if let (Some(ours), Some(theirs)) = (self.whence.place, other.whence.place)
            && ours.0 == theirs.0
        {
            // Within a source events lie in the order of (instant, event id).
            return Some(ours > theirs);
        }
        match (&self.whence.id, &other.whence.id) {
            (Some(ours), Some(theirs)) => Some(ours > theirs),
            _ => None,
        }
    }
}

impl Totals {
    pub fn new() -> Self {
        Self {
            read: 0,
            errors: 0,
            lost: BTreeMap::new(),
            comparison: Comparison::default(),
            failures: BTreeMap::new(),
            span: None,
            days: BTreeMap::new(),
            subjects: CheckpointState::new(SUBJECTS),
            tools: CheckpointState::new(TOOLS),
            behaviours: CheckpointState::new(BEHAVIOURS),
        }
    }

    /// Returns totals of other events of the same run, in which nothing is kept that these have refused already.
    pub fn beside(&self) -> Self {
        Self {
            subjects: self.subjects.beside(),
            tools: self.tools.beside(),
            behaviours: self.behaviours.beside(),
            ..Self::new()
        }
    }

    /// Widens the span of what was read.
    pub fn saw(&mut self, span: (i64, i64)) {
        let all = self.span.get_or_insert(span);
        *all = (all.0.min(span.0), all.1.max(span.1));
    }

    /// Counts events of a chunk or segment that could not be read.
    pub fn lose(&mut self, name: &str, rows: u64) {
        if rows == 0 {
            return;
        }
        self.read += rows;
        self.errors += rows;
        *self.lost.entry(name.to_owned()).or_default() += rows;
    }

    /// Adds what was counted of other events of the same plan.
    pub fn add(&mut self, mut part: Self, plan: &Plan) -> Result<()> {
        self.tell_ties(&mut part, plan)?;
        self.read += part.read;
        self.errors += part.errors;
        for (name, rows) in part.lost {
            *self.lost.entry(name).or_default() += rows;
        }
        self.comparison.join(&part.comparison);
        for (failure, events) in part.failures {
            *self.failures.entry(failure).or_default() += events;
        }
        if let Some(span) = part.span {
            self.saw(span);
        }
        for (day, (evaluated, changed)) in part.days {
            let sums = self.days.entry(day).or_default();
            *sums = (sums.0 + evaluated, sums.1 + changed);
        }
        add_names(&mut self.subjects, part.subjects);
        add_names(&mut self.tools, part.tools);
        self.behaviours.start(&mut part.behaviours);
        for (mark, theirs) in part.behaviours.drain() {
            match self.behaviours.entry(mark) {
                None => {}
                Some(Entry::Vacant(slot)) => drop(slot.insert(theirs)),
                Some(Entry::Occupied(mut slot)) => {
                    let ours = slot.get_mut();
                    let count = ours.count + theirs.count;
                    if theirs.is_newer(ours) == Some(true) {
                        *ours = theirs;
                    }
                    ours.count = count;
                }
            }
        }
        self.behaviours.trim();
        Ok(())
    }

    /// Reads the ids of events of one instant that lie in different sources: they tell which is the newest.
    fn tell_ties(&mut self, part: &mut Self, plan: &Plan) -> Result<()> {
        let is_tied = |(mark, theirs): &(Fingerprint, &Behaviour)| {
            let ours = self.behaviours.get(*mark);
            ours.is_some_and(|ours| theirs.is_newer(ours).is_none())
        };
        let tied: Vec<Fingerprint> = part
            .behaviours
            .iter()
            .filter(is_tied)
            .map(|(mark, _)| mark)
            .collect();
        if tied.is_empty() {
            return Ok(());
        }
        for kept in [&mut self.behaviours, &mut part.behaviours] {
            let without = |mark: &Fingerprint| {
                let whence = &kept.get(*mark)?.whence;
                whence.id.is_none().then(|| Some((*mark, whence.place()?)))?
            };
            let (marks, places): (Vec<Fingerprint>, Vec<EventPosition>) =
                tied.iter().filter_map(without).unzip();
            for (mark, id) in marks.into_iter().zip(ids(plan, &places)?) {
                if let Some(behaviour) = kept.get_mut(mark) {
                    behaviour.whence.id = Some(id.unwrap_or_default().into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the ids of events, nothing for one whose id is damaged.
pub(super) fn ids(plan: &Plan, places: &[EventPosition]) -> Result<Vec<Option<String>>> {
    match plan.ids(places) {
        Ok(all) => Ok(all.into_iter().map(Some).collect()),
        Err(cause) if super::work::is_lost(&cause) => {
            let one = |place: &EventPosition| plan.ids(&[*place]).ok().and_then(|mut ids| ids.pop());
            Ok(places.iter().map(one).collect())
        }
        Err(cause) => Err(cause),
    }
}

fn add_names(ours: &mut CheckpointState<Name>, mut theirs: CheckpointState<Name>) {
    ours.narrow(&theirs);
    for (mark, name) in theirs.drain() {
        add_name(ours, mark, name);
    }
    ours.trim();
}

pub(super) fn add_name(ours: &mut CheckpointState<Name>, mark: Fingerprint, name: Name) {
    match ours.entry(mark) {
        None => {}
        Some(Entry::Vacant(slot)) => drop(slot.insert(name)),
        Some(Entry::Occupied(mut slot)) => {
            slot.get_mut().evaluated += name.evaluated;
            slot.get_mut().changed += name.changed;
        }
    }
}

/// The form in which totals are stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTotals {
    read: u64,
    errors: u64,
    #[serde(default)]
    lost: BTreeMap<String, u64>,
    comparison: Comparison,
    failures: Vec<(Failure, u64)>,
    span: Option<(i64, i64)>,
    days: Vec<(i64, (u64, u64))>,
    subjects: StoredCheckpoint<Name>,
    tools: StoredCheckpoint<Name>,
    behaviours: StoredCheckpoint<Behaviour>,
}

impl From<&Totals> for StoredTotals {
    fn from(totals: &Totals) -> Self {
        Self {
            read: totals.read,
            errors: totals.errors,
            lost: totals.lost.clone(),
            comparison: totals.comparison.clone(),
            failures: totals
                .failures
                .iter()
                .map(|(failure, events)| (*failure, *events))
                .collect(),
            span: totals.span,
            days: totals.days.iter().map(|(day, sums)| (*day, *sums)).collect(),
            subjects: totals.subjects.store(),
            tools: totals.tools.store(),
            behaviours: totals.behaviours.store(),
        }
    }
}

impl From<StoredTotals> for Totals {
    fn from(stored: StoredTotals) -> Self {
        Self {
            read: stored.read,
            errors: stored.errors,
            lost: stored.lost,
            comparison: stored.comparison,
            failures: stored.failures.into_iter().collect(),
            span: stored.span,
            days: stored.days.into_iter().collect(),
            subjects: CheckpointState::restore(SUBJECTS, stored.subjects),
            tools: CheckpointState::restore(TOOLS, stored.tools),
            behaviours: CheckpointState::restore(BEHAVIOURS, stored.behaviours),
        }
    }
}
