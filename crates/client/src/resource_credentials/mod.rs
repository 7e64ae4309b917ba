//! `provost resource-credentials verify`: can the secret be fetched? Nobody gets to see it.

mod verify;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: "resource-credentials",
        verb: "verify",
        command: verify::command,
        examples: &["provost resource-credentials verify res_01… cred_01… --wait --reason 'after the move'"],
        run: |matches, terminal| Box::pin(verify::run(matches, terminal)),
    }]
}
