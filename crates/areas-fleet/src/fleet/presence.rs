//! How long ago a device was heard of; nothing of it is stored.

use provost_kernel::{Timestamp, word};

word! {
    /// How long ago a device was heard of.
    pub enum Presence {
        /// Within three intervals.
        Online = "online",
        /// Within three days.
        Away = "away",
        /// Within thirty days.
        Silent = "silent",
        /// Longer ago, or never.
        Lost = "lost",
    }
}

/// Until which age each presence lasts. Units: seconds.
const ONLINE_SECS: i64 = 900;
const AWAY_SECS: i64 = 3 * 86_400;
const SILENT_SECS: i64 = 30 * 86_400;

impl Presence {
    /// Returns the presence of a device that was heard of at an instant.
    pub fn of(last: Option<Timestamp>, now: Timestamp) -> Self {
        let Some(last) = last else { return Self::Lost };
        let age = (now.as_ms() - last.as_ms()) / 1000;
        if age <= ONLINE_SECS {
            Self::Online
        } else if age <= AWAY_SECS {
            Self::Away
        } else if age <= SILENT_SECS {
            Self::Silent
        } else {
            Self::Lost
        }
    }

    /// Returns after which instant, and until which, a device of this presence was heard of last.
    pub fn window(self, now: Timestamp) -> (Timestamp, Timestamp) {
        let beyond = |secs: i64| now.plus_secs(-secs - 1);
        let (first, last) = (Timestamp::from_ms(i64::MIN), Timestamp::from_ms(i64::MAX));
        match self {
            Self::Online => (beyond(ONLINE_SECS), last),
            Self::Away => (beyond(AWAY_SECS), beyond(ONLINE_SECS)),
            Self::Silent => (beyond(SILENT_SECS), beyond(AWAY_SECS)),
            Self::Lost => (first, beyond(SILENT_SECS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Presence; 4] = [Presence::Online, Presence::Away, Presence::Silent, Presence::Lost];

    #[test]
    fn presence_follows_the_last_heartbeat() {
        let now = Timestamp::EPOCH.plus_secs(10_000_000);
        let ago = |secs: i64| Presence::of(Some(now.plus_secs(-secs)), now);
        assert_eq!((ago(900), ago(901)), (Presence::Online, Presence::Away));
        assert_eq!((ago(259_200), ago(259_201)), (Presence::Away, Presence::Silent));
        assert_eq!(
            (ago(2_592_000), ago(2_592_001)),
            (Presence::Silent, Presence::Lost)
        );
        assert_eq!(Presence::of(None, now), Presence::Lost);
    }

    /// A filter of the list finds what the list shows.
    #[test]
    fn the_window_of_a_presence_holds_what_has_it() {
        let now = Timestamp::EPOCH.plus_secs(10_000_000);
        for secs in [
            -5, 0, 900, 901, 902, 259_200, 259_201, 259_202, 2_592_000, 2_592_001, 2_592_002,
        ] {
            for ms in [-1, 0, 1, 999] {
                let last = now.plus_secs(-secs).plus_ms(ms);
                for presence in ALL {
                    let (after, until) = presence.window(now);
                    let is_found = last > after && last <= until;
                    assert_eq!(is_found, Presence::of(Some(last), now) == presence, "{secs} {ms}");
                }
            }
        }
    }
}
