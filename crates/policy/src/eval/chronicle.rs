//! What is remembered of every subject's earlier events, for the history conditions of one set.
//!
//! ```text
//!   for each event, oldest first:   set.judge(event, …, &chronicle)    its past is what was observed before it
//!                                   chronicle.observe(&set, event, …)  from now on it is part of the past
//! ```
//!
//! A live decision reads the subject's last 30 days of events and observes them in order; a replay observes as it
//! goes. All events have to be of one table of symbols.
//!
//! INVARIANT CH-1: the answer about an event depends on events that were observed before it, of the same subject and
//! family, and on nothing else.
//!
//! Absent on purpose: storage. A chronicle is made from events, which are stored.

use super::row::Row;
use super::tracker::Memory;
use crate::event::{Event, Subject, Value};
use crate::family::Family;
use crate::set::{PolicySet, Question};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::collections::HashMap;

/// The remembered past.
#[derive(Clone, Debug, Default)]
pub struct Chronicle {
    places: HashMap<(Family, Subject), usize>,
    /// Nothing at a place whose past is in doubt.
    memories: Vec<Vec<Memory>>,
    is_unknown: bool,
}

impl Chronicle {
    /// Returns an empty past.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a past of which nothing can be said yet: every question about somebody's past is unknown.
    pub fn unknown() -> Self {
        Self {
            is_unknown: true,
            ..Self::default()
        }
    }

    /// Makes an event part of the past; events of one subject have to come in the order of their times.
    pub fn observe(&mut self, set: &PolicySet, event: &Event, symbols: &Symbols) {
        let subject = event.subject();
        if !set.has_history() || !matches!(subject, Subject::Known(..)) {
            return;
        }
        let family = event.occasion().family();
        // All answers first: an inner history condition sees the past without this event.
        let row = Row::new(set, event, symbols, self);
        let ask = |tracker: &crate::set::Tracker| {
            let patterns = tracker.question.patterns().iter();
            patterns
                .map(|pattern| row.truth(*pattern))
                .collect::<Vec<Truth>>()
        };
        let trackers = set.program.trackers.iter();
        let asked: Vec<_> = trackers.map(|t| (t.family == family).then(|| ask(t))).collect();
        let place = self.place(set, family, subject);
        let memories = &mut self.memories[place];
        for ((tracker, memory), matches) in set.program.trackers.iter().zip(memories).zip(asked) {
            if let Some(matches) = matches {
                let value = counted(&tracker.question, event);
                memory.observe(&tracker.question, event.at_ms(), &matches, value, symbols);
            }
        }
    }

    /// Returns the answer of a tracker at an event.
    pub(super) fn answer(&self, set: &PolicySet, tracker: usize, event: &Event) -> Truth {
        let question = &set.program.trackers[tracker].question;
        let subject = event.subject();
        if subject == Subject::Unknown || (self.is_unknown && subject != Subject::Nobody) {
            return Truth::Unknown;
        }
        match self.places.get(&(event.occasion().family(), subject)) {
            // A chronicle of another set, or one in doubt, knows nothing.
            Some(place) => match self.memories[*place].get(tracker) {
                Some(memory) => memory.answer(question, event.at_ms()),
                None => Truth::Unknown,
            },
            None => Memory::new(question).answer(question, event.at_ms()),
        }
    }

    /// Returns the place of a subject's memories, made anew for a new one.
    pub(super) fn place(&mut self, set: &PolicySet, family: Family, subject: Subject) -> usize {
        let next = self.memories.len();
        let place = *self.places.entry((family, subject)).or_insert(next);
        if place == next {
            let trackers = set.program.trackers.iter();
            self.memories
                .push(trackers.map(|tracker| Memory::new(&tracker.question)).collect());
        }
        place
    }

    /// Returns the place of a subject's memories, if there are some.
    pub(super) fn known(&self, family: Family, subject: Subject) -> Option<usize> {
        self.places.get(&(family, subject)).copied()
    }

    /// Returns every subject with its place.
    pub(super) fn places(&self) -> impl Iterator<Item = (Family, Subject, usize)> {
        self.places
            .iter()
            .map(|((family, subject), place)| (*family, *subject, *place))
    }

    /// Keeps the memories of a subject that has none here; they get the next place.
    pub(super) fn put(&mut self, family: Family, subject: Subject, memories: Vec<Memory>) {
        self.places.insert((family, subject), self.memories.len());
        self.memories.push(memories);
    }

    /// Forgets what is remembered at a place: from now on every question about it is unknown.
    pub(super) fn doubt(&mut self, place: usize) {
        self.memories[place].clear();
    }

    /// Returns the memories of a place in another table.
    pub(super) fn carried(&self, place: usize, from: &Symbols, to: &mut Symbols) -> Vec<Memory> {
        let memories = self.memories[place].iter();
        memories.map(|memory| memory.carried(from, to)).collect()
    }

    /// Returns whether a place answers like that of somebody without a past.
    pub(super) fn is_blank(&self, place: usize) -> bool {
        let memories = &self.memories[place];
        !memories.is_empty() && memories.iter().all(Memory::is_blank)
    }

    /// Returns the same past in another table of symbols.
    pub(super) fn renewed(&self, old: &Symbols, new: &mut Symbols) -> Self {
        let places = self.places.iter().map(|((family, subject), place)| {
            let subject = match subject {
                Subject::Known(field, symbol) => Subject::Known(*field, new.intern(old.text(*symbol))),
                other => *other,
            };
            ((*family, subject), *place)
        });
        let places = places.collect();
        let memories = (0..self.memories.len()).map(|place| self.carried(place, old, new));
        Self {
            places,
            memories: memories.collect(),
            is_unknown: self.is_unknown,
        }
    }

    /// Returns what is remembered at a place for a tracker.
    pub(super) fn memory(&mut self, place: usize, tracker: usize) -> &mut Memory {
        &mut self.memories[place][tracker]
    }
}

/// Returns the value of the attribute whose values a question counts.
fn counted(question: &Question, event: &Event) -> Value {
    match question {
        Question::Distinct { operand, .. } => event.get(operand.field()),
        _ => Value::Absent,
    }
}
