//! The buckets of the process, behind sixty-four locks, so that threads rarely meet.
//!
//! A bucket is read, judged and moved under its shard's lock. The clock is read before the lock is held: whoever waited
//! for it judges by an instant that has passed, which can only refuse more.
//!
//! INVARIANT RL-1: no order of threads lets more through a bucket than its burst and what came back. Proof: `cargo
//! xtask endure schedules`.

use super::sync::{Mutex, PoisonError};
use crate::rate::{Bucket, Pace, RateDecision};
use crate::time::Clock;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

pub(super) const SHARDS: usize = 64;
/// A shard with fewer keys is not worth sweeping.
const SWEEP_FROM: usize = 256;
/// LIMIT: 64 x 8 192 keys, about 64 MiB. Beyond it the fullest buckets are forgotten first.
pub(super) const SHARD_CAP: usize = 8_192;

/// All buckets of the process.
pub struct Limiter {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Vec<Mutex<Shard>>,
}

struct Shard {
    full_at: HashMap<Box<[u8]>, Instant>,
    sweep_at_len: usize,
}

/// When a bucket is full. Units: nanoseconds of the monotonic clock, times the bucket's `per_second_num`, so
/// that the interval between two tokens is a whole number.
#[derive(Clone, Copy)]
struct Instant {
    ticks: u128,
    ticks_per_ns: u32,
}

impl Limiter {
    /// Returns a limiter whose buckets are all full.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let shard = || {
            Mutex::new(Shard {
                full_at: HashMap::new(),
                sweep_at_len: SWEEP_FROM,
            })
        };
        Self {
            clock,
            hasher: RandomState::new(),
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }

    /// Takes one token from the bucket of `key`, if there is one.
    ///
    /// Cost: one hash and one short lock; no allocation for a known key.
    pub fn take(&self, bucket: &Bucket, key: &[&str]) -> RateDecision {
        self.ask(bucket, key, true)
    }

    /// Returns what [`Self::take`] would, and takes nothing.
    pub fn peek(&self, bucket: &Bucket, key: &[&str]) -> RateDecision {
        self.ask(bucket, key, false)
    }

    fn ask(&self, bucket: &Bucket, key: &[&str], keep: bool) -> RateDecision {
        let now_ns = self.clock.monotonic().as_nanos();
        let pace = Pace::of(bucket, now_ns);
        with_key(bucket.name, key, |key| {
            let shard = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
            let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
            let known = shard.full_at.get_mut(key);
            let full_at = known.as_ref().map_or(pace.now, |at| at.ticks.max(pace.now));
            let (taken, after) = pace.ask(full_at);
            if keep && taken.allowed {
                if let Some(at) = known {
                    at.ticks = after;
                } else {
                    shard.remember(key, after, pace.ticks_per_ns, now_ns);
                }
            }
            taken
        })
    }

    /// Returns how many buckets are not known to be full.
    pub fn len(&self) -> usize {
        let lock = |shard: &Mutex<Shard>| shard.lock().map_or(0, |shard| shard.full_at.len());
        self.shards.iter().map(lock).sum()
    }

    /// Returns whether every bucket is full.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shard {
    fn remember(&mut self, key: &[u8], ticks: u128, ticks_per_ns: u32, now_ns: u128) {
        if self.full_at.len() >= self.sweep_at_len {
            self.sweep(now_ns);
        }
        self.full_at.insert(key.into(), Instant { ticks, ticks_per_ns });
    }

    /// Forgets the full buckets, and the fuller half of the others when there are still too many.
    fn sweep(&mut self, now_ns: u128) {
        self.full_at.retain(|_, at| at.in_ns() > now_ns);
        if self.full_at.len() >= SHARD_CAP {
            let mut instants: Vec<u128> = self.full_at.values().map(Instant::in_ns).collect();
            let middle = instants.len() / 2;
            let (_, &mut median, _) = instants.select_nth_unstable(middle);
            self.full_at.retain(|_, at| at.in_ns() > median);
        }
        self.sweep_at_len = (self.full_at.len() * 2).clamp(SWEEP_FROM, SHARD_CAP);
    }
}

impl Instant {
    fn in_ns(&self) -> u128 {
        self.ticks.div_ceil(u128::from(self.ticks_per_ns))
    }
}

/// Lends the parts as one unambiguous byte string: each with its length before it.
fn with_key<T>(name: &str, parts: &[&str], lend: impl FnOnce(&[u8]) -> T) -> T {
    let mut short = [0_u8; 192];
    let length: usize = parts.iter().map(|part| part.len() + 4).sum::<usize>() + name.len() + 4;
    let mut long;
    let key = if length <= short.len() {
        &mut short[..length]
    } else {
        long = vec![0; length];
        &mut long[..]
    };
    let mut at = 0;
    for part in std::iter::once(&name).chain(parts) {
        let size = u32::try_from(part.len()).unwrap_or(u32::MAX);
        key[at..at + 4].copy_from_slice(&size.to_le_bytes());
        key[at + 4..at + 4 + part.len()].copy_from_slice(part.as_bytes());
        at += 4 + part.len();
    }
    lend(key)
}
