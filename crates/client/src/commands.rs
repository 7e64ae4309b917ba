//! The commands that talk to a server: those of the API, and those that are written by hand.

use crate::cli::{self, HandCommand, Terminal, catalogue};
use clap::{ArgMatches, Command};
use provost_words::withheld::without_secrets;
use std::io::Write;
use std::process::ExitCode;

/// Where the verbs of the program itself stand in a group that the API has too: behind the others.
const LAST: usize = 999;

/// Returns the client's part of the command line, for who has no other.
pub fn command() -> Command {
    add_to(Command::new("provost").subcommand_required(true))
}

/// Prints why a command line is none, or the help that it asks for; of what was typed no token and no password of an address.
///
/// Errors: those of standard output or error.
pub fn print_refusal(error: &clap::Error) -> std::io::Result<()> {
    let said = error.render().to_string();
    match without_secrets(&said) {
        shown if shown != said && error.use_stderr() => std::io::stderr().write_all(shown.as_bytes()),
        _ => error.print(),
    }
}

/// Runs the program of the machines of people: what is here, and no server (ADR 0114).
pub fn main() -> ExitCode {
    if let Some(code) = crate::complete::complete_if_asked(std::env::args_os().skip(1), program) {
        return code;
    }
    // Before the rest: the command line takes longer to make than a hook takes to answer.
    if let Some(code) = crate::hook::run_if_asked(std::env::args_os()) {
        return code;
    }
    let matches = match program().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Standard output or error may be closed; the exit code says it all then.
            let _ = print_refusal(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Some(code) = run(&matches, Vec::new) {
        return code;
    }
    // Of what is no client's command the relay alone is left.
    let Some((_, inner)) = matches.subcommand() else {
        return ExitCode::from(2);
    };
    match crate::mcp::run(inner, Vec::new) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            Terminal::system().note(&format!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

fn program() -> Command {
    crate::arranged(command())
        .version(env!("CARGO_PKG_VERSION"))
        .about("Provost on the machines of people: the agent, hooks, and commands that talk to a server; without the server")
        .arg_required_else_help(true)
}

/// Returns the client commands that are written by hand.
fn own() -> Vec<HandCommand> {
    let mut own: Vec<HandCommand> = crate::managed_config::own().into();
    own.extend(cli::access_commands());
    own.extend(crate::agent::own());
    own.extend(crate::approvals::own());
    own.extend(crate::backtests::own());
    own.extend(crate::directory::own());
    own.extend(crate::events::own());
    own.push(crate::export::own());
    own.extend(crate::history::own());
    own.extend(crate::hook::own());
    own.extend(crate::policies::own());
    own.extend(crate::posture::own());
    own.extend(crate::resource_credentials::own());
    own.push(crate::scan::own());
    own.extend(crate::skills::own());
    own
}

/// Adds the client's groups; a group that has commands of the program itself keeps them.
///
/// What is in a group is made when a command line names it: making all of them takes longer than most commands.
pub fn add_to(root: Command) -> Command {
    let root = groups().into_iter().fold(root, |root, (name, mut verbs)| {
        let root = match root.find_subcommand(name) {
            Some(_) => root,
            None => root.subcommand(Command::new(name)),
        };
        root.mut_subcommand(name, |group| {
            let own = own()
                .into_iter()
                .filter(|own| own.group == name)
                .map(|own| own.verb);
            for verb in own {
                verbs.retain(|other| *other != verb);
                verbs.push(verb);
            }
            let of_the_program = group.get_subcommands().map(Command::get_name);
            let listed: Vec<&str> = verbs.iter().copied().chain(of_the_program).collect();
            let about = format!("Server: {}", listed.join(", "));
            group
                .mut_subcommands(|verb| verb.display_order(LAST))
                .about(about)
                .defer(filled)
        })
    });
    let root = own()
        .into_iter()
        .filter(HandCommand::is_of_one_word)
        .fold(root, |root, own| root.subcommand(own.explained()));
    root.subcommand(cli::profile())
        .subcommand(crate::hook::command())
        .subcommand(crate::mcp::command())
}

/// Returns the groups of the API, and behind them those that have commands of one's own alone.
fn groups() -> Vec<catalogue::Group> {
    let mut groups = catalogue::groups();
    // The command of the hook says itself what it is.
    let beside = |own: &&HandCommand| !own.is_of_one_word() && own.group != crate::hook::GROUP;
    for own in own().iter().filter(beside) {
        if groups.iter().all(|(name, _)| *name != own.group) {
            groups.push((own.group, Vec::new()));
        }
    }
    groups
}

/// Adds the client's verbs to the command of a group.
fn filled(group: Command) -> Command {
    let name = group.get_name().to_owned();
    let group = cli::fill(group, &catalogue::of_group(&name));
    own()
        .into_iter()
        .filter(|own| own.group == name)
        .fold(group, |group, own| {
            let verb = own.explained();
            match group.find_subcommand(own.verb) {
                Some(_) => group.mut_subcommand(own.verb, |_| verb),
                None => group.subcommand(verb),
            }
        })
}
/// Returns the command of a group with its verbs, without waiting for clap to want them.
pub(crate) fn filled_if_group(command: Command) -> Command {
    let name = command.get_name().to_owned();
    if groups().iter().any(|(group, _)| *group == name) {
        filled(command)
    } else {
        command
    }
}

/// Runs a client command; `None` when the words name a command of the program itself.
///
/// `read_elsewhere` returns the names of the variables that the rest of the program reads.
pub fn run(matches: &ArgMatches, read_elsewhere: fn() -> Vec<String>) -> Option<ExitCode> {
    let (group, below) = matches.subcommand()?;
    if !is_known(group, below.subcommand_name().unwrap_or_default()) {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let mut terminal = Terminal::system();
    terminal.surroundings.read_elsewhere = Some(read_elsewhere);
    let code = runtime.block_on(ask(matches, &terminal));
    // A thread may still wait for standard input, which nobody needs any more.
    runtime.shutdown_background();
    Some(ExitCode::from(code))
}

fn is_known(group: &str, verb: &str) -> bool {
    let is_of_the_api = || {
        let mut groups = catalogue::groups().into_iter();
        groups.any(|(name, verbs)| name == group && verbs.contains(&verb))
    };
    group == cli::PROFILE || own().iter().any(|own| own.is(group, verb)) || is_of_the_api()
}

/// Runs a client command with this terminal and returns the exit code; `matches` are those of
/// [`command`].
pub async fn ask(matches: &ArgMatches, terminal: &Terminal) -> u8 {
    let Some((group, below)) = matches.subcommand() else {
        return cli::Exit::Usage as u8;
    };
    let (verb, matches) = below.subcommand().unwrap_or(("", below));
    if let Some(own) = own().into_iter().find(|own| own.is(group, verb)) {
        let done = match cli::prepare_jq(matches, terminal) {
            Ok(()) => (own.run)(matches, terminal).await,
            Err(failure) => Err(failure),
        };
        return cli::report(done, terminal);
    }
    cli::run(&catalogue::of_group(group), group, below, terminal).await
}
