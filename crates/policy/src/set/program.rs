//! The compiled form of all conditions of a set: one list of nodes, in which equal parts stand once.
//!
//! Children stand before their parents, and what a history condition asks of earlier events stands before the node
//! that gives its answer; one walk through the list sees everything in the right order.

use crate::catalogue::{Field, FieldType};
use crate::condition::{Check, Compare, Condition, HistoryCondition, Operand, WITHIN_LIMIT_MS};
use crate::family::Family;
use crate::rego::Module;
use crate::truth::Truth;
use std::collections::HashMap;
use std::sync::Arc;

/// The place of a node.
pub(crate) type NodeId = u32;

/// One step of the program.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Truth),
    Test(Test),
    All(Vec<NodeId>),
    Any(Vec<NodeId>),
    Not(NodeId),
    /// The event is judged at one of these occasions.
    Occasions(u16),
    /// The event is older than this instant.
    Before(i64),
    /// The answer of a tracker.
    Past(usize),
    /// What a module says; asked only where the guard is not false.
    Module {
        module: Arc<Module>,
        guard: NodeId,
    },
}

/// A predicate.
#[derive(Debug)]
pub(crate) struct Test {
    pub operand: Operand,
    pub check: Check,
    /// What is asked of the keys, where the operand is a name.
    pub keyed: Option<Check>,
}

impl Test {
    fn new(operand: Operand, check: Check) -> Self {
        let keyed = match &operand {
            Operand::Field(field) if field.is_name() => Some(check.keyed(*field)),
            _ => None,
        };
        let is_document = match &operand {
            Operand::Field(field) => field.is_document(),
            Operand::Custom(custom) => custom.kind == FieldType::Content,
        };
        Self {
            check: if is_document { check.of_documents() } else { check },
            operand,
            keyed,
        }
    }
}

/// What is remembered of each subject's events for one history condition.
#[derive(Debug)]
pub(crate) struct HistoryQuestion {
    pub family: Family,
    pub question: Question,
}

/// What a tracker answers. Times in milliseconds.
#[derive(Debug)]
pub(crate) enum Question {
    Prior(NodeId),
    Sequence {
        within_ms: i64,
        ordered: bool,
        events: Vec<NodeId>,
    },
    Count {
        within_ms: i64,
        matching: NodeId,
        compare: Compare,
    },
    Distinct {
        within_ms: i64,
        operand: Operand,
        matching: NodeId,
        compare: Compare,
    },
}

impl Question {
    /// Returns how far back it looks. Units: milliseconds.
    pub fn within_ms(&self) -> i64 {
        match self {
            Self::Prior(_) => WITHIN_LIMIT_MS,
            Self::Sequence { within_ms, .. }
            | Self::Count { within_ms, .. }
            | Self::Distinct { within_ms, .. } => *within_ms,
        }
    }

    /// Returns the question about other nodes in place of its own; nothing where there is none for one of them.
    fn renamed(&self, name: impl Fn(NodeId) -> Option<NodeId>) -> Option<Self> {
        Some(match self {
            Self::Prior(node) => Self::Prior(name(*node)?),
            Self::Sequence {
                within_ms,
                ordered,
                events,
            } => Self::Sequence {
                within_ms: *within_ms,
                ordered: *ordered,
                events: events.iter().map(|node| name(*node)).collect::<Option<_>>()?,
            },
            Self::Count {
                within_ms,
                matching,
                compare,
            } => Self::Count {
                within_ms: *within_ms,
                matching: name(*matching)?,
                compare: *compare,
            },
            Self::Distinct {
                within_ms,
                operand,
                matching,
                compare,
            } => Self::Distinct {
                within_ms: *within_ms,
                operand: operand.clone(),
                matching: name(*matching)?,
                compare: *compare,
            },
        })
    }

    /// Returns what is asked of each event.
    pub fn patterns(&self) -> &[NodeId] {
        match self {
            Self::Prior(node) => std::slice::from_ref(node),
            Self::Count { matching, .. } | Self::Distinct { matching, .. } => std::slice::from_ref(matching),
            Self::Sequence { events, .. } => events,
        }
    }
}

/// All nodes of a set.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub nodes: Vec<Node>,
    pub trackers: Vec<HistoryQuestion>,
    places: HashMap<String, NodeId>,
}

impl Program {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Returns how far back an answer can depend on events. Units: milliseconds.
    pub fn reach_ms(&self) -> i64 {
        // Children stand before their parents.
        let mut reach = vec![0_i64; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let of = |ids: &[NodeId]| ids.iter().map(|id| reach[*id as usize]).max().unwrap_or(0);
            reach[at] = match node {
                Node::All(ids) | Node::Any(ids) => of(ids),
                Node::Not(id) => of(&[*id]),
                Node::Past(tracker) => {
                    let question = &self.trackers[*tracker].question;
                    question.within_ms().saturating_add(of(question.patterns()))
                }
                _ => 0,
            };
        }
        reach.into_iter().max().unwrap_or(0)
    }

    /// Returns the node, made anew only if there is no equal one.
    fn add(&mut self, key: String, node: impl FnOnce(&mut Self) -> Node) -> NodeId {
        if let Some(id) = self.places.get(&key) {
            return *id;
        }
        let node = node(self);
        let id = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        self.nodes.push(node);
        self.places.insert(key, id);
        id
    }

    /// Returns for each node the node of another program that asks the same, if there is one.
    pub fn twins(&self, other: &Self) -> Vec<Option<NodeId>> {
        let mut keys = vec![""; self.nodes.len()];
        for (key, id) in &self.places {
            keys[*id as usize] = key;
        }
        // Children stand before their parents.
        let mut twins: Vec<Option<NodeId>> = Vec::with_capacity(self.nodes.len());
        for (node, key) in self.nodes.iter().zip(keys) {
            let twin = |id: NodeId| twins[id as usize];
            let all = |ids: &[NodeId]| ids.iter().map(|id| twin(*id)).collect::<Option<Vec<NodeId>>>();
            let key = match node {
                Node::All(ids) => all(ids).map(|ids| all_key(&ids)),
                Node::Any(ids) => all(ids).map(|ids| any_key(&ids)),
                Node::Not(id) => twin(*id).map(not_key),
                Node::Module { module, guard } => twin(*guard).map(|guard| module_key(module, guard)),
                Node::Past(tracker) => {
                    let HistoryQuestion { family, question } = &self.trackers[*tracker];
                    question
                        .renamed(twin)
                        .map(|question| past_key(*family, &question))
                }
                Node::Constant(_) | Node::Test(_) | Node::Occasions(_) | Node::Before(_) => {
                    Some(key.to_owned())
                }
            };
            twins.push(key.and_then(|key| other.places.get(&key).copied()));
        }
        twins
    }

    pub fn constant(&mut self, truth: Truth) -> NodeId {
        self.add(format!("constant {truth:?}"), |_| Node::Constant(truth))
    }

    pub fn occasions(&mut self, bits: u16) -> NodeId {
        self.add(format!("occasions {bits}"), |_| Node::Occasions(bits))
    }

    pub fn before(&mut self, at_ms: i64) -> NodeId {
        self.add(format!("before {at_ms}"), |_| Node::Before(at_ms))
    }

    pub fn not(&mut self, inner: NodeId) -> NodeId {
        self.add(not_key(inner), |_| Node::Not(inner))
    }

    pub fn all(&mut self, nodes: Vec<NodeId>) -> NodeId {
        match nodes.as_slice() {
            [one] => *one,
            [] => self.constant(Truth::True),
            _ => self.add(all_key(&nodes), |_| Node::All(nodes)),
        }
    }

    pub fn any(&mut self, nodes: Vec<NodeId>) -> NodeId {
        match nodes.as_slice() {
            [one] => *one,
            [] => self.constant(Truth::False),
            _ => self.add(any_key(&nodes), |_| Node::Any(nodes)),
        }
    }

    pub fn module(&mut self, module: &Arc<Module>, guard: NodeId) -> NodeId {
        let key = module_key(module, guard);
        let module = Arc::clone(module);
        self.add(key, |_| Node::Module { module, guard })
    }

    /// Returns the node that asks whether a field has, or holds, one of these names.
    pub fn names(&mut self, field: Field, mut list: Vec<Box<str>>) -> NodeId {
        list.sort_unstable();
        list.dedup();
        let check = match field.kind() {
            FieldType::Set => Check::AnyOf(list),
            _ => Check::TextIn { list, negated: false },
        };
        let operand = Operand::Field(field);
        let key = format!("names {} {check:?}", field.name());
        self.add(key, |_| Node::Test(Test::new(operand, check)))
    }

    /// Returns the node of a condition.
    pub fn condition(&mut self, family: Family, condition: &Condition) -> NodeId {
        match condition {
            Condition::Is(predicate) => self.add(format!("test {}", predicate.key), |_| {
                Node::Test(Test::new(predicate.operand.clone(), predicate.check.clone()))
            }),
            Condition::All(nodes) => {
                let nodes = nodes.iter().map(|node| self.condition(family, node)).collect();
                self.all(nodes)
            }
            Condition::Any(nodes) => {
                let nodes = nodes.iter().map(|node| self.condition(family, node)).collect();
                self.any(nodes)
            }
            Condition::Not(node) => {
                let inner = self.condition(family, node);
                self.not(inner)
            }
            Condition::Past(past) => self.past(family, past),
        }
    }

    fn past(&mut self, family: Family, past: &HistoryCondition) -> NodeId {
        let question = match past {
            HistoryCondition::Prior(node) => Question::Prior(self.condition(family, node)),
            HistoryCondition::Sequence {
                within_ms,
                ordered,
                events,
            } => Question::Sequence {
                within_ms: *within_ms,
                ordered: *ordered,
                events: events.iter().map(|node| self.condition(family, node)).collect(),
            },
            HistoryCondition::Count {
                within_ms,
                matching,
                compare,
            } => Question::Count {
                within_ms: *within_ms,
                matching: self.condition(family, matching),
                compare: *compare,
            },
            HistoryCondition::Distinct {
                within_ms,
                operand,
                matching,
                compare,
            } => Question::Distinct {
                within_ms: *within_ms,
                operand: operand.clone(),
                matching: match matching {
                    Some(node) => self.condition(family, node),
                    None => self.constant(Truth::True),
                },
                compare: *compare,
            },
        };
        let key = past_key(family, &question);
        self.add(key, |program| {
            program.trackers.push(HistoryQuestion { family, question });
            Node::Past(program.trackers.len() - 1)
        })
    }
}

// The keys of nodes that name other nodes.
fn not_key(inner: NodeId) -> String {
    format!("not {inner}")
}

fn all_key(nodes: &[NodeId]) -> String {
    format!("all {nodes:?}")
}

fn any_key(nodes: &[NodeId]) -> String {
    format!("any {nodes:?}")
}

fn module_key(module: &Module, guard: NodeId) -> String {
    format!("module {} {guard}", module.artifact_fingerprint())
}

fn past_key(family: Family, question: &Question) -> String {
    format!("past {family:?} {question:?}")
}
