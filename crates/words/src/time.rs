//! Instants and the clock that is injected everywhere.
//!
//! A [`Timestamp`] is truncated to milliseconds when it is made, so that the value in memory, in the store
//! and on the wire are the same. Nothing outside this file reads the system's clock (clippy.toml).

use jiff::fmt::temporal::DateTimePrinter;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// An instant. Units: milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// Returns the instant that lies `ms` milliseconds after the Unix epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Returns the instant `secs` seconds later (earlier when negative), saturating.
    #[must_use]
    pub const fn plus_secs(self, secs: i64) -> Self {
        Self(self.0.saturating_add(secs.saturating_mul(1000)))
    }

    /// Returns the instant `ms` milliseconds later (earlier when negative), saturating.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns RFC 3339 text with `Z` and exactly three fractional digits (D1.2).
    pub fn to_rfc3339(self) -> String {
        static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        let instant = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        PRINTER.timestamp_to_string(&instant)
    }

    /// Parses RFC 3339 text; finer digits than milliseconds are cut off.
    ///
    /// The last hours of the year 9999 lie beyond the library's range and mean its end: a caller who writes
    /// them means "for ever".
    pub fn parse(text: &str) -> Option<Self> {
        let instant = text.parse().ok().or_else(|| {
            let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
            let is_complete = pieces.time().is_some() && pieces.offset().is_some();
            let is_end = pieces.date() >= jiff::civil::date(9999, 12, 30);
            (is_complete && is_end).then_some(jiff::Timestamp::MAX)
        })?;
        Some(Self(instant.as_millisecond()))
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_rfc3339())
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom("expected an RFC 3339 date-time"))
    }
}

impl schemars::JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// Where the present comes from.
pub trait Clock: Send + Sync {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;

    /// Returns the time since an arbitrary fixed point; it never goes back.
    fn monotonic(&self) -> Duration;

    /// Returns the time since an arbitrary fixed point, the time that the machine slept included; it never goes back.
    fn since_boot(&self) -> Duration {
        self.monotonic()
    }

    /// Says whether it means to agree with the clocks of other machines, as the clock of a test does not.
    fn keeps_common_time(&self) -> bool {
        false
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl SystemClock {
    /// Returns a clock whose monotonic reading starts at zero.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    pub fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's clock"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    /// `CLOCK_MONOTONIC` stands still while the machine sleeps, `CLOCK_BOOTTIME` does not; other systems have one clock that
    /// goes on.
    #[cfg(target_os = "linux")]
    fn since_boot(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }

    fn keeps_common_time(&self) -> bool {
        true
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct ManualClock {
    start_ms: i64,
    now_ms: AtomicI64,
    /// By how much the wall clock was set forward. Units: milliseconds.
    stepped: AtomicI64,
}

impl ManualClock {
    /// Returns a clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self {
            start_ms: start.as_ms(),
            now_ms: AtomicI64::new(start.as_ms()),
            stepped: AtomicI64::new(0),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(
            i64::try_from(by.as_millis()).unwrap_or(i64::MAX),
            Ordering::SeqCst,
        );
    }

    /// Sets the wall clock forward or back, as an administrator or NTP does; the monotonic clock stays.
    pub fn step_ms(&self, ms: i64) {
        self.stepped.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms.load(Ordering::SeqCst) + self.stepped.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        let ms = self.now_ms.load(Ordering::SeqCst).saturating_sub(self.start_ms);
        Duration::from_millis(u64::try_from(ms).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_three_digits_and_z() {
        assert_eq!(
            Timestamp::from_ms(1_795_144_500_000).to_rfc3339(),
            "2026-11-20T03:15:00.000Z"
        );
        assert_eq!(
            Timestamp::from_ms(1_795_144_500_007).to_rfc3339(),
            "2026-11-20T03:15:00.007Z"
        );
    }

    #[test]
    fn parsing_truncates_to_milliseconds() {
        let parsed = Timestamp::parse("2026-11-20T03:15:00.0079+00:00").unwrap();
        assert_eq!(parsed, Timestamp::from_ms(1_795_144_500_007));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn the_end_of_time_can_be_said() {
        let end = Timestamp::from_ms(jiff::Timestamp::MAX.as_millisecond());
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999-23:59",
            "9999-12-30T23:00:00+00:00",
        ] {
            assert_eq!(Timestamp::parse(text), Some(end), "{text}");
        }
        for text in [
            "9999-12-31T23:59:59",
            "9999-12-31",
            "9999-12-32T00:00:00Z",
            "10000-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
