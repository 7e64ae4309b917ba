//! `provost export`: audit entries and decisions for another system, oldest first, from where the last run ended.

mod audit;
mod cursor;
mod decisions;
mod form;

use crate::cli::{Client, Exit, Failure, HandCommand, Terminal, connection_args};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use cursor::{Cursor, CursorFile};
use form::{Form, Kind};
use provost_words::time::Timestamp;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The word of the command.
const NAME: &str = "export";

/// Returns the command of one word.
pub fn own() -> HandCommand {
    HandCommand {
        group: NAME,
        verb: "",
        command,
        examples: &[
            "provost export --cursor /var/lib/siem/provost.cursor --format ecs --follow | vector --config vector.yaml",
            "provost export --cursor ./provost.cursor --what audit >> audit.jsonl",
        ],
        run: |matches, terminal| Box::pin(run(matches, terminal)),
    }
}

fn command() -> Command {
    let seconds = |id: &'static str, value: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("SECONDS")
            .default_value(value)
            .value_parser(value_parser!(u32).range(1..=3600))
            .help(help)
    };
    Command::new(NAME)
        .about("Writes audit entries and decisions to standard output, oldest first, from where the last run ended")
        .long_about(
            "Writes audit entries and decisions to standard output, one a line, oldest first.\n\n\
             The cursor file says how far it is; it is replaced once what it speaks of was written. A run that is cut off writes some \
             records again and leaves none out: each has an id. Entries are checked to be one chain without a gap. Decisions are those \
             whose time lies before now less --lag; what arrives later with an older time (imports, late telemetry) is not written.\n\n\
             Needs the scopes audit:export and audit:read for entries, policies:history for decisions. A run leaves one entry in the \
             audit log when it begins, and one for each hour that it goes on; beyond 10 000 entries that wait, one for each 10 000.",
        )
        .arg(
            Arg::new("follow")
                .long("follow")
                .action(ArgAction::SetTrue)
                .help("Goes on with what comes, until it is stopped"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .default_value("jsonl")
                .value_parser(PossibleValuesParser::new(Form::WORDS))
                .help("How a line looks: as it is, OCSF 1.3, ECS 8.11, CEF"),
        )
        .arg(
            Arg::new("cursor")
                .long("cursor")
                .value_name("FILE")
                .required(true)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file that says how far it is; made when it is not there"),
        )
        .arg(
            Arg::new("what")
                .long("what")
                .value_name("WHAT")
                .default_value("both")
                .value_parser(PossibleValuesParser::new(["audit", "decisions", "both"]))
                .help("Entries of the audit log, decisions, or both"),
        )
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("TIME")
                .value_parser(|text: &str| Timestamp::parse(text).ok_or("a time is RFC 3339: 2026-08-22T09:00:00Z"))
                .help("Where decisions begin without a cursor [default: a day ago]; entries begin with the first"),
        )
        .arg(seconds("every", "10", "How often --follow asks for what is new"))
        .arg(seconds("lag", "60", "How old a decision is before it is written"))
        .args(connection_args())
}

/// A day. Units: seconds.
const DAY_SECS: i64 = 86_400;

/// One export.
struct Export<'a> {
    client: &'a Client<'a>,
    file: CursorFile,
    cursor: Cursor,
    form: Form,
    entries: Option<audit::Follower>,
    decisions: Option<decisions::Spans>,
    lag_secs: i64,
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let file = matches.get_one::<PathBuf>("cursor").cloned().unwrap_or_default();
    let file = CursorFile::new(&file);
    let mut cursor = file.read(client.url(), client.organization())?;
    let word = |id: &str| matches.get_one::<String>(id).map_or("", String::as_str);
    let seconds = |id: &str| matches.get_one::<u32>(id).copied().unwrap_or(60);
    let what = word("what");
    if what != "audit" && cursor.decisions_until.is_none() {
        let begin = matches.get_one::<Timestamp>("since").copied();
        let begin = begin.unwrap_or_else(|| terminal.clock.now().plus_secs(-DAY_SECS));
        cursor.decisions_until = Some(begin.to_rfc3339());
    }
    let mut export = Export {
        client: &client,
        file,
        cursor,
        form: Form::of(word("format")),
        entries: (what != "decisions").then(audit::Follower::default),
        decisions: (what != "audit").then(decisions::Spans::default),
        lag_secs: i64::from(seconds("lag")),
    };
    let every = matches
        .get_flag("follow")
        .then(|| Duration::from_secs(u64::from(seconds("every"))));
    tokio::select! {
        biased;
        done = export.go(every) => done,
        // What was written is in the cursor: this is how it is stopped.
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

impl Export<'_> {
    async fn go(&mut self, every: Option<Duration>) -> Result<(), Failure> {
        loop {
            let is_behind = match self.round().await {
                Ok(is_behind) => is_behind,
                Err(failure) if every.is_some() && is_passing(&failure) => {
                    let what = failure.lines.first().map_or("", String::as_str);
                    self.client.note(&format!("{what}; goes on when it can"));
                    false
                }
                Err(failure) => return Err(failure),
            };
            match every {
                _ if is_behind => {}
                None => return Ok(()),
                Some(every) => tokio::time::sleep(every).await,
            }
        }
    }

    /// Writes what there is of each; says whether there is more already.
    async fn round(&mut self) -> Result<bool, Failure> {
        let mut is_behind = false;
        if let Some(follower) = &mut self.entries {
            let batch = follower.next(self.client, &self.cursor).await?;
            is_behind |= batch.is_behind;
            if let Some(last) = batch.entries.last() {
                let mut next = self.cursor.clone();
                next.audit_seq = audit::place(last);
                next.audit_hash = last["hash"].as_str().map(str::to_owned);
                self.write(Kind::Audit, &batch.entries, next)?;
            }
        }
        let end = self.client.terminal.clock.now().plus_secs(-self.lag_secs);
        if let Some(spans) = &mut self.decisions
            && let Some(span) = spans.next(self.client, &self.cursor, end).await?
        {
            is_behind |= span.is_behind;
            if span.unreadable > 0 {
                self.client.note(&format!(
                    "{} recorded events before {} cannot be read by the server, and are left out",
                    span.unreadable,
                    span.until.to_rfc3339()
                ));
            }
            let mut next = self.cursor.clone();
            next.decisions_until = Some(span.until.to_rfc3339());
            self.write(Kind::Decision, &span.events, next)?;
        }
        Ok(is_behind)
    }

    /// Writes lines, then keeps the cursor: whoever reads may get a line twice, and gets every line.
    fn write(&mut self, kind: Kind, records: &[Value], next: Cursor) -> Result<(), Failure> {
        let mut text = String::new();
        for record in records {
            text.push_str(&self.form.line(kind, &next.organization, record));
            text.push('\n');
        }
        self.client.terminal.print(text.as_bytes())?;
        self.file.keep(&next)?;
        self.cursor = next;
        Ok(())
    }
}

/// Says whether a failure may pass by itself.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::Unavailable)
        || failure.status.is_some_and(|status| status >= 500)
}
