//! `provost directory import`: users and groups from a file, all of it or nothing.

mod chunks;
mod columns;
mod encoding;
mod import;
pub(crate) mod table;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: "directory",
        verb: "import",
        command: import::command,
        examples: &[
            "provost directory import people.csv --reason 'monthly import'",
            "provost directory import okta-users.csv --format okta --directory-id okta --dry-run",
            "provost directory import people.jsonl --mode replace --directory-id contractors",
        ],
        run: |matches, terminal| Box::pin(import::run(matches, terminal)),
    }]
}
