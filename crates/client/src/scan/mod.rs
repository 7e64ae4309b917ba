//! `provost scan`: what AI clients have configured on this machine, read from their files. No server takes part.
//!
//! ```text
//! files of a home and of the machine ──► crate inventory ──► report ──► as it is: -o json, --explain
//!                                                              └──────► rows of a table
//! ```
//!
//! The rows are made of the report and of nothing else, so that nothing is shown that a server would not get.

mod foreign;
mod rows;

use crate::cli::{Column, Exit, Failure, Form, HandCommand, Printer, Terminal, list_output_arg};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use provost_inventory::{InventoryKey, Machine, Platform, scan};
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "scan";
/// LIMIT: the time of a scan. Ours.
const MOST: Duration = Duration::from_secs(20);

/// Returns the command of one word.
pub(crate) fn own() -> HandCommand {
    HandCommand {
        group: NAME,
        verb: "",
        command,
        examples: &[
            "provost scan",
            "provost scan --output wide",
            "provost scan --explain | less",
            "sudo provost scan --home /home/ada -o json > ada.json",
            "snyk-agent-scan inspect --json | provost scan --foreign - | provost inventory import --body - --reason 'pilot'",
        ],
        run: |matches, terminal| Box::pin(std::future::ready(run(matches, terminal))),
    }
}

fn command() -> Command {
    Command::new(NAME)
        .about("Shows what AI clients have configured on this machine; sends nothing")
        .long_about(
            "Shows what AI clients have configured in one home and for the whole machine: MCP servers, skills, extensions, hooks, \
             settings that decide what a client may do, and in which files credentials lie. It needs no server and no token, \
             starts no program, opens no connection and sends nothing.\n\n\
             What is found has names, kinds and fingerprints, and never the value of a variable, a header, an argument or a \
             credential. Fingerprints are made under a key that is drawn anew for each run and then forgotten: equal ones mean \
             equal things within one run, and nothing between two.\n\n\
             A key is weak where it does not say wholly what runs. What could not be read is a row of the kind fault, and no \
             failure. After 20 seconds a scan stops, and what is left is such a fault.",
        )
        .arg(
            Arg::new("home")
                .long("home")
                .value_name("DIR")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf))
                .help("Scans this home [default: your own, $HOME]"),
        )
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Prints the report as a server would get it, byte for byte, as -o json does"),
        )
        .arg(
            Arg::new("foreign")
                .long("foreign")
                .value_name("FILE|-")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["home", "explain"])
                .help("Reads a report of snyk-agent-scan inspect --json instead, and prints its servers for provost inventory import"),
        )
        .arg(list_output_arg().help_heading("Output"))
}

fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    if let Some(file) = matches.get_one::<PathBuf>("foreign") {
        return foreign::run(file, terminal);
    }
    let form = form(matches, terminal)?;
    let home = home(matches, terminal)?;
    let cannot =
        |error: std::io::Error| Failure::usage(format!("cannot read the home {}: {error}", home.display()));
    let clock = SystemClock::new();
    let begin = clock.monotonic();
    let machine = Machine {
        root: Path::new("/"),
        home: &home,
        platform: Platform::HERE,
        stop: &|| clock.monotonic().saturating_sub(begin) >= MOST,
    };
    let found = scan(&machine, &InventoryKey::new(&SystemEntropy.seed())).map_err(cannot)?;
    // In a file, and in a folder that may not be listed, a scan finds nothing and says so. Asked last, because the scan looks first
    // whether the home lies on another machine.
    std::fs::read_dir(&home).map_err(cannot)?;
    let unwritten = |error: serde_json::Error| {
        Failure::new(Exit::Output, format!("the report cannot be written: {error}"))
    };
    let text = found.report().map_err(unwritten)?;
    let report: Value = serde_json::from_str(&text).map_err(unwritten)?;
    print(form, &text, &report, terminal)?;
    terminal.note("nothing was sent; without a server the standing of what was found is unknown");
    match rows::faults(&report) {
        0 => {}
        1 => terminal.note("warning: one place could not be read (see fault)"),
        several => terminal.note(&format!(
            "warning: {several} places could not be read (see fault)"
        )),
    }
    Ok(())
}

fn print(form: Form, text: &str, report: &Value, terminal: &Terminal) -> std::io::Result<()> {
    let printer = Printer {
        form,
        terminal,
        quiet: false,
    };
    match form {
        Form::Json => terminal.print(terminal.shown(text).as_bytes()),
        Form::Yaml | Form::JsonLines => printer.list(report, "sections", &[]),
        Form::Table | Form::Wide | Form::Csv => {
            let columns = rows::COLUMNS.map(Column::declared);
            printer.list(&json!({ "rows": rows::of(report) }), "rows", &columns)
        }
    }
}

/// Errors: usage, when the report is wanted in a form that a server would not get.
fn form(matches: &ArgMatches, terminal: &Terminal) -> Result<Form, Failure> {
    if !matches.get_flag("explain") {
        return Ok(Form::chosen(matches, terminal));
    }
    match matches.get_one::<String>("global.output").map(String::as_str) {
        None | Some("json") => Ok(Form::Json),
        Some(_) => Err(Failure::usage(
            "--explain prints JSON, which is what a server would get; leave --output away",
        )),
    }
}

/// Errors: usage, when nobody said which home.
fn home(matches: &ArgMatches, terminal: &Terminal) -> Result<PathBuf, Failure> {
    let own = || terminal.surroundings.home.clone();
    let home = matches.get_one::<PathBuf>("home").cloned().or_else(own);
    home.filter(|home| !home.as_os_str().is_empty())
        .ok_or_else(|| Failure::usage("HOME is not set").and("say which home is meant: --home DIR"))
}
