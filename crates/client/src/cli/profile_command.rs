//! `provost profile`: names for servers, so that every other command needs no flags.

use super::column::Column;
use super::connection::{checked_token, list_output_arg, normal, profile_file_arg, profile_path, text};
use super::failure::{EXIT_CODES, Exit, Failure};
use super::jq::jq_arg;
use super::print::{Form, Printer};
use super::profile::{Profile, Profiles, SignIn};
use super::terminal::Terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use provost_words::Secret;
use serde_json::{Value, json};
use std::path::Path;

/// LIMIT: a token has at most 8 KiB (D2.1).
const MAX_INPUT_BYTES: u64 = 16 << 10;

/// Returns the command.
pub fn command() -> Command {
    let name = || {
        Arg::new("path.name")
            .value_name("NAME")
            .required(true)
            .value_parser(name_of_profile)
    };
    let set = Command::new("set")
        .about("Makes a profile or changes one; the token is asked for, or read from standard input")
        .arg(name())
        .arg(
            Arg::new("global.url")
                .long("url")
                .value_name("URL")
                .value_hint(ValueHint::Url)
                .help("The server"),
        )
        .arg(
            Arg::new("global.organization")
                .long("organization")
                .value_name("KEY")
                .help("The organization's key"),
        )
        .arg(
            Arg::new("global.no-token")
                .long("no-token")
                .action(ArgAction::SetTrue)
                .help("Neither asks for a token nor reads one; an earlier one stays"),
        )
        .after_long_help("Example:\n  provost profile set work --url https://provost.example.com --organization acme < token-file");
    Command::new(super::PROFILE)
        .about("Keeps names for servers, with organization and token")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args([
            profile_file_arg().global(true),
            list_output_arg().global(true),
            jq_arg().global(true),
        ])
        .after_long_help(EXIT_CODES)
        .subcommand(set)
        .subcommand(
            Command::new("list")
                .about("Lists the profiles; tokens are not shown")
                .after_long_help("Example:\n  provost profile list --output json"),
        )
        .subcommand(
            Command::new("use")
                .about("Makes a profile the one that is used when none is named")
                .after_long_help("Example:\n  provost profile use work")
                .arg(name()),
        )
        .subcommand(
            Command::new("remove")
                .about("Forgets a profile and its token")
                .after_long_help("Example:\n  provost profile remove work")
                .arg(name()),
        )
}

/// A name is part of a file and of command lines, so it is one plain word.
pub(super) fn name_of_profile(text: &str) -> Result<String, String> {
    let is_word = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let fits = matches!(text.len(), 1..=64) && is_word && !text.starts_with('-');
    fits.then(|| text.to_owned())
        .ok_or_else(|| "1 to 64 letters, digits, - _ .".into())
}

/// Does what the command says.
pub(super) fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let Some((verb, matches)) = matches.subcommand() else {
        return Err(Failure::usage("say what to do with the profiles"));
    };
    let (path, _) = profile_path(matches, terminal)
        .ok_or_else(|| Failure::usage("there is no home folder: name the file with --profile-file"))?;
    let token = match verb {
        // Asked for before the lock is taken: nobody waits for a person.
        "set" if !matches.get_flag("global.no-token") => {
            Some(read_token(terminal, "token (empty: none, or the earlier one)")?)
        }
        _ => None,
    };
    let _lock = match verb {
        "set" | "use" | "remove" => Some(Profiles::lock(&path)?),
        _ => None,
    };
    let mut profiles = Profiles::load(&path)?.unwrap_or_default();
    let name = matches
        .try_get_one::<String>("path.name")
        .ok()
        .flatten()
        .cloned()
        .unwrap_or_default();
    match verb {
        "set" => set(&mut profiles, &name, token, (matches, terminal))?,
        "use" => {
            known(&profiles, &name)?;
            profiles.current = Some(name);
        }
        "remove" => {
            known(&profiles, &name)?;
            let removed = profiles.by_name.remove(&name);
            note_sign_in(
                removed.as_ref().and_then(|profile| profile.sign_in.as_ref()),
                terminal,
            );
            profiles.current = profiles.current.filter(|current| *current != name);
        }
        _ => return list(&profiles, matches, terminal),
    }
    save(&profiles, &path)?;
    terminal.note(&format!("written: {}", path.display()));
    Ok(())
}

fn known(profiles: &Profiles, name: &str) -> Result<(), Failure> {
    let is_known = profiles.by_name.contains_key(name);
    is_known
        .then_some(())
        .ok_or_else(|| Failure::usage(format!("there is no profile {name}")))
}

fn save(profiles: &Profiles, path: &Path) -> Result<(), Failure> {
    let cannot = |error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()));
    profiles.save(path).map_err(cannot)
}

fn set(
    profiles: &mut Profiles,
    name: &str,
    token: Option<Secret<String>>,
    (matches, terminal): (&ArgMatches, &Terminal),
) -> Result<(), Failure> {
    let url = text(matches, "global.url").map(|url| normal(&url)).transpose()?;
    let organization = text(matches, "global.organization");
    if organization
        .as_ref()
        .is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(Failure::usage(
            "an organization's key has no spaces and no special characters",
        ));
    }
    let token = token.filter(|token| !token.expose().trim_ascii().is_empty());
    let token = token.map(|token| {
        checked_token(token.expose()).ok_or_else(|| Failure::usage("that is not one token on one line"))
    });
    let token = token.transpose()?;
    if profiles.by_name.is_empty() {
        profiles.current = Some(name.to_owned());
    }
    let profile: &mut Profile = profiles.by_name.entry(name.to_owned()).or_default();
    // A token must not follow its profile to another server.
    if url.is_some() && url != profile.url && profile.token.take().is_some() && token.is_none() {
        terminal.note("the earlier token belonged to another server and is forgotten");
    }
    if token.is_some() || profile.token.is_none() {
        note_sign_in(profile.sign_in.take().as_ref(), terminal);
    }
    profile.url = url.or(profile.url.take());
    profile.organization = organization.or(profile.organization.take());
    profile.token = token.or(profile.token.take());
    Ok(())
}

/// Says of a sign-in that is forgotten here that it goes on elsewhere.
fn note_sign_in(sign_in: Option<&SignIn>, terminal: &Terminal) {
    if sign_in.is_some() {
        terminal.note(
            "the sign-in of this profile is forgotten here; its session goes on until it ends (`provost logout` would end it)",
        );
    }
}

/// Asks for a token, or reads it from standard input.
///
/// Errors: usage, when none can be read.
pub(super) fn read_token(terminal: &Terminal, question: &str) -> Result<Secret<String>, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("no token was read: {error}"));
    if let Some(prompt) = &terminal.prompt {
        let token = prompt.hidden(question);
        return token.map(Secret::new).map_err(cannot);
    }
    let bytes = terminal.read_input(MAX_INPUT_BYTES).map_err(cannot)?;
    let text = String::from_utf8(bytes);
    text.map(Secret::new)
        .map_err(|_| Failure::usage("standard input is not UTF-8 text"))
}

fn list(profiles: &Profiles, matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let row = |(name, profile): (&String, &Profile)| {
        let is_current = profiles.current.as_ref() == Some(name);
        let mut row = json!({ "name": name, "hasToken": profile.token.is_some(), "isCurrent": is_current });
        for (member, value) in [("url", &profile.url), ("organization", &profile.organization)] {
            if let Some(value) = value {
                row[member] = value.as_str().into();
            }
        }
        row
    };
    let rows: Vec<Value> = profiles.by_name.iter().map(row).collect();
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: false,
    };
    let columns = ["name", "url", "organization", "isCurrent", "hasToken"].map(Column::declared);
    Ok(printer.list(&json!({ "profiles": rows }), "profiles", &columns)?)
}
