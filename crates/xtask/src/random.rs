//! Reproducible randomness: one printed seed repeats every choice of a run.

use std::time::Duration;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits that look like chance and follow from a number.
pub fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `SplitMix64`: one addition and three mixes, and any seed is a good one.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for part `index` of a run.
    pub fn part(seed: u64, index: u64) -> Self {
        let mut whole = Self(seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(whole.next())
    }

    pub fn next(&mut self) -> u64 {
        let drawn = mixed(self.0);
        self.0 = self.0.wrapping_add(STEP);
        drawn
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(items.len()).ok()?.checked_sub(1)?;
        items.get(usize::try_from(self.between(0, last)).ok()?)
    }

    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1000, high * 1000))
    }
}

/// A seed that no earlier run had.
pub fn fresh_seed() -> u64 {
    let now = crate::clock::since_epoch();
    // Short enough to be typed again.
    Random::new(now.as_secs() ^ u64::from(now.subsec_nanos()).rotate_left(32)).next() >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let draw = |seed| {
            let mut random = Random::part(seed, 3);
            (0..100).map(|_| random.between(5, 9)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).iter().all(|number| (5..=9).contains(number)));
        assert!((5..=9).all(|number| draw(1).contains(&number)));
    }

    #[test]
    fn nothing_is_picked_from_nothing() {
        assert_eq!(Random::new(1).pick::<u8>(&[]), None);
    }
}
