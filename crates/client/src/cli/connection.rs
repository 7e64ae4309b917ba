//! Which server, organization and token a command uses: flags, then the environment, then a profile.
//!
//! Keeps CL-1.

use super::failure::{Exit, Failure};
use super::flags::file_arg;
use super::profile::{self, Profile, Profiles};
use super::terminal::Terminal;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, builder::PossibleValuesParser, value_parser};
use http::Uri;
use provost_words::Secret;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HEADING: &str = "Connection and output";
const DEFAULT_URL: &str = "http://127.0.0.1:8080";
/// LIMIT: the server takes tokens of up to 8 KiB (D2.1).
const MAX_TOKEN_BYTES: u64 = 8 << 10;

/// Everything that a request needs beside its operation.
pub(super) struct Connection {
    /// Scheme, host and what a proxy puts before the API's paths, without a slash at the end.
    pub(super) url: String,
    pub(super) organization: String,
    pub(super) token: Secret<String>,
    /// Where the token came from, for people: `PROVOST_TOKEN`.
    pub(super) token_source: String,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) ca_cert: Option<PathBuf>,
}

/// Returns the flags that say it, for every command that talks to a server.
pub(super) fn args() -> Vec<Arg> {
    let args = [
        Arg::new("global.url")
            .long("url")
            .env("PROVOST_URL")
            .value_name("URL")
            .value_hint(ValueHint::Url)
            .help(format!("The server [profile, else {DEFAULT_URL}]")),
        Arg::new("global.organization")
            .long("organization")
            .env("PROVOST_ORGANIZATION")
            .value_name("KEY")
            .help("The organization's key [or profile]"),
        file_arg("global.token-file", "token-file")
            .help("Reads the token from a file [else PROVOST_TOKEN, else the profile; never a flag]"),
        file_arg("global.ca-cert", "ca-cert").help("Trusts these certificates (PEM) instead of the system's"),
        Arg::new("global.allow-plain-http")
            .long("allow-plain-http")
            .action(ArgAction::SetTrue)
            .help("Sends the token unencrypted to a host that is not this machine"),
        Arg::new("global.timeout")
            .long("timeout")
            .value_name("SECONDS")
            .default_value("60")
            .value_parser(value_parser!(u64).range(1..=3600))
            .help("Gives up on one request after this time, its repetitions and the waits between them included"),
        Arg::new("global.retries")
            .long("retries")
            .value_name("N")
            .default_value("4")
            .value_parser(value_parser!(u32).range(0..=20))
            .help("Sends the same request again this often when the answer is lost, 429 or 503"),
        Arg::new("global.quiet")
            .short('q')
            .long("quiet")
            .action(ArgAction::SetTrue)
            .help("No notes and no progress on standard error"),
    ];
    args.into_iter()
        .chain(profile_args())
        .chain([output_arg()])
        .map(|arg| arg.help_heading(HEADING))
        .collect()
}

/// Returns the flags that choose a profile.
pub(super) fn profile_args() -> Vec<Arg> {
    vec![
        Arg::new("global.profile")
            .long("profile")
            .env("PROVOST_PROFILE")
            .value_name("NAME")
            .help("Takes server, organization and token from this profile"),
        profile_file_arg(),
    ]
}

/// Returns the flag that names the profile file.
pub(super) fn profile_file_arg() -> Arg {
    Arg::new("global.profile-file")
        .long("profile-file")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("The profile file [default: $XDG_CONFIG_HOME/provost/profiles.toml]")
}

/// Returns the flag for the form of the answer.
pub fn output_arg() -> Arg {
    Arg::new("global.output")
        .short('o')
        .long("output")
        .value_name("FORM")
        .value_parser(PossibleValuesParser::new(["table", "json", "jsonl"]))
        .help("The form of the answer [default: table on a terminal, else json]")
}

/// Returns the flag for the form of a list.
pub fn list_output_arg() -> Arg {
    output_arg()
        .value_parser(PossibleValuesParser::new([
            "table", "wide", "csv", "json", "jsonl",
        ]))
        .help_heading(HEADING)
}

/// Returns a flag's text; an empty one, as an unset variable often is, counts as absent.
pub(super) fn text(matches: &ArgMatches, id: &str) -> Option<String> {
    matches
        .get_one::<String>(id)
        .filter(|text| !text.is_empty())
        .cloned()
}

impl Connection {
    /// Reads flags, environment and profile.
    pub(super) fn resolve(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        let connection = Self::resolve_unbound(matches, terminal)?;
        if connection.organization.is_empty() {
            return Err(Failure::usage(
                "say which organization: --organization KEY, PROVOST_ORGANIZATION or a profile",
            ));
        }
        Ok(connection)
    }

    /// As [`Self::resolve`], for what needs no organization: it is the token's, and may be empty here.
    pub(super) fn resolve_unbound(matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        let (name, profile) = chosen_profile(matches, terminal)?;
        let profile_url = normal(profile.url.as_deref().unwrap_or(DEFAULT_URL))?;
        let url = text(matches, "global.url").map_or_else(|| Ok(profile_url.clone()), |url| normal(&url))?;
        if !matches.get_flag("global.allow-plain-http") {
            refuse_plain(&url)?;
        }
        let organization = text(matches, "global.organization")
            .or(profile.organization)
            .unwrap_or_default();
        let quiet = matches.get_flag("global.quiet");
        let (token, token_source) = if let Some(path) = matches.get_one::<PathBuf>("global.token-file") {
            (
                token_of_file(path, terminal, quiet)?,
                format!("the file {}", path.display()),
            )
        } else if let Some(token) = &terminal.surroundings.token {
            (token.clone(), "PROVOST_TOKEN".into())
        } else if let Some(token) = profile.token {
            if url != profile_url {
                let line =
                    format!("the token of the profile {name} is for {profile_url} and is not sent to {url}");
                return Err(
                    Failure::usage(line).and("name another token: --token-file FILE or PROVOST_TOKEN")
                );
            }
            (token, format!("the profile {name}"))
        } else {
            let line =
                "there is no token: --token-file FILE, PROVOST_TOKEN or a profile (`provost profile set`)";
            return Err(Failure::new(Exit::Forbidden, line));
        };
        let token = checked_token(token.expose())
            .ok_or_else(|| Failure::usage(format!("{token_source} does not hold one token on one line")))?;
        Ok(Self {
            url,
            organization,
            token,
            token_source,
            timeout: Duration::from_secs(matches.get_one("global.timeout").copied().unwrap_or(60)),
            retries: matches.get_one("global.retries").copied().unwrap_or(4),
            ca_cert: matches.get_one::<PathBuf>("global.ca-cert").cloned(),
        })
    }
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
pub(super) fn checked_token(text: &str) -> Option<Secret<String>> {
    let token = text.trim_ascii();
    let fits = !token.is_empty() && token.len() as u64 <= MAX_TOKEN_BYTES;
    (fits && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Secret::new(token.to_owned()))
}

fn token_of_file(path: &Path, terminal: &Terminal, quiet: bool) -> Result<Secret<String>, Failure> {
    let shown = path.display();
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
fn refuse_plain(url: &str) -> Result<(), Failure> {
    let uri: Uri = url.parse().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    let is_this_machine = host == "localhost" || address.is_ok_and(|ip| ip.is_loopback());
    if uri.scheme_str() == Some("https") || is_this_machine {
        return Ok(());
    }
    let line = format!("{url} would carry the token over the network unencrypted");
    Err(Failure::usage(line).and("use an https URL, or say --allow-plain-http"))
}
