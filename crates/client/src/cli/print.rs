//! Answers on standard output: tables for people, JSON for programs.

use super::failure::{Exit, Failure};
use super::server::Reply;
use super::table;
use super::terminal::Terminal;
use clap::ArgMatches;
use serde_json::Value;
use std::io;

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// The answer as it is.
    Json,
    /// One item a line.
    JsonLines,
}

impl Form {
    /// Returns the form that was asked for: a table on a terminal, JSON elsewhere.
    pub fn chosen(matches: &ArgMatches, terminal: &Terminal) -> Self {
        match matches.get_one::<String>("global.output").map(String::as_str) {
            Some("table") => Self::Table,
            Some("jsonl") => Self::JsonLines,
            None if terminal.stdout_is_terminal => Self::Table,
            _ => Self::Json,
        }
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
            Form::Table => self.text(&table::object(object, self.terminal.width)),
            Form::Json => self.text(&format!("{object:#}\n")),
            Form::JsonLines => self.lines(std::slice::from_ref(object)),
        }
    }

    /// Prints a page; `member` holds its items.
    pub fn list(&self, page: &Value, member: &str) -> io::Result<()> {
        let items = page
            .get(member)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        match self.form {
            Form::Json => self.text(&format!("{page:#}\n")),
            Form::JsonLines => self.lines(items),
            Form::Table if items.is_empty() => {
                if !self.quiet {
                    self.terminal.note("none");
                }
                Ok(())
            }
            Form::Table => {
                let (text, left_out) = table::list(items, self.terminal.width);
                self.text(&text)?;
                if !left_out.is_empty() && !self.quiet {
                    self.terminal
                        .note(&format!("not shown: {} (--output json)", left_out.join(", ")));
                }
                Ok(())
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
