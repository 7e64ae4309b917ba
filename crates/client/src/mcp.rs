//! `provost mcp`: the MCP endpoint of a server for clients that start a program and talk to it by lines.

use crate::cli::{self, Terminal};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Returns the command.
pub fn command() -> Command {
    Command::new("mcp")
        .about("MCP on standard input and output")
        .args([
            Arg::new("toolsets")
                .long("toolsets")
                .value_name("LIST")
                .help("Lists the tools of these toolsets, with commas between; all for every tool [else the common ones]"),
            Arg::new("readonly")
                .long("readonly")
                .action(ArgAction::SetTrue)
                .help("Lists no tool that changes something"),
        ])
        .args(cli::connection_args())
        .after_long_help(
            "Messages of the Model Context Protocol are relayed between standard input and output and the endpoint /mcp of a \
             server, with the token of the profile.\n\nExamples:\n  provost mcp --profile work\n  \
             claude mcp add provost -- provost mcp --profile work --toolsets default,policies",
        )
}

/// Runs it; `read_elsewhere` returns the names of the variables that the rest of the program reads.
///
/// Errors: sentences about why nothing can be relayed.
pub fn run(matches: &ArgMatches, read_elsewhere: fn() -> Vec<String>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime could be started: {error}"))?;
    let mut terminal = Terminal::system();
    terminal.surroundings.read_elsewhere = Some(read_elsewhere);
    let outcome = runtime.block_on(cli::relay(matches, &terminal));
    // A thread may still wait for standard input.
    runtime.shutdown_background();
    outcome.map_err(|failure| failure.lines.join("\n"))
}
