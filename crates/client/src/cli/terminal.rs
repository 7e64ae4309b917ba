//! Where a command reads and writes, and what surrounds it. The only place that asks the process for them.

use super::Failure;
pub use super::environment::Surroundings;
use super::jq::JqFilter;
use dialoguer::console::Term;
use dialoguer::{Input, Password};
use provost_words::time::{Clock, SystemClock};
use provost_words::visible::{lines_visible, visible};
use provost_words::withheld::without_secrets;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Asks a person.
pub trait Prompt: Send + Sync {
    /// Returns the line that was typed.
    fn line(&self, question: &str) -> io::Result<String>;

    /// Returns the line that was typed without showing it.
    fn hidden(&self, question: &str) -> io::Result<String>;
}

/// Standard input, output and error of one command.
pub struct Terminal {
    /// Standard input.
    pub stdin: Mutex<Box<dyn Read + Send>>,
    /// Standard output: answers, secrets.
    pub stdout: Mutex<Box<dyn Write + Send>>,
    /// Standard error: everything else.
    pub stderr: Mutex<Box<dyn Write + Send>>,
    /// Whether a person looks at the output.
    pub stdout_is_terminal: bool,
    /// Whether a person looks at notes and progress.
    pub stderr_is_terminal: bool,
    /// Columns of the terminal.
    pub width: Option<u16>,
    /// Whether what is shown may have colours: a person looks, and `NO_COLOR` is not set.
    pub colours: bool,
    /// Tells how long ago something was.
    pub clock: Arc<dyn Clock>,
    /// Asks questions; absent when nobody is there to answer.
    pub prompt: Option<Box<dyn Prompt>>,
    /// What the process was started with.
    pub surroundings: Surroundings,
    /// Through what JSON is printed, once a command says so.
    pub jq: OnceLock<JqFilter>,
}

impl Terminal {
    /// Returns the process's own.
    pub fn system() -> Self {
        let stdout_is_terminal = io::stdout().is_terminal();
        let stderr_is_terminal = io::stderr().is_terminal();
        let can_ask = io::stdin().is_terminal() && stderr_is_terminal;
        let width = || Term::stdout().size_checked().map(|(_, columns)| columns);
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            stdin: Mutex::new(Box::new(io::stdin())),
            stdout: Mutex::new(Box::new(io::stdout())),
            stderr: Mutex::new(Box::new(io::stderr())),
            stdout_is_terminal,
            stderr_is_terminal,
            width: stdout_is_terminal.then(width).flatten(),
            colours: stdout_is_terminal
                && set("NO_COLOR").is_none()
                && set("TERM").is_some_and(|term| term != "dumb"),
            clock: Arc::new(SystemClock::new()),
            prompt: can_ask.then(|| Box::new(Person) as Box<dyn Prompt>),
            surroundings: Surroundings::of_process(),
            jq: OnceLock::new(),
        }
    }

    /// Writes bytes to standard output.
    pub fn print(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = lock(&self.stdout);
        out.write_all(bytes)?;
        out.flush()
    }

    /// Writes one line to standard error; nothing in it can steer a terminal, and no token and no password of an address stands in it.
    pub fn note(&self, line: &str) {
        self.tell(&format!("{}\n", visible(&without_secrets(line))));
    }

    /// Writes a line to standard error over which the next one is written.
    pub(super) fn progress(&self, line: &str) {
        self.tell(&format!("\u{1b}[K{}\r", visible(&without_secrets(line))));
    }

    // Words about the act are lost with the terminal; the act is not.
    fn tell(&self, text: &str) {
        let mut err = lock(&self.stderr);
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Opens a file to be read on another thread, or takes standard input away where the path is `-`; its size is known where
    /// it is a regular file.
    ///
    /// Errors: usage, when the file cannot be read or is a folder.
    pub fn input(&self, path: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
        if path == Path::new("-") {
            let input = std::mem::replace(&mut *lock(&self.stdin), Box::new(io::empty()));
            return Ok((input, None));
        }
        let cannot = |error: io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Failure::usage(format!("{} is a folder", path.display())));
        }
        let size = metadata.is_file().then_some(metadata.len());
        Ok((Box::new(file), size))
    }

    /// Returns what is left of standard input.
    pub fn read_input(&self, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        lock(&self.stdin)
            .by_ref()
            .take(max_bytes + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::other(format!(
                "standard input has more than {max_bytes} bytes"
            )));
        }
        Ok(bytes)
    }

    /// Returns text from the server as it may stand on standard output.
    pub fn shown(&self, text: &str) -> String {
        if self.stdout_is_terminal {
            lines_visible(text).into_owned()
        } else {
            text.to_owned()
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The person at the process's own terminal. Questions go to standard error.
struct Person;

impl Prompt for Person {
    fn line(&self, question: &str) -> io::Result<String> {
        let input = Input::<String>::new()
            .with_prompt(visible(question))
            .allow_empty(true);
        input.interact_text().map_err(|dialoguer::Error::IO(error)| error)
    }

    fn hidden(&self, question: &str) -> io::Result<String> {
        let password = Password::new()
            .with_prompt(visible(question))
            .allow_empty_password(true);
        password.interact().map_err(|dialoguer::Error::IO(error)| error)
    }
}
