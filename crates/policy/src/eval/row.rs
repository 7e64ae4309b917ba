//! One event against the nodes of a set, with as little work as its answer needs.
//!
//! Keeps NW-1, RG-4, RG-5.

use super::ahead::Ahead;
use super::name::{NameChoice, Ways};
use super::subject_states::SubjectStates;
use crate::event::Event;
use crate::rego::{InProcess, Input, Module, ModuleAnswer, Question, Runner};
use crate::set::{Node, NodeId, PolicySet};
use crate::symbols::Symbols;
use crate::truth::Truth;
use std::cell::{OnceCell, RefCell};

/// One event that is being judged.
pub(crate) struct Row<'a> {
    set: &'a PolicySet,
    event: &'a Event,
    symbols: &'a Symbols,
    known: NodeAnswers<'a>,
    asking: ModuleCalls<'a>,
    /// What modules said before anybody needed it.
    ahead: Option<&'a Ahead>,
    ways: OnceCell<Ways<'a>>,
    /// What modules said.
    asked: RefCell<Vec<(NodeId, Truth)>>,
    input: OnceCell<Input>,
    /// The word of the module that was asked last.
    reason_code: RefCell<Option<String>>,
}

/// Who runs modules, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct ModuleCalls<'a> {
    pub runner: &'a dyn Runner,
    pub has_time: &'a dyn Fn() -> bool,
}

/// What is known of the nodes that depend on more than the event.
#[derive(Clone, Copy)]
enum NodeAnswers<'a> {
    /// The past; modules are asked.
    Chronicle(&'a SubjectStates),
    /// The answers of history conditions and modules.
    Told(&'a dyn Fn(NodeId, Option<&NameChoice<'_>>) -> Truth),
}

impl<'a> Row<'a> {
    pub fn new(
        set: &'a PolicySet,
        event: &'a Event,
        symbols: &'a Symbols,
        chronicle: &'a SubjectStates,
    ) -> Self {
        let asking = ModuleCalls {
            runner: &InProcess,
            has_time: &|| true,
        };
        Self::within(set, event, symbols, chronicle, asking, None)
    }

    /// As `new`, where some modules may have been asked ahead; one whose turn comes when there is no time left is not asked, and
    /// its answer is unknown.
    pub fn within(
        set: &'a PolicySet,
        event: &'a Event,
        symbols: &'a Symbols,
        chronicle: &'a SubjectStates,
        asking: ModuleCalls<'a>,
        ahead: Option<&'a Ahead>,
    ) -> Self {
        Self {
            set,
            event,
            symbols,
            known: NodeAnswers::Chronicle(chronicle),
            asking,
            ahead,
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
        told: &'a dyn Fn(NodeId, Option<&NameChoice<'_>>) -> Truth,
        nothing: &'a SubjectStates,
    ) -> Self {
        Self {
            known: NodeAnswers::Told(told),
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

    fn truth_as(&self, id: NodeId, chosen: Option<&NameChoice<'a>>) -> Truth {
        match self.set.program.node(id) {
            Node::Constant(truth) => *truth,
            Node::Test(test) => test.judge(self.event, self.symbols, chosen),
            Node::All(nodes) => self.fold(nodes, chosen, Truth::True, Truth::False, Truth::and),
            Node::Any(nodes) => self.fold(nodes, chosen, Truth::False, Truth::True, Truth::or),
            Node::Not(node) => !self.truth_as(*node, chosen),
            Node::Occasions(bits) => (bits & self.event.occasion().bit() != 0).into(),
            Node::Before(at_ms) => (self.event.at_ms() < *at_ms).into(),
            Node::Past(tracker) => match self.known {
                NodeAnswers::Chronicle(chronicle) => {
                    chronicle.answer(self.set, *tracker, self.event, self.symbols, chosen)
                }
                NodeAnswers::Told(told) => told(id, chosen),
            },
            Node::Module { module, guard } => match self.truth_as(*guard, chosen) {
                Truth::False => Truth::False,
                _ => self.module(id, module, chosen),
            },
        }
    }

    /// Returns what a module says. It is asked once: of names that mean several records it is told nothing, whichever of
    /// them is chosen.
    fn module(&self, id: NodeId, module: &Module, chosen: Option<&NameChoice<'a>>) -> Truth {
        if let NodeAnswers::Told(told) = self.known {
            return told(id, chosen);
        }
        if chosen.is_some() {
            let asked = self.asked.borrow();
            let found = asked.iter().find(|(of, _)| *of == id);
            return found.map_or(Truth::Unknown, |(_, truth)| *truth);
        }
        let truth = match self.ahead.and_then(|ahead| ahead.of(id)) {
            Some((truth, reason_code)) => {
                self.reason_code.borrow_mut().clone_from(reason_code);
                truth
            }
            None if (self.asking.has_time)() => self.ask(module),
            None => Truth::Unknown,
        };
        self.asked.borrow_mut().push((id, truth));
        truth
    }

    /// Joins answers until one of them decides.
    fn fold(
        &self,
        nodes: &[NodeId],
        chosen: Option<&NameChoice<'a>>,
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
        let asked = ModuleQuestion {
            module,
            input,
            event: self.event,
        };
        let said = ask(&[asked], self.symbols, self.asking).pop();
        let (truth, reason_code) = said.unwrap_or((Truth::Unknown, None));
        *self.reason_code.borrow_mut() = reason_code;
        truth
    }

    /// Returns the word of the module that was asked since the last call.
    pub fn reason_code(&self) -> Option<String> {
        self.reason_code.borrow_mut().take()
    }
}

/// A module that is asked about an event, whose input this is.
pub(super) struct ModuleQuestion<'a> {
    pub module: &'a Module,
    pub input: &'a Input,
    pub event: &'a Event,
}

/// How many other inputs of a module are asked together: mostly the first of them matches, or none.
const OTHERS: usize = 8;

/// Returns what modules say, each with its word for why. One that compares the id of a record with a text is asked with each
/// word of the record as well (RG-5), as long as there is time.
pub(super) fn ask(
    all: &[ModuleQuestion<'_>],
    symbols: &Symbols,
    asking: ModuleCalls<'_>,
) -> Vec<(Truth, Option<String>)> {
    let missing: Vec<_> = all
        .iter()
        .map(|asked| asked.event.missing_paths(symbols))
        .collect();
    let questions: Vec<Question<'_>> = all
        .iter()
        .zip(&missing)
        .map(|(asked, missing)| Question {
            module: asked.module,
            input: asked.input,
            missing,
        })
        .collect();
    let mut own = asking.runner.ask(&questions, asking.has_time).into_iter();
    all.iter()
        .zip(&missing)
        .map(|(asked, missing)| match own.next() {
            Some(saying) => with_others(asked, missing, answer(saying), symbols, asking),
            None => (Truth::Unknown, None),
        })
        .collect()
}

fn with_others(
    asked: &ModuleQuestion<'_>,
    missing: &[Vec<String>],
    own: (Truth, Option<String>),
    symbols: &Symbols,
    asking: ModuleCalls<'_>,
) -> (Truth, Option<String>) {
    let module = asked.module;
    if own.0 == Truth::True || module.spoken().is_empty() {
        return own;
    }
    let others = module.others(asked.input, &asked.event.spoken(module.spoken(), symbols));
    let mut all = own;
    for some in others.inputs.chunks(OTHERS) {
        let questions: Vec<Question<'_>> = some
            .iter()
            .map(|input| Question {
                module,
                input,
                missing,
            })
            .collect();
        let sayings = asking.runner.ask(&questions, asking.has_time);
        let is_whole = sayings.len() == questions.len();
        for saying in sayings {
            match answer(saying) {
                found @ (Truth::True, _) => return found,
                (Truth::Unknown, _) => all = (Truth::Unknown, None),
                (Truth::False, _) => {}
            }
        }
        if !is_whole {
            return (Truth::Unknown, None);
        }
    }
    if others.is_cut {
        return (Truth::Unknown, None);
    }
    all
}

/// Returns what a module's answer is worth: nothing where it looked at what is missing (RG-4).
fn answer(saying: ModuleAnswer) -> (Truth, Option<String>) {
    match saying.answer {
        Ok(answer) if !saying.has_read_missing => (answer.matched.into(), answer.reason_code),
        _ => (Truth::Unknown, None),
    }
}
