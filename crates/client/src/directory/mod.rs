//! `provost directory import`: users and groups from a file, all of it or nothing.

mod chunks;
mod import;

use crate::cli::Own;

/// Returns the commands.
pub fn own() -> [Own; 1] {
    [Own {
        group: "directory",
        verb: "import",
        command: import::command,
        examples: &[
            "provost directory import people.csv --reason 'monthly import'",
            "provost directory import people.jsonl --mode replace --directory-id contractors",
        ],
        run: |matches, terminal| Box::pin(import::run(matches, terminal)),
    }]
}
