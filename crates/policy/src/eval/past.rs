//! The past that live decisions look at: a chronicle that is fed as events are recorded, and lives for ever.
//!
//! ```text
//!   recorded event ── observe ──► Past (a table of its own; what the set's history conditions need, no more)
//!   judged events  ── recall  ──► Chronicle of their subjects alone, in the judged events' own table
//! ```
//!
//! Events are observed in the order in which they were recorded, which is nearly that of their instants. One that is
//! a little late (clocks differ, exporters wait) counts as if it had happened together with the newest event of its
//! subject: it stays in a window too long, never too short. One that is later still cannot be put in its place; from
//! then on nobody can say its subject's past, until the past is made anew from everything that is recorded.
//!
//! What names mean when an event is recorded is what its conditions see; whose past it belongs to is asked anew at each
//! decision, so that what was recorded under a word counts for the record that has it now.
//!
//! INVARIANT CH-2: what is recalled of a subject is what a chronicle knows that observed the same events in the same
//! order, or nothing can be said of it.
//! INVARIANT CH-3: a live past grows with the subjects and values that a condition can still ask about, not with the
//! number of events.
//! Keeps CH-4, CH-5.
//!
//! Absent on purpose: where events are recorded, and making a past anew.

use super::row::Row;
use super::subject_states::SubjectStates;
use crate::catalogue::Field;
use crate::condition::WITHIN_LIMIT_MS;
use crate::event::{Event, Subject};
use crate::set::{Node, NodeId, PolicySet, Program, Question};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::sync::Arc;

/// How late an event may be recorded, after the newest event of its subject. Units: milliseconds.
const LATE_LIMIT_MS: i64 = 5 * 60 * 1_000;
/// A past that weighs less is not made smaller. Units: bytes, roughly.
const WEIGHT_FLOOR: usize = 32 * 1024 * 1024;

/// The remembered past of one set.
#[derive(Debug)]
pub struct EventWindow {
    set: Arc<PolicySet>,
    /// The attributes that history conditions read.
    fields: Vec<Field>,
    /// Those of them that name records, beside whose past it is.
    names: Vec<Field>,
    symbols: Symbols,
    chronicle: SubjectStates,
    /// For each place of the chronicle, the instant of its newest event.
    newest: Vec<i64>,
    floor: usize,
    limit: usize,
}

impl EventWindow {
    /// Returns the past of a set before anything was recorded.
    pub fn new(set: Arc<PolicySet>) -> Self {
        Self::weighing(set, WEIGHT_FLOOR)
    }

    /// Returns an empty past that is made smaller whenever it has doubled, but not below this weight in bytes.
    pub fn weighing(set: Arc<PolicySet>, floor: usize) -> Self {
        Self {
            fields: with_subjects(asked(&set.program)),
            names: asked(&set.program)
                .into_iter()
                .filter(|field| field.has_register())
                .collect(),
            set,
            symbols: Symbols::new(),
            chronicle: SubjectStates::new(),
            newest: Vec::new(),
            floor,
            limit: floor,
        }
    }

    /// Returns the attributes that are read of events, sorted by name.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the attributes that name records and that a condition on the past asks about: an event is observed in a
    /// table whose register knows what it has there.
    pub fn names(&self) -> &[Field] {
        &self.names
    }

    /// Makes a recorded event, of any table, part of the past.
    ///
    /// Returns false when it came so late that its subject's past cannot be said any more.
    pub fn observe(&mut self, event: &Event, theirs: &Symbols) -> bool {
        let subject = match event.subject(theirs) {
            Subject::Nobody => return true,
            subject => subject,
        };
        self.symbols.know(Arc::clone(theirs.register()));
        let subject = match subject {
            Subject::Known(field, symbol) => Subject::Known(field, self.symbols.intern(theirs.text(symbol))),
            subject => subject,
        };
        let mut event = event.carried(&self.fields, theirs, &mut self.symbols);
        let family = event.occasion().family();
        let place = self.chronicle.place(&self.set, family, subject, &self.symbols);
        let Some(place) = place else {
            return true;
        };
        if place == self.newest.len() {
            self.newest.push(i64::MIN);
        }
        let newest = self.newest[place];
        if event.at_ms() < newest.saturating_sub(LATE_LIMIT_MS) {
            let counts = event.at_ms() >= newest.saturating_sub(WITHIN_LIMIT_MS) && self.can_match(&event);
            if counts {
                self.chronicle.doubt(place);
            }
            return !counts;
        }
        event.put_at(event.at_ms().max(newest));
        self.newest[place] = event.at_ms();
        self.chronicle.observe(&self.set, &event, &self.symbols);
        if self.weight() > self.limit {
            self.compact();
        }
        true
    }

    /// Returns what is remembered of the subjects of these events and of somebody unknown, in the events' own table.
    pub fn recall(&self, events: &[Event], theirs: &mut Symbols) -> SubjectStates {
        let mut recalled = SubjectStates::new();
        for event in events {
            let Subject::Known(field, symbol) = event.subject(theirs) else {
                continue;
            };
            let family = event.occasion().family();
            let own = theirs.name_key(field, symbol);
            let meant = theirs.meant(field, symbol);
            let faces = meant.iter().flat_map(|named| named.faces());
            let keys = faces.map(|face| &*face.key).chain([own]);
            let mut known = Vec::new();
            for key in keys.filter(|key| recalled.known(family, field, key).is_none()) {
                if let Some(place) = self.chronicle.known(family, field, key)
                    && !known.iter().any(|(_, of)| *of == place)
                {
                    known.push((key.to_owned(), place));
                }
            }
            if let Some((key, place)) = self.chronicle.somebody(family, field)
                && recalled.known(family, field, key).is_none()
            {
                known.push((key.to_owned(), place));
            }
            for (key, place) in known {
                let memories = self.chronicle.carried(place, &self.symbols, theirs);
                recalled.put(
                    family,
                    field,
                    &key,
                    field.has_register() && !key.is_empty(),
                    memories,
                );
            }
        }
        recalled
    }

    /// Returns whether some history condition may look at an event.
    fn can_match(&self, event: &Event) -> bool {
        let unknown = SubjectStates::unknown();
        let row = Row::new(&self.set, event, &self.symbols, &unknown);
        let family = event.occasion().family();
        let asked = self.set.program.trackers.iter().filter(|t| t.family == family);
        let mut patterns = asked.flat_map(|tracker| tracker.question.patterns());
        patterns.any(|pattern| row.truth(*pattern) != Truth::False)
    }

    /// Returns roughly how many bytes are remembered.
    pub fn weight(&self) -> usize {
        // A text stands in a list and in a map, a memory on the heap, a name in a map.
        let of_place = 128 + 96 * self.set.program.trackers.len();
        self.symbols.bytes() + 96 * self.symbols.len() + of_place * self.newest.len()
    }

    // INVARIANT CH-3: what no condition can ask about any more is forgotten.
    fn compact(&mut self) {
        let horizon = self.newest.iter().max().copied().unwrap_or(i64::MIN);
        let horizon = horizon.saturating_sub(WITHIN_LIMIT_MS);
        let mut symbols = Symbols::knowing(Arc::clone(self.symbols.register()));
        let (mut chronicle, mut newest) = (SubjectStates::new(), Vec::new());
        for (family, field, key, place) in self.chronicle.names() {
            if self.newest[place] < horizon || self.chronicle.is_blank(place) {
                continue;
            }
            let memories = self.chronicle.carried(place, &self.symbols, &mut symbols);
            chronicle.put(
                family,
                field,
                key,
                field.has_register() && !key.is_empty(),
                memories,
            );
            newest.push(self.newest[place]);
        }
        (self.symbols, self.chronicle, self.newest) = (symbols, chronicle, newest);
        self.limit = self.floor.max(2 * self.weight());
    }
}

/// Adds the attributes that say whose past it is.
fn with_subjects(mut fields: Vec<Field>) -> Vec<Field> {
    fields.extend([Field::USER, Field::SERVICE_ACCOUNT, Field::DEVICE]);
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// Returns the attributes that history conditions are made of, sorted.
fn asked(program: &Program) -> Vec<Field> {
    let mut fields = Vec::new();
    for tracker in &program.trackers {
        if let Question::Distinct { operand, .. } = &tracker.question {
            fields.push(operand.field());
        }
        for pattern in tracker.question.patterns() {
            read(program, *pattern, &mut fields);
        }
    }
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// Adds the attributes that a node reads; what an inner history condition reads is its tracker's.
fn read(program: &Program, id: NodeId, fields: &mut Vec<Field>) {
    match program.node(id) {
        Node::Test(test) => fields.push(test.operand.field()),
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().for_each(|node| read(program, *node, fields)),
        Node::Not(node) => read(program, *node, fields),
        // A module is no part of a history condition.
        Node::Constant(_) | Node::Occasions(_) | Node::Before(_) | Node::Past(_) | Node::Module { .. } => {}
    }
}
