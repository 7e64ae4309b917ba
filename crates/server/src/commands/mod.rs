//! The commands of the binary. Those that talk to a server are derived from the API and plugged in here.
//!
//! Exit codes: 0 done, 1 failed, 2 called wrongly.

mod failure;
mod init;
mod lock;
mod logging;
mod metrics;
mod serve;
mod store_flags;

pub use failure::{Failure, Outcome};

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 called wrongly.
Every flag of the server is also a key of its configuration file and a PROVOST_… variable; see `provost config`.";

/// Runs the program.
pub fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Standard output or error may be closed; the exit code says it all then.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Returns the whole command line. Subcommands made elsewhere are added here.
pub fn command() -> Command {
    Command::new("provost")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A self-hosted control plane for an organization's use of AI")
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::Serve::command())
        .subcommand(init::Init::command())
}

fn run(matches: &ArgMatches) -> Outcome {
    let mut path = Vec::new();
    let mut inner = matches;
    while let Some((name, below)) = inner.subcommand() {
        path.push(name);
        inner = below;
    }
    match path.as_slice() {
        ["serve"] => read::<serve::Serve>(inner)?.run(),
        ["init"] => read::<init::Init>(inner)?.run(),
        _ => Err(Failure::usage(format!(
            "there is no command {:?}",
            path.join(" ")
        ))),
    }
}

fn read<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, Failure> {
    T::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))
}
