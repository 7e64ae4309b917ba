//! `provost policies test|explain|lint|apply|diff|export`, and `--strict` of the commands that write a policy.
//!
//! ```text
//!   no-shell.json          {"family": "content", "definition": {…}}          what is applied
//!   no-shell.cases.json    {"cases": [{"event": {…}, "expect": {…}}, …]}     what it is tested with
//! ```
//!
//! INVARIANT FP-1: nothing is judged here: what a policy says of a case, and what is wrong with it, the server says.
//! INVARIANT FP-2: nothing is written before all of a folder was planned; a policy of another manager is never written; nothing is
//! deleted without `--prune`.

mod apply;
mod compare;
mod explain;
mod export;
mod files;
mod lint;
mod remote;
mod strict;
mod test;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> Vec<HandCommand> {
    let own = |verb, command, examples, run| HandCommand {
        group: "policies",
        verb,
        command,
        examples,
        run,
    };
    let mut all = vec![
        own(
            "test",
            test::command,
            &[
                "provost policies test no-shell.json",
                "provost policies test policies/ -q",
            ],
            |matches, terminal| Box::pin(test::run(matches, terminal)),
        ),
        own(
            "explain",
            explain::command,
            &[
                "provost policies explain event.json",
                "provost policies explain hev_01m7wmt4fsqkvszm5n6j2y7tj6",
                "provost policies explain event.json --policy no-shell.json",
            ],
            |matches, terminal| Box::pin(explain::run(matches, terminal)),
        ),
        own(
            "lint",
            lint::command,
            &[
                "provost policies lint no-shell.json",
                "provost policies lint policies/ --strict",
            ],
            |matches, terminal| Box::pin(lint::run(matches, terminal)),
        ),
        own(
            "diff",
            compare::command,
            &[
                "provost policies diff -f policies/",
                "provost policies diff -f policies/ --check",
            ],
            |matches, terminal| Box::pin(compare::run(matches, terminal)),
        ),
        own(
            "apply",
            apply::command,
            &[
                "provost policies apply -f policies/ --reason 'release 12'",
                "provost policies apply -f policies/ --strict --prune --confirm --reason 'release 12'",
            ],
            |matches, terminal| Box::pin(apply::run(matches, terminal)),
        ),
        own(
            "export",
            export::command,
            &["provost policies export policies/"],
            |matches, terminal| Box::pin(export::run(matches, terminal)),
        ),
    ];
    all.extend(strict::own());
    all
}
