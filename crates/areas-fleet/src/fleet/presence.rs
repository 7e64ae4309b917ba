//! How long ago a device was heard of; nothing of it is stored.

use super::model::{Device, Status};
use provost_areas_platform::settings;
use provost_kernel::{OperationContext, Result, Timestamp, word};

word! {
    /// How long ago a device was heard of.
    pub enum Presence {
        /// Within three intervals.
        Online = "online",
        /// Within the hours that the settings say, three days where they say nothing.
        Away = "away",
        /// Within thirty days.
        Silent = "silent",
        /// Longer ago, or never; so is what is retired, whenever it was heard of.
        Lost = "lost",
    }
}

/// Until which age each presence lasts. Units: seconds.
const ONLINE_SECS: i64 = 900;
const SILENT_SECS: i64 = 30 * 86_400;

/// How long a device is not heard of before it is silent. Units: seconds.
#[derive(Clone, Copy, Debug)]
pub struct AwaySecs(i64);

impl AwaySecs {
    /// Returns what the settings of the caller's organization say.
    pub fn load(ctx: &mut OperationContext<'_>) -> Result<Self> {
        Ok(Self(settings::load(ctx)?.fleet.silent_after_hours * 3600))
    }
}

impl Presence {
    /// Returns the presence of a device: one that is retired is nowhere, whenever it was heard of last.
    pub fn of_device(device: &Device, now: Timestamp, away: AwaySecs) -> Self {
        let heard = device.heartbeat.as_ref().map(|beat| beat.at);
        Self::of(heard.filter(|_| device.status != Status::Retired), now, away)
    }

    /// Returns the presence of a device that was heard of at an instant; `away` is how long a device is not silent yet.
    pub fn of(last: Option<Timestamp>, now: Timestamp, away: AwaySecs) -> Self {
        let Some(last) = last else { return Self::Lost };
        let age = (now.as_ms() - last.as_ms()) / 1000;
        if age <= ONLINE_SECS {
            Self::Online
        } else if age <= away.0 {
            Self::Away
        } else if age <= SILENT_SECS {
            Self::Silent
        } else {
            Self::Lost
        }
    }

    /// Returns after which instant, and until which, a device of this presence was heard of last.
    pub fn window(self, now: Timestamp, away: AwaySecs) -> (Timestamp, Timestamp) {
        let beyond = |secs: i64| now.plus_secs(-secs - 1);
        let (first, last) = (Timestamp::from_ms(i64::MIN), Timestamp::from_ms(i64::MAX));
        match self {
            Self::Online => (beyond(ONLINE_SECS), last),
            Self::Away => (beyond(away.0), beyond(ONLINE_SECS)),
            Self::Silent => (beyond(SILENT_SECS), beyond(away.0)),
            Self::Lost => (first, beyond(SILENT_SECS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Presence; 4] = [Presence::Online, Presence::Away, Presence::Silent, Presence::Lost];

    const DAYS: AwaySecs = AwaySecs(3 * 86_400);

    #[test]
    fn a_device_is_silent_from_when_the_settings_say() {
        let now = Timestamp::EPOCH.plus_secs(10_000_000);
        let at =
            |hours: i64, secs: i64| Presence::of(Some(now.plus_secs(-secs)), now, AwaySecs(hours * 3600));
        assert_eq!(
            (at(24, 86_400), at(24, 86_401)),
            (Presence::Away, Presence::Silent)
        );
        assert_eq!(
            (at(720, 2_592_000), at(720, 2_592_001)),
            (Presence::Away, Presence::Lost)
        );
    }

    #[test]
    fn presence_follows_the_last_heartbeat() {
        let now = Timestamp::EPOCH.plus_secs(10_000_000);
        let ago = |secs: i64| Presence::of(Some(now.plus_secs(-secs)), now, DAYS);
        assert_eq!((ago(900), ago(901)), (Presence::Online, Presence::Away));
        assert_eq!((ago(259_200), ago(259_201)), (Presence::Away, Presence::Silent));
        assert_eq!(
            (ago(2_592_000), ago(2_592_001)),
            (Presence::Silent, Presence::Lost)
        );
        assert_eq!(Presence::of(None, now, DAYS), Presence::Lost);
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
                    let (after, until) = presence.window(now, DAYS);
                    let is_found = last > after && last <= until;
                    let of = Presence::of(Some(last), now, DAYS);
                    assert_eq!(is_found, of == presence, "{secs} {ms}");
                }
            }
        }
    }
}
