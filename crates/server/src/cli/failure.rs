//! Why a command did not do what was asked, and the exit code that says so to a script.

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
pub(super) enum Exit {
    Done = 0,
    Refused = 1,
    Usage = 2,
    Forbidden = 3,
    NotFound = 4,
    Conflict = 5,
    Unavailable = 6,
    Unreachable = 7,
    ServerFault = 8,
    Output = 9,
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
pub(super) struct Failure {
    pub(super) exit: Exit,
    pub(super) lines: Vec<String>,
    /// What the server answered, if it did.
    pub(super) status: Option<u16>,
}

impl Failure {
    pub(super) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            lines: vec![line.into()],
            status: None,
        }
    }

    pub(super) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    #[must_use]
    pub(super) fn and(mut self, line: impl Into<String>) -> Self {
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
            };
        }
        Self::new(Exit::Output, format!("the answer could not be written: {error}"))
    }
}
