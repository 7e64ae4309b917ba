//! Native conditions: what a policy, or an exception to it, matches.
//!
//! ```text
//!   node = {field, op, value?}                          a predicate on one attribute
//!        | {all: [node…]} | {any: [node…]} | {not: node}
//!        | {hasPriorEvent: node}                        an earlier event matched
//!        | {hasEventSequence: {within, ordered, events: [node…]}}
//!        | {eventCount: {within, where, op, value}}
//!        | {priorDistinctValues: {within, field, where?, op, value}}
//! ```
//!
//! What the history conditions mean (the contract gives their form only):
//!
//! - They look at earlier events of the same subject and family, never at the event being judged, nor at others'.
//!   The subject is the user, else the service account, else the device. Without any of them there is no past.
//! - "Within" includes its far end: with `1h`, an event exactly one hour old counts. `hasPriorEvent` looks back
//!   30 days, the longest `within`, so that every answer depends on a bounded past.
//! - An ordered sequence needs one event for each pattern, each later than the one before, all within the time.
//!   An unordered one needs each pattern matched by some event; one event may match several.
//! - Distinct values are counted one by one; of a set, each member is a value.
//! - Where an earlier event is unknown for a pattern, the answer is what all possibilities agree on, else unknown.
//!
//! Source: client contract §3.9.
//!
//! INVARIANT PC-1: no condition is deeper than 16, has more than 512 nodes, or more than 64 children at a node.
//!
//! Absent on purpose: evaluation (`eval`), and conditions inside Rego modules.

mod custom;
mod parse;
mod pattern;
mod predicate;

pub(crate) use custom::{
    CustomField, MEMBERS as CUSTOM_MEMBERS, Place, TYPES as CUSTOM_TYPES, parse as parse_custom,
};
pub(crate) use parse::{COMPARISONS, FORMS, Parser, parse_within};
pub use pattern::pattern;
pub(crate) use predicate::{Check, Predicate};

use crate::catalogue::{Field, FieldType};
use std::sync::Arc;

/// LIMIT: depth of a condition. Source: client contract §3.9.
pub const DEPTH_LIMIT: usize = 16;
/// LIMIT: nodes of a condition. Source: client contract §3.9.
pub const NODE_LIMIT: usize = 512;
/// LIMIT: children of `all` and `any`. Source: client contract §3.9.
pub const CHILD_LIMIT: usize = 64;
/// LIMIT: how far back a history condition looks: 30 days. Units: milliseconds. Source: client contract §3.9.
pub const WITHIN_LIMIT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// LIMIT: the number with which a history condition compares. Source: client contract §3.9.
pub const COUNT_LIMIT: u64 = 1024;
/// LIMIT: bytes of a pattern. Source: client contract §3.9.
pub const PATTERN_LIMIT_BYTES: usize = 1024;

/// A condition that keeps every rule.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Is(Predicate),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Past(HistoryCondition),
}

/// A condition on the subject's earlier events. Times in milliseconds.
#[derive(Clone, Debug)]
pub(crate) enum HistoryCondition {
    Prior(Box<Condition>),
    Sequence {
        within_ms: i64,
        ordered: bool,
        events: Vec<Condition>,
    },
    Count {
        within_ms: i64,
        matching: Box<Condition>,
        compare: Compare,
    },
    Distinct {
        within_ms: i64,
        operand: Operand,
        matching: Option<Box<Condition>>,
        compare: Compare,
    },
}

/// What is read from an event.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Field(Field),
    Custom(Arc<CustomField>),
}

impl Operand {
    pub fn kind(&self) -> FieldType {
        match self {
            Self::Field(field) => field.kind(),
            Self::Custom(custom) => custom.kind,
        }
    }

    /// Returns whether the answer depends on content; a custom field is a part of a tool's input.
    pub fn is_content(&self) -> bool {
        self.field().is_content()
    }

    /// Returns the attribute that it is, if it is a whole one.
    pub fn as_field(&self) -> Option<Field> {
        match self {
            Self::Field(field) => Some(*field),
            Self::Custom(_) => None,
        }
    }

    /// Returns the attribute that has to be there to answer.
    pub fn field(&self) -> Field {
        match self {
            Self::Field(field) => *field,
            Self::Custom(_) => Field::TOOL_INPUT,
        }
    }
}

/// A comparison of a count with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compare {
    pub op: Order,
    pub value: u64,
}

/// How two numbers stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Equal,
    Greater,
    AtLeast,
    Less,
    AtMost,
}

impl Order {
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Self::Equal,
            "gt" => Self::Greater,
            "gte" => Self::AtLeast,
            "lt" => Self::Less,
            "lte" => Self::AtMost,
            _ => return None,
        })
    }

    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
        }
    }
}

impl Condition {
    /// Returns whether it looks at earlier events.
    pub fn has_past(&self) -> bool {
        match self {
            Self::Is(_) => false,
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().any(Self::has_past),
            Self::Not(node) => node.has_past(),
            Self::Past(_) => true,
        }
    }

    /// Calls `see` with everything that is read.
    pub fn each_operand(&self, see: &mut dyn FnMut(&Operand)) {
        match self {
            Self::Is(predicate) => see(&predicate.operand),
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().for_each(|node| node.each_operand(see)),
            Self::Not(node) => node.each_operand(see),
            Self::Past(past) => past.each_operand(see),
        }
    }

    /// Calls `see` with every predicate on the event itself.
    pub fn each_predicate<'a>(&'a self, see: &mut dyn FnMut(&'a Predicate)) {
        match self {
            Self::Is(predicate) => see(predicate),
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().for_each(|node| node.each_predicate(see)),
            Self::Not(node) => node.each_predicate(see),
            Self::Past(_) => {}
        }
    }
}

impl HistoryCondition {
    fn each_operand(&self, see: &mut dyn FnMut(&Operand)) {
        match self {
            Self::Prior(node) | Self::Count { matching: node, .. } => node.each_operand(see),
            Self::Sequence { events, .. } => events.iter().for_each(|node| node.each_operand(see)),
            Self::Distinct {
                operand, matching, ..
            } => {
                see(operand);
                if let Some(node) = matching {
                    node.each_operand(see);
                }
            }
        }
    }
}
