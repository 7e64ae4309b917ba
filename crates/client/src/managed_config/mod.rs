//! `provost managed-config publish|import`: files of a client become a release as they are.
//! `provost managed-config pull|verify`: the file of a managed client, kept equal to the signed release (D8.2).
//!
//! ```text
//! server ── current release, signed ──► pull ── checks, writes ──► FILE         read by the managed client
//!                                         │
//!                                         └──► .FILE.provost.json   the last good release with its signature
//! ```
//!
//! INVARIANT MP-1: FILE is only ever written with the bytes of a manifest that a trusted key signed for this
//! organization and profile; whatever fails, FILE stays as it is. It is never removed.
//! INVARIANT MP-2: a release older than the last applied one is refused, and an equal one with another content or an
//! earlier signature.
//! INVARIANT MP-3: nothing is written through a symbolic link in FILE's place, and a reader of FILE sees the old or
//! the new content as a whole.
//!
//! Absent on purpose: removing FILE when the server is away for long. Without its file a managed client starts
//! with no restrictions at all; `fail_closed` is said by the exit code of `verify` instead.

pub(crate) mod applied_release;
mod file;
mod import;
pub(crate) mod manifest;
mod places;
pub(crate) mod publish;
pub(crate) mod pull;
pub(crate) mod report;
pub(crate) mod round;
mod settings_file;
mod verify;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 4] {
    [
        HandCommand {
            group: "managed-config",
            verb: "publish",
            command: publish::command,
            examples: &[
                "provost managed-config publish Engineering --enforced-file managed-settings.json --reason 'deny .env'",
                "provost managed-config publish prof_01… --enforced-file requirements.toml --defaults-file config.toml",
                "provost managed-config publish prof_01… --body content.json --strict --preview --reason 'a look'",
            ],
            run: |matches, terminal| Box::pin(publish::run(matches, terminal)),
        },
        HandCommand {
            group: "managed-config",
            verb: "import",
            command: import::command,
            examples: &[
                "provost managed-config import --client claude_code",
                "provost managed-config import --client codex --publish Engineering --reason 'what the machines have'",
            ],
            run: |matches, terminal| Box::pin(import::run(matches, terminal)),
        },
        HandCommand {
            group: "managed-config",
            verb: "pull",
            command: pull::command,
            examples: &[
                "provost managed-config pull --profile Engineering --to /etc/claude-code/managed-settings.json",
                "provost managed-config pull --profile prof_01… --to /etc/codex/requirements.toml --watch",
            ],
            run: |matches, terminal| Box::pin(pull::run(matches, terminal)),
        },
        HandCommand {
            group: "managed-config",
            verb: "verify",
            command: verify::command,
            examples: &["provost managed-config verify /etc/claude-code/managed-settings.json"],
            run: |matches, terminal| Box::pin(std::future::ready(verify::run(matches, terminal))),
        },
    ]
}
