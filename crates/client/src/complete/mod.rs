//! Completions: a shell asks the program itself (`provost __complete -- WORDS`), and its script only asks.
//!
//! A script of all commands and flags would be a megabyte that every new shell reads, and would know no name of any server.

mod scripts;

pub use scripts::{Shell, script};

use crate::cli::{self, KnownWord, Terminal};
use crate::commands::filled_if_group;
use clap::{Arg, Command};
use provost_words::visible::visible;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

/// What a shell says first.
const ASKED: &str = "__complete";

/// Answers a shell; nothing when none asks.
pub fn complete_if_asked(words: impl Iterator<Item = OsString>, root: fn() -> Command) -> Option<ExitCode> {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    if words.next()? != ASKED {
        return None;
    }
    let words: Vec<String> = words.skip_while(|word| word == "--").collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let terminal = Terminal::system();
    let found = runtime.block_on(completions(root(), &words, &terminal));
    let mut text = String::new();
    for (word, about) in found {
        let about = about.lines().next().unwrap_or_default();
        text.push_str(&format_line(&word, about));
    }
    // A shell that went away reads nothing, and misses nothing.
    let _ = terminal.print(text.as_bytes());
    Some(ExitCode::SUCCESS)
}

fn format_line(word: &str, about: &str) -> String {
    format!("{}\t{}\n", visible(word), visible(about).replace('\t', " "))
}

/// Returns the words that the last of these may become, with what they mean.
pub async fn completions(root: Command, words: &[String], terminal: &Terminal) -> Vec<KnownWord> {
    let words = joined(words);
    let Some((last, before)) = words.split_last() else {
        return Vec::new();
    };
    let mut reading = Reading::of(root);
    for word in before {
        reading.take(word);
    }
    let mut found = reading.candidates(last, terminal).await;
    found.retain(|(word, _)| word.starts_with(last.as_str()));
    found
}

/// Bash takes `--output=js` for three words.
fn joined(words: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let is_sign = word == "=" && place > 0;
        // A lone sign at the end means that the value begins behind it.
        if is_sign && place + 1 == words.len() {
            joined.push(String::new());
        } else if !is_sign {
            joined.push(word.clone());
        }
    }
    joined
}

/// How far a command line was read.
struct Reading {
    command: Command,
    depth: usize,
    /// The flag that waits for its value.
    open: Option<Arg>,
    /// The words of the path, by the parameters that take them.
    taken: BTreeMap<String, String>,
    positionals: usize,
    /// The flags that say how the server is reached, as they were typed.
    connection: Vec<String>,
}

impl Reading {
    fn of(command: Command) -> Self {
        Self {
            command,
            depth: 0,
            open: None,
            taken: BTreeMap::new(),
            positionals: 0,
            connection: Vec::new(),
        }
    }

    fn take(&mut self, word: &str) {
        if let Some(arg) = self.open.take() {
            self.note(&arg, word);
            return;
        }
        if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = flag
                .split_once('=')
                .map_or((flag, None), |(name, value)| (name, Some(value)));
            let arg = self.flag(|arg| longs(arg).contains(&name));
            self.open_or_note(arg, value);
        } else if word.len() == 2 && word.starts_with('-') {
            let short = word.chars().nth(1);
            let arg = self.flag(|arg| arg.get_short() == short);
            self.open_or_note(arg, None);
        } else if let Some(inner) = self.command.find_subcommand(word).cloned() {
            self.command = if self.depth == 0 {
                filled_if_group(inner)
            } else {
                inner
            };
            self.depth += 1;
        } else {
            if let Some(arg) = self.command.get_positionals().nth(self.positionals)
                && let Some(parameter) = parameter(arg)
            {
                self.taken.insert(parameter, word.to_owned());
            }
            self.positionals += 1;
        }
    }

    fn open_or_note(&mut self, arg: Option<Arg>, value: Option<&str>) {
        let Some(arg) = arg else { return };
        match value {
            Some(value) => self.note(&arg, value),
            None if arg.get_action().takes_values() && !arg.is_require_equals_set() => self.open = Some(arg),
            None => self.note(&arg, ""),
        }
    }

    /// Keeps a flag of the connection.
    fn note(&mut self, arg: &Arg, value: &str) {
        let is_of_connection = cli::connection_args()
            .iter()
            .any(|known| known.get_id() == arg.get_id());
        let Some(long) = arg.get_long().filter(|_| is_of_connection) else {
            return;
        };
        self.connection.push(if arg.get_action().takes_values() {
            format!("--{long}={value}")
        } else {
            format!("--{long}")
        });
    }

    fn flag(&self, is_meant: impl Fn(&Arg) -> bool) -> Option<Arg> {
        self.command.get_arguments().find(|arg| is_meant(arg)).cloned()
    }

    async fn candidates(&self, last: &str, terminal: &Terminal) -> Vec<KnownWord> {
        if let Some(arg) = &self.open {
            return self.values(arg, terminal).await;
        }
        if last.starts_with('-') {
            return self.flags();
        }
        let verbs = self.command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs: Vec<KnownWord> = verbs
            .map(|verb| (verb.get_name().to_owned(), about(verb.get_about())))
            .collect();
        if !verbs.is_empty() {
            return verbs;
        }
        match self.command.get_positionals().nth(self.positionals) {
            Some(arg) => self.values(arg, terminal).await,
            None => self.flags(),
        }
    }

    fn flags(&self) -> Vec<KnownWord> {
        let flags = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        flags
            .filter_map(|arg| Some((format!("--{}", arg.get_long()?), about(arg.get_help()))))
            .collect()
    }

    async fn values(&self, arg: &Arg, terminal: &Terminal) -> Vec<KnownWord> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            return possible
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| (value.get_name().to_owned(), about(value.get_help())))
                .collect();
        }
        let is_profile = arg.get_id() == "global.profile" || self.command.get_name() == cli::PROFILE;
        let is_name = self.depth > 1 && arg.get_id() == "path.name";
        if is_profile || is_name {
            return cli::known_profiles(&self.connection, terminal);
        }
        match parameter(arg) {
            Some(parameter) => cli::known_records(&parameter, &self.connection, &self.taken, terminal).await,
            None => Vec::new(),
        }
    }
}

fn longs(arg: &Arg) -> Vec<&str> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases).collect()
}

/// Returns the parameter of the path that a positional says.
fn parameter(arg: &Arg) -> Option<String> {
    arg.get_id().as_str().strip_prefix("path.").map(str::to_owned)
}

fn about(words: Option<&clap::builder::StyledStr>) -> String {
    words.map(ToString::to_string).unwrap_or_default()
}
