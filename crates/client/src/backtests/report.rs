//! `provost backtests report RUN`: a finished or running backtest as a page, as JSON or as a table.

use super::answer::{Answer, output_args};
use super::{saved, tried, wait};
use crate::cli::{Client, Failure, Terminal, connection_args};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use std::path::PathBuf;

/// Returns the command.
pub fn command() -> Command {
    Command::new("report")
        .about("Writes a backtest as a page for people who decide")
        .long_about(format!(
            "Writes a backtest as a page for people who decide: one file without scripts that asks for nothing.\n\n\
             Without --html and --json it prints a table. --from reads a run that --json saved, without a server.\n\n\
             Needs the scope policies:read. --html and --json also show the policies that were tried, to admins and auditors \
             with the scope audit:read; each of these looks is an entry of the audit log.\n\n{}",
            wait::EXIT_CODES
        ))
        .arg(
            Arg::new("run")
                .value_name("RUN")
                .required_unless_present("from")
                .conflicts_with("from")
                .help("The id of the backtest (btr_…)"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("FILE|-")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Reads a saved run instead of asking a server"),
        )
        .args(wait::args())
        .args(output_args())
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let mut answer = Answer::of(matches, terminal)?.files_or_print();
    let gates = wait::gates(matches);
    let run = if let Some(path) = matches.get_one::<PathBuf>("from") {
        saved::json(path, terminal)?
    } else {
        let client = Client::connect(matches, terminal)?;
        let id = matches.get_one::<String>("run").cloned().unwrap_or_default();
        let run = if wait::is_wanted(matches) {
            wait::until_the_end(&client, &id).await?
        } else {
            client.get_json(&["policies", "backtests", &id], &[]).await?
        };
        if answer.has_files() {
            answer = answer.about(Some(tried::of_run(&client, &run).await?));
        }
        run
    };
    if gates.is_empty() && !matches.get_flag("wait") {
        return answer.give(&run);
    }
    wait::conclude(&run, &answer, &gates)
}
