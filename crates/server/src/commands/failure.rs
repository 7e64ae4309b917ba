//! How a command ends when it does not succeed.

use super::{logging, show};
use crate::config::Problem;
use provost_kernel::Error;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// What the operator reads, and how the process ends. The cause is for the log alone.
#[derive(Debug)]
pub struct Failure {
    message: String,
    cause: Option<String>,
    code: u8,
}

/// The target of the cause in the log. Commands that are over soon leave it out: they say one sentence.
pub const FATAL: &str = "provost::fatal";

/// What every command returns.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// Returns a failure of the work itself (exit code 1).
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            cause: None,
            code: 1,
        }
    }

    /// Returns a failure of how the command was called (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            cause: None,
            code: 2,
        }
    }

    /// Returns a failure about a file or folder, with the next step where the cause tells it.
    pub fn of_file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(format!("{what} {}: {error}{}", path.display(), next_step(error)))
    }

    /// Says before the message what was being done.
    #[must_use]
    pub fn during(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Says behind the message what can be done.
    #[must_use]
    pub fn and(mut self, next: &str) -> Self {
        self.message = format!("{}; {next}", self.message);
        self
    }

    /// Replaces the message and keeps the cause.
    #[must_use]
    pub fn said(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Writes the sentence to standard error and the cause to the log.
    pub fn report(&self) -> ExitCode {
        if let Some(cause) = &self.cause {
            tracing::error!(target: FATAL, cause, "{}", self.message);
        }
        logging::flush();
        show::note(&format!("provost: {}", self.message));
        ExitCode::from(self.code)
    }
}

fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room on its disk",
        ErrorKind::ReadOnlyFilesystem => "; mount it so that it can be written, or name another place",
        ErrorKind::PermissionDenied => "; run this as its owner, or give it to the user of this process",
        // ENFILE and EMFILE
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => {
            "; raise the limit of open files (ulimit -n, LimitNOFILE in a unit of systemd)"
        }
        _ => "",
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            message: error.told().unwrap_or_else(|| error.message()).to_owned(),
            cause: error.private(),
            code: 1,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::usage(problem.0)
    }
}
