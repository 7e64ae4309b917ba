//! Runs commands as a person would type them and shows what they said.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::process;
use crate::product::{Bootstrap, Server};

/// More lines of an answer are not shown: the tour is for reading.
const SHOWN_LINES: usize = 16;

pub struct Guide {
    binary: PathBuf,
    /// What the person has on their machine.
    pub home: PathBuf,
    /// The repository, for the files that the tour brings along.
    root: PathBuf,
    environment: Vec<(&'static str, String)>,
    connection: Connection,
    pub organization: String,
    commands: usize,
}

impl Guide {
    pub fn new(
        binary: &Path,
        folder: &Path,
        server: &Server,
        bootstrap: &Bootstrap,
        root: PathBuf,
    ) -> Outcome<Self> {
        let home = folder.join("home");
        std::fs::create_dir_all(&home).context("cannot make a home")?;
        let environment = vec![
            ("PROVOST_URL", format!("http://{}", server.address)),
            ("PROVOST_ORGANIZATION", bootstrap.organization.clone()),
            ("PROVOST_TOKEN", bootstrap.token.clone()),
            ("HOME", home.display().to_string()),
            ("XDG_CONFIG_HOME", home.join(".config").display().to_string()),
        ];
        Ok(Self {
            binary: binary.to_path_buf(),
            home,
            root,
            environment,
            connection: Connection::new(server.address),
            organization: bootstrap.organization.clone(),
            commands: 0,
        })
    }

    pub fn commands(&self) -> usize {
        self.commands
    }

    #[expect(clippy::unused_self, reason = "what a guide says belongs to the guide")]
    pub fn says(&self, sentence: &str) {
        println!("\n# {sentence}");
    }

    /// A file that the tour brings along.
    pub fn file(&self, name: &str) -> String {
        self.root
            .join("crates/xtask/tour")
            .join(name)
            .display()
            .to_string()
    }

    /// A file or folder of the repository.
    pub fn repository(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Runs `provost` with these words and returns what it printed as JSON.
    pub fn does(&mut self, words: &[&str]) -> Outcome<Value> {
        let output = self.run(words)?;
        if !output.status.success() {
            return Err(unexpected(words, &output));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        Ok(serde_json::from_str(&printed).unwrap_or(Value::Null))
    }

    /// As [`Guide::does`], with another token.
    pub fn does_as(&mut self, token: &str, words: &[&str]) -> Outcome<Value> {
        // The last one counts.
        self.environment.push(("PROVOST_TOKEN", token.to_owned()));
        let done = self.does(words);
        self.environment.pop();
        done
    }

    /// As [`Guide::does`], for a change: says why.
    pub fn changes(&mut self, words: &[&str]) -> Outcome<Value> {
        self.does(&[words, &["--reason", "a tour"]].concat())
    }

    /// Runs a command that must be refused, and returns what it said.
    pub fn is_refused(&mut self, words: &[&str]) -> Outcome<String> {
        let output = self.run(words)?;
        if output.status.success() {
            return Err(unexpected(words, &output));
        }
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn run(&mut self, words: &[&str]) -> Outcome<Output> {
        self.commands += 1;
        println!(
            "\n$ provost {}",
            words
                .iter()
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" ")
        );
        let mut command = Command::new(&self.binary);
        process::without_settings(&mut command);
        command
            .args(words)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).current_dir(&self.home);
        let output = command.output().context("cannot start provost")?;
        for text in [&output.stderr, &output.stdout] {
            show(&String::from_utf8_lossy(text));
        }
        Ok(output)
    }

    /// Sends a request without the command line, with a token of its own.
    pub fn asks(&mut self, rest: &str, token: &str) -> Outcome<Answer> {
        println!("\n$ curl …/{rest}");
        let path = format!("/api/headless/v1/organizations/{}/{rest}", self.organization);
        let answer = self.connection.send(&Request::get(path, token));
        let answer = answer.map_err(|lost| Failure::new(lost.why))?;
        println!("HTTP {}", answer.status);
        Ok(answer)
    }
}

fn unexpected(words: &[&str], output: &Output) -> Failure {
    Failure::new(format!(
        "provost {} ended with {}: {}",
        words.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{word}'")
}

fn show(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(SHOWN_LINES) {
        println!("{}", line.chars().take(160).collect::<String>());
    }
    if lines.len() > SHOWN_LINES {
        println!("… {} more lines", lines.len() - SHOWN_LINES);
    }
}

/// The text behind a JSON Pointer.
pub fn text(value: &Value, pointer: &str) -> Outcome<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("there is no {pointer} in {value}")))
}
