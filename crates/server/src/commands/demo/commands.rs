//! The program's own client commands, run inside the demo: what fills the organization is what anybody can type.

use super::Failure;
use clap::Command;
use provost_client::cli::{Surroundings, Terminal};
use provost_kernel::Secret;
use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Who types, and where.
pub struct Typist {
    root: Command,
    url: String,
    organization: String,
    token: Secret<String>,
    /// A file that names this server, so that no profile and no variable of the person who started the demo leads
    /// elsewhere.
    profiles: PathBuf,
}

impl Typist {
    pub fn new(url: &str, organization: &str, token: Secret<String>, profiles: &Path) -> Self {
        Self {
            root: provost_client::command(),
            url: url.to_owned(),
            organization: organization.to_owned(),
            token,
            profiles: profiles.to_owned(),
        }
    }

    /// Runs a command that reads, and returns what it answered.
    pub async fn reads(&self, words: &[&str]) -> Result<Value, Failure> {
        self.types(words, &self.token).await
    }

    /// As [`Self::reads`], with another token.
    pub async fn reads_as(&self, words: &[&str], token: &Secret<String>) -> Result<Value, Failure> {
        self.types(words, token).await
    }

    /// Runs a command that changes something, and returns what it answered.
    pub async fn changes(&self, words: &[&str]) -> Result<Value, Failure> {
        self.changes_as(words, &self.token).await
    }

    /// As [`Self::changes`], with another token.
    pub async fn changes_as(&self, words: &[&str], token: &Secret<String>) -> Result<Value, Failure> {
        self.types(&[words, &["--reason", "the sample organization"]].concat(), token)
            .await
    }

    async fn types(&self, words: &[&str], token: &Secret<String>) -> Result<Value, Failure> {
        let profiles = self.profiles.to_string_lossy();
        let connection = [
            "--url",
            &self.url,
            "--organization",
            &self.organization,
            "--profile-file",
            &profiles,
            "--profile",
            "demo",
            "--output",
            "json",
        ];
        let line = ["provost"].iter().chain(words).chain(&connection);
        let failed = |why: &str| {
            let named = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            Failure::new(format!(
                "the sample organization could not be made: {named}: {}",
                why.trim()
            ))
        };
        let matches = self.root.clone().try_get_matches_from(line);
        let matches = matches.map_err(|error| failed(&error.to_string()))?;
        let (answer, notes) = (Capture::default(), Capture::default());
        let terminal = terminal(token, &answer, &notes);
        match provost_client::ask(&matches, &terminal).await {
            0 => Ok(serde_json::from_str(&answer.text()).unwrap_or(Value::Null)),
            _ => Err(failed(&notes.text())),
        }
    }
}

fn terminal(token: &Secret<String>, answer: &Capture, notes: &Capture) -> Terminal {
    let mut terminal = Terminal::system();
    terminal.stdin = Mutex::new(Box::new(io::empty()));
    terminal.stdout = Mutex::new(Box::new(answer.clone()));
    terminal.stderr = Mutex::new(Box::new(notes.clone()));
    terminal.stdout_is_terminal = false;
    terminal.stderr_is_terminal = false;
    terminal.width = None;
    terminal.colours = false;
    terminal.prompt = None;
    terminal.surroundings = Surroundings {
        token: Some(token.clone()),
        ..Surroundings::default()
    };
    terminal
}

/// What a command wrote.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Vec<u8>>>);

impl Capture {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
