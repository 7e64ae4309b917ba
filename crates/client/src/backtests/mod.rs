//! `provost backtests run` and `provost backtests report`: what a policy would have done, for people and for CI.

mod answer;
mod candidate;
mod gate;
mod markdown;
pub(crate) mod page;
mod report;
mod rule_words;
mod run;
mod saved;
mod table;
mod tried;
mod view;
mod wait;
mod window;
pub(crate) mod words;

pub use candidate::{FAMILIES, definition_of};
pub use saved::json as json_file;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 2] {
    let run = HandCommand {
        group: "backtests",
        verb: "run",
        command: run::command,
        examples: &[
            "provost backtests run --candidate refunds.json --days 90 --wait --reason 'before it goes live'",
            "provost backtests run --candidate draft:refunds/approval --html report.html --reason review",
            "provost backtests run --candidate set.json --fail-on 'block_to_allow>0' --fail-on 'unknown>0' --reason CI",
        ],
        run: |matches, terminal| Box::pin(run::run(matches, terminal)),
    };
    let report = HandCommand {
        group: "backtests",
        verb: "report",
        command: report::command,
        examples: &[
            "provost backtests report btr_01m7w5ws2557r5efywan1hf0t3 --html report.html",
            "provost backtests report btr_01m7w5ws2557r5efywan1hf0t3 --json run.json --wait",
            "provost backtests report --from run.json --html - > report.html",
        ],
        run: |matches, terminal| Box::pin(report::run(matches, terminal)),
    };
    [run, report]
}
