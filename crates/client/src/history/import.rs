//! `provost history import FILE`: recorded events, in chunks that may be sent again.
//!
//! A chunk is known by its source and its bytes. Whatever breaks, the same command goes on: what the server has is
//! answered as a duplicate and stored once (D9.11).

use super::lines::{self, Chunk, Chunks, Convert};
use super::tool_calls::{self, Times};
use crate::cli::{
    Client, Exit, Failure, Form, Printer, Progress, Request, Terminal, connection_args, per_second,
};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use http::Method;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the command.
pub fn command() -> Command {
    Command::new("import")
        .about("Imports recorded events from a file")
        .long_about(
            "Imports recorded events from a file of JSON Lines, one event a line.\n\n\
             The file is sent in chunks. If the command breaks, repeat it: what has arrived is stored once. Refused \
             lines are shown with their numbers in the file; the others are kept.\n\n\
             The format tool-calls reads recordings of what agents called: {\"task\",\"trial\",\"step\",\"user\",\
             \"model\",\"tool\",\"arguments\",\"result\"}. They have no times: --spread sets them evenly, in order, up \
             to the last midnight (UTC); a repetition on another day says that midnight with --until.\n\n\
             Needs the scope policies:import_history and the role admin.\n\n\
             Exit code 1 when a line was refused, unless --allow-refused is said.",
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
            Arg::new("source")
                .long("source")
                .value_name("NAME")
                .value_parser(NonEmptyStringValueParser::new())
                .help("Where the events come from [default: the file's name]"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("WORD")
                .default_value("provost")
                .value_parser(PossibleValuesParser::new(["provost", "tool-calls"]))
                .help("What a line holds"),
        )
        .arg(
            Arg::new("spread")
                .long("spread")
                .value_name("DAYS")
                .value_parser(tool_calls::span)
                .conflicts_with("at")
                .help("Spreads calls without times evenly over so many days: 60d"),
        )
        .arg(time("until", "The end of the spread [default: the last midnight, UTC]").conflicts_with("at"))
        .arg(time("at", "Sets calls without times to this instant, each a millisecond after the one before"))
        .arg(
            Arg::new("allow-refused")
                .long("allow-refused")
                .action(ArgAction::SetTrue)
                .help("Exits with 0 although lines were refused"),
        )
        .args(connection_args())
        // Many requests in a row meet a busy server more often than one does.
        .mut_arg("global.retries", |arg| arg.default_value("10"))
}

fn time(id: &'static str, help: &'static str) -> Arg {
    let parsed = |text: &str| Timestamp::parse(text).ok_or("a time is RFC 3339: 2026-08-22T09:00:00Z");
    Arg::new(id)
        .long(id)
        .value_name("TIME")
        .value_parser(parsed)
        .help(help)
}

/// What the chunks came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Total {
    lines: u64,
    accepted: u64,
    refused: u64,
    chunks: u64,
    duplicates: u64,
    first: Option<String>,
    last: Option<String>,
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let source = source(matches, &path)?;
    let convert = convert(matches, &path)?;
    let client = Client::connect(matches, terminal)?;
    let (reader, size) = terminal.input(&path)?;
    let sent = tokio::select! {
        biased;
        sent = send_all(&client, &source, Chunks::new(reader, convert), size) => sent,
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted")),
    };
    let total = sent.map_err(|failure| match failure.exit {
        Exit::Unreachable | Exit::Unavailable | Exit::ServerFault | Exit::Interrupted => {
            failure.and("repeat the same command to go on: what has arrived is stored once")
        }
        _ => failure,
    })?;
    if total.lines == 0 {
        return Err(Failure::usage("the file holds no lines"));
    }
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: client.quiet,
    };
    printer.object(&total.json(&source))?;
    if total.refused > 0 && !matches.get_flag("allow-refused") {
        let rest = if total.accepted > 0 {
            "; the others are imported"
        } else {
            ""
        };
        let line = format!("{} of {} lines were refused{rest}", total.refused, total.lines);
        return Err(Failure::new(Exit::Refused, line));
    }
    Ok(())
}

async fn send_all(
    client: &Client<'_>,
    source: &str,
    chunks: Chunks,
    size: Option<u64>,
) -> Result<Total, Failure> {
    let mut progress = Progress::start(client.terminal, client.quiet, "lines");
    let mut total = Total::default();
    let mut chunks = chunks;
    loop {
        // Reading may wait for whoever writes to the pipe; Ctrl-C must not.
        let read = tokio::task::spawn_blocking(move || {
            let chunk = chunks.next_chunk();
            (chunks, chunk)
        });
        let (back, chunk) = read.await.map_err(io::Error::other)?;
        chunks = back;
        let chunk = chunk.map_err(|error| Failure::usage(format!("the file cannot be read: {error}")))?;
        let Some(chunk) = chunk else { break };
        let answer = if chunk.numbers.is_empty() {
            Value::Null
        } else {
            let request = Request::new(Method::POST, &["policies", "history", "import"])
                .query("source", source)
                .content("application/x-ndjson", chunk.bytes.clone());
            client.send(&request).await?.json()?
        };
        progress.clear();
        for line in total.add(&chunk, &answer) {
            client.terminal.note(&line);
        }
        progress.say(&how_far(&total, chunks.bytes_read, size, progress.elapsed()));
    }
    progress.clear();
    client.note(&how_far(&total, chunks.bytes_read, None, progress.elapsed()));
    Ok(total)
}

impl Total {
    /// Adds a chunk and returns a line for each that was refused.
    fn add(&mut self, chunk: &Chunk, answer: &Value) -> Vec<String> {
        let count = |member: &str| answer.get(member).and_then(Value::as_u64).unwrap_or(0);
        let refused = count("refused");
        self.lines += (chunk.numbers.len() + chunk.refused.len()) as u64;
        self.accepted += count("accepted");
        self.refused += refused + chunk.refused.len() as u64;
        self.chunks += 1;
        self.duplicates += u64::from(answer.get("duplicate") == Some(&Value::Bool(true)));
        let at = |member: &str| answer.get(member).and_then(Value::as_str).map(str::to_owned);
        // RFC 3339 with Z and three digits: the order of texts is that of instants.
        self.first = [self.first.take(), at("firstEventAt")]
            .into_iter()
            .flatten()
            .min();
        self.last = [self.last.take(), at("lastEventAt")].into_iter().flatten().max();

        let mut said: Vec<(u64, String)> = chunk.refused.clone();
        let listed = answer
            .get("refusals")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for refusal in listed {
            let text = |member: &str| refusal.get(member).and_then(Value::as_str).unwrap_or_default();
            let number = refusal
                .get("line")
                .and_then(Value::as_u64)
                .and_then(|line| chunk.number(line));
            let place = if text("path").is_empty() {
                String::new()
            } else {
                format!("{}: ", text("path"))
            };
            said.push((number.unwrap_or(0), format!("{place}{}", text("message"))));
        }
        said.sort();
        let mut said: Vec<String> = said
            .into_iter()
            .map(|(number, why)| format!("line {number}: {why}"))
            .collect();
        let unlisted = refused.saturating_sub(listed.len() as u64);
        if let (true, Some(first), Some(last)) = (unlisted > 0, chunk.numbers.first(), chunk.numbers.last()) {
            said.push(format!("lines {first} to {last}: {unlisted} more refused"));
        }
        said
    }

    fn json(&self, source: &str) -> Value {
        let mut json = json!({
            "source": source, "lines": self.lines, "accepted": self.accepted, "refused": self.refused,
            "chunks": self.chunks, "duplicateChunks": self.duplicates,
        });
        for (member, at) in [("firstEventAt", &self.first), ("lastEventAt", &self.last)] {
            if let Some(at) = at {
                json[member] = at.as_str().into();
            }
        }
        json
    }
}

/// Returns `12000 lines, 41000/s, 9.1 MB/s, 40 %, 0:12 left`.
fn how_far(total: &Total, bytes: u64, size: Option<u64>, elapsed: Duration) -> String {
    let tenths = per_second(bytes, elapsed) / 100_000;
    let rate = per_second(total.lines, elapsed);
    let mut words = format!(
        "{} lines, {rate}/s, {}.{} MB/s",
        total.lines,
        tenths / 10,
        tenths % 10
    );
    if let Some(size) = size.filter(|size| bytes > 0 && bytes <= *size) {
        let left = elapsed.as_millis() * u128::from(size - bytes) / u128::from(bytes);
        let secs = left.div_ceil(1000);
        let percent = u128::from(bytes) * 100 / u128::from(size);
        words = format!("{words}, {percent} %, {}:{:02} left", secs / 60, secs % 60);
    }
    words
}

fn source(matches: &ArgMatches, path: &Path) -> Result<String, Failure> {
    if let Some(said) = matches.get_one::<String>("source") {
        return Ok(said.clone());
    }
    let stem = path.file_stem().filter(|_| path != Path::new("-"));
    let name = stem.and_then(|stem| stem.to_str()).map(str::to_owned);
    name.ok_or_else(|| Failure::usage("say where the events come from: --source NAME"))
}

/// Returns what becomes of each line.
///
/// Errors: usage, when the flags do not fit the format.
fn convert(matches: &ArgMatches, path: &Path) -> Result<Convert, Failure> {
    let time = |id: &str| matches.get_one::<Timestamp>(id).copied();
    if matches
        .get_one::<String>("format")
        .is_none_or(|format| format != "tool-calls")
    {
        if ["spread", "until", "at"].iter().any(|id| matches.contains_id(id)) {
            return Err(Failure::usage(
                "events have times of their own: --spread, --until and --at are for --format tool-calls",
            ));
        }
        return Ok(Box::new(|line| Ok(line.to_vec())));
    }
    if let Some(at) = time("at") {
        return Ok(Box::new(tool_calls::converter(Times::From(at))));
    }
    let Some(span_ms) = matches.get_one::<i64>("spread").copied() else {
        return Err(Failure::usage(
            "these calls have no times: say --spread 60d, or --at TIME",
        ));
    };
    if path == Path::new("-") {
        return Err(Failure::usage(
            "to spread calls their number must be known: give a file, or --at TIME",
        ));
    }
    let cannot = |error: io::Error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let lines = lines::count(Box::new(File::open(path).map_err(cannot)?)).map_err(cannot)?;
    let end = time("until").unwrap_or_else(|| tool_calls::midnight(SystemClock::new().now()));
    Ok(Box::new(tool_calls::converter(Times::Spread {
        end,
        span_ms,
        lines,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(words: &[&str]) -> ArgMatches {
        command().get_matches_from(["import"].iter().chain(words))
    }

    #[test]
    fn refused_lines_are_named_by_their_place_in_the_file() {
        let chunk = Chunk {
            bytes: Vec::new(),
            numbers: vec![11, 13, 14],
            refused: vec![(12, "too long".to_owned())],
        };
        let answer = json!({
            "accepted": 1, "refused": 2, "duplicate": true, "firstEventAt": "2026-01-02T00:00:00.000Z",
            "lastEventAt": "2026-01-03T00:00:00.000Z",
            "refusals": [{ "line": 2, "path": "/at", "message": "is in the future" }],
        });
        let mut total = Total::default();
        assert_eq!(
            total.add(&chunk, &answer),
            [
                "line 12: too long",
                "line 13: /at: is in the future",
                "lines 11 to 14: 1 more refused"
            ]
        );
        total.add(
            &chunk,
            &json!({ "accepted": 3, "refused": 0, "firstEventAt": "2026-01-01T00:00:00.000Z",
            "lastEventAt": "2026-01-01T00:00:00.000Z" }),
        );
        assert_eq!(
            total.json("s"),
            json!({ "source": "s", "lines": 8, "accepted": 4, "refused": 4, "chunks": 2, "duplicateChunks": 1,
                "firstEventAt": "2026-01-01T00:00:00.000Z", "lastEventAt": "2026-01-03T00:00:00.000Z" })
        );
    }

    #[test]
    fn the_source_is_the_files_name_unless_it_is_said() {
        let said = |words: &[&str]| {
            let matches = matches(words);
            let path = matches.get_one::<PathBuf>("file").cloned().unwrap();
            source(&matches, &path).ok()
        };
        assert_eq!(said(&["/tmp/calls.jsonl"]).as_deref(), Some("calls"));
        assert_eq!(said(&["-", "--source", "gateway"]).as_deref(), Some("gateway"));
        assert_eq!(said(&["-"]), None);
    }

    #[test]
    fn times_are_for_calls_that_have_none() {
        let is_usage = |words: &[&str], path: &str| {
            convert(&matches(words), Path::new(path))
                .err()
                .is_some_and(|failure| failure.exit == Exit::Usage)
        };
        assert!(is_usage(&["f", "--spread", "5d"], "f"));
        assert!(is_usage(&["f", "--format", "tool-calls"], "f"));
        assert!(is_usage(&["-", "--format", "tool-calls", "--spread", "5d"], "-"));
        assert!(!is_usage(
            &["-", "--format", "tool-calls", "--at", "2026-01-01T00:00:00Z"],
            "-"
        ));
        let both = ["import", "f", "--spread", "5d", "--at", "2026-01-01T00:00:00Z"];
        assert!(command().try_get_matches_from(both).is_err());
    }

    #[test]
    fn progress_says_lines_bytes_and_the_time_left() {
        let total = Total {
            lines: 5_000,
            ..Total::default()
        };
        let after = Duration::from_secs(2);
        assert_eq!(
            how_far(&total, 3_000_000, Some(12_000_000), after),
            "5000 lines, 2500/s, 1.5 MB/s, 25 %, 0:06 left"
        );
        assert_eq!(
            how_far(&total, 3_000_000, None, after),
            "5000 lines, 2500/s, 1.5 MB/s"
        );
    }
}
