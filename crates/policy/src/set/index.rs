//! Which rules can match an event, without asking each of them.
//!
//! A rule that cannot match unless an attribute has one of some texts (a tool's id, a server, a resource, a user)
//! is found under these texts, names under their match keys. What demands no text is asked for every event of its occasions.
//!
//! INVARIANT IX-1: a policy that the index leaves out is false for the event: not true, and not unknown.

use super::program::{Node, NodeId, Program};
use crate::catalogue::Field;
use crate::condition::{Check, Operand};
use crate::event::{Event, Value};
use crate::family::Occasion;
use crate::symbols::{Symbol, Symbols};
use std::collections::HashMap;

/// The rules by what they demand, for each occasion.
#[derive(Debug)]
pub(crate) struct Index(Vec<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    always: Vec<u32>,
    fields: Vec<(Field, Texts)>,
}

#[derive(Debug, Default)]
struct Texts {
    rules: HashMap<Box<str>, Vec<u32>>,
    /// Every rule of `rules`: when the attribute is missing, each may match.
    all: Vec<u32>,
}

/// LIMIT: a demand of more texts than this is not worth its memory.
const DEMAND_LIMIT: usize = 512;

impl Index {
    /// Returns the index of rules, each with its occasions and its verdict.
    pub fn new(program: &Program, rules: &[(u16, NodeId)]) -> Self {
        let mut shelves: Vec<Shelf> = Occasion::ALL.iter().map(|_| Shelf::default()).collect();
        for (at, (occasions, verdict)) in rules.iter().enumerate() {
            let rule = u32::try_from(at).unwrap_or(u32::MAX);
            let demand = demand(program, *verdict);
            for occasion in Occasion::ALL.into_iter().filter(|o| o.bit() & occasions != 0) {
                shelves[occasion as usize].put(rule, demand.as_ref());
            }
        }
        Self(shelves)
    }

    /// Returns the rules that can match, ascending.
    pub fn candidates(&self, event: &Event, symbols: &Symbols) -> Vec<u32> {
        let Shelf { always, fields } = &self.0[event.occasion() as usize];
        let mut found = always.clone();
        for (field, texts) in fields {
            let mut one = |symbol: Symbol| match symbols.state(*field, Value::Text(symbol)) {
                Value::Text(_) if !field.is_name() => texts.take(symbols.text(symbol), &mut found),
                Value::Text(_) => match symbols.meant(*field, symbol) {
                    [] => texts.take(symbols.name_key(*field, symbol), &mut found),
                    // INVARIANT IX-1: a record is found under its id and under every word that it has.
                    meant => meant
                        .iter()
                        .flat_map(|named| named.faces())
                        .for_each(|face| texts.take(&face.key, &mut found)),
                },
                _ => found.extend_from_slice(&texts.all),
            };
            match event.get(*field) {
                // INVARIANT IX-1: what nobody can say may be anything.
                Value::Missing => found.extend_from_slice(&texts.all),
                Value::Text(symbol) => one(symbol),
                Value::Line { whole, words } => {
                    one(whole);
                    symbols.set(words).iter().for_each(|symbol| one(*symbol));
                }
                Value::Set(set) => symbols.set(set).iter().for_each(|symbol| one(*symbol)),
                Value::Absent | Value::Number(_) | Value::Boolean(_) => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Texts {
    fn take(&self, text: &str, found: &mut Vec<u32>) {
        if let Some(rules) = self.rules.get(text) {
            found.extend_from_slice(rules);
        }
    }
}

impl Shelf {
    fn put(&mut self, rule: u32, demand: Option<&Demand>) {
        let Some(demand) = demand else {
            self.always.push(rule);
            return;
        };
        let at = self
            .fields
            .iter()
            .position(|(field, _)| *field == demand.field)
            .unwrap_or_else(|| {
                self.fields.push((demand.field, Texts::default()));
                self.fields.len() - 1
            });
        let texts = &mut self.fields[at].1;
        texts.all.push(rule);
        for text in &demand.texts {
            texts.rules.entry(text.clone()).or_default().push(rule);
        }
    }
}

/// "The attribute has, or holds, one of these texts."
struct Demand {
    field: Field,
    texts: Vec<Box<str>>,
}

/// Returns what has to be so for a node not to be false.
fn demand(program: &Program, id: NodeId) -> Option<Demand> {
    match program.node(id) {
        Node::Test(test) => match &test.operand {
            // A document is equal to every text that says the same.
            Operand::Field(field) if !field.is_document() => Some(Demand {
                field: *field,
                texts: texts(test.keyed.as_ref().unwrap_or(&test.check))?,
            }),
            _ => None,
        },
        Node::All(nodes) => {
            let demands = nodes.iter().filter_map(|node| demand(program, *node));
            demands.min_by_key(|demand| (demand.texts.len(), rank(demand.field)))
        }
        Node::Any(nodes) => {
            let mut union: Option<Demand> = None;
            for node in nodes {
                let next = demand(program, *node)?;
                match &mut union {
                    None => union = Some(next),
                    Some(union) if union.field == next.field => union.texts.extend(next.texts),
                    Some(_) => return None,
                }
            }
            union.filter(|demand| demand.texts.len() <= DEMAND_LIMIT)
        }
        // A module is asked only where its guard is not false.
        Node::Module { guard, .. } => demand(program, *guard),
        Node::Constant(_) | Node::Not(_) | Node::Occasions(_) | Node::Before(_) | Node::Past(_) => None,
    }
}

fn texts(check: &Check) -> Option<Vec<Box<str>>> {
    match check {
        Check::Text { is, negated: false } | Check::Member(is) => Some(vec![is.clone()]),
        Check::TextIn { list, negated: false } | Check::AnyOf(list) if list.len() <= DEMAND_LIMIT => {
            Some(list.clone())
        }
        Check::AllOf(list)
        | Check::Set {
            is: list,
            negated: false,
        } => list.first().map(|text| vec![text.clone()]),
        _ => None,
    }
}

/// Returns how poorly an attribute tells events apart; the rest between the two ends.
fn rank(field: Field) -> u8 {
    match field {
        Field::SKILL | Field::RESOURCE | Field::MCP_TOOL | Field::TOOL => 0,
        Field::MCP_SERVER | Field::USER | Field::SERVICE_ACCOUNT | Field::DEVICE => 1,
        Field::GROUPS => 3,
        _ => 2,
    }
}
