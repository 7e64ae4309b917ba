//! `provost agent …`: this machine as a device of the organization. What the agent does stands in the crate `agent`; here are its
//! commands, and the way to the server.

mod asked;
mod configuration;
pub(crate) mod coverage;
mod doctor;
mod enrol;
mod install;
mod judging;
mod marks;
pub(crate) mod places;
mod run;
mod show;
mod skills;

pub use configuration::Configuration;
pub use coverage::Guarding;
pub use judging::{Judging, Use};
pub use skills::Skills;

use crate::cli::HandCommand;

const GROUP: &str = "agent";

/// Returns the commands.
pub fn own() -> [HandCommand; 9] {
    [
        HandCommand {
            group: GROUP,
            verb: "enrol",
            command: enrol::command,
            examples: &[
                "provost agent enrol --server https://provost.example --organization acme --token-file enrolment.token",
                "provost agent enrol --server https://provost.example --sign-in          # as your own, with a browser",
                "sudo provost agent enrol --system --server https://provost.example --organization acme --token-file -",
                "provost agent enrol --anew --server https://provost.example --organization acme --token-file enrolment.token",
            ],
            run: |matches, terminal| Box::pin(enrol::run(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "run",
            command: run::command,
            examples: &["provost agent run", "provost agent run --once"],
            run: |matches, terminal| Box::pin(run::run(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "status",
            command: show::status_command,
            examples: &[
                "provost agent status",
                "sudo provost agent status --system --json",
            ],
            run: |matches, terminal| Box::pin(std::future::ready(show::status(matches, terminal))),
        },
        HandCommand {
            group: GROUP,
            verb: "scan",
            command: run::scan_command,
            examples: &["provost agent scan --print", "provost agent scan"],
            run: |matches, terminal| Box::pin(run::scan(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "explain",
            command: show::explain_command,
            examples: &["provost agent explain", "provost agent explain -o json"],
            run: |matches, terminal| Box::pin(std::future::ready(show::explain(matches, terminal))),
        },
        HandCommand {
            group: GROUP,
            verb: "doctor",
            command: doctor::command,
            examples: &["provost agent doctor", "sudo provost agent doctor --system"],
            run: |matches, terminal| Box::pin(doctor::run(matches, terminal)),
        },
        HandCommand {
            group: GROUP,
            verb: "coverage",
            command: coverage::command,
            examples: &[
                "provost agent coverage",
                "sudo provost agent coverage --system -o json",
            ],
            run: |matches, terminal| Box::pin(std::future::ready(coverage::run(matches, terminal))),
        },
        HandCommand {
            group: GROUP,
            verb: "install",
            command: install::command,
            examples: &[
                "provost agent install --print",
                "sudo provost agent install --system",
                "provost agent install --print-mdm ansible --server https://provost.example --organization acme",
            ],
            run: |matches, terminal| Box::pin(std::future::ready(install::run(matches, terminal))),
        },
        HandCommand {
            group: GROUP,
            verb: "uninstall",
            command: install::uninstall_command,
            examples: &[
                "provost agent uninstall --print",
                "sudo provost agent uninstall --system",
            ],
            run: |matches, terminal| Box::pin(std::future::ready(install::uninstall(matches, terminal))),
        },
    ]
}
