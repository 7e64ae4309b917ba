//! `provost logout`: forgets the token of a profile.

use super::super::connection::{self, profile_path};
use super::super::failure::{Exit, Failure};
use super::super::own::{CommandFuture, HandCommand};
use super::super::profile::Profiles;
use super::super::terminal::Terminal;
use clap::{ArgMatches, Command};

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "logout",
    verb: "",
    command,
    examples: &["provost logout", "provost logout --profile prod"],
    run: |matches, terminal| -> CommandFuture<'_> {
        let done = run(matches, terminal);
        Box::pin(async { done })
    },
};

fn command() -> Command {
    Command::new("logout")
        .about("Forgets the token of a profile; server and organization stay")
        .args(connection::profile_args())
}

fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (path, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder: name the file with --profile-file"))?;
    let mut profiles = Profiles::load(&path)?.unwrap_or_default();
    let name = connection::text(matches, "global.profile").or_else(|| profiles.current.clone());
    let name =
        name.ok_or_else(|| Failure::usage("there is no profile to log out of; `provost profile list`"))?;
    let profile = profiles
        .by_name
        .get_mut(&name)
        .ok_or_else(|| Failure::usage(format!("there is no profile {name}; `provost profile list`")))?;
    if profile.token.take().is_none() {
        terminal.note(&format!("the profile {name} holds no token"));
        return Ok(());
    }
    profiles
        .save(&path)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))?;
    terminal.note(&format!("the profile {name} holds no token any more"));
    terminal.note(
        "the token itself still works until it expires; `provost service-accounts revoke-token` ends it",
    );
    Ok(())
}
