//! The settings of each client in which a hook may stand.

use super::settings::Homes;
use crate::cli::Failure;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use provost_hooks::Client;
use std::path::{Path, PathBuf};

/// Whose settings they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of one person, who can change them.
    User,
    /// Those of the machine, which bind every person on it.
    Machine,
}

impl Whose {
    /// Returns what the flags say.
    pub fn said(matches: &ArgMatches) -> Self {
        if matches.get_flag("system") {
            Self::Machine
        } else {
            Self::User
        }
    }
}

/// Returns the flags that choose settings.
pub fn args() -> [Arg; 2] {
    [
        Arg::new("system")
            .long("system")
            .action(ArgAction::SetTrue)
            .help("The settings of the machine, which a person cannot switch off; the only ones for Codex"),
        root_arg(),
    ]
}

/// Returns the flag that names the folder of a machine.
pub fn root_arg() -> Arg {
    Arg::new("root")
        .long("root")
        .value_name("DIR")
        .default_value("/")
        .hide_default_value(true)
        .value_hint(ValueHint::DirPath)
        .value_parser(value_parser!(PathBuf))
        .help("Where the files of the machine lie, for the image of another one [default: /]")
}

/// Returns the folder of the machine.
pub fn root(matches: &ArgMatches) -> PathBuf {
    matches
        .get_one("root")
        .cloned()
        .unwrap_or_else(|| PathBuf::from("/"))
}

/// Returns the file of a client's settings.
///
/// Errors: usage, where the client obeys no hooks in such settings, or there is no home folder.
pub fn file(client: Client, whose: Whose, root: &Path, homes: &Homes) -> Result<PathBuf, Failure> {
    let below = match (whose, client) {
        (Whose::Machine, Client::Codex) => "etc/codex/requirements.toml",
        (Whose::Machine, Client::ClaudeCode) if cfg!(target_os = "macos") => {
            "Library/Application Support/ClaudeCode/managed-settings.json"
        }
        (Whose::Machine, Client::ClaudeCode) => "etc/claude-code/managed-settings.json",
        (Whose::Machine, Client::Gemini) if cfg!(target_os = "macos") => {
            "Library/Application Support/GeminiCli/settings.json"
        }
        (Whose::Machine, Client::Gemini) => "etc/gemini-cli/settings.json",
        (Whose::User, Client::Codex) => {
            let line = "Codex obeys hooks of the machine's settings alone: a person has to trust each of their own first";
            return Err(Failure::usage(line).and("install it as root: provost hook install codex --system"));
        }
        (Whose::User, Client::ClaudeCode) => {
            return match &homes.claude {
                Some(folder) => Ok(folder.join("settings.json")),
                None => Ok(home(homes)?.join(".claude/settings.json")),
            };
        }
        (Whose::User, Client::Gemini) => return Ok(home(homes)?.join(".gemini/settings.json")),
    };
    Ok(root.join(below))
}

fn home(homes: &Homes) -> Result<&PathBuf, Failure> {
    homes
        .home
        .as_ref()
        .ok_or_else(|| Failure::usage("there is no home folder in which the client's settings could be"))
}
