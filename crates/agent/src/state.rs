//! What the agent did last, for `status` and for whether something is due.

use crate::folder::Folder;
use crate::privacy::{Privacy, PrivacyChange};
use crate::trouble::Trouble;
use provost_words::time::Timestamp;
use serde::{Deserialize, Serialize};

const NAME: &str = "state.json";

/// A scan that ended with its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KilledScan {
    /// When it began, by this machine's clock.
    pub at: Timestamp,
    /// The file that it read then; absent where it read none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl KilledScan {
    /// Returns what happened, for whoever owns the machine.
    pub fn says(&self) -> String {
        match &self.file {
            Some(file) => format!(
                "the agent was killed in its scan of {}, while it read {file:?}; a file where this happens twice within a day is left out for a \
                 day",
                self.at
            ),
            None => format!("the agent was killed in its scan of {}", self.at),
        }
    }
}

/// A key, and since when it is known to be the device's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownKey {
    /// Its thumbprint.
    pub thumbprint: String,
    /// Since when, by the server's clock.
    pub since: Timestamp,
}

/// What was done last. It decides nothing about rights; a file that cannot be read is as good as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// The last heartbeat that the server took, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_at: Option<Timestamp>,
    /// When the server wants the next one. Units: seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_heartbeat_seconds: Option<u64>,
    /// The last scan, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scan_at: Option<Timestamp>,
    /// The last report that the server took, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_upload_at: Option<Timestamp>,
    /// When a scan was made out of turn, because the server asked for something whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_extra_scan_at: Option<Timestamp>,
    /// The number of the report that was tried last and not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck_report: Option<u64>,
    /// How often that one was tried, by what stood in the way.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub stuck_tries: u32,
    /// Why the last report that was set aside was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<String>,
    /// When the server last refused to renew the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_refused_at: Option<Timestamp>,
    /// Whether that was because the token, or the device, has as many tokens as it may: copies renewed it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_crowded: bool,
    /// The key that the device had when it was last looked at, and since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KnownKey>,
    /// When the agent last had the key changed by itself, or tried to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_tried_at: Option<Timestamp>,
    /// How people and their machines are shown to others, as the server said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// The last change of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy_changed: Option<PrivacyChange>,
    /// What stood in the way the last time; absent when nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_problem: Option<String>,
    /// The scans of the last day that ended with their process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub killed_scans: Vec<KilledScan>,
    /// How far the server's clock is ahead. Units: milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub skew_ms: i64,
    /// The server no longer knows the device.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none_yet(number: &u32) -> bool {
    *number == 0
}

impl State {
    /// Reads the file.
    ///
    /// Errors: folder, when it is not as files of the agent have to be.
    pub fn load(folder: &Folder) -> Result<Self, Trouble> {
        let bytes = folder.read(NAME)?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Keeps it.
    ///
    /// Errors: disk.
    pub fn save(&self, folder: &Folder) -> Result<(), Trouble> {
        folder.replace(NAME, &serde_json::to_vec_pretty(self).unwrap_or_default())
    }

    /// Has the next round scan although it is not time to: at most once within the interval, whatever a server asks for.
    pub fn scan_again(&mut self, now: Timestamp, interval_secs: i64) {
        let was_done = self
            .last_extra_scan_at
            .is_some_and(|at| at <= now && now < at.plus_secs(interval_secs));
        if !was_done {
            self.last_extra_scan_at = Some(now);
            self.last_scan_at = None;
        }
    }

    /// Counts that a report was taken: the next one may have its number.
    pub fn taken(&mut self) {
        (self.stuck_report, self.stuck_tries) = (None, 0);
    }

    /// Counts that a report was not taken, by a weight, and returns how much that comes to.
    pub fn stuck(&mut self, report: u64, weight: u32) -> u32 {
        let before = self.stuck_report == Some(report);
        let tries = if before { self.stuck_tries } else { 0 };
        self.stuck_tries = tries.saturating_add(weight);
        self.stuck_report = Some(report);
        self.stuck_tries
    }

    /// Says whether a scan is due. A clock that was set back makes it due once.
    pub fn is_scan_due(&self, now: Timestamp, interval_secs: i64) -> bool {
        self.last_scan_at
            .is_none_or(|last| now < last || now >= last.plus_secs(interval_secs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_due_after_its_interval_and_once_when_the_clock_goes_back() {
        let now = Timestamp::from_ms(1_000_000_000);
        let mut state = State::default();
        assert!(state.is_scan_due(now, 3600));
        state.last_scan_at = Some(now);
        assert!(!state.is_scan_due(now, 3600) && !state.is_scan_due(now.plus_secs(3599), 3600));
        assert!(state.is_scan_due(now.plus_secs(3600), 3600));
        let before = now.plus_secs(-1);
        assert!(state.is_scan_due(before, 3600));
        state.last_scan_at = Some(before);
        assert!(!state.is_scan_due(before, 3600));
    }

    #[test]
    fn a_server_that_always_asks_again_gets_one_scan_more_an_hour() {
        let now = Timestamp::from_ms(1_000_000_000);
        let mut state = State::default();
        let mut scans = 0;
        for round in 0..24 {
            let now = now.plus_secs(round * 300);
            if state.is_scan_due(now, 3600) {
                scans += 1;
                state.last_scan_at = Some(now);
                state.scan_again(now, 3600);
            }
        }
        assert_eq!(scans, 4, "two hours");
    }
}
