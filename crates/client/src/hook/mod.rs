//! `provost hook run`: the hook of an agent's client. It reads what the client says on standard input, asks the server, and answers in
//! the client's own form. `provost hook install|uninstall|doctor`: what stands in the client's settings, and whether it works.
//!
//! ```text
//! client ──► sh -c 'provost hook run codex --mode enforce || { …; exit 2; }'
//!                    │ hear (crate hooks)     │ the agent, else POST …/policies/decisions     │ answer (crate hooks)
//!                    └── worker thread ───────┴──────────────────────────────►│
//!                        main thread waits, and answers itself after 80 % of the time that the client gives
//! ```
//!
//! INVARIANT HK-6: the hook answers before its client stops waiting: clients let a call run when their hook is late.
//! INVARIANT HK-7: what decides which server is asked stands in a file, never in the environment of the agent.
//!
//! Absent on purpose: retries, a cache of decisions, and anything that is asked where the answer is known; the command line of the
//! API, which takes ten milliseconds to make. [`run_if_asked`] stands before it.

mod ask;
mod behind;
mod caller;
mod desk;
mod doctor;
mod guarded;
mod install;
mod managed;
mod places;
mod preloaded;
mod run;
mod sample;
mod settings;
mod settings_text;
mod uninstall;

pub use desk::{registered, registration};
pub use doctor::look;
pub use places::{Whose, file};
pub use run::run_if_asked;
pub use sample::executed;
pub use settings::Homes;
pub use settings::OF_THE_MACHINE;
pub use settings_text::SettingsFile;

use crate::cli::HandCommand;
use clap::Command;

/// The group of these commands, which the API does not have.
pub const GROUP: &str = "hook";

/// Returns the command of the group.
pub fn command() -> Command {
    let verbs = own().into_iter().map(|own| {
        let examples = own.examples.join("\n  ");
        (own.command)().after_long_help(format!("Examples:\n  {examples}\n\n{}", crate::cli::EXIT_CODES))
    });
    Command::new(GROUP)
        .about("Guard agents' clients on this machine: install, doctor, run, uninstall")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(verbs)
}

/// Returns the commands.
pub fn own() -> [HandCommand; 4] {
    [
        HandCommand {
            group: GROUP,
            verb: "install",
            command: install::command,
            examples: &[
                "provost hook install claude-code --token-file hook.token --user ada@acme.example",
                "provost hook install codex --mode monitor",
                "provost hook install claude-code --print",
                "provost hook install claude-code --managed Laptops --reason 'hooks for everybody'",
            ],
            run: |matches, terminal| Box::pin(install::run(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "doctor",
            command: doctor::command,
            examples: &["provost hook doctor"],
            run: |matches, terminal| Box::pin(doctor::run(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "run",
            command: run::command,
            examples: &["provost hook run claude-code < event.json"],
            run: |matches, terminal| Box::pin(std::future::ready(run::run(matches, terminal))),
        },
        HandCommand {
            group: GROUP,
            verb: "uninstall",
            command: uninstall::command,
            examples: &["provost hook uninstall claude-code"],
            run: |matches, terminal| Box::pin(std::future::ready(uninstall::run(matches, terminal))),
        },
    ]
}
