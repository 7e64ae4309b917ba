//! Rate limits: token buckets, exact, in memory (D1.11).
//!
//! A bucket is kept as one number, the instant at which it will be full again (the generic cell rate
//! algorithm): taking a request moves that instant by one interval, and is refused if it would then lie more
//! than a whole bucket ahead. A full bucket is the same as an unknown one, so full ones are forgotten.
//!
//! Absent on purpose: sharing between processes. Each server counts for itself.

pub mod buckets;
mod limiter;

use crate::sync;
use http::{HeaderName, HeaderValue};

pub use limiter::Limiter;

/// A kind of limit: how much at once, and how fast it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The policy's name on the wire.
    pub name: &'static str,
    /// How many requests a full bucket allows at once.
    pub burst: u32,
    /// So many requests come back …
    pub per_second_num: u32,
    /// … in so many seconds.
    pub per_second_den: u32,
}

/// What became of one request for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// Whether there was a token.
    pub allowed: bool,
    /// How many are left.
    pub remaining: u32,
    /// Units: seconds until the bucket is full, rounded up.
    pub reset_secs: u32,
    /// Units: seconds until there is a token again, rounded up; 0 when there is one now.
    pub retry_after_secs: u32,
}

/// A bucket's numbers, in ticks.
pub(crate) struct Pace {
    /// The present.
    pub now: u128,
    interval: u128,
    whole: u128,
    second: u128,
    /// The unit of all of these.
    pub ticks_per_ns: u32,
}

impl Pace {
    /// Returns the numbers of a bucket at an instant of the monotonic clock.
    pub fn of(bucket: &Bucket, now_ns: u128) -> Self {
        let ticks_per_ns = bucket.per_second_num.max(1);
        let interval = u128::from(bucket.per_second_den.max(1)) * 1_000_000_000;
        Self {
            now: now_ns * u128::from(ticks_per_ns),
            interval,
            whole: interval * u128::from(bucket.burst),
            second: 1_000_000_000 * u128::from(ticks_per_ns),
            ticks_per_ns,
        }
    }

    /// Returns the outcome for a bucket that is full at `full_at`, and when it is full after that.
    pub fn ask(&self, full_at: u128) -> (RateDecision, u128) {
        let after = full_at + self.interval;
        let early = after.saturating_sub(self.now + self.whole);
        let full_at = if early == 0 { after } else { full_at };
        let missing = full_at - self.now;
        let taken = RateDecision {
            allowed: early == 0,
            remaining: narrow(self.whole.saturating_sub(missing) / self.interval),
            reset_secs: narrow(missing.div_ceil(self.second)),
            retry_after_secs: narrow(early.div_ceil(self.second)),
        };
        (taken, full_at)
    }
}

fn narrow(number: u128) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11).
pub fn headers(bucket: &Bucket, taken: &RateDecision) -> [(HeaderName, HeaderValue); 2] {
    let per_second = u64::from(bucket.per_second_num.max(1));
    let window = (u64::from(bucket.burst) * u64::from(bucket.per_second_den)).div_ceil(per_second);
    let policy = format!("\"{}\";q={};w={window}", bucket.name, bucket.burst);
    let limit = format!("\"{}\";r={};t={}", bucket.name, taken.remaining, taken.reset_secs);
    // A name that is no header text would be a mistake in our own table; it shows as an empty header.
    let value = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    [
        (HeaderName::from_static("ratelimit-policy"), value(&policy)),
        (HeaderName::from_static("ratelimit"), value(&limit)),
    ]
}

#[cfg(test)]
mod tests {
    use super::limiter::{SHARD_CAP, SHARDS};
    use super::*;
    use crate::Timestamp;
    use crate::time::{Clock, ManualClock, SystemClock};
    use serde_json::json;
    use std::sync::Arc;
    use std::time::Duration;

    const READ: Bucket = bucket("read", 300, 100, 1);
    const ROTATION: Bucket = bucket("rotation", 30, 30, 3600);

    const fn bucket(name: &'static str, burst: u32, num: u32, den: u32) -> Bucket {
        Bucket {
            name,
            burst,
            per_second_num: num,
            per_second_den: den,
        }
    }

    fn limiter() -> (Arc<ManualClock>, Limiter) {
        let clock = Arc::new(ManualClock::new(Timestamp::EPOCH));
        (Arc::clone(&clock), Limiter::new(clock))
    }

    #[test]
    fn ten_minutes_allow_the_burst_and_the_rate_within_one_request() {
        let buckets = [
            READ,
            ROTATION,
            bucket("mutation", 100, 20, 1),
            bucket("resolve", 50, 10, 1),
            bucket("caller", 600, 600, 3600),
            bucket("failure", 30, 30, 60),
            bucket("odd", 11, 7, 3),
        ];
        let (mut all_asked, mut all_allowed, mut worst) = (0, 0, 0);
        for bucket in buckets {
            let (clock, limiter) = limiter();
            let mut allowed = 0_u64;
            // Ask far more often than the rate, at uneven steps, for 600 seconds.
            let mut elapsed = 0;
            for step in (1..=4).cycle() {
                all_asked += 1;
                while limiter.take(&bucket, &["sa_1"]).allowed {
                    allowed += 1;
                    all_asked += 1;
                }
                if elapsed + step > 600_000 {
                    break;
                }
                elapsed += step;
                clock.advance(Duration::from_millis(step));
            }
            let rate = u64::from(bucket.per_second_num) * elapsed / 1000 / u64::from(bucket.per_second_den);
            let expected = u64::from(bucket.burst) + rate;
            assert!(
                allowed.abs_diff(expected) <= 1,
                "{}: {allowed} of {expected}",
                bucket.name
            );
            all_allowed += allowed;
            worst = worst.max(allowed.abs_diff(expected));
        }
        let figures = json!({
            "buckets": buckets.len(), "asked": all_asked, "allowed": all_allowed, "worst": worst,
        });
        println!("{figures}");
        if let Some(path) = std::env::var_os("PROVOST_TEST_REPORT") {
            std::fs::write(path, figures.to_string()).unwrap();
        }
    }

    #[test]
    fn no_window_allows_more_than_the_burst_and_its_share() {
        let (clock, limiter) = limiter();
        let mut at_second = Vec::new();
        for second in 0..600_u32 {
            // Busy for 100 seconds, silent for 50.
            let mut allowed = 0;
            while second % 150 < 100 && limiter.take(&READ, &["a"]).allowed {
                allowed += 1;
            }
            at_second.push(allowed);
            clock.advance(Duration::from_secs(1));
        }
        for start in 0..at_second.len() {
            let mut sum = 0;
            for (width, allowed) in at_second[start..].iter().enumerate() {
                sum += allowed;
                assert!(sum <= 300 + 100 * width, "{sum} in {width} s from {start}");
            }
        }
    }

    #[test]
    fn the_outcome_says_what_is_left_and_when_to_come_back() {
        let (clock, limiter) = limiter();
        for left in (0..30).rev() {
            let taken = limiter.take(&ROTATION, &["sa_1"]);
            assert_eq!(
                (taken.allowed, taken.remaining, taken.retry_after_secs),
                (true, left, 0)
            );
        }
        let refused = RateDecision {
            allowed: false,
            remaining: 0,
            reset_secs: 3600,
            retry_after_secs: 120,
        };
        assert_eq!(limiter.take(&ROTATION, &["sa_1"]), refused);
        assert_eq!(limiter.peek(&ROTATION, &["sa_1"]), refused);
        clock.advance(Duration::from_millis(119_999));
        assert_eq!(limiter.take(&ROTATION, &["sa_1"]).retry_after_secs, 1);
        clock.advance(Duration::from_millis(1));
        assert!(limiter.take(&ROTATION, &["sa_1"]).allowed);
        assert!(!limiter.take(&ROTATION, &["sa_1"]).allowed);
    }

    #[test]
    fn peeking_takes_nothing() {
        let (_, limiter) = limiter();
        for _ in 0..1000 {
            assert!(limiter.peek(&READ, &["a"]).allowed);
        }
        assert!(limiter.is_empty());
        assert_eq!(limiter.take(&READ, &["a"]).remaining, 299);
    }

    #[test]
    fn keys_and_buckets_are_separate() {
        let (_, limiter) = limiter();
        let one = bucket("one", 1, 1, 1);
        let long = "x".repeat(500);
        for key in [
            &["ab", "c"][..],
            &["a", "bc"],
            &["abc"],
            &[],
            &[&long],
            &["ab", "c", ""],
        ] {
            assert!(limiter.take(&one, key).allowed, "{key:?}");
            assert!(!limiter.take(&one, key).allowed, "{key:?}");
        }
        assert!(limiter.take(&bucket("two", 1, 1, 1), &["abc"]).allowed);
        assert!(!limiter.take(&bucket("none", 0, 1, 1), &["abc"]).allowed);
    }

    #[test]
    fn the_headers_are_those_of_the_draft() {
        let (_, limiter) = limiter();
        limiter.take(&READ, &["a"]);
        let taken = limiter.take(&READ, &["a"]);
        let [policy, limit] = headers(&READ, &taken);
        assert_eq!(
            (policy.0.as_str(), policy.1.to_str().unwrap()),
            ("ratelimit-policy", "\"read\";q=300;w=3")
        );
        assert_eq!(
            (limit.0.as_str(), limit.1.to_str().unwrap()),
            ("ratelimit", "\"read\";r=298;t=1")
        );
        assert_eq!(headers(&ROTATION, &taken)[0].1, "\"rotation\";q=30;w=3600");
    }

    #[test]
    fn full_buckets_are_forgotten() {
        let (clock, limiter) = limiter();
        for round in 0..50 {
            for n in 0..10_000 {
                limiter.take(&READ, &[&format!("{round}-{n}")]);
            }
            clock.advance(Duration::from_millis(10));
        }
        assert!(limiter.len() <= 3 * 10_000, "{}", limiter.len());
    }

    #[test]
    fn too_many_keys_forget_the_fullest_buckets_first() {
        let (_, limiter) = limiter();
        while limiter.take(&ROTATION, &["greedy"]).allowed {}
        for n in 0..2 * SHARDS * SHARD_CAP {
            limiter.take(&ROTATION, &[&n.to_string()]);
        }
        assert!(limiter.len() <= SHARDS * SHARD_CAP, "{}", limiter.len());
        assert!(!limiter.take(&ROTATION, &["greedy"]).allowed);
    }

    #[test]
    fn threads_together_get_exactly_the_burst() {
        let (_, limiter) = limiter();
        let count = || (0..1000).filter(|_| limiter.take(&READ, &["a"]).allowed).count();
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(total, 300);
    }

    #[test]
    fn taking_is_fast() {
        let clock = Arc::new(SystemClock::new());
        let limiter = Limiter::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let key = ["org_acme", "sa_01kadh5j9v0000000000000000"];
        let best = (0..20).map(|_| {
            let before = clock.monotonic();
            for _ in 0..10_000 {
                limiter.take(&READ, &key);
            }
            clock.monotonic().saturating_sub(before).as_nanos() / 10_000
        });
        let best = best.min().unwrap();
        println!("{best} ns");
        // The goal is 200 ns in a release build; this only refutes a wrong algorithm.
        assert!(best < 20_000, "{best} ns");
    }
}
