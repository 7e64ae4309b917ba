//! One event against the nodes of a set, with as little work as its answer needs.

use super::chronicle::Chronicle;
use super::name::{Chosen, Ways};
use crate::event::Event;
use crate::rego::{Module, Saying};
use crate::set::{Node, NodeId, PolicySet};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::cell::{OnceCell, RefCell};

/// One event that is being judged.
pub(crate) struct Row<'a> {
    set: &'a PolicySet,
    event: &'a Event,
    symbols: &'a Symbols,
    known: Known<'a>,
    has_time: &'a dyn Fn() -> bool,
    ways: OnceCell<Ways<'a>>,
    /// What modules said.
    asked: RefCell<Vec<(NodeId, Truth)>>,
    input: OnceCell<regorus::Value>,
    /// The word of the module that was asked last.
    reason_code: RefCell<Option<String>>,
}

/// What is known of the nodes that depend on more than the event.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// The past; modules are asked.
    Chronicle(&'a Chronicle),
    /// The answers of history conditions and modules.
    Told(&'a dyn Fn(NodeId, Option<&Chosen<'_>>) -> Truth),
}

impl<'a> Row<'a> {
    pub fn new(set: &'a PolicySet, event: &'a Event, symbols: &'a Symbols, chronicle: &'a Chronicle) -> Self {
        Self::within(set, event, symbols, chronicle, &|| true)
    }

    /// As `new`; a module whose turn comes when there is no time left is not asked, and its answer is unknown.
    pub fn within(
        set: &'a PolicySet,
        event: &'a Event,
        symbols: &'a Symbols,
        chronicle: &'a Chronicle,
        has_time: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            set,
            event,
            symbols,
            known: Known::Chronicle(chronicle),
            has_time,
            ways: OnceCell::new(),
            asked: RefCell::default(),
            input: OnceCell::new(),
            reason_code: RefCell::new(None),
        }
    }

    /// As `new`, where it is told what history conditions and modules answered.
    pub fn told(
        set: &'a PolicySet,
        event: &'a Event,
        symbols: &'a Symbols,
        told: &'a dyn Fn(NodeId, Option<&Chosen<'_>>) -> Truth,
        nothing: &'a Chronicle,
    ) -> Self {
        Self {
            known: Known::Told(told),
            ..Self::new(set, event, symbols, nothing)
        }
    }

    /// Returns the answer of a rule's node: where a name means several records and it is not known otherwise, it is what
    /// the answers for each of them agree on.
    pub fn verdict(&self, id: NodeId) -> Truth {
        let truth = self.truth(id);
        if truth == Truth::Unknown {
            self.agreed(id)
        } else {
            truth
        }
    }

    /// Returns what the answers of a node agree on, over the ways in which the names of the event can be meant.
    pub fn agreed(&self, id: NodeId) -> Truth {
        match self.ways.get_or_init(|| Ways::of(self.event, self.symbols)) {
            Ways::One | Ways::TooMany => Truth::Unknown,
            Ways::Several(ways) => {
                let mut answers = ways.iter().map(|way| self.truth_as(id, Some(way)));
                let first = answers.next().unwrap_or(Truth::Unknown);
                if answers.all(|answer| answer == first) {
                    first
                } else {
                    Truth::Unknown
                }
            }
        }
    }

    /// Returns the answer of a node.
    pub fn truth(&self, id: NodeId) -> Truth {
        self.truth_as(id, None)
    }

    fn truth_as(&self, id: NodeId, chosen: Option<&Chosen<'a>>) -> Truth {
        match self.set.program.node(id) {
            Node::Constant(truth) => *truth,
            Node::Test(test) => test.judge(self.event, self.symbols, chosen),
            Node::All(nodes) => self.fold(nodes, chosen, Truth::True, Truth::False, Truth::and),
            Node::Any(nodes) => self.fold(nodes, chosen, Truth::False, Truth::True, Truth::or),
            Node::Not(node) => !self.truth_as(*node, chosen),
            Node::Occasions(bits) => (bits & self.event.occasion().bit() != 0).into(),
            Node::Before(at_ms) => (self.event.at_ms() < *at_ms).into(),
            Node::Past(tracker) => match self.known {
                Known::Chronicle(chronicle) => {
                    chronicle.answer(self.set, *tracker, self.event, self.symbols, chosen)
                }
                Known::Told(told) => told(id, chosen),
            },
            Node::Module { module, guard } => match self.truth_as(*guard, chosen) {
                Truth::False => Truth::False,
                _ => self.module(id, module, chosen),
            },
        }
    }

    /// Returns what a module says. It is asked once: of names that mean several records it is told nothing, whichever of
    /// them is chosen.
    fn module(&self, id: NodeId, module: &Module, chosen: Option<&Chosen<'a>>) -> Truth {
        if let Known::Told(told) = self.known {
            return told(id, chosen);
        }
        if chosen.is_some() {
            let asked = self.asked.borrow();
            let found = asked.iter().find(|(of, _)| *of == id);
            return found.map_or(Truth::Unknown, |(_, truth)| *truth);
        }
        let truth = if (self.has_time)() {
            self.ask(module)
        } else {
            Truth::Unknown
        };
        self.asked.borrow_mut().push((id, truth));
        truth
    }

    /// Joins answers until one of them decides.
    fn fold(
        &self,
        nodes: &[NodeId],
        chosen: Option<&Chosen<'a>>,
        start: Truth,
        end: Truth,
        join: fn(Truth, Truth) -> Truth,
    ) -> Truth {
        let mut truth = start;
        for node in nodes {
            truth = join(truth, self.truth_as(*node, chosen));
            if truth == end {
                break;
            }
        }
        truth
    }

    fn ask(&self, module: &Module) -> Truth {
        let input = self
            .input
            .get_or_init(|| crate::rego::input(&self.event.nested(self.symbols)));
        let (truth, reason_code) = ask(module, input, self.event, self.symbols, self.has_time);
        *self.reason_code.borrow_mut() = reason_code;
        truth
    }

    /// Returns the word of the module that was asked since the last call.
    pub fn reason_code(&self) -> Option<String> {
        self.reason_code.borrow_mut().take()
    }
}

/// Returns what a module says of an event, whose input this is, and its word for why. One that compares the id of a record with
/// a text is asked with each word of the record as well (RG-5), as long as there is time.
pub(super) fn ask(
    module: &Module,
    input: &regorus::Value,
    event: &Event,
    symbols: &Symbols,
    has_time: &dyn Fn() -> bool,
) -> (Truth, Option<String>) {
    let missing = event.missing_paths(symbols);
    let missing: Vec<Vec<&str>> = missing
        .iter()
        .map(|path| path.iter().map(String::as_str).collect())
        .collect();
    let own = answer(module.ask(input, &missing));
    if own.0 == Truth::True || module.spoken().is_empty() {
        return own;
    }
    let others = module.others(input, &event.spoken(module.spoken(), symbols));
    let mut all = own;
    for other in &others.inputs {
        if !has_time() {
            return (Truth::Unknown, None);
        }
        match answer(module.ask(other, &missing)) {
            found @ (Truth::True, _) => return found,
            (Truth::Unknown, _) => all = (Truth::Unknown, None),
            (Truth::False, _) => {}
        }
    }
    if others.is_cut {
        return (Truth::Unknown, None);
    }
    all
}

/// Returns what a module's answer is worth: nothing where it looked at what is missing (RG-4).
fn answer(saying: Saying) -> (Truth, Option<String>) {
    match saying.answer {
        Ok(answer) if !saying.has_read_missing => (answer.matched.into(), answer.reason_code),
        _ => (Truth::Unknown, None),
    }
}
