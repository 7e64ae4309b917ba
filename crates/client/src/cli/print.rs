//! Answers on standard output: tables for people, JSON for programs.

use super::cell::Times;
use super::column::{self, Column};
use super::failure::{Exit, Failure};
use super::layout::wrapped;
use super::server::Reply;
use super::table::{self, View};
use super::terminal::Terminal;
use super::yaml;
use clap::ArgMatches;
use serde_json::Value;
use std::{fmt, io};

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people, as far as the terminal has room.
    Table,
    /// For people, with every column.
    Wide,
    /// For spreadsheets.
    Csv,
    /// The answer as YAML.
    Yaml,
    /// The answer as it is.
    Json,
    /// One item a line.
    JsonLines,
}

impl Form {
    /// Returns the form that was asked for: a table on a terminal or when columns are named, JSON elsewhere.
    pub fn chosen(matches: &ArgMatches, terminal: &Terminal) -> Self {
        if terminal.jq.get().is_some() {
            return Self::Json;
        }
        match matches.get_one::<String>("global.output").map(String::as_str) {
            Some("table") => Self::Table,
            Some("wide") => Self::Wide,
            Some("csv") => Self::Csv,
            Some("yaml") => Self::Yaml,
            Some("jsonl") => Self::JsonLines,
            None if terminal.stdout_is_terminal || column::are_named(matches) => Self::Table,
            _ => Self::Json,
        }
    }

    /// Says whether every member of the answer is printed, whatever columns there are.
    pub(super) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::JsonLines | Self::Yaml)
    }
}

/// Prints answers in one form.
pub struct Printer<'a> {
    /// The form.
    pub form: Form,
    /// Where to.
    pub terminal: &'a Terminal,
    /// Leaves out notes.
    pub quiet: bool,
}

impl Printer<'_> {
    /// Prints one object.
    pub fn object(&self, object: &Value) -> io::Result<()> {
        match self.form {
            Form::Table | Form::Wide | Form::Csv => self.text(&table::object(object, self.terminal.width)),
            Form::Json => self.json(object),
            Form::Yaml => self.text(&yaml::text(object)),
            Form::JsonLines => self.lines(std::slice::from_ref(object)),
        }
    }

    /// Prints a page; `member` holds its items.
    pub fn list(&self, page: &Value, member: &str, columns: &[Column]) -> io::Result<()> {
        let items = page
            .get(member)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        match self.form {
            Form::Json => self.json(page),
            Form::Yaml => self.text(&yaml::text(page)),
            Form::JsonLines => self.lines(items),
            Form::Csv => {
                let csv = table::csv(items, columns, Times::Exact(self.terminal.clock.now()));
                self.text(&String::from_utf8_lossy(&csv))
            }
            Form::Table | Form::Wide if items.is_empty() => {
                if !self.quiet {
                    self.terminal.note("none");
                }
                Ok(())
            }
            Form::Table | Form::Wide => {
                let now = self.terminal.clock.now();
                let view = View {
                    times: if self.terminal.stdout_is_terminal {
                        Times::Relative(now)
                    } else {
                        Times::Exact(now)
                    },
                    colours: self.terminal.colours,
                    width: self.terminal.width,
                    whole: self.form == Form::Wide,
                };
                let (text, left_out) = table::list(items, columns, &view);
                // The cells cannot steer a terminal; what colours them must.
                self.terminal.print(text.as_bytes())?;
                if !left_out.is_empty() && !self.quiet {
                    let line = format!("not shown: {} (--output wide)", left_out.join(", "));
                    let width = self.terminal.width.map_or(usize::MAX, usize::from);
                    for line in wrapped(&line, width) {
                        self.terminal.note(&line);
                    }
                }
                Ok(())
            }
        }
    }

    /// Prints an answer as it is, or what the program of `--jq` makes of it. Where that cannot be, the answer is printed whole: it may
    /// hold what is told once.
    fn json(&self, answer: &Value) -> io::Result<()> {
        let whole = || format!("{answer:#}\n");
        let Some(filter) = self.terminal.jq.get() else {
            return self.text(&whole());
        };
        match filter.apply(answer) {
            Ok(text) => self.text(&text),
            Err(why) => {
                self.text(&whole())?;
                let line = format!("--jq: {why}; the answer is printed whole");
                Err(io::Error::new(io::ErrorKind::InvalidInput, Unfiltered(line)))
            }
        }
    }

    /// Prints each item on a line of its own.
    pub fn lines(&self, items: &[Value]) -> io::Result<()> {
        let mut text = String::new();
        for item in items {
            text.push_str(&item.to_string());
            text.push('\n');
        }
        self.text(&text)
    }

    fn text(&self, text: &str) -> io::Result<()> {
        self.terminal.print(self.terminal.shown(text).as_bytes())
    }
}

/// An answer that a program of jq could do nothing with.
#[derive(Debug)]
pub(super) struct Unfiltered(pub String);

impl fmt::Display for Unfiltered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for Unfiltered {}

/// Returns the JSON of an answer; `null` when it has no body.
pub(super) fn parsed(reply: &Reply) -> Result<Value, Failure> {
    if reply.body.is_empty() {
        return Ok(Value::Null);
    }
    let wrong = |_| {
        Failure::new(
            Exit::ServerFault,
            "the answer is not JSON; is this a Provost server?",
        )
    };
    serde_json::from_slice(&reply.body).map_err(wrong)
}
