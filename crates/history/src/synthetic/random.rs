//! Random choices that repeat for the same seed.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns bits that look like chance and follow from a number (the finalizer of `SplitMix64`).
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(STEP);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The generator `SplitMix64`: quick, seeded, for test data alone.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns 64 random bits.
    pub(super) fn next(&mut self) -> u64 {
        let drawn = mixed(self.0);
        self.0 = self.0.wrapping_add(STEP);
        drawn
    }

    /// Returns a number below `count`.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(count.max(1));
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Returns true with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        // 32 bits are exact in a double.
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(0)) < probability * 4_294_967_296.0
    }
}

/// Returns a ULID of this instant.
pub(super) fn ulid(at: i64, random: &mut Random) -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let number = u128::from(at.cast_unsigned()) << 80
        | u128::from(random.next() & 0xffff) << 64
        | u128::from(random.next());
    (0..26)
        .rev()
        .map(|place| char::from(DIGITS[usize::try_from(number >> (5 * place) & 31).unwrap_or(0)]))
        .collect()
}
