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

/// A time since the Unix epoch as the product writes it, to the second.
pub fn rfc3339(since_epoch: Duration) -> String {
    let secs = since_epoch.as_secs();
    let (year, month, day) = civil_date(secs / 86_400);
    let of_day = secs % 86_400;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

/// The day of now in UTC, as YYYY-MM-DD.
pub fn today() -> String {
    let (year, month, day) = civil_date(since_epoch().as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
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
pub fn civil_date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
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
        assert_eq!(civil_date(20_818), (2026, 12, 31));
        assert_eq!(civil_date(20_819), (2027, 1, 1));
    }

    #[test]
    fn an_instant_is_written_to_the_second() {
        assert_eq!(
            rfc3339(Duration::from_millis(951_868_799_999)),
            "2000-02-29T23:59:59.000Z"
        );
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
