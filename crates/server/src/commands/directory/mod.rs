//! `provost directory import`: users and groups from a file, all of it or nothing.

mod chunks;
mod import;

use crate::cli::Own;

/// Returns the commands.
pub fn own() -> [Own; 1] {
    [Own {
        group: "directory",
        command: import::command,
        run: |matches, terminal| Box::pin(import::run(matches, terminal)),
    }]
}
