//! The one place of these tasks that reads a clock: they time real processes from outside.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic instant of now.
#[expect(
    clippy::disallowed_methods,
    reason = "tasks measure real processes; there is no clock to inject"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Time since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "tasks measure real processes; there is no clock to inject"
)]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Asks `done` every few milliseconds until it says yes or the time is over; says which.
pub fn poll_until(limit: Duration, every: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(every);
    }
}

/// The calendar date (year, month, day) of a number of days since the Unix epoch.
pub fn civil_date(days: u64) -> (u64, u64, u64) {
    // Years are counted from 1 March of year 0, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_leap_days() {
        assert_eq!(civil_date(0), (1970, 1, 1));
        assert_eq!(civil_date(11_016), (2000, 2, 29));
        assert_eq!(civil_date(11_017), (2000, 3, 1));
        assert_eq!(civil_date(20_777), (2026, 11, 20));
    }

    #[test]
    fn polling_gives_up() {
        assert!(!poll_until(
            Duration::from_millis(5),
            Duration::from_millis(1),
            || false
        ));
        assert!(poll_until(Duration::ZERO, Duration::from_millis(1), || true));
    }
}
