//! A laptop: a home with what AI clients have configured, and the agent of the program on it.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use provost_words::digest::sha256_hex;
use serde_json::{Map, Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

use super::PATIENCE;

/// LIMIT: servers that a scan reads of one file.
const MOST_OF_FILE: usize = 200;
/// LIMIT: observations that a scan takes of one project.
const MOST_OF_PROJECT: usize = 100;
/// So many packages stand behind the rows: a device makes a few hundred servers known at once, and rows are told apart by their names.
const PACKAGES: usize = 50;

/// Whether the home is where the agent looks for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Home {
    There,
    Away,
}

/// One laptop.
pub struct Laptop {
    pub binary: PathBuf,
    pub folder: PathBuf,
    /// The names of the rows of each report.
    pub reports: Vec<Vec<String>>,
    /// The rows that were in its queue when somebody looked, or had been sent from it.
    pub seen: BTreeSet<String>,
    pub runs: usize,
    pub kills: usize,
    pub kills_that_left_something: usize,
}

impl Laptop {
    pub fn reports(&self) -> usize {
        self.reports.len()
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// The agent's folder lies in the home, as it does without `--state-dir`.
    fn state(&self) -> PathBuf {
        self.home().join(".local/state/provost-agent")
    }

    fn command(&self, words: &[&str], home: Home) -> Command {
        let mut command = Command::new(&self.binary);
        process::without_settings(&mut command);
        let at = match home {
            Home::There => self.home(),
            Home::Away => self.folder.join("away"),
        };
        command.args(words).arg("--state-dir").arg(self.state());
        command.env("HOME", at).env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Makes the home, and the laptop a device.
    pub fn enrol(&self, address: SocketAddr, organization: &str, token: &str) -> Outcome {
        // No reader of that client understands it: nothing is removed by a report that says so.
        write(&self.home().join(".claude/settings.json"), "{ \"broken\": ")?;
        let file = self.folder.join("enrolment.token");
        write(&file, token)?;
        let server = format!("http://{address}");
        let mut words = vec!["agent", "enrol", "--server", &server];
        words.extend(["--organization", organization, "--token-file"]);
        let shown = file.display().to_string();
        words.push(&shown);
        process::output(&mut self.command(&words, Home::There)).map(drop)
    }

    /// The id of the device.
    pub fn device(&self) -> Outcome<String> {
        let path = self.state().join("device.json");
        let text = fs::read_to_string(&path).context(path.display())?;
        let device: Value = serde_json::from_str(&text).context(path.display())?;
        let id = device["deviceId"].as_str();
        id.map(str::to_owned).context("an agent without a device")
    }

    /// Puts the rows of a report into the home, and nothing else.
    pub fn put(&self, report: usize) -> Outcome {
        let rows = self.reports.get(report).context("no such report")?;
        let (of_home, of_projects) = rows.split_at(rows.len().min(MOST_OF_FILE));
        let own = servers(of_home);
        let mut projects = Map::new();
        for (number, rows) in of_projects.chunks(MOST_OF_PROJECT).enumerate() {
            let project = self.home().join(format!("project-{number}"));
            let text = json!({ "mcpServers": servers(rows) }).to_string();
            write(&project.join(".mcp.json"), &text)?;
            projects.insert(project.display().to_string(), json!({}));
        }
        let whole = json!({ "mcpServers": own, "projects": projects });
        write(&self.home().join(".claude.json"), &whole.to_string())
    }

    /// Whether a report was in the queue when somebody looked.
    pub fn has_queued(&self, report: usize) -> bool {
        let rows = self.reports.get(report);
        rows.is_some_and(|rows| rows.iter().all(|row| self.seen.contains(row)))
    }

    /// Runs the agent once, until it ends or is killed; returns what it said.
    pub fn run(&mut self, words: &[&str], home: Home, kill: Option<Duration>) -> Outcome<String> {
        let log = self.folder.join("agent.log");
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&log)
            .context("cannot open an agent's log")?;
        let mut child = self
            .command(words, home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .context(format_args!("cannot start {}", self.binary.display()))?;
        self.runs += 1;
        let mut status = None;
        clock::poll_until(kill.unwrap_or(PATIENCE), Duration::from_millis(1), || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        let is_killed = status.is_none();
        if is_killed {
            child.kill().context("cannot kill an agent")?;
            child.wait().context("cannot wait for an agent")?;
            self.kills += 1;
            self.forget_the_mark()?;
        }
        let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        if is_killed && kill.is_none() {
            return Err(Failure::new(format!(
                "an agent does not end within {PATIENCE:?}: {}",
                said.trim()
            )));
        }
        // A server that is away is said with a code; a panic has one of its own, and no code is a signal that was not ours.
        if let Some(status) = status
            && status.code().is_none_or(|code| code > 100)
        {
            return Err(Failure::new(format!(
                "an agent ended with {status}: {}",
                said.trim()
            )));
        }
        let waiting = self.look()?;
        self.kills_that_left_something += usize::from(is_killed && waiting > 0);
        Ok(said)
    }

    /// Removes the mark of a scan that was killed: an agent that is killed twice a day while it reads one file leaves that file out for the
    /// rest of the day, as it has to, and a storm of kills would have nothing more to report.
    fn forget_the_mark(&self) -> Outcome {
        let mark = self.state().join("scan.mark");
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::new(format!("{}: {error}", mark.display())))
            }
            _ => Ok(()),
        }
    }

    /// How many reports wait.
    pub fn waiting(&mut self) -> Outcome<usize> {
        self.look()
    }

    /// Reads what is queued and what was sent; what is torn or was set aside is a loss.
    fn look(&mut self) -> Outcome<usize> {
        let mut waiting = 0;
        for (folder, is_queue) in [("queue", true), ("sent", false)] {
            for path in files(&self.state().join(folder))? {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                // Drafts have a dot in front: they never were in the queue. What was sent last of other kinds is kept as JSON.
                if name.starts_with('.') || (!is_queue && path.extension().is_some_and(|end| end == "json")) {
                    continue;
                }
                if is_queue && name.contains('.') {
                    return Err(Failure::new(format!("{} was set aside", path.display())));
                }
                let bytes = fs::read(&path).context(path.display())?;
                let rows = rows_in(&bytes).context(format_args!("{} is torn", path.display()))?;
                self.seen.extend(rows);
                waiting += usize::from(is_queue);
            }
        }
        Ok(waiting)
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).context(parent.display())?;
    fs::write(path, text).context(path.display())
}

/// The files of a folder; none where it is not there yet.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::new(format!("{}: {error}", folder.display()))),
    }
}

/// Servers as Claude Code keeps them, one for each row.
fn servers(rows: &[String]) -> Value {
    let one = |(number, row): (usize, &String)| {
        let package = format!("@acme/files-{}@1.2.3", number % PACKAGES);
        (row.clone(), json!({ "command": "npx", "args": ["-y", package] }))
    };
    Value::Object(rows.iter().enumerate().map(one).collect())
}

/// The names of the rows in a file of the queue; none where it is not whole: its first line has the length and the digest of the rest.
fn rows_in(segment: &[u8]) -> Option<Vec<String>> {
    let rest = segment.strip_prefix(b"provost-queue 1 ")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, body) = (std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
    if head != format!("{} {}", body.len(), sha256_hex(body)) {
        return None;
    }
    let report: Value = serde_json::from_slice(body).ok()?;
    let sections = report["sections"].as_array()?.iter();
    let found = sections.flat_map(|section| section["observations"].as_array().into_iter().flatten());
    let name = |one: &Value| one["configuredName"].as_str().map(str::to_owned);
    Some(found.filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_queue_is_whole_or_none() {
        let body =
            json!({ "sections": [{ "observations": [{ "configuredName": "row-1" }, { "kind": "skill" }] }] });
        let body = body.to_string();
        let whole = format!(
            "provost-queue 1 {} {}\n{body}",
            body.len(),
            sha256_hex(body.as_bytes())
        );
        assert_eq!(rows_in(whole.as_bytes()), Some(vec!["row-1".to_owned()]));
        for cut in 0..whole.len() {
            assert_eq!(rows_in(&whole.as_bytes()[..cut]), None, "cut after {cut}");
        }
    }

    #[test]
    fn servers_of_one_file_have_names_of_their_own() {
        let rows: Vec<String> = (0..MOST_OF_FILE).map(|number| format!("row-{number}")).collect();
        let made = servers(&rows);
        assert_eq!(made.as_object().unwrap().len(), MOST_OF_FILE);
        assert_eq!(made["row-51"]["args"][1], "@acme/files-1@1.2.3");
    }
}
