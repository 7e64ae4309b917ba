//! `provost completions`.

use super::failure::Outcome;
use super::show;
use provost_client::complete::{Shell, script};

/// Print a script that completes commands, flags, and names of the server in a shell.
#[derive(clap::Parser)]
#[command(
    name = "completions",
    after_help = "Examples:
  provost completions bash > /etc/bash_completion.d/provost
  provost completions zsh > ~/.zfunc/_provost"
)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        show::out(script(self.shell))
    }
}
