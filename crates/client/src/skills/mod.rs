//! `provost skills publish|install|list|verify|uninstall`: skills on this machine, and the way there (D10.4 to D10.7).
//!
//! ```text
//! registry ── signed listing, archive ──► install ── checks ──► ~/.claude/skills/<name>/    read by the client
//!                                           │
//!                                           └──► <config>/skills/<name>-<place>.json        the receipt
//!                                                <config>/skills/<name>-<place>.token       the gateway token
//!
//! receipt   installing ──► installed ──► uninstalling ──► removed ──► no receipt
//!           before a file                before a file     no file    the server has been told
//! ```
//!
//! INVARIANT SL-1: a file that the skill commands did not write is never changed nor removed; one that was changed
//! since only with `--force`.
//! INVARIANT SL-2: a file is written only if its content stands in a listing that a trusted key signed for the item
//! and version that was asked for.
//! INVARIANT SL-3: whenever a file of a skill lies on a machine, a receipt names it; what was interrupted can be
//! repeated or undone.
//! INVARIANT SL-4: a gateway token stands in a file of its owner alone, and is never shown.
//!
//! Absent on purpose: removing what a skill's scripts made; nobody can tell that from a person's own work.

pub(crate) mod install;
mod list;
mod publish;
pub(crate) mod receipt;
mod reference;
pub(crate) mod signed;
pub(crate) mod skill_folder;
mod uninstall;
mod verify;

use crate::cli::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 5] {
    let own = |verb, command, examples, run| HandCommand {
        group: "skills",
        verb,
        command,
        examples,
        run,
    };
    [
        own(
            "publish",
            publish::command,
            &[
                "provost skills publish skills/provost-cli",
                "provost skills publish review.zip --namespace @team --version 2.0.0",
            ],
            |matches, terminal| Box::pin(publish::run(matches, terminal)),
        ),
        own(
            "install",
            install::command,
            &[
                "provost skills install provost-cli",
                "provost skills install @team/review@2.0.0 --client generic --into ./skills",
            ],
            |matches, terminal| Box::pin(install::run(matches, terminal)),
        ),
        own(
            "list",
            list::command,
            &["provost skills list", "provost skills list --ask-server -o json"],
            |matches, terminal| Box::pin(list::run(matches, terminal)),
        ),
        own(
            "verify",
            verify::command,
            &["provost skills verify", "provost skills verify provost-cli"],
            |matches, terminal| Box::pin(async { verify::run(matches, terminal) }),
        ),
        own(
            "uninstall",
            uninstall::command,
            &["provost skills uninstall provost-cli"],
            |matches, terminal| Box::pin(uninstall::run(matches, terminal)),
        ),
    ]
}
