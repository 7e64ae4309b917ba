//! Where a run goes: into files, to standard output, or as a table before a person.

use super::markdown::markdown;
use super::page::page;
use super::view::RunView;
use super::{table, tried};
use crate::cli::{Exit, Failure, Form, Printer, Terminal, replace_file};
use clap::{Arg, ArgMatches, ValueHint, value_parser};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What was asked for.
pub struct Answer<'a> {
    html: Option<PathBuf>,
    json: Option<PathBuf>,
    /// What the files say about the policies that were tried.
    tried: Option<Value>,
    form: Form,
    /// Whether a comment is wanted instead of a table.
    is_comment: bool,
    /// Whether the run is printed too.
    is_printed: bool,
    terminal: &'a Terminal,
    quiet: bool,
}

/// Returns the flags.
pub fn output_args() -> Vec<Arg> {
    let file = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("FILE|-")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    vec![
        file("html", "Writes the page into this file; - for standard output"),
        file(
            "json",
            "Writes the run into this file, with the policies that were tried; - for standard output",
        ),
        Arg::new("format")
            .long("format")
            .value_name("WORD")
            .value_parser(["md"])
            .help("md: prints Markdown for a comment on a change, without people and samples; waits for the end"),
    ]
}

impl<'a> Answer<'a> {
    /// Reads the flags of [`output_args`] and `--output`.
    ///
    /// Errors: usage, when two answers would share standard output.
    pub fn of(matches: &ArgMatches, terminal: &'a Terminal) -> Result<Self, Failure> {
        let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        let answer = Self {
            html: path("html"),
            json: path("json"),
            tried: None,
            form: Form::chosen(matches, terminal),
            is_comment: matches.contains_id("format"),
            is_printed: true,
            terminal,
            quiet: matches.get_flag("global.quiet"),
        };
        let is_output = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        if is_output(&answer.html) && is_output(&answer.json) {
            return Err(Failure::usage(
                "--html and --json cannot both go to standard output",
            ));
        }
        Ok(answer)
    }

    /// Leaves out printing where a file was asked for.
    #[must_use]
    pub fn files_or_print(self) -> Self {
        Self {
            is_printed: self.is_comment || !self.has_files(),
            ..self
        }
    }

    /// Has the files say what was tried.
    #[must_use]
    pub fn about(self, tried: Option<Value>) -> Self {
        Self { tried, ..self }
    }

    /// Writes the files that were asked for, then prints.
    ///
    /// Errors: usage when it is no run; output when a file cannot be written.
    pub fn give(&self, run: &Value) -> Result<(), Failure> {
        self.write(run)?;
        if self.is_printed { self.print(run) } else { Ok(()) }
    }

    /// Returns whether a page or a file is wanted, which needs the end of the run.
    pub fn has_files(&self) -> bool {
        self.html.is_some() || self.json.is_some() || self.is_comment
    }

    /// Writes the files that were asked for.
    fn write(&self, run: &Value) -> Result<(), Failure> {
        let run = &tried::with(run, self.tried.as_ref());
        if let Some(path) = &self.html {
            self.put(path, page(&RunView::read(run)?).as_bytes())?;
        }
        if let Some(path) = &self.json {
            self.put(path, format!("{run:#}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Prints the run: a table on a terminal, else JSON, unless a file has taken standard output.
    pub fn print(&self, run: &Value) -> Result<(), Failure> {
        let is_taken = [&self.html, &self.json]
            .into_iter()
            .flatten()
            .any(|path| path == Path::new("-"));
        if is_taken {
            return Ok(());
        }
        if self.is_comment {
            let text = markdown(&RunView::read(run)?);
            return Ok(self.terminal.print(self.terminal.shown(&text).as_bytes())?);
        }
        if self.form == Form::Table {
            let text = table::table(&RunView::read(run)?, self.terminal.width);
            return Ok(self.terminal.print(self.terminal.shown(&text).as_bytes())?);
        }
        let printer = Printer {
            form: self.form,
            terminal: self.terminal,
            quiet: self.quiet,
        };
        Ok(printer.object(run)?)
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        if path == Path::new("-") {
            return Ok(self.terminal.print(bytes)?);
        }
        // Who may see the run is decided by whoever has it; the file starts out private.
        let written = replace_file(path, bytes, 0o600);
        written.map_err(|error| {
            Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()))
        })?;
        if !self.quiet {
            self.terminal.note(&format!("wrote {}", path.display()));
        }
        Ok(())
    }
}
