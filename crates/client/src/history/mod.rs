//! `provost history import`: recorded events from a file.

mod import;
mod lines;
mod tool_calls;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: "history",
        verb: "import",
        command: import::command,
        examples: &[
            "provost history import events.jsonl",
            "provost history import calls.jsonl --format tool-calls --spread 60d",
            "zcat events.jsonl.gz | provost history import - --source gateway",
        ],
        run: |matches, terminal| Box::pin(import::run(matches, terminal)),
    }]
}
