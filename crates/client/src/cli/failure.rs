//! Why a command did not do what was asked, and the exit code that says so to a script.

use super::print::Unfiltered;
use serde_json::Value;
use std::io;

/// What the exit codes mean; the last part of `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0  done
  1  the server refused the request
  2  the command line is wrong, or something that must be said was not
  3  no token, or one that may not do this (401, 403)
  4  no such thing (404)
  5  conflict or failed precondition (409, 412, 422)
  6  too many requests, or unavailable, also after retries (429, 503)
  7  the server cannot be reached, or the outcome is unknown
  8  a fault of the server (500)
  9  the answer could not be written here";

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The server refused the request.
    Refused = 1,
    /// The command line is wrong, or something that must be said was not.
    Usage = 2,
    /// No token, or one that may not do this.
    Forbidden = 3,
    /// No such thing.
    NotFound = 4,
    /// Conflict or failed precondition.
    Conflict = 5,
    /// Too many requests, or unavailable.
    Unavailable = 6,
    /// The server cannot be reached, or the outcome is unknown.
    Unreachable = 7,
    /// A fault of the server.
    ServerFault = 8,
    /// What came of it could not be written here.
    Output = 9,
    /// What came of it is what the caller wants to fail on.
    Gate = 10,
    /// Ctrl-C while waiting for something that goes on: 128 and the number of the signal, as shells say it.
    Interrupted = 130,
}

impl Exit {
    /// Returns the code for a status that is no success.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Forbidden,
            404 => Self::NotFound,
            409 | 412 | 422 => Self::Conflict,
            429 | 502..=504 => Self::Unavailable,
            400..=499 => Self::Refused,
            500..=599 => Self::ServerFault,
            _ => Self::Unreachable,
        }
    }
}

/// An end without success: the first line says what happened, the others what to do.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// For people; the first line says what happened.
    pub lines: Vec<String>,
    /// What the server answered, if it did.
    pub status: Option<u16>,
    /// The whole of its refusal, if it was one (D1.5).
    pub refusal: Option<Box<Value>>,
}

impl Failure {
    /// Returns a failure that says one line.
    pub fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            lines: vec![line.into()],
            status: None,
            refusal: None,
        }
    }

    /// Returns a failure of how the command was called.
    pub fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// Returns a member of the server's refusal, if it is text.
    pub(super) fn refused(&self, member: &str) -> Option<&str> {
        self.refusal.as_ref()?.get(member)?.as_str()
    }

    /// Adds a line: what to do.
    #[must_use]
    pub fn and(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

/// Whoever reads the output may stop early (`| head`); that is no failure and gets no words.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self {
                exit: Exit::Done,
                lines: Vec::new(),
                status: None,
                refusal: None,
            };
        }
        if let Some(Unfiltered(line)) = error.get_ref().and_then(|cause| cause.downcast_ref()) {
            return Self::usage(line.as_str());
        }
        Self::new(Exit::Output, format!("the answer could not be written: {error}"))
    }
}
