//! The commands that talk to a server, built from the committed description of the API.

use crate::cli::{self, Api, Own, Terminal};
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

/// Returns the client commands that are written by hand.
fn own() -> Vec<Own> {
    let mut own: Vec<Own> = super::managed_config::own().into();
    own.extend(super::backtests::own());
    own.extend(super::directory::own());
    own.extend(super::history::own());
    own.extend(super::resource_credentials::own());
    own.extend(super::skills::own());
    own
}

/// Adds the client's groups; a group that has commands of the program itself keeps them.
pub fn add_to(root: Command) -> Command {
    let generated = cli::commands(&api()).into_iter().fold(root, |root, group| {
        let name = group.get_name().to_owned();
        let own = root.find_subcommand(&name).cloned();
        match own {
            None => root.subcommand(group),
            Some(own) => {
                let merged = own.get_subcommands().cloned().fold(group, Command::subcommand);
                root.mut_subcommand(name, |_| merged)
            }
        }
    });
    let generated = super::mcp::add_to(generated);
    own().into_iter().fold(generated, |root, own| {
        let examples = own.examples.join("\n  ");
        let verb = (own.command)().after_long_help(format!("Examples:\n  {examples}\n\n{}", cli::EXIT_CODES));
        let root = match root.find_subcommand(own.group) {
            Some(_) => root,
            None => root.subcommand(super::group(own.group, "")),
        };
        root.mut_subcommand(own.group, |group| {
            let group = match group.find_subcommand(verb.get_name()) {
                Some(_) => group.mut_subcommand((own.command)().get_name(), |_| verb),
                None => group.subcommand(verb),
            };
            let verbs: Vec<&str> = group.get_subcommands().map(Command::get_name).collect();
            let about = format!("Server: {}", verbs.join(", "));
            group.about(about)
        })
    })
}

/// Runs a client command; `None` when the words name a command of the program itself.
pub fn run(matches: &ArgMatches) -> Option<ExitCode> {
    if is_of_the_program(matches)? {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let code = runtime.block_on(ask(matches, &Terminal::system()));
    // A thread may still wait for standard input, which nobody needs any more.
    runtime.shutdown_background();
    Some(ExitCode::from(code))
}

fn is_of_the_program(matches: &ArgMatches) -> Option<bool> {
    let (group, below) = matches.subcommand()?;
    let verb = below.subcommand_name()?;
    let group = super::own_command().find_subcommand(group).cloned();
    Some(group.is_some_and(|group| group.find_subcommand(verb).is_some()))
}

/// Runs a client command with this terminal and returns the exit code; `matches` are those of
/// [`super::command`].
pub async fn ask(matches: &ArgMatches, terminal: &Terminal) -> u8 {
    let Some((group, below)) = matches.subcommand() else {
        return cli::Exit::Usage as u8;
    };
    if let Some((verb, matches)) = below.subcommand() {
        let is_it = |own: &Own| own.group == group && (own.command)().get_name() == verb;
        if let Some(own) = own().into_iter().find(is_it) {
            return cli::report((own.run)(matches, terminal).await, terminal);
        }
    }
    cli::run(&api(), group, below, terminal).await
}
