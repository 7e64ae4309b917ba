//! Whether a file of the machine that sets the environment of everybody puts the folder of a client elsewhere.
//!
//! What a person's own shell sets is that person's, and is not read; what a client is started with nobody but its account can see. That a
//! conversation is kept elsewhere its own hook says (`SharedFired`).

use provost_hooks::Client;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// LIMIT: bytes of a file that are looked at. Ours.
const MOST_BYTES: u64 = 64 << 10;
/// LIMIT: files of a folder. Ours.
const MOST_FILES: usize = 64;
/// What sets environments of everybody: by PAM, by systemd, by the shells.
const FILES: [&str; 7] = [
    "etc/bash.bashrc",
    "etc/bashrc",
    "etc/environment",
    "etc/profile",
    "etc/security/pam_env.conf",
    "etc/zsh/zshenv",
    "etc/zshenv",
];
const FOLDERS: [&str; 2] = ["etc/environment.d", "etc/profile.d"];

/// Says whether one of these files names the variable by which a client has its folder elsewhere, in whatever sense: it is not executed to know.
pub fn moves_folder(root: &Path, client: Client) -> bool {
    let variable: &[u8] = match client {
        Client::ClaudeCode => b"CLAUDE_CONFIG_DIR",
        Client::Codex => b"CODEX_HOME",
        // By its source: the folder that stands for the home.
        Client::Gemini => b"GEMINI_CLI_HOME",
    };
    let names = |path: &PathBuf| names(path, variable);
    let files = FILES.iter().map(|file| root.join(file));
    let dropped = FOLDERS.iter().flat_map(|folder| inside(&root.join(folder)));
    files.chain(dropped).any(|path| names(&path))
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MOST_FILES).map(|entry| entry.path()).collect()
}

fn names(path: &Path, variable: &[u8]) -> bool {
    // No device and no pipe is opened.
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    read.is_ok() && bytes.windows(variable.len()).any(|part| part == variable)
}
