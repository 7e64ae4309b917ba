//! The commands that talk to a server, built from the committed description of the API.

use crate::cli::{self, Api, Terminal};
use clap::{ArgMatches, Command};
use std::process::ExitCode;

const DOCUMENT: &str = include_str!("../../../../openapi/headless-v1.json");

fn api() -> Api {
    let document = serde_json::from_str(DOCUMENT).map_err(|error| error.to_string());
    #[expect(
        clippy::expect_used,
        reason = "the document is compiled in, and a test compares it with the registry"
    )]
    document
        .and_then(|document| Api::parse(&document))
        .expect("the compiled-in OpenAPI document is readable")
}

/// Adds the client's groups; a group that has commands of the program itself keeps them.
pub fn add_to(root: Command) -> Command {
    cli::commands(&api()).into_iter().fold(root, |root, group| {
        let name = group.get_name().to_owned();
        let own = root.find_subcommand(&name).cloned();
        match own {
            None => root.subcommand(group),
            Some(own) => {
                let merged = own.get_subcommands().cloned().fold(group, Command::subcommand);
                root.mut_subcommand(name, |_| merged)
            }
        }
    })
}

/// Runs a client command; `None` when the words name a command of the program itself.
pub fn run(matches: &ArgMatches) -> Option<ExitCode> {
    let (group, below) = matches.subcommand()?;
    let verb = below.subcommand_name()?;
    let is_ours = super::own_command()
        .find_subcommand(group)
        .is_some_and(|g| g.find_subcommand(verb).is_some());
    if is_ours {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    Some(ExitCode::from(runtime.block_on(cli::run(
        &api(),
        group,
        below,
        &Terminal::system(),
    ))))
}
