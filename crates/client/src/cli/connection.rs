//! Which server, organization and token a command uses: flags, then the environment, then a profile.
//!
//! Keeps CL-1.

pub(super) use super::connection_flags::{args, profile_file_arg};
pub use super::connection_flags::{list_output_arg, output_arg};
use super::environment;
use super::failure::{Exit, Failure};
use super::profile::{self, Profile, Profiles};
use super::proxy::{self, Proxy};
use super::terminal::Terminal;
use clap::ArgMatches;
use clap::parser::ValueSource;
use http::Uri;
use provost_words::Secret;
use provost_words::time::{Clock, Timestamp};
use provost_words::withheld::without_secrets;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8080";
/// LIMIT: the server takes tokens of up to 8 KiB (D2.1).
const MAX_TOKEN_BYTES: u64 = 8 << 10;

/// A server and how it is reached. No token is needed to know it.
pub(super) struct Place {
    /// Scheme, host and what a proxy puts before the API's paths, without a slash at the end.
    pub(super) url: String,
    /// Where the URL came from, for people: `the profile prod`.
    pub(super) url_source: String,
    /// May be empty.
    pub(super) organization: String,
    /// Where the organization came from, for people.
    pub(super) organization_source: String,
    /// The name of the profile that was taken; empty without one.
    pub(super) profile: String,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) ca_cert: Option<PathBuf>,
    pub(super) proxy: Option<Proxy>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Everything that a request needs beside its operation.
pub(super) struct Connection {
    pub(super) place: Place,
    pub(super) token: Secret<String>,
    pub(super) token_source: TokenSource,
}

/// Where a token came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// The file that `--token-file` or `PROVOST_TOKEN_FILE` names.
    File(PathBuf),
    /// `PROVOST_TOKEN`.
    Variable,
    /// The profile of this name.
    Profile(String),
    /// The profile of this name in this file, in which somebody signed in with a browser; until when it serves unrenewed.
    SignIn {
        profile: String,
        file: PathBuf,
        expires_at: Timestamp,
        began_at: Option<Timestamp>,
    },
    /// A person, or standard input.
    Typed,
}

impl fmt::Display for TokenSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(out, "the file {}", path.display()),
            Self::Variable => out.write_str("PROVOST_TOKEN"),
            Self::Profile(name) => write!(out, "the profile {name}"),
            Self::SignIn { profile, .. } => write!(out, "the sign-in of the profile {profile}"),
            Self::Typed => out.write_str("what was typed or read"),
        }
    }
}

/// Returns a flag's text; an empty one counts as absent.
pub(super) fn text(matches: &ArgMatches, id: &str) -> Option<String> {
    matches
        .get_one::<String>(id)
        .filter(|text| !text.is_empty())
        .cloned()
}

/// Returns the place, and the profile that belongs to it.
fn resolve(matches: &ArgMatches, terminal: &Terminal) -> Result<(Place, Profile), Failure> {
    let (name, profile) = chosen_profile(matches, terminal)?;
    let place = Place {
        profile: name.clone(),
        ..place_of(matches, terminal, (&name, &profile))?
    };
    Ok((place, profile))
}

/// Returns the place that flags, environment and this profile say, for what makes the profile.
///
/// Errors: usage, when they name no server, or a variable is set and empty.
pub(super) fn place_for(
    matches: &ArgMatches,
    terminal: &Terminal,
    profile: &Profile,
) -> Result<Place, Failure> {
    place_of(matches, terminal, ("", profile))
}

/// Returns the place of what a profile holds, whatever flags and environment say of another server.
///
/// Errors: usage, when the profile names no server, or what it holds would travel in clear.
pub(super) fn place_of_profile(
    matches: &ArgMatches,
    terminal: &Terminal,
    profile: &Profile,
) -> Result<Place, Failure> {
    let url = normal(profile.url.as_deref().unwrap_or(DEFAULT_URL))?;
    if !matches.get_flag("global.allow-plain-http") {
        refuse_plain(&url)?;
    }
    let said = |text: String| (text, "the profile".to_owned());
    let organization = profile.organization.clone().unwrap_or_default();
    place_at(said(url), said(organization), matches, terminal)
}

fn place_of(
    matches: &ArgMatches,
    terminal: &Terminal,
    (name, profile): (&str, &Profile),
) -> Result<Place, Failure> {
    environment::refuse_empty(&terminal.surroundings)?;
    if !matches.get_flag("global.quiet") {
        environment::note_unknown(terminal);
    }
    let said = |id, flag, variable| said_by(matches, id, flag, variable);
    let (url, url_source) = match (text(matches, "global.url"), &profile.url) {
        (Some(url), _) => (normal(&url)?, said("global.url", "--url", "PROVOST_URL")),
        (None, Some(url)) => (normal(url)?, format!("the profile {name}")),
        (None, None) => (DEFAULT_URL.to_owned(), "nobody: this is the default".to_owned()),
    };
    let flag = text(matches, "global.organization");
    let organization_source = if flag.is_some() {
        said("global.organization", "--organization", "PROVOST_ORGANIZATION")
    } else {
        format!("the profile {name}")
    };
    let of_profile = profile.organization.clone();
    let organization = flag.or(of_profile).unwrap_or_default();
    let organization = (organization, organization_source);
    place_at((url, url_source), organization, matches, terminal)
}

fn place_at(
    (url, url_source): (String, String),
    (organization, organization_source): (String, String),
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<Place, Failure> {
    Ok(Place {
        proxy: proxy::of(&url, &terminal.surroundings)?,
        url,
        url_source,
        organization,
        organization_source,
        profile: String::new(),
        timeout: Duration::from_secs(matches.get_one("global.timeout").copied().unwrap_or(60)),
        retries: matches.get_one("global.retries").copied().unwrap_or(4),
        ca_cert: matches
            .get_one::<PathBuf>("global.ca-cert")
            .or(terminal.surroundings.ca_cert.as_ref())
            .cloned(),
        clock: terminal.clock.clone(),
    })
}

/// Returns who said a value that a flag or a variable says.
fn said_by(matches: &ArgMatches, id: &str, flag: &str, variable: &str) -> String {
    match matches.value_source(id) {
        Some(ValueSource::EnvVariable) => variable.to_owned(),
        _ => flag.to_owned(),
    }
}

impl Connection {
    /// Reads flags, environment and profile.
    pub(super) fn resolve(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        let connection = Self::resolve_unbound(matches, terminal)?;
        if connection.place.organization.is_empty() {
            return Err(Failure::usage(
                "say which organization: --organization KEY, PROVOST_ORGANIZATION or a profile",
            )
            .and("`provost login` finds out which one the token belongs to, and keeps it"));
        }
        Ok(connection)
    }

    /// As [`Self::resolve`], for what needs no organization: it is the token's, and may be empty here.
    pub(super) fn resolve_unbound(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        let (place, token) = place_and_token(matches, terminal)?;
        let (token, token_source) = token?;
        Ok(Self {
            place,
            token,
            token_source,
        })
    }
}

/// A token and where it came from.
pub(super) type FoundToken = Result<(Secret<String>, TokenSource), Failure>;

/// Returns the server, and the token for it or why there is none.
///
/// Errors: usage, when no server is named.
pub(super) fn place_and_token(
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(Place, FoundToken), Failure> {
    let (place, profile) = resolve(matches, terminal)?;
    let token = found_token(&place, profile, matches, terminal);
    Ok((place, token))
}

fn found_token(place: &Place, profile: Profile, matches: &ArgMatches, terminal: &Terminal) -> FoundToken {
    if !matches.get_flag("global.allow-plain-http") {
        refuse_plain(&place.url)?;
    }
    let quiet = matches.get_flag("global.quiet");
    let surroundings = &terminal.surroundings;
    let file = matches.get_one::<PathBuf>("global.token-file");
    let (token, source) = match (file, &surroundings.token, &surroundings.token_file) {
        (Some(path), _, _) | (None, None, Some(path)) => (
            token_of_file(path, terminal, quiet)?,
            TokenSource::File(path.clone()),
        ),
        (None, Some(_), Some(_)) => {
            let line = "PROVOST_TOKEN and PROVOST_TOKEN_FILE both name a token";
            return Err(Failure::usage(line).and("remove one of them: unset PROVOST_TOKEN"));
        }
        (None, Some(token), None) => (token.clone(), TokenSource::Variable),
        (None, None, None) => {
            let file = profile_path(matches, terminal).map(|(path, _)| path);
            of_profile(place, profile, file.unwrap_or_default())?
        }
    };
    let token = checked_token(token.expose())
        .ok_or_else(|| Failure::usage(format!("{source} does not hold one token on one line")))?;
    Ok((token, source))
}

fn of_profile(
    place: &Place,
    profile: Profile,
    file: PathBuf,
) -> Result<(Secret<String>, TokenSource), Failure> {
    let (url, name) = (&place.url, &place.profile);
    let Some(token) = profile.token else {
        let line = "there is no token: --token-file FILE, PROVOST_TOKEN or a profile (`provost profile set`)";
        return Err(Failure::new(Exit::Forbidden, line).and(format!("log in: provost login --url {url}")));
    };
    let profile_url = normal(profile.url.as_deref().unwrap_or(DEFAULT_URL))?;
    if *url != profile_url {
        let line = format!("the token of the profile {name} is for {profile_url} and is not sent to {url}");
        return Err(Failure::usage(line).and("name another token: --token-file FILE or PROVOST_TOKEN"));
    }
    let source = match profile.sign_in {
        Some(sign_in) => TokenSource::SignIn {
            profile: name.clone(),
            file,
            expires_at: sign_in.expires_at,
            began_at: sign_in.began_at,
        },
        None => TokenSource::Profile(name.clone()),
    };
    Ok((token, source))
}

/// Returns the path of the profile file and whether somebody named it.
pub(super) fn profile_path(matches: &ArgMatches, terminal: &Terminal) -> Option<(PathBuf, bool)> {
    let named = matches.get_one::<PathBuf>("global.profile-file").cloned();
    let is_named = named.is_some();
    Some((
        named.or_else(|| profile::default_path(&terminal.surroundings))?,
        is_named,
    ))
}

/// Returns the folder of the profile file, where the program keeps what it knows about this machine.
///
/// Errors: usage, when there is no home folder and `--profile-file` is not said.
pub fn config_folder(matches: &ArgMatches, terminal: &Terminal) -> Result<PathBuf, Failure> {
    let (profiles, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder; say --profile-file FILE"))?;
    Ok(provost_words::durable::folder_of(&profiles).to_owned())
}

/// Returns the URL and the organization that flags, environment or profile name, for what has a token of its own; where none of them names either,
/// those that `otherwise` knows.
///
/// Errors: as for any command, except that there need be no token.
pub(crate) fn server_named(
    matches: &ArgMatches,
    terminal: &Terminal,
    otherwise: impl FnOnce() -> Option<(String, String)>,
) -> Result<(String, String), Failure> {
    let (_, profile) = chosen_profile(matches, terminal)?;
    let mut url = text(matches, "global.url").or(profile.url);
    let mut organization = text(matches, "global.organization").or(profile.organization);
    if url.is_none()
        && organization.is_none()
        && let Some(known) = otherwise()
    {
        (url, organization) = (Some(known.0), Some(known.1));
    }
    let url = normal(url.as_deref().unwrap_or(DEFAULT_URL))?;
    if !matches.get_flag("global.allow-plain-http") {
        refuse_plain(&url)?;
    }
    let organization = organization.ok_or_else(|| {
        Failure::usage("say which organization: --organization KEY, PROVOST_ORGANIZATION or a profile").and(
            "or enrol the machine before (`provost agent enrol`): its server and organization are taken then",
        )
    })?;
    Ok((url, organization))
}

fn chosen_profile(matches: &ArgMatches, terminal: &Terminal) -> Result<(String, Profile), Failure> {
    let wanted = text(matches, "global.profile");
    let mut profiles = Profiles::default();
    if let Some((path, is_named)) = profile_path(matches, terminal) {
        match Profiles::load(&path)? {
            Some(found) => profiles = found,
            None if is_named => return Err(Failure::usage(format!("there is no file {}", path.display()))),
            None => {}
        }
    }
    let Some(name) = wanted.or(profiles.current) else {
        return Ok((String::new(), Profile::default()));
    };
    let profile = profiles.by_name.remove(&name);
    let profile = profile.ok_or_else(|| Failure::usage(format!("there is no profile {name}")))?;
    Ok((name, profile))
}

/// Returns a token without the line's end, if it can be one.
pub(crate) fn checked_token(text: &str) -> Option<Secret<String>> {
    let token = text.trim_ascii();
    let fits = !token.is_empty() && token.len() as u64 <= MAX_TOKEN_BYTES;
    (fits && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Secret::new(token.to_owned()))
}

pub(super) fn token_of_file(
    path: &Path,
    terminal: &Terminal,
    quiet: bool,
) -> Result<Secret<String>, Failure> {
    let shown = path.display();
    let said = shown.to_string();
    if without_secrets(&said) != said {
        let line = "--token-file names a file that holds the token, and this is a token itself";
        return Err(Failure::usage(line)
            .and("put it into a file that you alone may read, or into PROVOST_TOKEN; where your shell keeps what is typed, have it rotated"));
    }
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    let file = File::open(path).map_err(cannot)?;
    if !profile::is_private(file.metadata().map_err(cannot)?.mode()) && !quiet {
        terminal.note(&format!(
            "warning: other users of this machine can read the token in {shown} (chmod 600 {shown})"
        ));
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_BYTES + 2)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    Ok(Secret::new(text))
}

/// Returns the URL without a slash at its end.
///
/// Errors: usage, when it is no http or https URL, or holds a user name, a query or a fragment.
pub(super) fn normal(url: &str) -> Result<String, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "{url:?} is not the URL of a server, such as https://provost.example"
        ))
    };
    // Not even the rest of it is shown: who knows where a password ends.
    if url.contains('@') {
        let line = "the URL of a server holds no user and no password: a token says who asks";
        return Err(Failure::usage(line)
            .and("say it as https://provost.example, and the token in a file: --token-file FILE"));
    }
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_web || authority.as_str().contains('@') || uri.query().is_some() || url.contains('#') {
        return Err(wrong());
    }
    let scheme = uri.scheme_str().unwrap_or("https");
    Ok(format!(
        "{scheme}://{}{}",
        authority.as_str().to_ascii_lowercase(),
        uri.path().trim_end_matches('/')
    ))
}

/// A token must not cross a network in clear by accident.
pub(crate) fn refuse_plain(url: &str) -> Result<(), Failure> {
    let uri: Uri = url.parse().unwrap_or_default();
    if uri.scheme_str() == Some("https") || proxy::is_this_machine(&uri) {
        return Ok(());
    }
    let line = format!("{url} would carry the token over the network unencrypted");
    Err(Failure::usage(line).and("use an https URL, or say --allow-plain-http"))
}
