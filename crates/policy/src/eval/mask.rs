//! Three-valued answers for up to 4096 rows, as two sets of bits.

/// Rows of a batch at most.
pub const BATCH_ROWS: usize = 4096;
/// Words of a set of rows.
pub(super) const WORDS: usize = BATCH_ROWS / 64;

/// A set of rows.
pub(super) type Bits = [u64; WORDS];

/// The rows for which something is true, and those for which it is not false.
#[derive(Clone)]
pub(super) struct Mask {
    pub sure: Bits,
    pub may: Bits,
}

impl Mask {
    pub const FALSE: Self = Self {
        sure: [0; WORDS],
        may: [0; WORDS],
    };

    /// Returns whether it is false for every row.
    pub fn is_false(&self) -> bool {
        self.may.iter().all(|word| *word == 0)
    }

    pub fn and(&mut self, other: &Self) {
        each(&mut self.sure, &other.sure, |a, b| a & b);
        each(&mut self.may, &other.may, |a, b| a & b);
    }

    pub fn or(&mut self, other: &Self) {
        each(&mut self.sure, &other.sure, |a, b| a | b);
        each(&mut self.may, &other.may, |a, b| a | b);
    }

    /// Turns it round, for the rows that are there.
    pub fn not(&mut self, rows: &Bits) {
        std::mem::swap(&mut self.sure, &mut self.may);
        each(&mut self.sure, rows, |was, rows| !was & rows);
        each(&mut self.may, rows, |was, rows| !was & rows);
    }
}

/// Changes each word by the one of another set.
pub(super) fn each(left: &mut Bits, right: &Bits, join: impl Fn(u64, u64) -> u64) {
    for (a, b) in left.iter_mut().zip(right) {
        *a = join(*a, *b);
    }
}

/// Returns how many rows are in a set.
pub(super) fn count(bits: &Bits) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Returns whether a row is in a set.
pub(super) fn has(bits: &Bits, row: usize) -> bool {
    bits[row / 64] & (1 << (row % 64)) != 0
}

/// Puts a row into a set.
pub(super) fn put(bits: &mut Bits, row: usize) {
    bits[row / 64] |= 1 << (row % 64);
}

/// Returns the rows of a set, ascending.
pub(super) fn rows(bits: &Bits) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(at, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (bit < 64).then_some(at * 64 + bit)
        })
    })
}

/// Returns the set of the first rows.
pub(super) fn first(rows: usize) -> Bits {
    let mut bits = [0; WORDS];
    for (at, word) in bits.iter_mut().enumerate() {
        *word = match rows.saturating_sub(at * 64) {
            64.. => u64::MAX,
            some => (1_u64 << some) - 1,
        };
    }
    bits
}

/// Returns one bit for each of 64 bytes that are 0 or 1.
pub(super) fn pack(bytes: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (at, eight) in bytes.chunks_exact(8).enumerate() {
        let mut chunk = [0; 8];
        chunk.copy_from_slice(eight);
        // The product brings byte i to bit 56 + i.
        let bits = u64::from_le_bytes(chunk).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (at * 8);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_bits_in_order() {
        for at in 0..64 {
            let mut bytes = [0; 64];
            bytes[at] = 1;
            assert_eq!(pack(&bytes), 1 << at);
        }
        assert_eq!(pack(&[1; 64]), u64::MAX);
    }

    #[test]
    fn a_set_of_the_first_rows_has_these_rows() {
        for n in [0, 1, 63, 64, 65, 4095, 4096] {
            let bits = first(n);
            assert_eq!(count(&bits), n as u64);
            assert!(rows(&bits).eq(0..n));
        }
    }
}
