//! Client commands written by hand, beside those made from the API document.

use super::failure::{EXIT_CODES, Failure};
use super::jq::warn_unread;
use super::terminal::Terminal;
use clap::{ArgMatches, Command};
use std::pin::Pin;

/// What running a command comes to.
pub type CommandFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

/// One command written by hand: `provost <group> <verb>`, or `provost <group>` alone where the verb is empty.
pub struct HandCommand {
    /// The group; one that the API has keeps its own verbs.
    pub group: &'static str,
    /// The verb. One that the API has is replaced.
    pub verb: &'static str,
    /// The command of the verb with its flags, those of [`super::connection_args`] among them.
    pub command: fn() -> Command,
    /// Commands that a person can type, for the end of the help.
    pub examples: &'static [&'static str],
    /// Does it.
    pub run: for<'a> fn(&'a ArgMatches, &'a Terminal) -> CommandFuture<'a>,
}

impl HandCommand {
    /// Says whether it has no verb.
    pub fn is_of_one_word(&self) -> bool {
        self.verb.is_empty()
    }

    /// Returns the command with its examples and the exit codes at the end of its help.
    pub fn explained(&self) -> Command {
        let examples = self.examples.join("\n  ");
        (self.command)().after_long_help(format!("Examples:\n  {examples}\n\n{EXIT_CODES}"))
    }

    /// Says whether these words name it.
    pub fn is(&self, group: &str, verb: &str) -> bool {
        self.group == group && self.verb == verb
    }
}

/// Tells a person how a command ended and returns the exit code of the process.
pub fn report(done: Result<(), Failure>, terminal: &Terminal) -> u8 {
    let Err(failure) = done else {
        warn_unread(terminal);
        return 0;
    };
    for (place, line) in failure.lines.iter().enumerate() {
        terminal.note(&if place == 0 {
            format!("error: {line}")
        } else {
            line.clone()
        });
    }
    failure.exit as u8
}
