//! `provost directory import FILE`.
//!
//! ```text
//! open ──► chunk 1 ──► chunk 2 ──► … ──► apply          all lines were good, or --partial
//!   │                                └──► abort          a line was refused; Ctrl-C; the server refuses
//!   └── the connection is lost for good: the import stays open, and the same command with the key that was
//!       named goes on (the chunks that arrived are answered again, not taken twice)
//! ```

use super::chunks::{Chunk, Chunks, Format};
use super::columns::{Layout, Origin};
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Progress, Request, Terminal, Trail,
    connection_args, consent_args, lost_references, per_second,
};
use bytes::Bytes;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use http::Method;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

const POLL: Duration = Duration::from_millis(500);

/// Returns the command.
pub fn command() -> Command {
    let flag =
        |id: &'static str, help: &'static str| Arg::new(id).long(id).action(ArgAction::SetTrue).help(help);
    Command::new("import")
        .about("Imports users and groups from a file, all of it or nothing")
        .long_about(
            "Imports users and groups from a file (JSON Lines or CSV), all of it or nothing.\n\n\
             The file is staged in chunks and becomes visible in one step. Every refused line is shown; one is \
             enough that nothing is imported, unless --partial is said. A line that is taken without its e-mail address, \
             because another user of the directory has it, is a warning and shown as well. Ctrl-C aborts the import.\n\n\
             A table has the columns type (user when there is none), loginName, name, displayName, email, externalId, status, \
             groups (separated by ;) and description, in any case; commas, semicolons, tabs or bars between cells; UTF-8, or \
             UTF-16 with a byte order mark. Exports of Okta, Entra ID and Google Workspace go in as they are with --format; \
             who cannot sign in there is suspended. Columns that are left out never leave this machine.\n\n\
             Needs the scope directory:write and the role admin.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE|-")
                .required(true)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file; - for standard input"),
        )
        .arg(
            Arg::new("directory-id")
                .long("directory-id")
                .value_name("ID")
                .help("The directory that the records belong to [default: default]"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("WORD")
                .value_parser(PossibleValuesParser::new(["jsonl", "csv", "okta", "entra", "google"]))
                .help("What the file holds, or which directory wrote it [default: by its name]"),
        )
        .arg(
            Arg::new("map")
                .long("map")
                .value_name("COLUMN=MEMBER")
                .action(ArgAction::Append)
                .help("Which column of a table holds a member, as in login=loginName; repeatable"),
        )
        .arg(flag(
            "ignore-columns",
            "Leaves out columns that mean nothing; they are named",
        ))
        .arg(
            Arg::new("mode")
                .long("mode")
                .value_name("WORD")
                .default_value("merge")
                .value_parser(PossibleValuesParser::new(["merge", "replace"]))
                .help("replace: records of the directory that the file does not name go away"),
        )
        .arg(flag(
            "dry-run",
            "Shows what would change and go, and which policies would lose a reference; imports nothing",
        ))
        .arg(
            Arg::new("confirm-removals")
                .long("confirm-removals")
                .value_name("COUNT")
                .value_parser(value_parser!(u32))
                .help("How many users, groups and memberships go, added up; needed where it is much"),
        )
        .arg(flag("partial", "Imports the good lines although others were refused"))
        .arg(flag("json", "Prints the import as JSON, as --output json does"))
        .arg(
            Arg::new("refused")
                .long("refused")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Writes the refused lines as JSON Lines into this new file instead of showing them"),
        )
        .args(consent_args())
        .args(connection_args())
        // Hundreds of requests in a row meet a busy server more often than one does.
        .mut_arg("global.retries", |arg| arg.default_value("10"))
}

/// One run of the command.
struct Import<'a> {
    client: &'a Client<'a>,
    consent: &'a Consent,
    id: String,
    refused: RefusedLines<'a>,
    /// Nothing is imported, and the keys are no import's.
    is_dry: bool,
    confirm_removals: Option<u32>,
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let path = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let format = format_of(matches, &path)?;
    let refused = RefusedLines::new(matches, terminal)?;
    let (reader, size) = terminal.input(&path)?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let text = |id: &str| matches.get_one::<String>(id).cloned().unwrap_or_default();
    let mut body = json!({
        "format": if matches!(format, Format::Csv(_)) { "csv" } else { "jsonl" }, "mode": text("mode"),
        "partial": matches.get_flag("partial"),
    });
    if matches.contains_id("directory-id") {
        body["directoryId"] = text("directory-id").into();
    }
    // Before the import is opened: none may be open that a signal would leave behind.
    let cannot = |error| Failure::usage(format!("signals cannot be received: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let opened = client
        .send_json(
            Method::POST,
            &["directory", "imports"],
            &body,
            &step(&consent, matches.get_flag("dry-run"), "open"),
        )
        .await?;
    let mut import = Import {
        client: &client,
        consent: &consent,
        id: member(&opened, "/import/id")?,
        refused,
        is_dry: matches.get_flag("dry-run"),
        confirm_removals: matches.get_one("confirm-removals").copied(),
    };
    let chunks = Chunks::new(reader, format);
    let done = tokio::select! {
        biased;
        _ = terminate.recv() => Err(interrupted()),
        _ = interrupt.recv() => Err(interrupted()),
        done = import.whole(chunks, size, matches.get_flag("partial")) => done,
    };
    let done = match done {
        Ok(done) => done,
        Err(failure) => return Err(import.given_up(failure).await),
    };
    let form = if matches.get_flag("json") {
        Form::Json
    } else {
        Form::chosen(matches, terminal)
    };
    let printer = Printer {
        form,
        terminal,
        quiet: client.quiet,
    };
    Ok(printer.object(&done)?)
}

fn interrupted() -> Failure {
    Failure::new(Exit::Refused, "interrupted")
}

impl Import<'_> {
    /// Sends every chunk, then applies.
    async fn whole(
        &mut self,
        mut chunks: Chunks,
        size: Option<u64>,
        partial: bool,
    ) -> Result<Value, Failure> {
        let mut progress = Progress::start(self.client.terminal, self.client.quiet, "lines");
        let (mut sequence, mut records) = (0_u64, 0_u64);
        loop {
            // Reading may wait for whoever writes to the pipe; Ctrl-C must not.
            let read = tokio::task::spawn_blocking(move || {
                let chunk = chunks.next_chunk();
                (chunks, chunk)
            });
            let (back, chunk) = read.await.map_err(io::Error::other)?;
            chunks = back;
            let chunk = chunk.map_err(|error| Failure::usage(format!("the file cannot be read: {error}")))?;
            if records == 0 {
                chunks.notes().iter().for_each(|note| self.client.note(note));
            }
            let Some(chunk) = chunk else { break };
            records += chunk.records + chunk.refused.len() as u64;
            sequence += u64::from(chunk.records > 0);
            self.send(sequence, chunk, chunks.media_type()).await?;
            progress.show(records, size.map(|size| (chunks.bytes_read(), size)));
        }
        progress.clear();
        if records == 0 {
            return Err(Failure::usage("the file holds no records"));
        }
        let refused = self.refused.count;
        if refused > 0 && !partial {
            let line = format!("{refused} of {records} records were refused; nothing was imported");
            return Err(Failure::new(Exit::Refused, line).and("correct them, or say --partial"));
        }
        if self.is_dry {
            progress.clear();
            return self.show().await;
        }
        progress.say("applying");
        let done = self.apply().await?;
        progress.clear();
        let rate = per_second(records, progress.elapsed());
        let left = if refused > 0 {
            format!(", {refused} refused")
        } else {
            String::new()
        };
        self.client.note(&format!("{records} records{left}, {rate}/s"));
        let held = done.pointer("/import/counts/held").and_then(Value::as_i64);
        if let Some(held) = held.filter(|held| *held > 0) {
            self.client.note(&format!(
                "{held} changes are held for an admin: provost directory list-held"
            ));
        }
        let warnings = done.pointer("/import/counts/warnings").and_then(Value::as_i64);
        if let Some(count) = warnings.filter(|count| *count > 0) {
            self.warn(count).await?;
        }
        Ok(done)
    }

    /// Shows the lines that were taken with a warning, as far as the server keeps them.
    async fn warn(&self, count: i64) -> Result<(), Failure> {
        let path = ["directory", "imports", &self.id, "warnings"];
        let (mut shown, mut cursor) = (0, None::<String>);
        let mut trail = Trail::default();
        loop {
            let before = shown;
            let mut query = vec![("limit", "100")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page = self.client.get_json(&path, &query).await?;
            for line in page
                .get("warnings")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                shown += 1;
                self.client.terminal.note(&format!("warning: {}", said_of(line)));
            }
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            let Some(next) = next else { break };
            trail.go_on("page", &next, usize::from(shown > before))?;
            cursor = Some(next);
        }
        if shown < count {
            self.client
                .terminal
                .note(&format!("warning: {} more are not listed", count - shown));
        }
        Ok(())
    }

    /// Returns what the import would do, and aborts it.
    async fn show(&self) -> Result<Value, Failure> {
        let path = ["directory", "imports", &self.id];
        let import = self.client.get_json(&path, &[]).await?;
        let mut shown = self
            .client
            .get_json(&[&path[..], &["removals"]].concat(), &[])
            .await?;
        shown["import"] = import.get("import").cloned().unwrap_or_default();
        for line in lost_references(&shown) {
            self.client.terminal.note(&line);
        }
        let abort = [&path[..], &["abort"]].concat();
        let consent = step(self.consent, self.is_dry, "abort");
        self.client
            .send_json(Method::POST, &abort, &json!({}), &consent)
            .await?;
        self.client.note("nothing was imported");
        Ok(shown)
    }

    /// Sends a chunk, if there is something to send, and tells what was refused of it, here and there.
    async fn send(&mut self, sequence: u64, chunk: Chunk, media_type: &'static str) -> Result<(), Failure> {
        let mut refused = chunk.refused;
        if chunk.records > 0 {
            let number = sequence.to_string();
            let answer = self
                .client
                .send_content(
                    Method::POST,
                    &["directory", "imports", &self.id, "chunks"],
                    &[("sequence", &number)],
                    (media_type, Bytes::from(chunk.bytes)),
                    &step(self.consent, self.is_dry, &format!("chunk-{number}")),
                )
                .await?;
            let lines = answer.get("refusedLines").and_then(Value::as_array);
            refused.extend(lines.into_iter().flatten().cloned());
        }
        refused.sort_by_key(|line| line.get("line").and_then(Value::as_u64));
        for line in &refused {
            self.refused.add(line)?;
        }
        Ok(())
    }

    async fn apply(&self) -> Result<Value, Failure> {
        let path = ["directory", "imports", &self.id, "apply"];
        let consent = self.consent.step("apply").confirmed();
        let body = match self.confirm_removals {
            Some(sum) => json!({ "confirmRemovals": sum }),
            None => json!({}),
        };
        let applied = self.client.send_json(Method::POST, &path, &body, &consent).await;
        let mut answer = applied.map_err(|failure| {
            let is_much = failure
                .lines
                .iter()
                .any(|line| line.contains("too_many_removals"));
            if is_much {
                failure.and(
                    "if that is right, say --confirm-removals with that sum; --dry-run shows what would go",
                )
            } else {
                failure
            }
        })?;
        loop {
            match member(&answer, "/import/state")?.as_str() {
                "applied" => return Ok(answer),
                "applying" => tokio::time::sleep(POLL).await,
                state => {
                    return Err(Failure::new(
                        Exit::Conflict,
                        format!("the import is {state}, not applied"),
                    ));
                }
            }
            answer = self.client.get_json(&path[..3], &[]).await?;
        }
    }

    /// Aborts, unless the command can be repeated to go on where the connection broke.
    async fn given_up(&mut self, failure: Failure) -> Failure {
        if matches!(
            failure.exit,
            Exit::Unreachable | Exit::Unavailable | Exit::ServerFault
        ) {
            let repeat = self.consent.repeat();
            return failure
                .and(format!("the import {} stays open for an hour", self.id))
                .and(format!("to go on, repeat the same command with {repeat}"));
        }
        let path = ["directory", "imports", &self.id, "abort"];
        let request = Request::new(Method::POST, &path).json(&json!({}));
        let aborted = match request.consent(&step(self.consent, self.is_dry, "abort")) {
            Ok(request) => self.client.send(&request).await.map(drop),
            Err(failure) => Err(failure),
        };
        match aborted {
            Ok(()) => failure.and(format!("the import {} was aborted", self.id)),
            Err(other) => {
                let why = other.lines.first().cloned().unwrap_or_default();
                failure.and(format!("the import {} could not be aborted: {why}", self.id))
            }
        }
    }
}

/// Returns the consent to a request of the command; a dry run has keys of its own, so that the import behind it is another.
fn step(consent: &Consent, is_dry: bool, name: &str) -> Consent {
    if is_dry {
        return consent.step(&format!("dry-run-{name}"));
    }
    consent.step(name)
}

/// Where refused lines go.
struct RefusedLines<'a> {
    terminal: &'a Terminal,
    path: Option<PathBuf>,
    file: Option<File>,
    count: u64,
}

impl<'a> RefusedLines<'a> {
    fn new(matches: &ArgMatches, terminal: &'a Terminal) -> Result<Self, Failure> {
        let path = matches.get_one::<PathBuf>("refused").cloned();
        if let Some(path) = path.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
            return Err(Failure::usage(format!("{} is there already", path.display())));
        }
        Ok(Self {
            terminal,
            path,
            file: None,
            count: 0,
        })
    }

    fn add(&mut self, line: &Value) -> Result<(), Failure> {
        self.count += 1;
        let Some(path) = &self.path else {
            self.terminal.note(&said_of(line));
            return Ok(());
        };
        let cannot = |error: io::Error| {
            Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()))
        };
        if self.file.is_none() {
            let made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path);
            self.file = Some(made.map_err(cannot)?);
        }
        match &mut self.file {
            Some(file) => writeln!(file, "{line}").map_err(cannot),
            None => Ok(()),
        }
    }
}

/// Returns what was said of a line: where it is, and what is wrong.
fn said_of(line: &Value) -> String {
    let text = |member: &str| line.get(member).and_then(Value::as_str).unwrap_or_default();
    let place = match line.get("line") {
        Some(number) => format!("line {number}"),
        None => format!("user {}", text("userId")),
    };
    let path = text("path");
    let space = if path.is_empty() { "" } else { " " };
    format!("{place}{space}{path}: {}", text("message"))
}

fn format_of(matches: &ArgMatches, path: &Path) -> Result<Format, Failure> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    let said = matches.get_one::<String>("format").cloned().or(extension);
    let said = said.as_deref().unwrap_or_default();
    let mappings: Vec<&str> = matches
        .get_many::<String>("map")
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let leaves_out_others = matches.get_flag("ignore-columns");
    let origin = match (said, Origin::parse(said)) {
        (_, Some(origin)) => origin,
        ("csv" | "tsv", None) => Origin::Own,
        ("jsonl" | "ndjson", None) if mappings.is_empty() && !leaves_out_others => {
            return Ok(Format::JsonLines);
        }
        ("jsonl" | "ndjson", None) => {
            return Err(Failure::usage(
                "--map and --ignore-columns are for tables; the file holds JSON Lines",
            ));
        }
        _ => {
            return Err(Failure::usage(
                "say what the file holds: --format jsonl, csv, okta, entra or google",
            ));
        }
    };
    let layout = Layout::new(origin, mappings, leaves_out_others);
    layout.map(Format::Csv).map_err(Failure::usage)
}

fn member(answer: &Value, pointer: &str) -> Result<String, Failure> {
    let text = answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(
            Exit::ServerFault,
            "the answer is no import; is this a Provost server?",
        )
    })
}
