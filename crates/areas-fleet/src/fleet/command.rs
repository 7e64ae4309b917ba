//! What a device can be told to do, and how far that is.
//!
//! ```text
//! queued ─► delivered ─► succeeded | failed      a device says once what came of it
//! queued, delivered ─► expired                   by time; nothing of it is stored
//! ```
//!
//! INVARIANT FL-9: what is said first of a command counts, and nothing does after its time; a device is told of each until then.
//! INVARIANT FL-11: a command to change the key has succeeded when the key changed, by the server's own knowledge, and by nobody's word.
//!
//! A list of kinds that is closed, and no member in which somebody could write what a machine runs: nothing on it reads a file of a
//! person. Absent on purpose: a command that retires, because `POST …/retire` does so at once and without the machine's help.

use super::model::DeviceId;
use super::sight::Sight;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id, word};
use schemars::JsonSchema;
use serde::Serialize;

id!(CommandId, "cmd", "Names a command to a device.");

/// LIMIT: commands that wait for a device (F2.10).
pub const MOST_WAITING: usize = 8;
/// LIMIT: commands of a device that are kept, beside those that wait and those that ended unanswered, of which an hour has eight. Ours.
pub const MOST_KEPT: i64 = 64;
/// The life of a command where nobody says. Units: seconds.
pub const LIFE_SECS: i64 = 86_400;
/// How long a command is kept after its time. Units: seconds.
pub const KEPT_SECS: i64 = 30 * 86_400;

word! {
    /// What a device can be told to do. Open.
    #[schemars(extend("x-open" = true))]
    pub enum CommandKind {
        /// Look again at what is configured.
        Rescan = "rescan",
        /// Fetch its skills again.
        SyncSkills = "sync_skills",
        /// Write its managed configuration again.
        ReapplyConfig = "reapply_config",
        /// Make another key.
        RotateKey = "rotate_key",
    }
}

word! {
    /// How far a command is.
    pub enum CommandState {
        /// The device was not told yet.
        Queued = "queued",
        /// The device was told.
        Delivered = "delivered",
        /// The device did it.
        Succeeded = "succeeded",
        /// The device could not.
        Failed = "failed",
        /// Its time ended before the device said anything.
        Expired = "expired",
    }
}

word! {
    /// What came of a command.
    pub enum Outcome {
        /// The device did it.
        Succeeded = "succeeded",
        /// The device could not.
        Failed = "failed",
    }
}

impl From<Outcome> for CommandState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed => Self::Failed,
        }
    }
}

/// A command to a device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceCommand")]
pub struct Command {
    /// Its id.
    pub id: CommandId,
    /// The device.
    pub device_id: DeviceId,
    /// Its place among those of the device.
    #[serde(skip)]
    #[schemars(skip)]
    pub seq: i64,
    /// What the device is to do.
    pub kind: CommandKind,
    /// How far it is.
    pub state: CommandState,
    /// The id of whoever gave it; where people are pseudonymous, what stands for somebody else.
    pub created_by: String,
    /// When it was given.
    pub created_at: Timestamp,
    /// Until when the device may say what came of it.
    pub expires_at: Timestamp,
    /// When the device was told for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// When the device said what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why it failed, in a word of the device's own list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The thumbprint of the key that the device had when it was told to have another one.
    #[serde(skip)]
    #[schemars(skip)]
    pub key_thumbprint: Option<String>,
}

impl Command {
    /// Returns the command as it is at an instant: one that waits ends by time.
    pub fn at(mut self, now: Timestamp) -> Self {
        if self.waits() && now >= self.expires_at {
            self.state = CommandState::Expired;
        }
        self
    }

    /// Returns what the caller sees of it.
    ///
    /// Keeps PV-1.
    pub fn seen(self, sight: &Sight<'_>) -> Self {
        Self {
            created_by: sight.maker(self.created_by),
            ..self
        }
    }

    /// Says whether the device has yet to say what came of it.
    pub fn waits(&self) -> bool {
        matches!(self.state, CommandState::Queued | CommandState::Delivered)
    }

    /// Takes what a device says came of it, and says whether that is news. What is said first counts.
    ///
    /// Errors: `Conflict` where it has ended otherwise.
    pub fn finish(&mut self, outcome: Outcome, code: Option<&str>, now: Timestamp) -> Result<bool> {
        let state = CommandState::from(outcome);
        if self.state == state {
            return Ok(false);
        }
        if !self.waits() {
            let word = self.state.as_str();
            let error = Error::new(Code::Conflict, format!("the command is {word} already"));
            return Err(error.with("status", word));
        }
        self.state = state;
        self.finished_at = Some(now);
        self.code = code.map(str::to_owned);
        Ok(true)
    }
}

/// A command as its device is told of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Told {
    id: CommandId,
    kind: CommandKind,
    expires_at: Timestamp,
}

impl From<Command> for Told {
    fn from(command: Command) -> Self {
        Self {
            id: command.id,
            kind: command.kind,
            expires_at: command.expires_at,
        }
    }
}

/// One command.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneCommand {
    /// It.
    pub command: Command,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(state: CommandState) -> Command {
        Command {
            id: CommandId::from_text("cmd_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            device_id: DeviceId::from_text("dev_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            seq: 1,
            kind: CommandKind::Rescan,
            state,
            created_by: "sa".into(),
            created_at: Timestamp::EPOCH,
            expires_at: Timestamp::EPOCH.plus_secs(10),
            delivered_at: None,
            finished_at: None,
            code: None,
            key_thumbprint: None,
        }
    }

    /// Proves FL-9.
    #[test]
    fn what_is_said_first_of_a_command_counts_and_after_its_time_nothing_does() {
        use CommandState::{Delivered, Expired, Failed, Queued, Succeeded};
        let at = |secs| Timestamp::EPOCH.plus_secs(secs);
        for state in [Queued, Delivered] {
            let mut given = command(state).at(at(9));
            assert!(given.finish(Outcome::Failed, Some("no_disk"), at(9)).unwrap());
            assert_eq!((given.state, given.code.as_deref()), (Failed, Some("no_disk")));
            assert!(!given.finish(Outcome::Failed, None, at(9)).unwrap());
            assert_eq!(given.code.as_deref(), Some("no_disk"), "the first word stays");
            assert!(given.finish(Outcome::Succeeded, None, at(9)).is_err());
            let mut late = command(state).at(at(10));
            assert_eq!(late.state, Expired);
            assert!(late.finish(Outcome::Succeeded, None, at(10)).is_err());
        }
        assert_eq!(command(Succeeded).at(at(99)).state, Succeeded);
    }
}
