//! `provost login`: takes a token, asks its server whose it is, and keeps it in a profile.
//!
//! Absent on purpose: the way over a browser. The authorization server gives tokens of an hour to clients that an admin registered;
//! a command line would have to renew them while others do, and no client is registered for it by itself.

use super::super::connection::{self, Connection, TokenSource, checked_token, place_for, profile_path};
use super::super::failure::{Exit, Failure};
use super::super::own::{CommandFuture, HandCommand};
use super::super::profile::{Profile, Profiles};
use super::super::profile_command::{name_of_profile, read_token};
use super::super::terminal::Terminal;
use super::identity::Identity;
use super::whoami::ends;
use clap::{ArgMatches, Command};
use std::path::PathBuf;

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "login",
    verb: "",
    command,
    examples: &[
        "provost login --url https://provost.example.com            # asks for the token",
        "provost login --url https://provost.example.com < token    # or reads it",
    ],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("login")
        .about("Keeps a token in a profile once the server has said whose it is")
        .long_about(
            "Asks for a token, or reads it from standard input or --token-file, asks the server whose it is, and keeps it with \
             the server and the organization in a profile that only you can read. The profile becomes the one that is used \
             when none is named. Without --organization it is the token's. A token that the server refuses is not kept.",
        )
        .args(connection::args())
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (path, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder: name the file with --profile-file"))?;
    let mut profiles = Profiles::load(&path)?.unwrap_or_default();
    let quiet = matches.get_flag("global.quiet");
    // A profile that is not there yet is made.
    let wanted = connection::text(matches, "global.profile");
    let name = match wanted {
        Some(name) => {
            Some(name_of_profile(&name).map_err(|why| Failure::usage(format!("--profile: {why}")))?)
        }
        None => None,
    };
    let known = name.as_ref().or(profiles.current.as_ref());
    let known = known
        .and_then(|name| profiles.by_name.get(name))
        .cloned()
        .unwrap_or_default();
    let mut place = place_for(matches, terminal, &known)?;
    // The organization of a profile is one of the profile's server.
    if known.url.as_deref() != Some(&place.url) && connection::text(matches, "global.organization").is_none()
    {
        place.organization.clear();
    }
    if !matches.get_flag("global.allow-plain-http") {
        connection::refuse_plain(&place.url)?;
    }
    let (token, token_source) = match matches.get_one::<PathBuf>("global.token-file") {
        Some(path) => (
            connection::token_of_file(path, terminal, quiet)?,
            TokenSource::File(path.clone()),
        ),
        None => (read_token(terminal, "token")?, TokenSource::Typed),
    };
    let token = checked_token(token.expose())
        .ok_or_else(|| Failure::usage("that is not one token on one line; nothing was kept"))?;
    let name = name.unwrap_or_else(|| name_for(&profiles, &place.url));
    let connection = Connection {
        place,
        token,
        token_source,
    };
    let identity = Identity::ask(&connection, terminal, quiet)
        .await
        .map_err(|failure| failure.and("nothing was kept"))?;
    let profile = Profile {
        url: Some(connection.place.url.clone()),
        organization: Some(identity.organization.clone()),
        token: Some(connection.token.clone()),
    };
    profiles.by_name.insert(name.clone(), profile);
    profiles.current = Some(name.clone());
    profiles
        .save(&path)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))?;
    let ends = identity
        .expires_at()
        .map(|at| ends(at, terminal))
        .unwrap_or_default();
    terminal.note(&format!(
        "logged in to {} as {}, role {}, organization {}{ends}",
        connection.place.url,
        identity.who(),
        identity.role(),
        identity.organization
    ));
    terminal.note(&format!(
        "kept in the profile {name} ({}), which is used from now on",
        path.display()
    ));
    for (is_set, variable) in [
        (terminal.surroundings.token.is_some(), "PROVOST_TOKEN"),
        (terminal.surroundings.token_file.is_some(), "PROVOST_TOKEN_FILE"),
    ] {
        if is_set {
            terminal.note(&format!(
                "warning: {variable} is set and goes before the profile: unset {variable}"
            ));
        }
    }
    Ok(())
}

/// Returns the name of the profile for a server: one that is there already for it, else the name of its host.
fn name_for(profiles: &Profiles, url: &str) -> String {
    let is_its = |name: &&String| {
        let profile = profiles.by_name.get(*name);
        profile.is_some_and(|profile| profile.url.as_deref().is_none_or(|known| known == url))
    };
    let found = profiles
        .current
        .iter()
        .find(is_its)
        .or_else(|| profiles.by_name.keys().find(is_its));
    if let Some(name) = found {
        return name.clone();
    }
    let uri: http::Uri = url.parse().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    name_of_profile(host)
        .ok()
        .filter(|name| !profiles.by_name.contains_key(name))
        .unwrap_or_else(|| {
            let free = (1_u32..).map(|number| format!("server-{number}"));
            let mut free = free.filter(|name| !profiles.by_name.contains_key(name));
            free.next().unwrap_or_default()
        })
}
