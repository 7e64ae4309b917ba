//! One event against the nodes of a set, with as little work as its answer needs.

use super::chronicle::Chronicle;
use crate::event::Event;
use crate::rego::{Answer, Failure, Module};
use crate::set::{Node, NodeId, PolicySet};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::cell::{OnceCell, RefCell};

/// One event that is being judged.
pub(crate) struct Row<'a> {
    set: &'a PolicySet,
    event: &'a Event,
    symbols: &'a Symbols,
    chronicle: &'a Chronicle,
    has_time: &'a dyn Fn() -> bool,
    input: OnceCell<regorus::Value>,
    /// The word of the module that was asked last.
    reason_code: RefCell<Option<String>>,
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
            chronicle,
            has_time,
            input: OnceCell::new(),
            reason_code: RefCell::new(None),
        }
    }

    /// Returns the answer of a node.
    pub fn truth(&self, id: NodeId) -> Truth {
        match self.set.program.node(id) {
            Node::Constant(truth) => *truth,
            Node::Test(test) => test.judge(self.event, self.symbols),
            Node::All(nodes) => self.fold(nodes, Truth::True, Truth::False, Truth::and),
            Node::Any(nodes) => self.fold(nodes, Truth::False, Truth::True, Truth::or),
            Node::Not(node) => !self.truth(*node),
            Node::Occasions(bits) => (bits & self.event.occasion().bit() != 0).into(),
            Node::Before(at_ms) => (self.event.at_ms() < *at_ms).into(),
            Node::Past(tracker) => self.chronicle.answer(self.set, *tracker, self.event),
            Node::Module { module, guard } => match self.truth(*guard) {
                Truth::False => Truth::False,
                _ if (self.has_time)() => self.ask(module),
                _ => Truth::Unknown,
            },
        }
    }

    /// Joins answers until one of them decides.
    fn fold(&self, nodes: &[NodeId], start: Truth, end: Truth, join: fn(Truth, Truth) -> Truth) -> Truth {
        let mut truth = start;
        for node in nodes {
            truth = join(truth, self.truth(*node));
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
        let (truth, reason_code) = answer(self.event, module.evaluate_value(input));
        *self.reason_code.borrow_mut() = reason_code;
        truth
    }

    /// Returns the word of the module that was asked since the last call.
    pub fn reason_code(&self) -> Option<String> {
        self.reason_code.borrow_mut().take()
    }
}

/// Returns what an answer of a module is worth.
///
/// A module reads whatever it likes: where an attribute is missing, its answer says nothing.
pub(super) fn answer(event: &Event, answer: Result<Answer, Failure>) -> (Truth, Option<String>) {
    match answer {
        Ok(answer) if !event.has_missing() => (answer.matched.into(), answer.reason_code),
        _ => (Truth::Unknown, None),
    }
}
