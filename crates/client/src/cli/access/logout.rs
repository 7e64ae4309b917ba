//! `provost logout`: ends the sign-in of a profile, and forgets its token.

use super::super::connection::{self, place_of_profile, profile_path};
use super::super::failure::{Exit, Failure};
use super::super::own::{CommandFuture, HandCommand};
use super::super::profile::Profiles;
use super::super::send::unanswered;
use super::super::server::Server;
use super::super::sign_in::revoke;
use super::super::terminal::Terminal;
use clap::{ArgMatches, Command};

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "logout",
    verb: "",
    command,
    examples: &["provost logout", "provost logout --profile prod"],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("logout")
        .about("Ends the sign-in of a profile, or forgets its token; server and organization stay")
        .long_about(
            "Ends the session of somebody who signed in with a browser, at the server, and forgets its tokens. A token that was \
             typed is forgotten here and stays what it is. Where the server cannot be reached, nothing is forgotten: \
             `provost profile remove` does that, and the session ends by itself after 30 days without use.",
        )
        .args(connection::args())
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (path, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder: name the file with --profile-file"))?;
    // Until the end: a token that is renewed meanwhile would outlive this.
    let _lock = Profiles::lock(&path)?;
    let mut profiles = Profiles::load(&path)?.unwrap_or_default();
    let name = connection::text(matches, "global.profile").or_else(|| profiles.current.clone());
    let name =
        name.ok_or_else(|| Failure::usage("there is no profile to log out of; `provost profile list`"))?;
    let profile = profiles
        .by_name
        .get_mut(&name)
        .ok_or_else(|| Failure::usage(format!("there is no profile {name}; `provost profile list`")))?;
    if profile.token.is_none() && profile.sign_in.is_none() {
        terminal.note(&format!("the profile {name} holds no token"));
        return Ok(());
    }
    let ended = match &profile.sign_in {
        Some(sign_in) => {
            // What the profile holds is for its own server, whatever else is said.
            let place = place_of_profile(matches, terminal, profile)?;
            let server = Server::anonymous(&place)?;
            let done = tokio::time::timeout(place.timeout, revoke(&server, sign_in)).await;
            let done = done.unwrap_or_else(|_| {
                let says = super::super::trouble::Trouble::new("it did not answer in time");
                Err(super::super::server::Silence::Lost(says))
            });
            done.map_err(|silence| {
                unanswered(silence, &place.url)
                    .and("the session goes on, and nothing was forgotten: repeat the command when the server answers")
                    .and(format!("`provost profile remove {name}` forgets it here alone"))
            })?;
            true
        }
        None => false,
    };
    profile.token = None;
    profile.sign_in = None;
    profiles
        .save(&path)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))?;
    terminal.note(&format!("the profile {name} holds no token any more"));
    terminal.note(if ended {
        "the session has ended: what it gave is refused from now on"
    } else {
        "the token itself still works until it expires; `provost service-accounts revoke-token` ends it"
    });
    Ok(())
}
