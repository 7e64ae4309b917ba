//! `provost login`: signs somebody in with a browser, or takes a token; asks the server whose it is, and keeps it in a profile.

use super::super::connection::{
    self, Connection, TokenSource, checked_token, place_for, place_of_profile, profile_path,
};
use super::super::failure::{Exit, Failure};
use super::super::own::{CommandFuture, HandCommand};
use super::super::profile::{Profile, Profiles, SignIn};
use super::super::profile_command::{name_of_profile, read_token};
use super::super::send::unanswered;
use super::super::server::Server;
use super::super::sign_in::{Offer, Wish, revoke, sign_in};
use super::super::terminal::Terminal;
use super::identity::Identity;
use super::own_machines;
use super::whoami::ends;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "login",
    verb: "",
    command,
    examples: &[
        "provost login --url https://provost.example.com                     # with a browser, where people sign in",
        "provost login --scope read --scope policies:write                   # to do more than look",
        "provost login --url https://provost.example.com --with-token        # asks for a token",
        "provost login --url https://provost.example.com < token             # or reads it",
    ],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("login")
        .about("Signs in with a browser, or keeps a token, once the server has said whose it is")
        .long_about(
            "Signs somebody in with a browser where the server has people sign in, and asks for a token elsewhere; reads a token \
             from standard input or --token-file. It asks the server whose it is, and keeps it with the server and the \
             organization in a profile that only you can read. The profile becomes the one that is used when none is named. \
             Without --organization it is the token's. A token that the server refuses is not kept.\n\nWho signs in with a \
             browser allows what the page of the server lists: what was asked for, and never more than the own role. It goes \
             on while it is used, for 90 days at most; `provost logout` ends it, and so does whoever revokes its session.",
        )
        .args([
            flag("browser")
                .help("Signs in with a browser, also where no person is at a terminal")
                .conflicts_with_all(["with-token", "global.token-file"]),
            flag("no-browser")
                .help("Names the address, and opens no browser")
                .conflicts_with_all(["with-token", "global.token-file"]),
            flag("with-token").help("Asks for a token, also where people sign in with a browser"),
            Arg::new("scope")
                .long("scope")
                .value_name("NAME")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .conflicts_with_all(["with-token", "global.token-file"])
                .help("What the sign-in may do: names of scopes; `read` is all that looks, `all` is everything [default: read]"),
            Arg::new("port")
                .long("port")
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..))
                .conflicts_with_all(["with-token", "global.token-file"])
                .help("Where the browser brings the answer, for a port that is forwarded [default: one that is free]"),
        ])
        .args(connection::args())
}

/// What was got, before it is known whose it is.
struct Found {
    connection: Connection,
    sign_in: Option<SignIn>,
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let (path, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder: name the file with --profile-file"))?;
    // Taken and given back: what cannot be kept is not asked for.
    drop(Profiles::lock(&path)?);
    let profiles = Profiles::load(&path)?.unwrap_or_default();
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
    let found = match offer(&place, matches, terminal, quiet).await? {
        Some(offer) => {
            // The person chooses it on the page, unless it was said.
            if connection::text(matches, "global.organization").is_none() {
                place.organization.clear();
            }
            with_browser(&offer, place, matches, terminal).await?
        }
        None => with_token(place, matches, terminal)?,
    };
    let identity = match Identity::ask(&found.connection, terminal, quiet).await {
        Ok(identity) => identity,
        Err(failure) => {
            give_back(&found.connection, found.sign_in.as_ref(), terminal).await;
            return Err(failure.and("nothing was kept"));
        }
    };
    let told = kept(&found, &identity, (&path, name), (matches, terminal)).await;
    if told.is_err() {
        give_back(&found.connection, found.sign_in.as_ref(), terminal).await;
    } else if found.sign_in.is_some() {
        own_machines::tell(&found.connection, &identity, terminal).await;
    }
    told
}

/// Returns what the server offers who signs in with a browser, if that is wanted or nobody said otherwise.
///
/// Errors: `Refused`, when a browser is wanted and the server has none sign in.
async fn offer(
    place: &connection::Place,
    matches: &ArgMatches,
    terminal: &Terminal,
    quiet: bool,
) -> Result<Option<Offer>, Failure> {
    let says = |flag: &str| matches.get_flag(flag);
    let is_wanted =
        says("browser") || says("no-browser") || matches.contains_id("scope") || matches.contains_id("port");
    let is_token = says("with-token") || matches.contains_id("global.token-file");
    if is_token || !is_wanted && terminal.prompt.is_none() {
        return Ok(None);
    }
    match Offer::of(place, terminal, quiet).await {
        Ok(Some(offer)) => Ok(Some(offer)),
        Ok(None) if is_wanted => {
            let line = format!(
                "{} has nobody sign in to the command line with a browser",
                place.url
            );
            Err(Failure::new(Exit::Refused, line)
                .and("whoever runs it declares where people sign in: [[oauth.sign_in]]")
                .and("log in with a token: provost login --with-token"))
        }
        Ok(None) => Ok(None),
        Err(failure) if is_wanted || matches!(failure.exit, Exit::Unreachable | Exit::Usage) => Err(failure),
        // A token may do where signing in does not.
        Err(failure) => {
            let why = failure.lines.first().map_or("", String::as_str);
            terminal.note(&format!("nobody can sign in with a browser now: {why}"));
            Ok(None)
        }
    }
}

async fn with_browser(
    offer: &Offer,
    place: connection::Place,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<Found, Failure> {
    let scopes = matches.get_many::<String>("scope");
    let wish = Wish {
        scopes: scopes.into_iter().flatten().cloned().collect(),
        opens: !matches.get_flag("no-browser"),
        port: matches.get_one("port").copied().unwrap_or_default(),
    };
    let tokens = sign_in(offer, &wish, &place, terminal).await?;
    Ok(Found {
        connection: Connection {
            place,
            token: tokens.access,
            token_source: TokenSource::Typed,
        },
        sign_in: Some(tokens.sign_in),
    })
}

fn with_token(place: connection::Place, matches: &ArgMatches, terminal: &Terminal) -> Result<Found, Failure> {
    let quiet = matches.get_flag("global.quiet");
    let (token, token_source) = match matches.get_one::<PathBuf>("global.token-file") {
        Some(path) => (
            connection::token_of_file(path, terminal, quiet)?,
            TokenSource::File(path.clone()),
        ),
        None => (read_token(terminal, "token")?, TokenSource::Typed),
    };
    let token = checked_token(token.expose())
        .ok_or_else(|| Failure::usage("that is not one token on one line; nothing was kept"))?;
    Ok(Found {
        connection: Connection {
            place,
            token,
            token_source,
        },
        sign_in: None,
    })
}

/// Writes the profile and says so.
async fn kept(
    found: &Found,
    identity: &Identity,
    (path, name): (&Path, Option<String>),
    (matches, terminal): (&ArgMatches, &Terminal),
) -> Result<(), Failure> {
    let Found { connection, sign_in } = found;
    // Read anew: other commands may have changed it while somebody typed or signed in.
    let lock = Profiles::lock(path)?;
    let mut profiles = Profiles::load(path)?.unwrap_or_default();
    if let Some(name) = &name
        && connection::text(matches, "global.organization").is_none()
    {
        refuse_other(&profiles, name, &connection.place.url, &identity.organization)?;
    }
    let name = name.unwrap_or_else(|| name_for(&profiles, &connection.place.url, &identity.organization));
    let is_browser = sign_in.is_some();
    let profile = Profile {
        url: Some(connection.place.url.clone()),
        organization: Some(identity.organization.clone()),
        token: Some(connection.token.clone()),
        sign_in: sign_in.clone(),
    };
    let before = profiles.by_name.insert(name.clone(), profile);
    profiles.current = Some(name.clone());
    profiles
        .save(path)
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))?;
    drop(lock);
    // The sign-in before this one is of no use to anybody here.
    if let Some(before) = before.filter(|before| before.sign_in.is_some()) {
        match place_of_profile(matches, terminal, &before) {
            Ok(place) => {
                let earlier = Connection {
                    place,
                    token: connection.token.clone(),
                    token_source: TokenSource::Typed,
                };
                give_back(&earlier, before.sign_in.as_ref(), terminal).await;
            }
            Err(_) => not_ended("its server cannot be asked", terminal),
        }
    }
    let (how, ends) = if is_browser {
        (
            "signed in to",
            format!(", scopes {}", identity.scopes().join(" ")),
        )
    } else {
        let ends = identity.expires_at().map(|at| ends(at, terminal));
        ("logged in to", ends.unwrap_or_default())
    };
    terminal.note(&format!(
        "{how} {} as {}, role {}, organization {}{ends}",
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

/// Ends a session that nobody here will use; where that fails, it ends by itself, and whoever looks finds it.
pub(super) async fn give_back(connection: &Connection, sign_in: Option<&SignIn>, terminal: &Terminal) {
    let Some(sign_in) = sign_in else { return };
    let place = &connection.place;
    let Ok(server) = Server::anonymous(place) else {
        return not_ended("its server cannot be asked", terminal);
    };
    match tokio::time::timeout(place.timeout, revoke(&server, sign_in)).await {
        Ok(Ok(())) => {}
        Ok(Err(silence)) => {
            let failure = unanswered(silence, &place.url);
            not_ended(failure.lines.first().map_or("", String::as_str), terminal);
        }
        Err(_) => not_ended("its server did not answer in time", terminal),
    }
}

fn not_ended(why: &str, terminal: &Terminal) {
    terminal.note(&format!(
        "warning: a session that is not kept here goes on until it ends by itself: {why}"
    ));
}

/// Refuses to put another organization into a profile that is named: whoever uses it by its name would act there, and what it holds would
/// be gone.
fn refuse_other(profiles: &Profiles, name: &str, url: &str, organization: &str) -> Result<(), Failure> {
    let Some(profile) = profiles.by_name.get(name) else {
        return Ok(());
    };
    let known = profile.url.as_deref().map(connection::normal);
    let is_there = known.is_none_or(|known| known.is_ok_and(|known| known == url));
    match profile.organization.as_deref() {
        Some(other) if is_there && other != organization => {
            let line = format!(
                "the profile {name} is of the organization {other}, and you signed in to {organization}"
            );
            Err(Failure::new(Exit::Refused, line)
                .and("nothing was kept")
                .and(format!(
                    "say --organization {organization} to have it be of that one, or another --profile"
                )))
        }
        _ => Ok(()),
    }
}

/// Returns the name of the profile for an organization at a server: one that is there already for both, else the name of the host,
/// and of the organization where that is another's.
fn name_for(profiles: &Profiles, url: &str, organization: &str) -> String {
    let is_its = |name: &&String| {
        let Some(profile) = profiles.by_name.get(*name) else {
            return false;
        };
        let is_there = match &profile.url {
            Some(known) => connection::normal(known).is_ok_and(|known| known == url),
            None => profile.token.is_none(),
        };
        is_there
            && profile
                .organization
                .as_deref()
                .is_none_or(|known| known == organization)
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
    let named = [host.to_owned(), format!("{host}-{organization}")];
    let free = |name: &String| !profiles.by_name.contains_key(name);
    let mut named = named.into_iter().filter_map(|name| name_of_profile(&name).ok());
    named.find(&free).unwrap_or_else(|| {
        let numbered = (1_u32..).map(|number| format!("server-{number}"));
        numbered.into_iter().find(free).unwrap_or_default()
    })
}
