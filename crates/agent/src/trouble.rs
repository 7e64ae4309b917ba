//! Why the agent cannot go on, in words for whoever owns the machine.

use std::fmt;
use std::time::Duration;

/// What helps a machine that is not enrolled.
pub(crate) const ENROL: &str = "provost agent enrol --server URL --organization KEY --token-file FILE";
/// What helps a machine whose enrolment is over or broken.
pub const ANEW: &str = "enrol anew, with a new enrolment token: provost agent enrol --anew --server URL --organization KEY --token-file FILE";

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The folder of the agent or a file in it is not as it has to be.
    Folder,
    /// The machine is not enrolled, or is already.
    Enrolment,
    /// Another agent works in the folder.
    Busy,
    /// The server no longer knows this device, for ever.
    Gone,
    /// The token has ended. It may come to life again where the server's clock was wrong.
    Expired,
    /// The server refused, with this status.
    Refused(u16),
    /// There was no answer.
    Unreachable,
    /// Something could not be written or read here.
    Disk,
}

/// A trouble: what happened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Its kind.
    pub cause: Cause,
    /// What happened.
    pub line: String,
    /// What to do, where something is known to help.
    pub fix: Option<String>,
    /// How long the server asks to be left alone.
    pub wait: Option<Duration>,
    /// Whether it is a refusal in the words of a server, and not what somebody on the way says.
    pub(crate) is_servers: bool,
    /// The thumbprint of the key that the device has, where a refusal names it.
    pub(crate) key: Option<String>,
    /// The state of what was asked for, where a refusal names it.
    pub status: Option<Box<str>>,
    /// Where the server stands in the log of this device: the number that it expects, and the hash before it.
    pub(crate) resume: Option<Box<(u64, String)>>,
}

impl Trouble {
    /// Returns a trouble that says a line.
    pub fn new(cause: Cause, line: impl Into<String>) -> Self {
        Self {
            cause,
            line: line.into(),
            fix: None,
            wait: None,
            is_servers: false,
            key: None,
            status: None,
            resume: None,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Says whether the server gave no answer: what it said before still holds. One that is too busy, or fails, gives none.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.cause, Cause::Unreachable | Cause::Refused(429 | 500..))
    }

    /// Says whether it is an answer, by which the server takes back what it trusted this device with. What is wrong on this machine is none.
    pub fn is_refusal(&self) -> bool {
        let is_answer = matches!(self.cause, Cause::Gone | Cause::Expired | Cause::Refused(_));
        is_answer && !self.is_unanswered()
    }

    /// Says whether it may pass by itself.
    pub fn may_pass(&self) -> bool {
        match self.cause {
            Cause::Gone | Cause::Folder | Cause::Enrolment => false,
            Cause::Busy | Cause::Expired | Cause::Refused(_) | Cause::Unreachable | Cause::Disk => true,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line)?;
        match &self.fix {
            Some(fix) => write!(out, "; {fix}"),
            None => Ok(()),
        }
    }
}
