//! Completions for shells.

use clap::Command;
use clap_complete::Shell;
use std::io::Write;

/// Writes the completion script of a shell for the whole command line.
pub fn completions(command: &mut Command, shell: Shell, out: &mut dyn Write) {
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, command, name, out);
}
