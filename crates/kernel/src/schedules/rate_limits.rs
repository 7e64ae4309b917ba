//! The rate limiter.

use super::explore;
use super::limiter::Limiter;
use super::sync::thread;
use crate::rate::Bucket;
use crate::time::{ManualClock, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const BUCKET: Bucket = Bucket {
    name: "two",
    burst: 2,
    per_second_num: 1,
    per_second_den: 1,
};

/// Three threads want two each of one bucket, one of them of another one as well, and meanwhile a second passes.
/// Proves RL-1.
#[test]
fn no_schedule_lets_more_through_than_the_burst_and_what_came_back() {
    explore("limiter", "limits", || {
        let clock = Arc::new(ManualClock::new(Timestamp::EPOCH));
        let limiter = Arc::new(Limiter::new(clock.clone()));
        let take = |limiter: &Limiter, key: &str| usize::from(limiter.take(&BUCKET, &[key]).allowed);
        let threads = [1, 2].map(|_| {
            let limiter = limiter.clone();
            thread::spawn(move || take(&limiter, "a") + take(&limiter, "a"))
        });
        assert_eq!(take(&limiter, "b"), 1);
        let before = take(&limiter, "a");
        clock.advance(Duration::from_secs(1));
        let after = take(&limiter, "a");
        let others: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let all = before + after + others;
        assert!((2..=3).contains(&all), "{all} of 2, and 1 that came back");
        while limiter.take(&BUCKET, &["a"]).allowed {}
        assert_eq!(limiter.peek(&BUCKET, &["a"]).remaining, 0);
        assert_eq!(
            limiter.peek(&BUCKET, &["b"]).remaining,
            1,
            "it is full, less the one that is asked for"
        );
    });
}

/// Three threads want two each while time stands.
/// Proves RL-1.
#[test]
fn threads_together_get_exactly_the_burst_in_every_order() {
    explore("limiter", "bursts", || {
        let clock = Arc::new(ManualClock::new(Timestamp::EPOCH));
        let limiter = Arc::new(Limiter::new(clock));
        let take = |limiter: &Limiter| usize::from(limiter.take(&BUCKET, &["a"]).allowed);
        let threads = [1, 2].map(|_| {
            let limiter = limiter.clone();
            thread::spawn(move || take(&limiter) + take(&limiter))
        });
        let here = take(&limiter) + take(&limiter);
        let others: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(here + others, 2);
    });
}
