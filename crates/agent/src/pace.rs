//! When the next round begins.

use crate::trouble::Trouble;
use provost_words::entropy::Entropy;
use std::time::Duration;

/// LIMIT: what the server may ask for (F2.9, with room to ask for less while it is tested).
const SHORTEST: Duration = Duration::from_secs(5);
/// LIMIT: as above.
const LONGEST: Duration = Duration::from_hours(1);
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// LIMIT: F4.5.
const LONGEST_WAIT: Duration = Duration::from_mins(15);

/// How many rounds failed since the last one that did not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    failures: u32,
}

impl Pace {
    /// Returns how long to wait after a round that succeeded.
    pub fn after_success(&mut self, next: Duration, entropy: &dyn Entropy) -> Duration {
        self.failures = 0;
        jitter(next.clamp(SHORTEST, LONGEST), entropy)
    }

    /// Returns how long to wait after a round that failed: 5 s, doubled up to 15 min, and no less than the server asks for.
    pub fn after(&mut self, trouble: &Trouble, entropy: &dyn Entropy) -> Duration {
        let wait = FIRST_WAIT * 2u32.pow(self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        let wait = jitter(wait.min(LONGEST_WAIT), entropy);
        // What is told is a lower bound: no jitter makes it shorter.
        trouble.wait.map_or(wait, |told| wait.max(told.min(LONGEST)))
    }
}

/// Returns a time up to a fifth shorter or longer, so that machines that began together do not call together.
fn jitter(time: Duration, entropy: &dyn Entropy) -> Duration {
    let [low, high, ..] = entropy.seed();
    let chance = u32::from(u16::from_le_bytes([low, high]));
    time * 4 / 5 + time * 2 / 5 * chance / 65_535
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trouble::Cause;
    use provost_words::entropy::SeededEntropy;

    #[test]
    fn waits_grow_to_a_quarter_of_an_hour_and_end_with_success() {
        let chance = SeededEntropy::new(1);
        let (mut pace, lost) = (Pace::default(), Trouble::new(Cause::Unreachable, "lost"));
        let near = |wait: Duration, secs: f64| (wait.as_secs_f64() - secs).abs() <= secs / 5.0 + 0.001;
        for secs in [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 900.0, 900.0] {
            let wait = pace.after(&lost, &chance);
            assert!(near(wait, secs), "{wait:?} {secs}");
        }
        assert!(near(pace.after_success(Duration::from_mins(5), &chance), 300.0));
        assert!(near(pace.after(&lost, &chance), 5.0));
        assert!(near(pace.after_success(Duration::ZERO, &chance), 5.0));
        assert!(near(pace.after_success(Duration::MAX, &chance), 3600.0));
    }

    #[test]
    fn a_told_wait_is_kept_up_to_an_hour() {
        let chance = SeededEntropy::new(2);
        let mut told = Trouble::new(Cause::Refused(429), "too many");
        told.wait = Some(Duration::from_mins(2));
        assert_eq!(Pace::default().after(&told, &chance), Duration::from_mins(2));
        told.wait = Some(Duration::from_hours(999));
        assert_eq!(Pace::default().after(&told, &chance), LONGEST);
    }
}
