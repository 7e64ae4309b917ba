//! The Merkle tree over a chain, read from the store.
//!
//! Nodes of the levels 8, 16, 24, … are stored; the levels between are computed from the 256 hashes below
//! them, one *tile*. A proof over a million entries reads some six tiles.

use super::store::{self, Rows};
use provost_kernel::merkle::{self, Hash, Nodes};
use provost_kernel::{Error, Result};
use std::collections::HashMap;

/// Nodes are stored at every level that is a multiple of this.
pub(super) const STEP: u8 = 8;
/// How many hashes of one stored level lie under one node of the next.
const WIDTH: u64 = 1 << STEP;

/// The tree over the first `size` entries of a chain.
pub(super) struct StoredTree<'a, R> {
    rows: &'a mut R,
    organization: &'a str,
    size: u64,
    tiles: HashMap<(u8, u64), Vec<Hash>>,
}

impl<'a, R: Rows> StoredTree<'a, R> {
    /// Returns the tree over the first `size` entries.
    pub(super) fn new(rows: &'a mut R, organization: &'a str, size: u64) -> Self {
        Self {
            rows,
            organization,
            size,
            tiles: HashMap::new(),
        }
    }

    /// Returns a node of a stored level, computed from the stored level below.
    pub(super) fn compute(&mut self, level: u8, position: u64) -> Result<Hash> {
        let below = self.tile(level - STEP, position)?;
        if below.len() as u64 != WIDTH {
            return Err(Error::internal("a node of the audit tree lies beyond its size"));
        }
        Ok(fold(below))
    }

    /// Returns the hashes of a stored level at the positions `256 · tile …`, as far as the tree goes.
    fn tile(&mut self, level: u8, tile: u64) -> Result<&[Hash]> {
        if !self.tiles.contains_key(&(level, tile)) {
            let hashes = self.load(level, tile)?;
            self.tiles.insert((level, tile), hashes);
        }
        Ok(&self.tiles[&(level, tile)])
    }

    fn load(&mut self, level: u8, tile: u64) -> Result<Vec<Hash>> {
        let first = tile * WIDTH;
        let end = (first + WIDTH).min(self.size >> level);
        if level == 0 {
            let entries = store::hashes(self.rows, self.organization, signed(first)?, signed(end)?)?;
            let is_whole = entries.len() as u64 == end.saturating_sub(first);
            return if is_whole {
                Ok(entries.into_iter().map(|(_, hash)| merkle::leaf(&hash)).collect())
            } else {
                Err(Error::internal("an entry of the audit log is missing"))
            };
        }
        let stored = store::nodes(self.rows, self.organization, level, signed(first)?, signed(end)?)?;
        let stored: HashMap<i64, Hash> = stored.into_iter().collect();
        let mut hashes = Vec::new();
        for position in first..end {
            let hash = match stored.get(&signed(position)?) {
                Some(hash) => *hash,
                None => self.compute(level, position)?,
            };
            hashes.push(hash);
        }
        Ok(hashes)
    }
}

impl<R: Rows> Nodes for StoredTree<'_, R> {
    fn node(&mut self, level: u8, index: u64) -> Result<Hash> {
        let above = level % STEP;
        let (first, count) = (index << above, 1_usize << above);
        let place = usize::try_from(first % WIDTH).map_err(Error::internal)?;
        let tile = self.tile(level - above, first / WIDTH)?;
        let hashes = tile.get(place..place + count);
        hashes
            .map(fold)
            .ok_or_else(|| Error::internal("a node of the audit tree lies beyond its size"))
    }
}

/// Returns the root over a power of two of hashes.
fn fold(hashes: &[Hash]) -> Hash {
    if let [one] = hashes {
        return *one;
    }
    let (left, right) = hashes.split_at(hashes.len() / 2);
    merkle::node(&fold(left), &fold(right))
}

fn signed(place: u64) -> Result<i64> {
    i64::try_from(place).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::make_checkpoints;
    use crate::audit::testing::{World, on_every_store};
    use provost_kernel::merkle::MemoryNodes;

    fn leaves(world: &World, size: i64) -> Vec<Hash> {
        let read = world
            .kernel
            .read_system(move |tx| store::hashes(tx, "acme", 0, size));
        world
            .run(read)
            .unwrap()
            .iter()
            .map(|(_, hash)| merkle::leaf(hash))
            .collect()
    }

    /// Checks the root of a size, and the proof of every place that `places` lets through.
    fn check(world: &World, leaves: &[Hash], size: u64, places: fn(u64) -> bool) {
        let leaves = leaves[..usize::try_from(size).unwrap()].to_vec();
        let expected = merkle::root(size, &mut MemoryNodes(leaves.clone())).unwrap();
        let read = world.kernel.read_system(move |tx| {
            let mut tree = StoredTree::new(tx, "acme", size);
            let root = merkle::root(size, &mut tree)?;
            assert_eq!(root, expected, "size {size}");
            for (index, leaf) in (0..).zip(&leaves).filter(|(index, _)| places(*index)) {
                let path = merkle::inclusion(index, size, &mut tree)?;
                assert!(
                    merkle::verify_inclusion(leaf, index, size, &path, &root),
                    "{index} in {size}"
                );
            }
            Ok(())
        });
        world.run(read).unwrap();
    }

    #[test]
    fn every_entry_is_proved_at_every_size_up_to_600() {
        on_every_store("audit_tree", |world| {
            world.grow(600);
            let leaves = leaves(world, 600);
            (1..=600).for_each(|size| check(world, &leaves, size, |_| true));
        });
    }

    #[test]
    fn stored_nodes_are_those_of_the_tree_made_from_scratch() {
        on_every_store("audit_nodes", |world| {
            // 66 000 entries have a node on the second stored level.
            let mut total = 0;
            for count in [1, 300, 900, 30_000, 34_799] {
                world.grow(count);
                world.advance_secs(60);
                assert_eq!(world.run(make_checkpoints(&world.kernel)).unwrap(), 1);
                total += u64::try_from(count).unwrap() + 1;
            }
            let leaves = leaves(world, 66_004);
            let mut memory = MemoryNodes(leaves.clone());
            for level in [8, 16] {
                let stored = world
                    .kernel
                    .read_system(move |tx| store::nodes(tx, "acme", level, 0, 1000));
                let stored = world.run(stored).unwrap();
                assert_eq!(stored.len() as u64, (total - 1) >> level);
                for (place, (position, hash)) in (0..).zip(&stored) {
                    assert_eq!(*position, i64::try_from(place).unwrap());
                    assert_eq!(
                        *hash,
                        memory.node(level, place).unwrap(),
                        "level {level} position {place}"
                    );
                }
            }
            for size in [65_535, 65_536, 65_537, 66_004] {
                check(world, &leaves, size, |index| {
                    index % 6_007 == 0 || index > 65_530 && index < 65_540
                });
            }
        });
    }

    #[test]
    fn a_missing_entry_is_no_shorter_tree() {
        on_every_store("audit_tree_gap", |world| {
            world.grow(3);
            let read = world
                .kernel
                .read_system(|tx| merkle::root(4, &mut StoredTree::new(tx, "acme", 4)));
            assert!(world.run(read).is_err());
        });
    }
}
