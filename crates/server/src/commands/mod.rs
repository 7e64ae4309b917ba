//! The commands of the binary. Those that talk to a server are derived from the API and plugged in here.
//!
//! Exit codes: 0 done, 1 failed, 2 called wrongly; client commands have more (`provost service-accounts --help`).

mod ages;
mod audit;
mod completions;
mod config;
mod demo;
mod failure;
mod figures;
mod history;
mod init;
mod keys;
mod lock;
mod logging;
mod metrics;
mod openapi;
mod recover;
mod serve;
mod show;
pub mod store;
mod store_flags;

pub use failure::{Failure, Outcome};

use crate::areas;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use provost_areas_policy::modules;
use provost_kernel::db::Statement;
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 called wrongly; commands that talk to a server have more, see their --help.
Every flag of the server is also a key of its configuration file and a PROVOST_… variable; see `provost config`.";

/// Runs the program.
pub fn main() -> ExitCode {
    // Before anything else: a worker for modules reads no words, no environment and no files.
    let word = std::env::args_os().nth(1);
    if let Some(code) = word.and_then(|word| modules::run_if_asked(&word)) {
        return code;
    }
    if let Some(code) = provost_client::complete::complete_if_asked(std::env::args_os().skip(1), command) {
        return code;
    }
    // As early: the command line takes longer to make than a hook takes to answer.
    if let Some(code) = provost_client::hook::run_if_asked(std::env::args_os()) {
        return code;
    }
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Standard output or error may be closed; the exit code says it all then.
            let _ = provost_client::print_refusal(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Some(code) = provost_client::run(&matches, variables) {
        return code;
    }
    let code = match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    };
    logging::flush();
    code
}

/// Returns the names of the variables that the server reads.
fn variables() -> Vec<String> {
    crate::config::Environment::names()
}

/// Returns the whole command line: the program's own commands and those of the API's client.
pub fn command() -> Command {
    provost_client::arranged(provost_client::add_to(own_command()))
}

fn own_command() -> Command {
    Command::new("provost")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A self-hosted control plane for an organization's use of AI")
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::Serve::command())
        .subcommand(demo::Demo::command())
        .subcommand(init::Init::command())
        .subcommand(recover::Recover::command())
        .subcommand(
            group("keys", "Look after the keys of an installation")
                .subcommand(keys::List::command())
                .subcommand(keys::Export::command())
                .subcommand(keys::Import::command())
                .subcommand(keys::Rotate::command())
                .subcommand(keys::Activate::command()),
        )
        .subcommand(
            group("store", "Look after the store")
                .subcommand(store::Check::command())
                .subcommand(store::Accept::command())
                .subcommand(store::Backup::command())
                .subcommand(store::Restore::command())
                .subcommand(store::Move::command()),
        )
        .subcommand(group("audit", "Read and verify the audit log").subcommand(audit::Verify::command()))
        .subcommand(group("history", "Look after recorded history").subcommand(history::Adopt::command()))
        .subcommand(
            group("config", "Look at the configuration")
                .subcommand(config::Check::command())
                .subcommand(config::Schema::command()),
        )
        .subcommand(openapi::OpenApi::command())
        .subcommand(completions::Completions::command())
}

/// Returns every statement of the commands, for the test that prepares them on both engines.
pub fn statements() -> Vec<&'static [&'static Statement]> {
    let mut all = store::statements();
    all.push(audit::STATEMENTS);
    all
}

fn group(name: &'static str, about: &'static str) -> Command {
    Command::new(name)
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

fn run(matches: &ArgMatches) -> Outcome {
    areas::ALL.install_scopes()?;
    let mut path = Vec::new();
    let mut inner = matches;
    while let Some((name, below)) = inner.subcommand() {
        path.push(name);
        inner = below;
    }
    match path.as_slice() {
        ["serve"] => read::<serve::Serve>(inner)?.run(),
        ["demo"] => read::<demo::Demo>(inner)?.run(),
        ["init"] => read::<init::Init>(inner)?.run(),
        ["mcp"] => provost_client::mcp::run(inner, variables).map_err(Failure::new),
        ["recover"] => read::<recover::Recover>(inner)?.run(),
        ["keys", "list"] => read::<keys::List>(inner)?.run(),
        ["keys", "export"] => read::<keys::Export>(inner)?.run(),
        ["keys", "import"] => read::<keys::Import>(inner)?.run(),
        ["keys", "rotate"] => read::<keys::Rotate>(inner)?.run(),
        ["keys", "activate"] => read::<keys::Activate>(inner)?.run(),
        ["store", "check"] => read::<store::Check>(inner)?.run(),
        ["store", "accept"] => read::<store::Accept>(inner)?.run(),
        ["store", "backup"] => read::<store::Backup>(inner)?.run(),
        ["store", "restore"] => read::<store::Restore>(inner)?.run(),
        ["store", "move"] => read::<store::Move>(inner)?.run(),
        ["audit", "verify"] => read::<audit::Verify>(inner)?.run(),
        ["history", "adopt"] => read::<history::Adopt>(inner)?.run(),
        ["config", "check"] => read::<config::Check>(inner)?.run(),
        ["config", "schema"] => config::Schema::run(),
        ["openapi"] => read::<openapi::OpenApi>(inner)?.run(),
        ["completions"] => read::<completions::Completions>(inner)?.run(),
        _ => Err(Failure::usage(format!(
            "there is no command {:?}",
            path.join(" ")
        ))),
    }
}

fn read<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, Failure> {
    T::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))
}
