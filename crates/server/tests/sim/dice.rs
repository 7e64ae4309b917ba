//! The choices of a run, from its seed alone.

use provost_history::synthetic::mixed;

/// `SplitMix64`: any seed is a good one.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Returns the dice of one part of a run.
    pub fn new(seed: u64, part: u64) -> Self {
        let mut whole = Self(seed ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(whole.next())
    }

    fn next(&mut self) -> u64 {
        let drawn = mixed(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    pub fn permille(&mut self, permille: u64) -> bool {
        self.between(1, 1000) <= permille
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        let place = self.below(from.len());
        from.get(place)
    }
}
