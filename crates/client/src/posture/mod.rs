//! `provost report posture`: how an organization stands, as one page, from what the caller may read.
//!
//! ```text
//! history · policies · users · service accounts · sessions · profiles and machines ──► Posture ──► page
//! ```
//!
//! What the caller may not read is said on the page, at its place: a part that is missing must not look like one that is empty.

mod gather;
mod page;
mod view;

use crate::cli::{Client, Exit, Failure, HandCommand, Terminal, connection_args, replace_file};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use gather::Span;
use std::path::{Path, PathBuf};

const GROUP: &str = "report";

/// Returns the commands.
pub(crate) fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: GROUP,
        verb: "posture",
        command,
        examples: &[
            "provost report posture --html posture.html",
            "provost report posture --html - --days 7 > week.html",
        ],
        run: |matches, terminal| Box::pin(run(matches, terminal)),
    }]
}

fn command() -> Command {
    Command::new("posture")
        .about("Writes how the organization stands as a page: decisions, policies, accounts, sessions, machines")
        .long_about(
            "Writes how the organization stands as a page: decisions by day and action, the tools and people behind them, policies \
             that decided nothing, accounts and tokens that end soon, sessions, and machines whose configuration is not the \
             published one. One file without scripts that asks for nothing.\n\n\
             It reads what the token may read, and says on the page what that leaves out. A whole page takes the scopes \
             policies:history, policies:read, directory:read, service_accounts:read, mcp:read and managed_config:read of an admin.",
        )
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE|-")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("Writes the page into this file; - for standard output"),
        )
        .arg(
            Arg::new("days")
                .long("days")
                .value_name("N")
                .default_value("30")
                .value_parser(value_parser!(u16).range(1..=400))
                .help("Looks at the decisions of this many days, today among them"),
        )
        .arg(
            Arg::new("max-events")
                .long("max-events")
                .value_name("N")
                .default_value("20000")
                .value_parser(value_parser!(u64).range(1..=1_000_000))
                .help("Reads at most so many events, the newest first, 100 a request; the page says where it stopped"),
        )
        .args(connection_args())
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let span = Span {
        days: matches.get_one::<u16>("days").copied().unwrap_or(30),
        max_events: matches.get_one::<u64>("max-events").copied().unwrap_or(20_000),
    };
    let client = Client::connect(matches, terminal)?;
    let posture = gather::posture(&client, terminal.clock.now(), span).await?;
    let page = page::page(&posture);
    let path = matches.get_one::<PathBuf>("html").cloned().unwrap_or_default();
    if path == Path::new("-") {
        return Ok(terminal.print(page.as_bytes())?);
    }
    // Who may see it is decided by whoever has it; the file starts out private.
    replace_file(&path, page.as_bytes(), 0o600)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))?;
    client.note(&format!("wrote {}", path.display()));
    Ok(())
}
