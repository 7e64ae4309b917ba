//! How much a device tells within a day; pure.
//!
//! ```text
//!   0 ───────────────────────────── ROOM ─────── ROOM + SPARE
//!   everything                       │ what was refused, or asked an approval for
//! ```
//!
//! Keeps DJ-6. A day is one of the server's clock: a device does not say when it begins.

use super::entries::{Entry, EntryText};
use provost_kernel::Timestamp;
use provost_policy::Action;

/// LIMIT: units that a device tells within a day. Ours: some ten thousand calls, more than people make; as many KiB as a device keeps of
/// a week without the server, within two days.
const ROOM: i64 = 50_000;
/// LIMIT: units beyond it for what was refused, or asked an approval for.
const SPARE: i64 = 10_000;
/// How much of an entry is one unit. Units: bytes.
const UNIT: usize = 1 << 10;
/// Units: seconds.
const DAY_SECS: i64 = 86_400;

/// How much a device told on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The day, since 1970.
    pub day: i64,
    /// How much: an entry is one unit, and one for each KiB more.
    pub units: i64,
}

impl Used {
    /// Returns what was told on the day of an instant.
    #[must_use]
    pub fn on(self, now: Timestamp) -> Self {
        let day = now.as_ms().div_euclid(DAY_SECS * 1_000);
        // A clock that went back by a day makes no new room. One that is back further was far ahead before: whoever told then would have none
        // for as long.
        if (self.day - 1..=self.day).contains(&day) {
            return self;
        }
        Self { day, units: 0 }
    }

    /// Returns how many of these entries, from the first on, still have room, and what was told with them.
    pub fn with(self, entries: &[EntryText]) -> (usize, Self) {
        let mut used = self;
        for (count, entry) in entries.iter().enumerate() {
            let most = if is_weighty(entry) { ROOM + SPARE } else { ROOM };
            let units = i64::try_from(entry.bytes.div_ceil(UNIT).max(1)).unwrap_or(i64::MAX);
            if used.units.saturating_add(units) > most {
                return (count, used);
            }
            used.units += units;
        }
        (entries.len(), used)
    }

    /// Returns how long it takes until there is room again. Units: seconds.
    pub fn wait_secs(self, now: Timestamp) -> u32 {
        let ends = self.day.saturating_add(1).saturating_mul(DAY_SECS);
        u32::try_from((ends - now.as_ms().div_euclid(1_000)).clamp(1, DAY_SECS)).unwrap_or(1)
    }
}

/// Says whether an entry tells that something was refused, or asked an approval for.
fn is_weighty(entry: &EntryText) -> bool {
    let Ok(Entry::Event(told)) = &entry.said else {
        return false;
    };
    let decision = told.event.decision.as_ref();
    decision.is_some_and(|decision| decision.action >= Action::RequireApproval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(action: &str, count: usize, bytes: usize) -> Vec<EntryText> {
        let event = json!({ "kind": "event", "at": "2026-11-28T01:50:00.123Z", "occasion": "pre_tool",
            "attributes": { "tool.id": "x".repeat(bytes) }, "decision": { "action": action, "mode": "enforce", "policyIds": [] },
            "basis": "judged" });
        let text = event.to_string();
        (0..count).map(|_| EntryText::of(&text)).collect()
    }

    fn used(units: i64) -> Used {
        Used { day: 20_000, units }
    }

    /// Proves DJ-6.
    #[test]
    fn what_was_refused_has_room_where_nothing_else_has() {
        let told = |units: i64, action: &str| used(units).with(&entries(action, 3, 1)).0;
        assert_eq!(
            (
                told(ROOM - 3, "allow"),
                told(ROOM - 2, "allow"),
                told(ROOM, "allow")
            ),
            (3, 2, 0)
        );
        for action in ["block", "require_approval"] {
            assert_eq!(
                (told(ROOM, action), told(ROOM + SPARE - 1, action)),
                (3, 1),
                "{action}"
            );
            assert_eq!(told(ROOM + SPARE, action), 0, "{action}");
        }
        // Long ones are more, and so are those that cannot be read.
        assert_eq!(used(ROOM - 8).with(&entries("allow", 3, 3_500)).0, 2);
        assert_eq!(used(ROOM).with(&[EntryText::of("x")]).0, 0);
        assert_eq!(used(0).with(&entries("allow", 3, 1)).1.units, 3);
    }

    /// Proves DJ-6.
    #[test]
    fn another_day_has_room_again_and_no_clock_that_went_back_does() {
        let at = |secs: i64| Timestamp::EPOCH.plus_secs(secs);
        let noon = 20_000 * DAY_SECS + DAY_SECS / 2;
        assert_eq!(used(7).on(at(noon)), used(7));
        assert_eq!(used(7).on(at(noon - DAY_SECS)), used(7));
        assert_eq!(used(7).on(at(noon + DAY_SECS)).units, 0);
        assert_eq!(used(7).wait_secs(at(noon)), 43_200);
        assert_eq!(used(7).wait_secs(at(noon - DAY_SECS)), 86_400);
        // A clock that was in another year leaves nobody without room until then.
        let far = Used {
            day: 24_000,
            units: ROOM,
        };
        assert_eq!(far.on(at(noon)), used(0));
    }
}
