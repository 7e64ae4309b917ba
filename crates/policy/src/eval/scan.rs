//! A set against batches of events, column by column.
//!
//! Nodes are answered when a rule needs them, for all rows at once, and at most once for a batch. A conjunction whose
//! rows are all gone stops: policies for other occasions or tools cost one look. What a predicate says of a text or
//! set is kept by its symbol across batches.
//!
//! History conditions are answered first, tracker by tracker, in the order of the rows; inner ones before outer ones.

use super::batch::Batch;
use super::mask::{Bits, Mask, WORDS, each, first, has, put, rows};
use super::name::NameChoice;
use super::row::{ModuleCalls, ModuleQuestion, Row, ask};
use super::spread::{Numbers, PredicateCache, SORT_READERS, SortedRows, spread};
use super::subject_states::{StateIndexes, SubjectStates};
use crate::action::Action;
use crate::catalogue::{FIELDS, Field};
use crate::condition::{Check, Operand};
use crate::event::{Event, Subject, Value};
use crate::family::Family;
use crate::rego::{InProcess, Module, Runner};
use crate::set::{Node, NodeId, PolicySet, Question, Reason, Rule, Test};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::cell::Cell;
use std::collections::HashMap;

/// How many rows a module is asked about together.
const MODULE_ROWS: usize = 64;

/// The walk of one set over batches, oldest first.
pub struct Scan<'a> {
    set: &'a PolicySet,
    chronicle: SubjectStates,
    found: Vec<NodeState>,
    masks: Vec<Mask>,
    known: Vec<PredicateCache>,
    /// For each attribute, how many predicates read it.
    readers: Vec<usize>,
    sorted: Vec<Option<SortedRows>>,
    numbers: Vec<Option<Numbers>>,
    rows: Bits,
    /// For each node the one that asks the same in the set of the walk beside this one.
    twins: Vec<Option<NodeId>>,
    /// What history conditions answer of the last batch for each record that a row's subject may be, by node and row.
    each: HashMap<(NodeId, usize), Vec<Truth>>,
    pub(super) judged: BatchDecisions,
}

/// Whether a node was answered for the batch at hand.
#[derive(Clone, Copy, PartialEq)]
enum NodeState {
    NotYet,
    False,
    Mask,
}

/// Whose past an event belongs to.
struct SubjectOfPast {
    family: Family,
    subject: Subject,
    /// Where the event is remembered.
    place: Option<usize>,
    /// Where what was before it is remembered; nothing where that is the same place and no other.
    places: Option<StateIndexes>,
}

/// The decisions on the last batch.
pub(super) struct BatchDecisions {
    pub rows: usize,
    /// For each action, weakest first, the rows that it decides.
    pub actions: [Bits; Action::ALL.len()],
    pub unknown: Bits,
    /// For each policy, the rows that it matches for sure.
    pub matched: Vec<Option<Box<Bits>>>,
}

impl<'a> Scan<'a> {
    /// Returns a walk that has seen nothing.
    pub fn new(set: &'a PolicySet) -> Self {
        let nodes = set.program.nodes.len();
        let mut readers = vec![0; FIELDS];
        for node in &set.program.nodes {
            if let Node::Test(test) = node {
                readers[test.operand.field().index()] += 1;
            }
        }
        Self {
            set,
            chronicle: SubjectStates::new(),
            found: vec![NodeState::NotYet; nodes],
            masks: vec![Mask::FALSE; nodes],
            known: vec![PredicateCache::default(); nodes],
            readers,
            sorted: (0..FIELDS).map(|_| None).collect(),
            numbers: (0..FIELDS).map(|_| None).collect(),
            rows: [0; WORDS],
            twins: Vec::new(),
            each: HashMap::new(),
            judged: BatchDecisions {
                rows: 0,
                actions: [[0; WORDS]; Action::ALL.len()],
                unknown: [0; WORDS],
                matched: vec![None; set.policies().len()],
            },
        }
    }

    /// Returns a walk that takes from another one, over the same batches, what both sets ask.
    pub(super) fn beside(set: &'a PolicySet, other: &Scan<'_>) -> Self {
        Self {
            twins: set.program.twins(&other.set.program),
            ..Self::new(set)
        }
    }

    /// Returns the set.
    pub fn set(&self) -> &'a PolicySet {
        self.set
    }

    /// Decides on a batch, and makes its events part of the past.
    ///
    /// The batch needs the columns of `Projection::fields`; all batches are of one table of symbols, in the order of
    /// time.
    pub fn judge(&mut self, batch: &Batch, symbols: &Symbols) {
        self.judge_until(batch, symbols, &|| false);
    }

    /// The same; asks between evaluations of modules, which are slow, whether to stop.
    ///
    /// Returns false if it was stopped: then nothing was decided on the batch.
    pub fn judge_until(&mut self, batch: &Batch, symbols: &Symbols, is_over: &dyn Fn() -> bool) -> bool {
        self.walk(batch, symbols, &InProcess, is_over, None)
    }

    /// The same, where the walk beside this one has judged the batch.
    pub(super) fn walk(
        &mut self,
        batch: &Batch,
        symbols: &Symbols,
        modules: &dyn Runner,
        is_over: &dyn Fn() -> bool,
        beside: Option<&Scan<'_>>,
    ) -> bool {
        self.found.fill(NodeState::NotYet);
        self.sorted.fill_with(|| None);
        self.numbers.fill_with(|| None);
        self.rows = first(batch.rows());
        let step = Step {
            batch,
            symbols,
            modules,
            is_over,
            stopped: Cell::new(false),
            beside,
        };
        self.each.clear();
        self.past(&step);
        let ambiguous = step.ambiguous();
        self.judged.rows = batch.rows();
        self.judged.unknown = [0; WORDS];
        self.judged.actions = [[0; WORDS]; Action::ALL.len()];
        self.judged.matched.fill(None);
        let set = self.set;
        for rule in &set.rules {
            if !self.answer(rule.verdict, &step) {
                continue;
            }
            if let Some(ambiguous) = &ambiguous {
                self.agree(rule.verdict, ambiguous, &step);
            }
            let mask = &self.masks[rule.verdict as usize];
            if rule.reason == Reason::Matched {
                self.judged.matched[rule.policies[0] as usize] = Some(Box::new(mask.sure));
            }
            if !rule.monitored {
                each(
                    &mut self.judged.actions[rule.action as usize],
                    &mask.may,
                    |a, b| a | b,
                );
                for at in 0..WORDS {
                    self.judged.unknown[at] |= mask.may[at] & !mask.sure[at];
                }
            }
        }
        let mut rest = self.rows;
        for action in self.judged.actions.iter_mut().skip(1).rev() {
            each(action, &rest, |a, b| a & b);
            each(&mut rest, action, |a, b| a & !b);
        }
        self.judged.actions[Action::Allow as usize] = rest;
        !step.stopped.get()
    }

    /// Returns the decision on an event of the last batch, and whether it is unknown.
    pub fn decision(&self, row: usize) -> (Action, bool) {
        let mut all = Action::ALL.into_iter();
        let action = all.find(|action| has(&self.judged.actions[*action as usize], row));
        (action.unwrap_or(Action::Allow), has(&self.judged.unknown, row))
    }

    /// Returns the places of the policies that match an event of the last batch for sure.
    pub fn matched(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.judged.matched.iter().enumerate();
        all.filter(move |(_, bits)| bits.as_ref().is_some_and(|bits| has(bits, row)))
            .map(|(at, _)| at)
    }

    /// Returns the places of the policies whose action is the decision on an event of the last batch.
    ///
    /// Cost: one look at every rule of the set.
    pub fn deciding(&self, row: usize) -> Vec<usize> {
        let (action, _) = self.decision(row);
        let decides = |rule: &&Rule| {
            !rule.monitored && rule.action == action && self.at(rule.verdict, row) != Truth::False
        };
        let rules = self.set.rules.iter().filter(decides);
        let mut all: Vec<usize> = rules
            .flat_map(|rule| rule.policies.iter().map(|at| *at as usize))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Goes on with another table of symbols: what is remembered of the past is taken over, and nothing else.
    ///
    /// Whoever reads a long history calls this when the table has grown too large.
    pub fn renew(&mut self, old: &Symbols, new: &mut Symbols) {
        self.chronicle = self.chronicle.renewed(old, new);
        self.known.fill_with(PredicateCache::default);
    }

    /// Answers a node; false when it is false for every row.
    fn answer(&mut self, id: NodeId, step: &Step<'_>) -> bool {
        let at = id as usize;
        if self.found[at] == NodeState::NotYet && !self.borrow(at, step) {
            let set = self.set;
            let mask = match set.program.node(id) {
                Node::Constant(truth) => self.everywhere(*truth),
                Node::Test(test) => self.test(at, test, step),
                Node::All(nodes) => self.all(nodes, step),
                Node::Any(nodes) => self.any(nodes, step),
                Node::Not(node) => {
                    let mut mask = if self.answer(*node, step) {
                        self.masks[*node as usize].clone()
                    } else {
                        Mask::FALSE
                    };
                    mask.not(&self.rows);
                    Some(mask)
                }
                Node::Occasions(bits) => Some(step.occasions(*bits)),
                Node::Before(at_ms) => Some(step.before(*at_ms)),
                // Answered by `past`.
                Node::Past(_) => None,
                Node::Module { module, guard } => self
                    .answer(*guard, step)
                    .then(|| step.module(module, &self.masks[*guard as usize])),
            };
            self.keep(at, mask);
        }
        self.found[at] == NodeState::Mask
    }

    /// Takes over the answer of the walk beside this one, if it has one.
    fn borrow(&mut self, at: usize, step: &Step<'_>) -> bool {
        let (Some(beside), Some(Some(twin))) = (step.beside, self.twins.get(at)) else {
            return false;
        };
        let twin = *twin as usize;
        self.found[at] = beside.found[twin];
        if self.found[at] == NodeState::Mask {
            self.masks[at].clone_from(&beside.masks[twin]);
        }
        self.found[at] != NodeState::NotYet
    }

    fn keep(&mut self, at: usize, mask: Option<Mask>) {
        self.found[at] = match mask {
            Some(mask) if !mask.is_false() => {
                self.masks[at] = mask;
                NodeState::Mask
            }
            _ => NodeState::False,
        };
    }

    fn everywhere(&self, truth: Truth) -> Option<Mask> {
        let rows = self.rows;
        match truth {
            Truth::False => None,
            Truth::Unknown => Some(Mask {
                sure: [0; WORDS],
                may: rows,
            }),
            Truth::True => Some(Mask {
                sure: rows,
                may: rows,
            }),
        }
    }

    fn all(&mut self, nodes: &[NodeId], step: &Step<'_>) -> Option<Mask> {
        let mut joined: Option<Mask> = None;
        for node in nodes {
            if !self.answer(*node, step) {
                return None;
            }
            let mask = &self.masks[*node as usize];
            match &mut joined {
                None => joined = Some(mask.clone()),
                Some(joined) => {
                    joined.and(mask);
                    if joined.is_false() {
                        return None;
                    }
                }
            }
        }
        joined
    }

    fn any(&mut self, nodes: &[NodeId], step: &Step<'_>) -> Option<Mask> {
        let mut joined: Option<Mask> = None;
        for node in nodes {
            if self.answer(*node, step) {
                let mask = &self.masks[*node as usize];
                match &mut joined {
                    None => joined = Some(mask.clone()),
                    Some(joined) => joined.or(mask),
                }
            }
        }
        joined
    }

    fn test(&mut self, at: usize, test: &Test, step: &Step<'_>) -> Option<Mask> {
        let field = test.operand.field();
        let column = step.batch.column(field)?;
        if let (
            Operand::Field(_),
            Check::Number {
                order,
                value,
                negated,
            },
        ) = (&test.operand, &test.check)
        {
            let numbers = self.numbers[field.index()].get_or_insert_with(|| Numbers::new(column));
            return spread(column, None, &numbers.judge(*order, *value, *negated), &self.rows);
        }
        let passing = self.known[at].judge(test, column, step.symbols);
        if self.readers[field.index()] < SORT_READERS {
            return spread(column, None, &passing, &self.rows);
        }
        let sorted = self.sorted[field.index()].get_or_insert_with(|| SortedRows::new(column));
        spread(column, Some(sorted), &passing, &self.rows)
    }

    /// Answers the trackers for every row, and lets them observe it.
    fn past(&mut self, step: &Step<'_>) {
        let set = self.set;
        if !set.has_history() {
            return;
        }
        // What the walk beside this one has answered it also remembers.
        let open: Vec<(usize, usize)> = set
            .program
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(at, node)| match node {
                Node::Past(tracker) if !self.borrow(at, step) => Some((at, *tracker)),
                _ => None,
            })
            .collect();
        if open.is_empty() {
            return;
        }
        let mut whose = Vec::with_capacity(step.batch.rows());
        for row in 0..step.batch.rows() {
            let family = step.batch.occasions()[row].family();
            let subject = Subject::of(step.symbols, |field| step.batch.value(field, row));
            let place = self.chronicle.place(set, family, subject, step.symbols);
            let places = self.chronicle.places(family, subject, step.symbols, None);
            let is_same = matches!((&places, place), (StateIndexes::Of(all), Some(place)) if *all == [place]);
            whose.push(SubjectOfPast {
                family,
                subject,
                place,
                places: (!is_same).then_some(places),
            });
        }
        for (at, tracker) in open {
            let question = &set.program.trackers[tracker].question;
            for pattern in question.patterns() {
                self.answer(*pattern, step);
            }
            let mask = self.track(at, tracker, step, &whose);
            self.keep(at, Some(mask));
        }
    }

    fn track(&mut self, at: usize, tracker: usize, step: &Step<'_>, whose: &[SubjectOfPast]) -> Mask {
        let set = self.set;
        let question = &set.program.trackers[tracker].question;
        let family = set.program.trackers[tracker].family;
        let mut mask = Mask::FALSE;
        let mut matches = Vec::new();
        for (row, whose) in whose.iter().enumerate() {
            let at_ms = step.batch.times()[row];
            if whose.family != family {
                continue;
            }
            let before = match &whose.places {
                None => None,
                Some(StateIndexes::Unknown) => Some(Truth::Unknown),
                Some(StateIndexes::Of(places)) => Some(self.chronicle.answer_of(set, tracker, places, at_ms)),
                Some(StateIndexes::Each(each)) => {
                    let answers: Vec<Truth> = each
                        .iter()
                        .map(|places| self.chronicle.answer_of(set, tracker, places, at_ms))
                        .collect();
                    let first = answers.first().copied().unwrap_or(Truth::Unknown);
                    let agreed = answers.iter().all(|answer| *answer == first);
                    self.each.insert((node(at), row), answers);
                    Some(if agreed { first } else { Truth::Unknown })
                }
            };
            let truth = match whose.place {
                None => before.unwrap_or(Truth::Unknown),
                Some(place) => {
                    matches.clear();
                    let told = |pattern: &NodeId| whose.subject.told(self.at(*pattern, row));
                    matches.extend(question.patterns().iter().map(told));
                    let value = match question {
                        Question::Distinct { operand, .. } => step.batch.value(operand.field(), row),
                        _ => Value::Absent,
                    };
                    let memory = self.chronicle.memory(place, tracker);
                    let truth = before.unwrap_or_else(|| memory.answer(question, at_ms));
                    memory.observe(question, at_ms, &matches, value, step.symbols);
                    truth
                }
            };
            if truth == Truth::True {
                put(&mut mask.sure, row);
            }
            if truth != Truth::False {
                put(&mut mask.may, row);
            }
        }
        mask
    }

    /// Answers a rule's node anew, for those of some rows for which it is unknown, by what its answers for each way in
    /// which their names can be meant agree on.
    ///
    /// Whoever else takes the node's answer takes one that is as true and says more.
    fn agree(&mut self, id: NodeId, ambiguous: &Bits, step: &Step<'_>) {
        let mut open = *ambiguous;
        let mask = &self.masks[id as usize];
        each(&mut open, &mask.may, |a, b| a & b);
        each(&mut open, &mask.sure, |a, b| a & !b);
        let mut agreed = Vec::new();
        let nothing = SubjectStates::new();
        for row in rows(&open) {
            let event = step.batch.event(row);
            let told = |id: NodeId, chosen: Option<&NameChoice<'_>>| self.told(id, row, &event, chosen, step);
            let truth = Row::told(self.set, &event, step.symbols, &told, &nothing).agreed(id);
            if truth != Truth::Unknown {
                agreed.push((row, truth));
            }
        }
        let mask = &mut self.masks[id as usize];
        for (row, truth) in agreed {
            match truth {
                Truth::True => put(&mut mask.sure, row),
                _ => mask.may[row / 64] &= !(1 << (row % 64)),
            }
        }
    }

    /// Returns the answer of a history condition or module for a row, its subject being the chosen record.
    fn told(
        &self,
        id: NodeId,
        row: usize,
        event: &Event,
        chosen: Option<&NameChoice<'_>>,
        step: &Step<'_>,
    ) -> Truth {
        let twin = self.twins.get(id as usize).copied().flatten();
        let answers = self
            .each
            .get(&(id, row))
            .or_else(|| step.beside?.each.get(&(twin?, row)));
        let (Some(answers), Subject::Known(field, symbol)) = (answers, event.subject(step.symbols)) else {
            return self.at(id, row);
        };
        let picked = chosen.and_then(|chosen| chosen.pick(field, step.symbols.name_key(field, symbol)));
        let meant = step.symbols.meant(field, symbol);
        let place = picked.and_then(|picked| meant.iter().position(|named| named.id() == picked.id()));
        let told = place.and_then(|place| answers.get(place).copied());
        told.unwrap_or_else(|| self.at(id, row))
    }

    /// Returns the rows of the last batch for which a node's answer is not known, if there are some.
    pub(super) fn open_rows(&self, id: NodeId) -> Option<Bits> {
        if self.found[id as usize] != NodeState::Mask {
            return None;
        }
        let mask = &self.masks[id as usize];
        let mut open = mask.may;
        each(&mut open, &mask.sure, |a, b| a & !b);
        open.iter().any(|word| *word != 0).then_some(open)
    }

    /// Returns the answer of an answered node for a row.
    fn at(&self, id: NodeId, row: usize) -> Truth {
        let mask = &self.masks[id as usize];
        match self.found[id as usize] {
            NodeState::Mask if has(&mask.sure, row) => Truth::True,
            NodeState::Mask if has(&mask.may, row) => Truth::Unknown,
            _ => Truth::False,
        }
    }
}

/// A batch and its table.
struct Step<'a> {
    batch: &'a Batch,
    symbols: &'a Symbols,
    modules: &'a dyn Runner,
    is_over: &'a dyn Fn() -> bool,
    stopped: Cell<bool>,
    beside: Option<&'a Scan<'a>>,
}

impl Step<'_> {
    /// Returns the rows with a name that means several records, if there are some.
    fn ambiguous(&self) -> Option<Bits> {
        let mut found: Option<Bits> = None;
        let register = self.symbols.register();
        for field in Field::all().filter(|field| register.is_ambiguous(*field)) {
            let Some(column) = self.batch.column(field) else {
                continue;
            };
            let is_several = |value: &Value| match value {
                Value::Text(symbol) => self.symbols.meant(field, *symbol).len() > 1,
                Value::Set(set) => {
                    let mut members = self.symbols.set(*set).iter();
                    members.any(|symbol| self.symbols.meant(field, *symbol).len() > 1)
                }
                _ => false,
            };
            let several: Vec<bool> = column.dictionary.iter().map(is_several).collect();
            if !several.contains(&true) {
                continue;
            }
            let bits = found.get_or_insert([0; WORDS]);
            for (row, code) in column.codes.iter().enumerate() {
                if several[usize::from(*code)] {
                    put(bits, row);
                }
            }
        }
        found
    }

    fn occasions(&self, bits: u16) -> Mask {
        self.rows_where(|row| bits & self.batch.occasions()[row].bit() != 0)
    }

    fn before(&self, at_ms: i64) -> Mask {
        self.rows_where(|row| self.batch.times()[row] < at_ms)
    }

    fn rows_where(&self, is: impl Fn(usize) -> bool) -> Mask {
        let mut sure = [0; WORDS];
        for row in 0..self.batch.rows() {
            sure[row / 64] |= u64::from(is(row)) << (row % 64);
        }
        Mask { sure, may: sure }
    }

    fn module(&self, module: &Module, guard: &Mask) -> Mask {
        let mut mask = Mask::FALSE;
        let all: Vec<usize> = rows(&guard.may).collect();
        let asking = ModuleCalls {
            runner: self.modules,
            has_time: &|| !(self.is_over)(),
        };
        for some in all.chunks(MODULE_ROWS) {
            if self.stopped.get() || (self.is_over)() {
                self.stopped.set(true);
                break;
            }
            let events: Vec<Event> = some.iter().map(|row| self.batch.event(*row)).collect();
            let inputs: Vec<_> = events
                .iter()
                .map(|event| crate::rego::input(&event.nested(self.symbols)))
                .collect();
            let asked: Vec<ModuleQuestion<'_>> = events
                .iter()
                .zip(&inputs)
                .map(|(event, input)| ModuleQuestion { module, input, event })
                .collect();
            let answers = ask(&asked, self.symbols, asking);
            // What was cut off in the middle is no answer.
            if (self.is_over)() {
                self.stopped.set(true);
                break;
            }
            for (row, (truth, _)) in some.iter().zip(answers) {
                match truth {
                    Truth::False => {}
                    Truth::Unknown => put(&mut mask.may, *row),
                    Truth::True => {
                        put(&mut mask.sure, *row);
                        put(&mut mask.may, *row);
                    }
                }
            }
        }
        mask
    }
}

/// A set has fewer nodes than that.
fn node(place: usize) -> NodeId {
    NodeId::try_from(place).unwrap_or(NodeId::MAX)
}
