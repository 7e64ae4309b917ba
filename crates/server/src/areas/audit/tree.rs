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
