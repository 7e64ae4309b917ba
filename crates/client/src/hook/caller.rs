//! The word that says whose agent it is.
//!
//! It comes from the file of the hook and from the system, never from what the client says.

use super::settings::{HookSettings, UserFrom};
use std::process::{Command, Stdio};

/// LIMIT: bytes of a word; the server takes no longer name.
const MAX_WORD: usize = 256;

/// Returns the word; `None` where nobody can say it, which is missing for the server.
pub fn word(settings: &HookSettings) -> Option<String> {
    match (&settings.user, settings.user_from) {
        (Some(word), _) => Some(word.clone()),
        (None, Some(UserFrom::Os)) => said_by("id", &["-un"]),
        // The user's own settings alone: those of a project would let a project say who somebody is.
        (None, Some(UserFrom::Git)) => said_by("git", &["config", "--global", "--get", "user.email"]),
        (None, None) => None,
    }
}

/// Returns the name of this machine, as its kernel says it.
pub fn host() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_str().ok()?.trim();
    (!name.is_empty() && name.len() <= MAX_WORD).then(|| name.to_owned())
}

/// Returns the line that a program of the system says; of a path of the system, so that no folder of the agent stands before it.
fn said_by(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(words)
        .env("PATH", "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin")
        .env_remove("GIT_CONFIG_GLOBAL")
        .env_remove("GIT_CONFIG_COUNT")
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    let line = line.trim();
    let fits = output.status.success() && !line.is_empty() && line.len() <= MAX_WORD && !line.contains('\n');
    fits.then(|| line.to_owned())
}
