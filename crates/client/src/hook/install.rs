//! `provost hook install CLIENT`: what makes a client ask, and what the hook needs to know.

use super::ask::Ask;
use super::places::{self, Whose};
use super::run::{client_arg, config_arg};
use super::settings::{self, Homes, HookSettings, UserFrom};
use super::settings_text::SettingsFile;
use super::{guarded, managed};
use crate::agent::places::{SYSTEM, USER};
use crate::cli::{Exit, Failure, Terminal, connection_args, consent_args, replace_file, server_named};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use provost_agent::{Agent, Folder};
use provost_hooks::{Client, Mode, command_line, hooks};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// LIMIT: how long the server is waited for when the token is tried.
const TRIAL: Duration = Duration::from_secs(10);

/// Returns the command.
pub fn command() -> Command {
    let flags = [
        mode_arg(),
        Arg::new("user")
            .long("user")
            .value_name("WORD")
            .conflicts_with("user-from")
            .help("Whose agent it is: a login name, a mail address or an id; with the token of a service account"),
        Arg::new("user-from")
            .long("user-from")
            .value_name("SOURCE")
            .value_parser(PossibleValuesParser::new(["os", "git"]))
            .help("Takes the word from the system's account, or from user.email of git's global settings"),
        Arg::new("program")
            .long("program")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .help("The program that the client starts [default: this one]"),
        Arg::new("managed")
            .long("managed")
            .value_name("PROFILE")
            .conflicts_with_all(["system", "print"])
            .help("Publishes the registration into a profile of managed configuration instead"),
        Arg::new("print")
            .long("print")
            .action(ArgAction::SetTrue)
            .help("Shows what would stand in the client's settings, and changes nothing"),
        Arg::new("unchecked")
            .long("unchecked")
            .action(ArgAction::SetTrue)
            .help("Writes without asking the server what the token may do, as for an image"),
        config_arg(),
        crate::managed_config::publish::yes_arg(),
    ];
    Command::new("install")
        .about("Make a client ask before tools run, and after them")
        .arg(client_arg().required(true))
        .args(flags)
        .args(places::args())
        .args(connection_args())
        .args(consent_args())
}

/// Returns the flag of the mode.
pub fn mode_arg() -> Arg {
    Arg::new("mode")
        .long("mode")
        .value_name("MODE")
        .default_value("enforce")
        .value_parser(PossibleValuesParser::new(["enforce", "monitor"]))
        .help("enforce: what is decided is obeyed, and nothing runs without a decision; monitor: it is recorded")
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = chosen(matches)?;
    let mode = mode(matches);
    let program = program(matches)?;
    let mut flags = Vec::new();
    if let Some(config) = matches.get_one::<PathBuf>("config") {
        let config = std::path::absolute(config).unwrap_or_else(|_| config.clone());
        flags.extend(["--config".to_owned(), config.display().to_string()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let line = command_line(&program.display().to_string(), client, mode, &flags);
    if matches.get_flag("print") {
        return Ok(terminal.print(printed(client, mode, &line, &program)?.as_bytes())?);
    }
    if let Some(profile) = matches.get_one::<String>("managed") {
        return managed::publish((client, mode, &line), profile, matches, terminal).await;
    }
    let (whose, root, homes) = (Whose::said(matches), places::root(matches), Homes::of(terminal));
    let file = SettingsFile::read(client, places::file(client, whose, &root, &homes)?)?;
    let text = file.with(mode, &line, &program)?;
    let place = match (matches.get_one::<PathBuf>("config"), whose) {
        (Some(path), _) => path.clone(),
        (None, Whose::Machine) => root.join(settings::OF_THE_MACHINE.trim_start_matches('/')),
        (None, Whose::User) => settings::of_the_user(&homes)
            .ok_or_else(|| Failure::usage("there is no home folder; say --config FILE"))?,
    };
    let wanted = wanted(matches, terminal, &place, &homes)?;
    let wanted = if matches.get_flag("unchecked") {
        wanted
    } else {
        tried(wanted, &homes).await?
    };
    // The hook refuses without its file: it is there before the client asks.
    keep(&place, &wanted, whose)?;
    let new_mode = if whose == Whose::Machine { 0o644 } else { 0o600 };
    let is_changed = file.replace(&text, new_mode)?;
    terminal.note(&format!("{}: written", place.display()));
    let shown = file.path().display();
    terminal.note(&if is_changed {
        format!(
            "{shown}: {} asks before tools and prompts, and after tools ({})",
            client.name(),
            mode.word()
        )
    } else {
        format!("{shown}: unchanged, {} asks already", client.name())
    });
    if file.backup().exists() {
        terminal.note(&format!("{}: what was there before", file.backup().display()));
    }
    for line in guarded::not_guarded(client, whose, mode) {
        terminal.note(&format!("not guarded: {line}"));
    }
    terminal.note("next: provost hook doctor");
    Ok(())
}

/// Returns the client that was named.
pub fn chosen(matches: &ArgMatches) -> Result<Client, Failure> {
    let named = matches
        .get_one::<String>("client")
        .and_then(|word| Client::named(word));
    named.ok_or_else(|| Failure::usage("say which client: claude-code, codex or gemini"))
}

fn mode(matches: &ArgMatches) -> Mode {
    let named = matches
        .get_one::<String>("mode")
        .and_then(|word| Mode::named(word));
    named.unwrap_or(Mode::Enforce)
}

fn program(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    let cannot = |error| {
        Failure::usage(format!(
            "the path of the program cannot be told: {error}; say --program FILE"
        ))
    };
    match matches.get_one::<PathBuf>("program") {
        // A relative command would be looked for in the folder of the project.
        Some(path) => std::path::absolute(path).map_err(cannot),
        None => std::env::current_exe().map_err(cannot),
    }
}

fn printed(client: Client, mode: Mode, line: &str, program: &Path) -> Result<String, Failure> {
    if client == Client::Codex {
        let folder = program.parent().unwrap_or(Path::new("/")).display().to_string();
        let text = provost_hooks::merged_text("", &Map::new(), line, &folder);
        return text.map_err(|why| Failure::new(Exit::Conflict, why.0));
    }
    Ok(format!("{:#}\n", json!({ "hooks": hooks(client, mode, line) })))
}

/// Returns what the file of the hook shall say: what it says already, and what the flags say.
fn wanted(
    matches: &ArgMatches,
    terminal: &Terminal,
    place: &Path,
    homes: &Homes,
) -> Result<HookSettings, Failure> {
    let kept = place
        .exists()
        .then(|| HookSettings::load(place).map_err(Failure::usage));
    let kept = kept.transpose()?;
    let is_flag = |id: &str| {
        matches
            .value_source(id)
            .is_some_and(|source| source != clap::parser::ValueSource::DefaultValue)
    };
    let names_server = ["global.url", "global.organization", "global.profile"]
        .iter()
        .any(|id| is_flag(id));
    let (url, organization) = match &kept {
        Some(kept) if !names_server => (kept.url.clone(), kept.organization.clone()),
        _ => server_named(matches, terminal, || of_an_agent(terminal))?,
    };
    let token_file = match (matches.get_one::<PathBuf>("global.token-file"), &kept) {
        (Some(path), _) => portable(path, homes)?,
        (None, Some(kept)) => kept.token_file.clone(),
        (None, None) => {
            let line = "say --token-file FILE: the token with which the hook asks, which may do nothing else";
            return Err(Failure::usage(line).and(
                "make one: provost service-accounts create --name hooks --permission-role operator --scopes policies:decide \
                 --reason 'hooks' --token-out hook.token",
            ));
        }
    };
    let from = matches
        .get_one::<String>("user-from")
        .map(|word| match word.as_str() {
            "os" => UserFrom::Os,
            _ => UserFrom::Git,
        });
    let user = matches.get_one::<String>("user").cloned();
    let (user, user_from) = match kept.as_ref().filter(|_| user.is_none() && from.is_none()) {
        Some(kept) => (kept.user.clone(), kept.user_from),
        None => (user, from),
    };
    let ca_cert = match matches.get_one::<PathBuf>("global.ca-cert") {
        Some(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        None => kept.as_ref().and_then(|kept| kept.ca_cert.clone()),
    };
    Ok(HookSettings {
        url,
        organization,
        token_file,
        user,
        user_from,
        ca_cert,
        allow_plain_http: matches.get_flag("global.allow-plain-http")
            || kept.is_some_and(|kept| kept.allow_plain_http && !names_server),
    })
}

/// Returns the server and the organization of an agent that is enrolled here: one's own, or the machine's where its folder may be read.
fn of_an_agent(terminal: &Terminal) -> Option<(String, String)> {
    let own = terminal.surroundings.home.as_ref().map(|home| home.join(USER));
    let device = own.into_iter().chain([PathBuf::from(SYSTEM)]).find_map(|path| {
        let agent = Agent::open(&Folder::open(&path).ok()?).ok()?;
        Some(agent.device)
    })?;
    terminal.note(&format!(
        "the agent of this machine is enrolled at {} in {}: hooks ask there",
        device.server, device.organization
    ));
    Some((device.server, device.organization))
}

/// Returns a path that means the same in every folder; one below the home folder stays below that of whoever runs the hook.
fn portable(path: &Path, homes: &Homes) -> Result<String, Failure> {
    let path = match path.strip_prefix("~") {
        Ok(below) => return Ok(format!("~/{}", below.display())),
        Err(_) => std::path::absolute(path),
    };
    let path =
        path.map_err(|error| Failure::usage(format!("the path of the token cannot be told: {error}")))?;
    let below = homes.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
    Ok(match below {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    })
}

/// Asks the server whose token it is, and returns the settings with the user that follows.
///
/// Errors: the token is refused, may not ask for decisions, or nobody says whose agent it is.
async fn tried(wanted: HookSettings, homes: &Homes) -> Result<HookSettings, Failure> {
    let kept = wanted.token(homes).map_err(Failure::usage)?;
    let ask = Ask {
        settings: &wanted,
        token: &kept.token,
        path: "capabilities",
        body: None,
        limit: TRIAL,
    };
    let answer = ask.answer().await.map_err(|why| {
        Failure::new(Exit::Unreachable, format!("{why}; nothing was written"))
            .and("--unchecked writes without asking")
    })?;
    let holder: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let scopes = holder["scopes"].as_array().into_iter().flatten();
    if !scopes.clone().any(|scope| scope == "policies:decide") {
        let line = "the token may not ask for decisions: it lacks policies:decide; nothing was written";
        return Err(Failure::new(Exit::Forbidden, line));
    }
    let is_said = wanted.user.is_some() || wanted.user_from.is_some();
    if holder["principal"]["type"] == "service_account" {
        if is_said {
            return Ok(wanted);
        }
        let line =
            "the token is a service account's: say whose agent it is, with --user WORD or --user-from os|git";
        return Err(Failure::usage(line).and("nothing was written"));
    }
    let id = holder["principal"]["id"].as_str().unwrap_or_default().to_owned();
    if is_said && wanted.user.as_deref() != Some(&id) {
        let line =
            "the token is a person's, who is the user: leave --user and --user-from out; nothing was written";
        return Err(Failure::usage(line));
    }
    Ok(HookSettings {
        user: Some(id),
        ..wanted
    })
}

fn keep(place: &Path, wanted: &HookSettings, whose: Whose) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Output, format!("cannot write {}: {error}", place.display()))
    };
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    // Of the machine: every person's hook reads it. It holds no token.
    let mode = if whose == Whose::Machine { 0o644 } else { 0o600 };
    replace_file(place, wanted.text()?.as_bytes(), mode).map_err(cannot)
}
