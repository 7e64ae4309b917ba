//! Merkle trees as RFC 9162 §2.1 defines them.
//!
//! Everything works on the hashes of perfect subtrees, so that a proof over a million entries reads some
//! twenty stored nodes and not the entries.

use crate::error::{Error, Result};
use aws_lc_rs::digest::{Context, SHA256};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// Where the hashes of perfect subtrees come from.
pub trait Nodes {
    /// Returns the hash over the leaves `index << level .. (index + 1) << level`; level 0 is the leaf hash.
    fn node(&mut self, level: u8, index: u64) -> Result<Hash>;
}

/// A tree held in memory by its leaf hashes.
#[derive(Clone, Debug, Default)]
pub struct MemoryNodes(pub Vec<Hash>);

impl Nodes for MemoryNodes {
    fn node(&mut self, level: u8, index: u64) -> Result<Hash> {
        if level > 0 {
            let left = self.node(level - 1, 2 * index)?;
            return Ok(node(&left, &self.node(level - 1, 2 * index + 1)?));
        }
        let leaf = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        leaf.copied()
            .ok_or_else(|| Error::internal("a leaf of the tree is missing"))
    }
}

/// Returns the hash of a leaf.
pub fn leaf(data: &[u8]) -> Hash {
    sha256(&[&[0x00], data])
}

/// Returns the hash of an inner node.
pub fn node(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[0x01], left, right])
}

/// Returns the root over the first `size` leaves; that of no leaves is the hash of nothing.
pub fn root(size: u64, nodes: &mut impl Nodes) -> Result<Hash> {
    if size == 0 {
        return Ok(sha256(&[]));
    }
    subtree(0, size, nodes)
}

/// Returns the path that proves that leaf `index` is among the first `size`.
///
/// Errors: `InvalidRequest` when it is not.
pub fn inclusion(index: u64, size: u64, nodes: &mut impl Nodes) -> Result<Vec<Hash>> {
    if index >= size {
        return Err(Error::invalid("", "the entry is not in the tree of this size"));
    }
    let mut path = Vec::new();
    let (mut start, mut width) = (0, size);
    while width > 1 {
        let split = split(width);
        if index - start < split {
            path.push(subtree(start + split, width - split, nodes)?);
            width = split;
        } else {
            path.push(subtree(start, split, nodes)?);
            start += split;
            width -= split;
        }
    }
    path.reverse();
    Ok(path)
}

/// Returns whether `path` proves that `leaf` stands at `index` of the tree with this size and root.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            hash = node(sibling, &hash);
            // The right edge: levels at which the node has no sibling are skipped.
            while at.is_multiple_of(2) && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(&hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Returns the proof that the tree of `new` leaves only appended to the tree of `old` leaves.
///
/// Errors: `InvalidRequest` when `old` is larger than `new`.
pub fn consistency(old: u64, new: u64, nodes: &mut impl Nodes) -> Result<Vec<Hash>> {
    if old > new {
        return Err(Error::invalid(
            "",
            "the earlier tree is larger than the later one",
        ));
    }
    let mut proof = Vec::new();
    if old == 0 || old == new {
        return Ok(proof);
    }
    let (mut start, mut width, mut known) = (0, new, true);
    loop {
        let kept = old - start;
        if kept == width {
            // The verifier knows the old root already, if this subtree is all of the old tree.
            if !known {
                proof.push(subtree(start, width, nodes)?);
            }
            break;
        }
        let split = split(width);
        if kept <= split {
            proof.push(subtree(start + split, width - split, nodes)?);
            width = split;
        } else {
            proof.push(subtree(start, split, nodes)?);
            start += split;
            width -= split;
            known = false;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// Returns whether `proof` shows that the new tree only appended to the old one.
///
/// Every tree extends the empty one; its proof is empty.
pub fn verify_consistency(old: u64, new: u64, old_root: &Hash, new_root: &Hash, proof: &[Hash]) -> bool {
    if old == 0 {
        return proof.is_empty() && *old_root == sha256(&[]) && (new > 0 || old_root == new_root);
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    let whole = old.is_power_of_two().then_some(*old_root);
    let mut steps = whole.iter().chain(proof);
    let Some(first) = steps.next().filter(|_| old < new) else {
        return false;
    };
    let skip = (old - 1).trailing_ones();
    let (mut at, mut last) = ((old - 1) >> skip, (new - 1) >> skip);
    let (mut old_hash, mut new_hash) = (*first, *first);
    for step in steps {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            old_hash = node(step, &old_hash);
            new_hash = node(step, &new_hash);
            while at.is_multiple_of(2) && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            new_hash = node(&new_hash, step);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && old_hash == *old_root && new_hash == *new_root
}

/// Returns the hash over `width` leaves from `start`, which lies where RFC 9162 splits a tree: at a
/// multiple of a power of two that is at least `width`.
fn subtree(start: u64, width: u64, nodes: &mut impl Nodes) -> Result<Hash> {
    if width.is_power_of_two() {
        let level = width.trailing_zeros();
        return nodes.node(u8::try_from(level).unwrap_or(u8::MAX), start >> level);
    }
    let split = split(width);
    let left = subtree(start, split, nodes)?;
    Ok(node(&left, &subtree(start + split, width - split, nodes)?))
}

/// Returns the largest power of two below `width`, which is at least 2.
fn split(width: u64) -> u64 {
    1 << (width - 1).ilog2()
}

fn sha256(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

#[cfg(test)]
mod tests;
