//! Modules of several events, asked before anybody needs their answers, so that they are asked together.
//!
//! A guard that depends on the past is not known ahead; its module is asked, and the answer may be of no use.

use super::name::NameChoice;
use super::row::{ModuleCalls, ModuleQuestion, Row, ask};
use super::subject_states::SubjectStates;
use crate::event::Event;
use crate::rego::Input;
use crate::set::{Node, NodeId, PolicySet};
use crate::symbols::Symbols;
use crate::truth::Truth;

/// What modules said of an event.
#[derive(Debug, Default)]
pub struct Ahead(Vec<(NodeId, Truth, Option<String>)>);

impl Ahead {
    pub(super) fn of(&self, id: NodeId) -> Option<(Truth, &Option<String>)> {
        let found = self.0.iter().find(|(of, _, _)| *of == id)?;
        Some((found.1, &found.2))
    }
}

/// Returns what the modules that can matter say of each event.
pub(crate) fn ahead(
    set: &PolicySet,
    events: &[Event],
    symbols: &Symbols,
    candidates: &dyn Fn(&Event) -> Vec<NodeId>,
    asking: ModuleCalls<'_>,
) -> Vec<Ahead> {
    let nothing = SubjectStates::new();
    let unknown = |_: NodeId, _: Option<&NameChoice<'_>>| Truth::Unknown;
    let mut asked: Vec<(usize, NodeId)> = Vec::new();
    let mut inputs: Vec<Option<Input>> = Vec::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        let mut modules = Vec::new();
        for verdict in candidates(event) {
            collect(set, verdict, &mut modules);
        }
        modules.sort_unstable();
        modules.dedup();
        let row = Row::told(set, event, symbols, &unknown, &nothing);
        modules.retain(|id| match set.program.node(*id) {
            Node::Module { guard, .. } => row.truth(*guard) != Truth::False,
            _ => false,
        });
        let input = || crate::rego::input(&event.nested(symbols));
        inputs.push((!modules.is_empty()).then(input));
        asked.extend(modules.into_iter().map(|id| (at, id)));
    }
    let mut questions = Vec::with_capacity(asked.len());
    let mut places = Vec::with_capacity(asked.len());
    for (at, id) in asked {
        if let (Node::Module { module, .. }, Some(input)) = (set.program.node(id), &inputs[at]) {
            let event = &events[at];
            questions.push(ModuleQuestion { module, input, event });
            places.push((at, id));
        }
    }
    let mut all: Vec<Ahead> = events.iter().map(|_| Ahead::default()).collect();
    for ((at, id), (truth, reason_code)) in places.into_iter().zip(ask(&questions, symbols, asking)) {
        all[at].0.push((id, truth, reason_code));
    }
    all
}

/// Adds the modules that a node's answer may need.
fn collect(set: &PolicySet, id: NodeId, into: &mut Vec<NodeId>) {
    match set.program.node(id) {
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().for_each(|node| collect(set, *node, into)),
        Node::Not(node) => collect(set, *node, into),
        Node::Module { .. } => into.push(id),
        Node::Constant(_) | Node::Test(_) | Node::Occasions(_) | Node::Before(_) | Node::Past(_) => {}
    }
}
