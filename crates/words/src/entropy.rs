//! Randomness, injected everywhere.
//!
//! A request draws one 32-byte seed; everything random inside its unit of work comes from a generator
//! seeded with it. A unit that runs again after a serialization failure therefore mints the same ids and
//! the same secrets.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::sync::Mutex;

/// Where seeds come from.
pub trait Entropy: Send + Sync {
    /// Returns 32 unpredictable bytes.
    fn seed(&self) -> [u8; 32];
}

/// The operating system's generator.
#[derive(Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        #[expect(
            clippy::expect_used,
            reason = "a system without randomness cannot mint tokens; stop loudly"
        )]
        aws_lc_rs::rand::fill(&mut seed).expect("the system's random generator failed");
        seed
    }
}

/// A reproducible sequence of seeds for simulation and tests.
pub struct SeededEntropy(Mutex<ChaCha20Rng>);

impl SeededEntropy {
    /// Returns the sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(ChaCha20Rng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        let mut rng = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        rng.fill_bytes(&mut seed);
        seed
    }
}

/// The generator of one unit of work: cryptographically strong, reproducible from its seed.
pub struct UnitRng(ChaCha20Rng);

impl UnitRng {
    /// Returns the generator that belongs to `seed`.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// Returns another generator of the same unit, from whose bytes nobody learns anything about those of
    /// [`Self::new`] or of another label.
    pub fn labelled(seed: [u8; 32], label: &str) -> Self {
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        context.update(&seed);
        context.update(label.as_bytes());
        let mut derived = [0; 32];
        derived.copy_from_slice(context.finish().as_ref());
        Self::new(derived)
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CX-2.
    #[test]
    fn the_same_seed_draws_the_same_bytes() {
        let seed = SeededEntropy::new(7).seed();
        assert_eq!(seed, SeededEntropy::new(7).seed());
        let (mut a, mut b) = ([0; 40], [0; 40]);
        UnitRng::new(seed).fill(&mut a);
        UnitRng::new(seed).fill(&mut b);
        assert_eq!(a, b);
        assert_ne!(SystemEntropy.seed(), SystemEntropy.seed());
    }

    #[test]
    fn generators_of_one_seed_share_no_bytes() {
        let seed = SeededEntropy::new(7).seed();
        let stream = |mut rng: UnitRng| {
            let mut bytes = [0; 4096];
            rng.fill(&mut bytes);
            bytes
        };
        let plain = stream(UnitRng::new(seed));
        let (one, other) = (UnitRng::labelled(seed, "one"), UnitRng::labelled(seed, "other"));
        let (one, other) = (stream(one), stream(other));
        let shares = |a: &[u8], b: &[u8]| a.windows(8).any(|w| b.windows(8).any(|v| v == w));
        assert!(!shares(&plain, &one[..64]) && !shares(&plain, &other[..64]) && !shares(&one, &other[..64]));
        assert_eq!(one, stream(UnitRng::labelled(seed, "one")));
    }
}
