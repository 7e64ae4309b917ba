//! `provost completions`.

use super::failure::Outcome;
use super::show;
use clap_complete::Shell;

/// Print a script that completes commands and flags in a shell.
#[derive(clap::Parser)]
#[command(
    name = "completions",
    after_help = "Examples:
  provost completions bash > /etc/bash_completion.d/provost
  provost completions zsh > ~/.zfunc/_provost"
)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "provost", &mut script);
        show::out(&String::from_utf8_lossy(&script))
    }
}
