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
//! What is remembered stands under the name that an event had: the id of the record that it meant then, else its word.
//! The past of a record is what stands under its id and under all its words, so that what somebody did before the
//! directory knew them counts once it does.
//!
//! What somebody did of whom nobody can say who it is may be anybody's: it stands under no name, as what may match, and is
//! part of the past of everybody whom the same attribute names.
//!
//! INVARIANT CH-1: the answer about an event depends on events that were observed before it, of the same subject or
//! of somebody unknown, and of the same family, and on nothing else.
//!
//! INVARIANT CH-5: an event of somebody of whom nobody can say who it is makes no answer about anybody more certain,
//! and is left out of none.
//! INVARIANT CH-4: the past of a record is what was recorded under its id and under every word that it has now.
//!
//! Absent on purpose: storage. A chronicle is made from events, which are stored.

use super::name::NameChoice;
use super::row::Row;
use super::tracker::Memory;
use crate::catalogue::Field;
use crate::event::{Event, Subject, Value};
use crate::family::Family;
use crate::register::NamedRecord;
use crate::set::{PolicySet, Question};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::collections::HashMap;
use std::sync::Arc;

/// The name of what is remembered of somebody of whom nobody can say who it is; no key of a name is empty.
const SOMEBODY: &str = "";

/// The remembered past.
#[derive(Clone, Debug, Default)]
pub struct SubjectStates {
    /// The places of memories by family, attribute and name: a record's id, or the key of a word that means none or
    /// several.
    streams: HashMap<(Family, Field), HashMap<Arc<str>, usize>>,
    /// Whether some stream is that of a word, where names have records.
    has_words: bool,
    /// Nothing at a place whose past is in doubt.
    memories: Vec<Vec<Memory>>,
    is_unknown: bool,
}

/// Where the past of a subject is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StateIndexes {
    /// Somebody's, and nobody can say whose.
    Unknown,
    /// At these places together; nowhere for somebody without a past.
    Of(Vec<usize>),
    /// Of each of several records.
    Each(Vec<Vec<usize>>),
}

impl SubjectStates {
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
        let subject = event.subject(symbols);
        if subject == Subject::Nobody || !set.has_history() {
            return;
        }
        let family = event.occasion().family();
        // All answers first: an inner history condition sees the past without this event.
        let row = Row::new(set, event, symbols, self);
        let ask = |tracker: &crate::set::HistoryQuestion| {
            let patterns = tracker.question.patterns().iter();
            patterns
                .map(|pattern| subject.told(row.truth(*pattern)))
                .collect::<Vec<Truth>>()
        };
        let trackers = set.program.trackers.iter();
        let asked: Vec<_> = trackers.map(|t| (t.family == family).then(|| ask(t))).collect();
        let Some(place) = self.place(set, family, subject, symbols) else {
            return;
        };
        let memories = &mut self.memories[place];
        for ((tracker, memory), matches) in set.program.trackers.iter().zip(memories).zip(asked) {
            if let Some(matches) = matches {
                let value = counted(&tracker.question, event);
                memory.observe(&tracker.question, event.at_ms(), &matches, value, symbols);
            }
        }
    }

    /// Returns the answer of a tracker at an event, with this record chosen where its subject may be several.
    pub(super) fn answer<'a>(
        &self,
        set: &PolicySet,
        tracker: usize,
        event: &Event,
        symbols: &'a Symbols,
        chosen: Option<&NameChoice<'a>>,
    ) -> Truth {
        let subject = event.subject(symbols);
        if self.is_unknown && subject != Subject::Nobody {
            return Truth::Unknown;
        }
        let family = event.occasion().family();
        match self.places(family, subject, symbols, chosen) {
            StateIndexes::Unknown => Truth::Unknown,
            StateIndexes::Of(places) => self.answer_of(set, tracker, &places, event.at_ms()),
            StateIndexes::Each(each) => {
                let mut answers = each
                    .iter()
                    .map(|places| self.answer_of(set, tracker, places, event.at_ms()));
                let first = answers.next().unwrap_or(Truth::Unknown);
                if answers.all(|answer| answer == first) {
                    first
                } else {
                    Truth::Unknown
                }
            }
        }
    }

    /// Returns the answer of a tracker about what is remembered at some places together.
    pub(super) fn answer_of(&self, set: &PolicySet, tracker: usize, places: &[usize], at_ms: i64) -> Truth {
        let question = &set.program.trackers[tracker].question;
        match places {
            [] => Memory::new(question).answer(question, at_ms),
            // A chronicle of another set, or one in doubt, knows nothing.
            [place] => match self.memories[*place].get(tracker) {
                Some(memory) => memory.answer(question, at_ms),
                None => Truth::Unknown,
            },
            _ => {
                let memories = places.iter().map(|place| self.memories[*place].get(tracker));
                match memories.collect::<Option<Vec<&Memory>>>() {
                    Some(memories) => Memory::joined(question, memories.into_iter()).answer(question, at_ms),
                    None => Truth::Unknown,
                }
            }
        }
    }

    /// Returns where the past of a subject is.
    ///
    /// INVARIANT CH-4: the events of a record are those under its id and those under every word that it has now; CH-5.
    pub(super) fn places<'a>(
        &self,
        family: Family,
        subject: Subject,
        symbols: &'a Symbols,
        chosen: Option<&NameChoice<'a>>,
    ) -> StateIndexes {
        let (field, symbol) = match subject {
            Subject::Known(field, symbol) => (field, symbol),
            Subject::Unknown(_) => return StateIndexes::Unknown,
            Subject::Nobody => return StateIndexes::Of(Vec::new()),
        };
        let Some(streams) = self.streams.get(&(family, field)) else {
            return StateIndexes::Of(Vec::new());
        };
        let key = symbols.name_key(field, symbol);
        let find = |key: &str| streams.get(key).copied();
        let somebody = find(SOMEBODY);
        let of_record = |named: &NamedRecord| {
            let mut places: Vec<usize> = find(&named.id.key).into_iter().chain(somebody).collect();
            if self.has_words {
                let words = named.words.iter().map(|word| &*word.key).chain([key]);
                for place in words.filter_map(find) {
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
            }
            places
        };
        match symbols.meant(field, symbol) {
            [] => StateIndexes::Of(find(key).into_iter().chain(somebody).collect()),
            [named] => StateIndexes::Of(of_record(named)),
            meant => match chosen.and_then(|chosen| chosen.pick(field, key)) {
                Some(named) => StateIndexes::Of(of_record(named)),
                None => StateIndexes::Each(meant.iter().map(|named| of_record(named)).collect()),
            },
        }
    }

    /// Returns the place where a subject's event is remembered, made anew for a new one; nothing for nobody.
    pub(super) fn place(
        &mut self,
        set: &PolicySet,
        family: Family,
        subject: Subject,
        symbols: &Symbols,
    ) -> Option<usize> {
        let (field, key, is_word) = match subject {
            Subject::Nobody => return None,
            Subject::Unknown(field) => (field, SOMEBODY, false),
            Subject::Known(field, symbol) => match symbols.meant(field, symbol) {
                [named] => (field, &*named.id.key, false),
                _ => (field, symbols.name_key(field, symbol), field.has_register()),
            },
        };
        if let Some(place) = self.known(family, field, key) {
            return Some(place);
        }
        let trackers = set.program.trackers.iter();
        let memories = trackers.map(|tracker| Memory::new(&tracker.question)).collect();
        Some(self.put(family, field, key, is_word, memories))
    }

    /// Returns the place of what is remembered of somebody unknown whom this attribute names, if there is something.
    pub(super) fn somebody(&self, family: Family, field: Field) -> Option<(&'static str, usize)> {
        Some((SOMEBODY, self.known(family, field, SOMEBODY)?))
    }

    /// Returns the place of the memories under a name, if there are some.
    pub(super) fn known(&self, family: Family, field: Field, key: &str) -> Option<usize> {
        self.streams.get(&(family, field))?.get(key).copied()
    }

    /// Returns every name with its place.
    pub(super) fn names(&self) -> impl Iterator<Item = (Family, Field, &str, usize)> {
        self.streams.iter().flat_map(|((family, field), streams)| {
            streams
                .iter()
                .map(|(key, place)| (*family, *field, &**key, *place))
        })
    }

    /// Keeps the memories under a name that has none here; returns their place, which is the next.
    pub(super) fn put(
        &mut self,
        family: Family,
        field: Field,
        key: &str,
        is_word: bool,
        memories: Vec<Memory>,
    ) -> usize {
        let place = self.memories.len();
        self.streams
            .entry((family, field))
            .or_default()
            .insert(key.into(), place);
        self.memories.push(memories);
        self.has_words |= is_word;
        place
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
        let memories = (0..self.memories.len()).map(|place| self.carried(place, old, new));
        Self {
            memories: memories.collect(),
            streams: self.streams.clone(),
            ..*self
        }
    }

    /// Returns what is remembered at a place for a tracker.
    pub(super) fn memory(&mut self, place: usize, tracker: usize) -> &mut Memory {
        &mut self.memories[place][tracker]
    }
}

impl Subject {
    /// Returns what is remembered of a match: nobody can say whose one of somebody unknown is (CH-5).
    pub(super) fn told(self, matches: Truth) -> Truth {
        match (self, matches) {
            (Self::Unknown(_), Truth::True) => Truth::Unknown,
            (_, matches) => matches,
        }
    }
}

/// Returns the value of the attribute whose values a question counts.
fn counted(question: &Question, event: &Event) -> Value {
    match question {
        Question::Distinct { operand, .. } => event.get(operand.field()),
        _ => Value::Absent,
    }
}
