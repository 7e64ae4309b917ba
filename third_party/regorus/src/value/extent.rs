//! Provost: how large a value is as a tree, and what follows from it for an evaluation.
//!
//! Values share their parts: twenty-four steps that each put a value twice into an array make sixteen million nodes out of
//! twenty-five. Whatever walks a value (a comparison, a place in a set, a built-in) walks the tree. An array, an object or a set
//! therefore knows how large its tree is: what is pushed or inserted is added, and what was reached in another way is counted
//! once, from what its members know.
//!
//! Keeps RG-7.

use super::Value;
use crate::number::Number;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an evaluation may build and walk. Without limits, unless the host sets some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Nodes of one value as a tree; 64 bytes of text, and 64 bits of a number, count as one more.
    pub nodes: u64,
    /// Levels of one value.
    pub depth: u64,
    /// Bits of one number.
    pub number_bits: u64,
    /// Nodes that an evaluation walks inside of its instructions.
    pub work: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            nodes: u64::MAX,
            depth: u64::MAX,
            number_bits: u64::MAX,
            work: u64::MAX,
        }
    }
}

/// How large a value is as a tree: never less than it is, and not more, but for a depth that it once had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub nodes: u64,
    pub depth: u64,
}

/// What is kept: nodes above, levels in the lowest bits. Larger ones stay at the largest.
const DEPTH_BITS: u32 = 16;
const MOST_NODES: u64 = (1 << (64 - DEPTH_BITS)) - 1;
const MOST_LEVELS: u64 = (1 << DEPTH_BITS) - 1;
/// Bytes of text, or bits of a number, that are walked as fast as a node.
const BYTES_PER_NODE: u64 = 64;

impl Extent {
    const LEAF: Self = Self { nodes: 1, depth: 1 };

    /// Adds a member.
    pub(super) fn add(&mut self, member: Self) {
        self.nodes = self.nodes.saturating_add(member.nodes).min(MOST_NODES);
        self.depth = self.depth.max(member.depth.saturating_add(1)).min(MOST_LEVELS);
    }

    /// Takes a member away. What stands at the largest stays there: nobody knows what was above it.
    fn subtract(&mut self, member: Self) {
        if self.nodes < MOST_NODES {
            self.nodes = self.nodes.saturating_sub(member.nodes).max(1);
        }
    }

    /// Returns the extent of a collection.
    pub(super) fn of<'a>(members: impl Iterator<Item = &'a Value>) -> Self {
        let mut all = Self::LEAF;
        for member in members {
            all.add(member.extent());
        }
        all
    }
}

/// The extent of a collection as far as it is known. Zero: not known.
#[derive(Default)]
pub(super) struct Known(AtomicU64);

impl Known {
    pub(super) const fn not() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns the extent, which is counted if it is not known.
    pub(super) fn get_or_count(&self, count: impl FnOnce() -> Extent) -> Extent {
        if let Some(known) = self.get() {
            return known;
        }
        let counted = count();
        self.put(counted);
        counted
    }

    fn get(&self) -> Option<Extent> {
        let packed = self.0.load(Relaxed);
        (packed != 0).then_some(Extent {
            nodes: packed >> DEPTH_BITS,
            depth: packed & MOST_LEVELS,
        })
    }

    fn put(&self, extent: Extent) {
        let nodes = extent.nodes.min(MOST_NODES) << DEPTH_BITS;
        self.0.store(nodes | extent.depth.min(MOST_LEVELS), Relaxed);
    }

    /// Notes that the collection was changed in a way that nobody watched.
    pub(super) fn forget(&mut self) {
        *self.0.get_mut() = 0;
    }

    /// Notes a new member.
    pub(super) fn add(&mut self, member: Extent) {
        if let Some(mut known) = self.get() {
            known.add(member);
            self.put(known);
        }
    }

    /// Notes that a member is gone.
    pub(super) fn subtract(&mut self, member: Extent) {
        if let Some(mut known) = self.get() {
            known.subtract(member);
            self.put(known);
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.get().is_some()
    }
}

impl Clone for Known {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Relaxed)))
    }
}

impl Value {
    /// Returns how large the value is as a tree. Cost: one look for what was asked or built step by step before.
    pub fn extent(&self) -> Extent {
        let leaf = |bytes: u64| Extent {
            nodes: (bytes / BYTES_PER_NODE).saturating_add(1),
            depth: 1,
        };
        match self {
            Value::String(text) => leaf(u64::try_from(text.len()).unwrap_or(u64::MAX)),
            Value::Number(number) => leaf(bits(number)),
            Value::Array(items) => items.extent(),
            Value::Set(items) => items.extent(),
            Value::Object(members) => members.extent(),
            Value::Null | Value::Bool(_) | Value::Undefined => Extent::LEAF,
        }
    }

    /// Returns whether the value is larger than an evaluation may build.
    pub fn is_beyond(&self, bounds: &Bounds) -> bool {
        match self {
            Value::Null | Value::Bool(_) | Value::Undefined => false,
            Value::Number(number) => bits(number) > bounds.number_bits,
            _ => {
                let extent = self.extent();
                extent.nodes > bounds.nodes || extent.depth > bounds.depth
            }
        }
    }
}

/// A number as it is kept, for who hands a value on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Number {
    /// Returns the number as it is kept; nothing for one of more than 64 bits.
    pub fn plain(&self) -> Option<Plain> {
        match self {
            Number::UInt(whole) => Some(Plain::Unsigned(*whole)),
            Number::Int(whole) => Some(Plain::Signed(*whole)),
            Number::Float(part) => Some(Plain::Float(*part)),
            Number::BigInt(_) => None,
        }
    }
}

fn bits(number: &Number) -> u64 {
    match number {
        Number::BigInt(whole) => whole.bits(),
        _ => 0,
    }
}
