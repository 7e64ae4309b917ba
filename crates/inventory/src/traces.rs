//! What shows that a client is there and is used: what its installers left, and its conversations by their names and times.
//!
//! ```text
//! bin/claude ──► a link into node_modules ──► package.json ──► a version        a link into versions/2.1.331 ──► a version
//! an editor's extension that brings a program of its own ──► it is there, and nothing says its version
//! ~/.claude/projects/*/*.jsonl ──► the name and the time of each file           nothing of it is opened
//! ```
//!
//! Keeps IV-1, IV-3. What could not be looked at makes the traces incomplete; they never say then that something is not there. A program that a
//! project brings, or that lies in a place that is not listed, is not found: of it nothing but its conversations is seen.

use crate::client::{Client, Platform};
use crate::disk::{Disk, Fault};
use crate::mounts::Mounts;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// LIMIT: conversations of a home that are looked at. Ours.
const MAX_SESSIONS: usize = 5_000;
/// LIMIT: bytes of the description of a package. Ours.
const MAX_PACKAGE: u64 = 256 << 10;
/// LIMIT: characters of a version. Ours.
const MAX_VERSION: usize = 64;
/// LIMIT: entries of a folder in which homes lie. Ours.
const MAX_INSIDE: usize = 2_000;

/// A conversation that a client kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionFile {
    /// The name of its file, without what stands behind the last dot.
    pub stem: String,
    /// The account whose the file is: that of the client which wrote it, in whosever home.
    pub account: u32,
    /// When it was written last. Units: milliseconds since the Unix epoch.
    pub modified_ms: i64,
}

/// What shows that a client is there and is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Whether there is anything of it.
    pub is_there: bool,
    /// The versions that are installed.
    pub versions: BTreeSet<String>,
    /// Whether a program of it is installed whose version nothing says.
    pub has_unversioned: bool,
    /// The conversations that were written since the instant that was asked about.
    pub sessions: Vec<SessionFile>,
    /// Whether something could not be looked at.
    pub is_incomplete: bool,
}

impl Traces {
    /// Takes in what another home shows.
    pub fn add(&mut self, other: Self) {
        self.is_there |= other.is_there;
        self.versions.extend(other.versions);
        self.has_unversioned |= other.has_unversioned;
        self.sessions.extend(other.sessions);
        self.is_incomplete |= other.is_incomplete;
    }
}

/// How a client is installed, and where it keeps what.
struct Habits {
    client: Client,
    program: &'static str,
    package: &'static str,
    /// Below the home, with `*` for one folder.
    sessions: &'static [&'static str],
    /// Below the home.
    folder: &'static str,
    /// How folders begin that bring a program of their own, in an editor's folder of extensions.
    extension: Option<&'static str>,
    /// Folders below the home in which another program of its maker keeps one.
    brought: &'static [&'static str],
}

/// Where Claude Code, Codex and Gemini CLI were seen to keep their conversations.
const HABITS: [Habits; 3] = [
    Habits {
        client: Client::ClaudeCode,
        program: "claude",
        package: "@anthropic-ai/claude-code",
        sessions: &[".claude/projects/*/*.jsonl"],
        folder: ".claude",
        extension: Some("anthropic.claude-code-"),
        brought: &[
            ".config/Claude/claude-code",
            "Library/Application Support/Claude/claude-code",
        ],
    },
    Habits {
        client: Client::Codex,
        program: "codex",
        package: "@openai/codex",
        sessions: &[".codex/sessions/*/*/*/*.jsonl"],
        folder: ".codex",
        extension: Some("openai.chatgpt-"),
        brought: &[],
    },
    Habits {
        client: Client::GeminiCli,
        program: "gemini",
        package: "@google/gemini-cli",
        // Earlier versions wrote one object, 0.61.0 writes lines.
        sessions: &[".gemini/tmp/*/chats/*.json", ".gemini/tmp/*/chats/*.jsonl"],
        folder: ".gemini",
        extension: None,
        brought: &[],
    },
];

/// Folders of programs, below the root of the machine and below a home, with `*` for one folder.
const MACHINE_BINS: [&str; 8] = [
    "bin",
    "usr/bin",
    "usr/local/bin",
    "usr/local/n/versions/node/*/bin",
    "usr/local/nvm/versions/node/*/bin",
    "opt/*/bin",
    "snap/bin",
    "home/linuxbrew/.linuxbrew/bin",
];
const HOME_BINS: [&str; 17] = [
    "bin",
    ".local/bin",
    ".npm-global/bin",
    ".npm-packages/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".yarn/bin",
    ".config/yarn/global/node_modules/.bin",
    ".local/share/pnpm",
    "Library/pnpm",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".nvm/versions/node/*/bin",
    ".fnm/node-versions/*/installation/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".nix-profile/bin",
];
/// Folders of packages, likewise.
const MACHINE_MODULES: [&str; 6] = [
    "usr/lib/node_modules",
    "usr/local/lib/node_modules",
    "usr/local/n/versions/node/*/lib/node_modules",
    "usr/local/nvm/versions/node/*/lib/node_modules",
    "opt/*/lib/node_modules",
    "home/linuxbrew/.linuxbrew/lib/node_modules",
];
const HOME_MODULES: [&str; 18] = [
    "node_modules",
    "lib/node_modules",
    // Where Claude Code puts itself: `/migrate-installer`.
    ".claude/local/node_modules",
    ".npm-global/lib/node_modules",
    ".npm-packages/lib/node_modules",
    ".local/lib/node_modules",
    ".npm/_npx/*/node_modules",
    ".bun/install/global/node_modules",
    ".volta/tools/image/packages/*/lib/node_modules",
    ".volta/tools/image/packages/*/*/lib/node_modules",
    ".config/yarn/global/node_modules",
    ".local/share/pnpm/global/*/node_modules",
    "Library/pnpm/global/*/node_modules",
    ".asdf/installs/nodejs/*/lib/node_modules",
    ".local/share/mise/installs/*/*/lib/node_modules",
    ".nvm/versions/node/*/lib/node_modules",
    ".fnm/node-versions/*/installation/lib/node_modules",
    ".local/share/fnm/node-versions/*/installation/lib/node_modules",
];
/// Where editors keep extensions, below a home.
const EXTENSIONS: [&str; 16] = [
    ".vscode/extensions",
    ".vscode-insiders/extensions",
    ".vscode-oss/extensions",
    ".vscode-server/extensions",
    ".vscode-server-insiders/extensions",
    ".vscode-remote/extensions",
    ".vscodium-server/extensions",
    ".openvscode-server/extensions",
    ".local/share/code-server/extensions",
    ".cursor/extensions",
    ".cursor-server/extensions",
    ".windsurf/extensions",
    ".windsurf-server/extensions",
    ".antigravity/extensions",
    ".kiro/extensions",
    ".trae/extensions",
];
/// Folders whose folders are versions.
const VERSIONED: [&str; 2] = ["versions", "Caskroom"];

/// Returns what a machine shows of a client, outside of homes.
pub fn of_machine(root: &Path, client: Client, stop: &dyn Fn() -> bool) -> Traces {
    let Some(habits) = habits(client) else {
        return Traces::default();
    };
    let disk = Disk::new(stop, &|_| true, Mounts::of_machine());
    let mut look = Look::at(&disk, root);
    for pattern in MACHINE_BINS {
        for folder in look.matching(root, pattern) {
            look.program(&folder, habits);
        }
    }
    for pattern in MACHINE_MODULES {
        for folder in look.matching(root, pattern) {
            look.package(&folder, habits);
        }
    }
    look.found
}

/// Returns what a home shows of a client: conversations that were written since an instant.
pub fn of_home(
    home: &Path,
    client: Client,
    platform: Platform,
    since_ms: i64,
    stop: &dyn Fn() -> bool,
) -> Traces {
    let disk = Disk::new(stop, &|_| true, Mounts::of_machine());
    // A home that is not to be seen is not empty, nor is one that a mount hides which nobody may open.
    let Some(home) = disk.resolved(home).ok().flatten().filter(|home| is_open(home)) else {
        return Traces {
            is_incomplete: true,
            ..Traces::default()
        };
    };
    let home = home.as_path();
    let mut look = Look::at(&disk, home);
    let Some(habits) = habits(client) else {
        for folder in folders(client, platform) {
            look.found.is_there |= disk.has(&home.join(folder));
        }
        return look.found;
    };
    look.found.is_there |= disk.has(&home.join(habits.folder));
    for pattern in HOME_BINS {
        for folder in look.matching(home, pattern) {
            look.program(&folder, habits);
        }
    }
    for pattern in HOME_MODULES {
        for folder in look.matching(home, pattern) {
            look.package(&folder, habits);
        }
    }
    look.brought(habits);
    for pattern in habits.sessions {
        look.sessions(pattern, since_ms);
    }
    look.found.is_there |= !look.found.sessions.is_empty();
    look.found
}

/// Says whether something is known to lie below a home; of what lies on another machine, or cannot be looked at, nothing is known.
pub fn is_in_home(home: &Path, below: &str) -> bool {
    let disk = Disk::new(&|| false, &|_| true, Mounts::of_machine());
    matches!(disk.resolved(&home.join(below)), Ok(Some(_)))
}

/// What lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Where.
    pub path: PathBuf,
    /// Whether it is a folder, or leads to one.
    pub is_folder: bool,
    /// Whose it is; `None` where that is not known, as of what lies on another machine.
    pub owner: Option<u32>,
}

/// Returns what lies in a folder, nothing of one that is not there; `None` where it could not be looked at, or not at all of it.
pub fn inside(folder: &Path) -> Option<Vec<Inside>> {
    let mounts = Mounts::of_machine();
    let disk = Disk::new(&|| false, &|_| true, Mounts::of_machine());
    let Some(led) = disk.resolved(folder).ok()? else {
        return Some(Vec::new());
    };
    if !is_open(&led) {
        return None;
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&led).ok()? {
        if found.len() == MAX_INSIDE {
            return None;
        }
        // Names are kept as they are: a home may have one that is no UTF-8.
        let name = entry.ok()?.file_name();
        let path = led.join(&name);
        let led = disk.resolved(&path).ok().flatten();
        let at = led.filter(|led| !mounts.lies_elsewhere(led));
        let metadata = at.and_then(|at| at.symlink_metadata().ok());
        found.push(Inside {
            path: folder.join(&name),
            // Of what cannot be looked at it is not known that it is none.
            is_folder: metadata.as_ref().is_none_or(std::fs::Metadata::is_dir),
            owner: metadata.map(|found| found.uid()),
        });
    }
    Some(found)
}

/// Says whether a folder can be looked into, and is not the one that stands for a hidden one: it has no bit of a permission.
fn is_open(folder: &Path) -> bool {
    let has_bits = folder
        .symlink_metadata()
        .is_ok_and(|found| found.mode() & 0o777 != 0);
    let is_read = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none_or(|entry| entry.is_ok()),
        Err(error) => error.kind() == ErrorKind::NotADirectory,
    };
    has_bits && is_read
}

fn habits(client: Client) -> Option<&'static Habits> {
    HABITS.iter().find(|habits| habits.client == client)
}

/// Where other clients keep their settings, by documents.
fn folders(client: Client, platform: Platform) -> Vec<PathBuf> {
    match client {
        Client::Cursor => vec![".cursor".into()],
        Client::Vscode => vec![Path::new(platform.settings()).join("Code"), ".copilot".into()],
        _ => Vec::new(),
    }
}

/// A look below a folder, behind whose fence it stays.
struct Look<'a> {
    disk: &'a Disk<'a>,
    fence: PathBuf,
    found: Traces,
}

impl<'a> Look<'a> {
    fn at(disk: &'a Disk<'a>, fence: &Path) -> Self {
        Self {
            disk,
            fence: fence.to_owned(),
            found: Traces::default(),
        }
    }

    fn kept<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        self.found.is_incomplete |= read.is_err();
        read.ok()
    }

    /// Returns the folders that a pattern stands for.
    fn matching(&mut self, base: &Path, pattern: &str) -> Vec<PathBuf> {
        let mut found = vec![base.to_owned()];
        for part in pattern.split('/') {
            let mut next = Vec::new();
            for folder in found {
                if part == "*" {
                    let names = self.disk.names(&folder, &self.fence);
                    let names = self.kept(names).unwrap_or_default();
                    next.extend(names.iter().map(|name| folder.join(name)));
                } else {
                    next.push(folder.join(part));
                }
            }
            found = next;
        }
        found
    }

    /// Looks at a program in a folder, by where its path leads; it is not opened.
    fn program(&mut self, folder: &Path, habits: &Habits) {
        let path = folder.join(habits.program);
        let led = match self.disk.resolved(&path) {
            Ok(None) => return,
            Ok(Some(led)) => Some(led),
            Err(_) => None,
        };
        self.found.is_there = true;
        let version = led.as_deref().and_then(|led| self.version_of(led, habits));
        match version {
            Some(version) => {
                self.found.versions.insert(version);
            }
            None => self.found.has_unversioned = true,
        }
    }

    /// Returns the version of a program by its path: that of the package in which it lies, or the name of a folder of versions.
    fn version_of(&self, program: &Path, habits: &Habits) -> Option<String> {
        let inside = program
            .ancestors()
            .find(|folder| folder.ends_with(Path::new("node_modules").join(habits.package)));
        if let Some(folder) = inside {
            return self.packaged(folder, habits);
        }
        let parts: Vec<&str> = program
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let place = parts.iter().position(|part| VERSIONED.contains(part))?;
        let behind = if parts.get(place) == Some(&"Caskroom") {
            2
        } else {
            1
        };
        parts.get(place + behind).copied().and_then(version)
    }

    fn package(&mut self, modules: &Path, habits: &Habits) {
        let folder = modules.join(habits.package);
        match self.disk.resolved(&folder) {
            Ok(None) => return,
            Ok(Some(_)) => {}
            Err(_) => {
                self.found.is_incomplete = true;
                return;
            }
        }
        self.found.is_there = true;
        match self.packaged(&folder, habits) {
            Some(version) => {
                self.found.versions.insert(version);
            }
            None => self.found.has_unversioned = true,
        }
    }

    /// Looks for programs that something else brings. The number of an extension is its own, and no version of what it brings.
    fn brought(&mut self, habits: &Habits) {
        let home = self.fence.clone();
        let mut has_any = habits
            .brought
            .iter()
            .any(|folder| self.disk.has(&home.join(folder)));
        // Claude Code's own place has a program of that name; its package says the version.
        let own = home.join(habits.folder).join("local");
        has_any |= self.disk.has(&own.join(habits.program))
            && !self.disk.has(&own.join("node_modules").join(habits.package));
        if let Some(begins) = habits.extension {
            for folder in EXTENSIONS {
                let names = self.disk.names(&home.join(folder), &home);
                let names = self.kept(names).unwrap_or_default();
                has_any |= names.iter().any(|name| name.starts_with(begins));
            }
        }
        self.found.is_there |= has_any;
        self.found.has_unversioned |= has_any;
    }

    /// Returns the version that a package says of itself.
    fn packaged(&self, folder: &Path, habits: &Habits) -> Option<String> {
        let read = self
            .disk
            .read(&folder.join("package.json"), &self.fence, MAX_PACKAGE);
        let content = read.ok().flatten()?;
        let said: serde_json::Value = serde_json::from_slice(&content.bytes).ok()?;
        let is_it = said.get("name").and_then(serde_json::Value::as_str) == Some(habits.package);
        let text = said.get("version").and_then(serde_json::Value::as_str);
        text.filter(|_| is_it).and_then(version)
    }

    fn sessions(&mut self, pattern: &str, since_ms: i64) {
        let Some((folders, name)) = pattern.rsplit_once('/') else {
            return;
        };
        let ending = name.trim_start_matches('*');
        let home = self.fence.clone();
        for folder in self.matching(&home, folders) {
            let names = self.disk.names(&folder, &home);
            for name in self.kept(names).unwrap_or_default() {
                let Some(stem) = name.strip_suffix(ending) else {
                    continue;
                };
                if self.found.sessions.len() == MAX_SESSIONS {
                    self.found.is_incomplete = true;
                    return;
                }
                match folder.join(&name).symlink_metadata() {
                    Ok(found) if found.is_file() => {
                        let modified_ms = found
                            .mtime()
                            .saturating_mul(1_000)
                            .saturating_add(found.mtime_nsec() / 1_000_000);
                        if modified_ms >= since_ms {
                            self.found.sessions.push(SessionFile {
                                stem: stem.to_owned(),
                                account: found.uid(),
                                modified_ms,
                            });
                        }
                    }
                    Ok(_) => {}
                    Err(error) => self.found.is_incomplete |= error.kind() != ErrorKind::NotFound,
                }
            }
        }
    }
}

fn version(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    let fits = text.len() <= MAX_VERSION && text.bytes().all(is_plain);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    (fits && begins).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("provost-traces-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn put(&self, below: &str, text: &str) {
            let path = self.0.join(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn traces(&self, client: Client) -> Traces {
            of_home(&self.0, client, Platform::Linux, 0, &|| false)
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_version_is_what_an_installer_left_and_no_guess() {
        let home = Home::new("versions");
        assert_eq!(home.traces(Client::ClaudeCode), Traces::default());
        home.put(
            ".npm-global/lib/node_modules/@anthropic-ai/claude-code/package.json",
            r#"{"name":"@anthropic-ai/claude-code","version":"2.1.331"}"#,
        );
        home.put(
            ".npm-global/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            "",
        );
        fs::create_dir_all(home.0.join(".npm-global/bin")).unwrap();
        symlink(
            "../lib/node_modules/@anthropic-ai/claude-code/cli.js",
            home.0.join(".npm-global/bin/claude"),
        )
        .unwrap();
        let found = home.traces(Client::ClaudeCode);
        assert_eq!(found.versions, BTreeSet::from(["2.1.331".to_owned()]));
        assert!(found.is_there && !found.has_unversioned && !found.is_incomplete);
        // A second one beside it counts as well, and one that nothing says anything about is known to be there.
        home.put(".local/share/claude/versions/2.1.100", "");
        fs::create_dir_all(home.0.join(".local/bin")).unwrap();
        symlink(
            "../share/claude/versions/2.1.100",
            home.0.join(".local/bin/claude"),
        )
        .unwrap();
        home.put(".local/bin/codex", "");
        let found = home.traces(Client::ClaudeCode);
        assert_eq!(
            found.versions.iter().map(String::as_str).collect::<Vec<_>>(),
            ["2.1.100", "2.1.331"]
        );
        let codex = home.traces(Client::Codex);
        assert!(codex.is_there && codex.has_unversioned && codex.versions.is_empty());
        // Another package under its name is none of it.
        home.put(
            ".npm-global/lib/node_modules/@google/gemini-cli/package.json",
            r#"{"name":"other","version":"9.9.9"}"#,
        );
        let gemini = home.traces(Client::GeminiCli);
        assert!(gemini.has_unversioned && gemini.versions.is_empty());
    }

    #[test]
    fn the_places_of_the_makers_and_of_managers_of_packages_are_looked_at_and_what_an_extension_brings_is_unknown()
     {
        let package = r#"{"name":"@anthropic-ai/claude-code","version":"1.0.50"}"#;
        for (number, modules) in HOME_MODULES.iter().enumerate() {
            let home = Home::new(&format!("modules-{number}"));
            let below = modules.replace('*', "x");
            home.put(
                &format!("{below}/@anthropic-ai/claude-code/package.json"),
                package,
            );
            let found = home.traces(Client::ClaudeCode);
            assert_eq!(found.versions, BTreeSet::from(["1.0.50".to_owned()]), "{modules}");
            assert!(found.is_there && !found.has_unversioned, "{modules}");
        }
        // Claude Code's own place has a script beside its package; without the package nothing says the version.
        let home = Home::new("own");
        home.put(".claude/local/claude", "#!/bin/sh");
        home.put(
            ".claude/local/node_modules/@anthropic-ai/claude-code/package.json",
            package,
        );
        assert!(!home.traces(Client::ClaudeCode).has_unversioned);
        fs::remove_dir_all(home.0.join(".claude/local/node_modules")).unwrap();
        assert!(home.traces(Client::ClaudeCode).has_unversioned);
        for (number, bins) in HOME_BINS.iter().enumerate() {
            let home = Home::new(&format!("bins-{number}"));
            home.put(&format!("{}/claude", bins.replace('*', "x")), "");
            assert!(home.traces(Client::ClaudeCode).has_unversioned, "{bins}");
        }
        for (number, extensions) in EXTENSIONS.iter().enumerate() {
            let home = Home::new(&format!("extensions-{number}"));
            home.put(
                &format!("{extensions}/anthropic.claude-code-2.1.331-linux-x64/package.json"),
                "",
            );
            home.put(&format!("{extensions}/other.tool-1.0.0/package.json"), "");
            let found = home.traces(Client::ClaudeCode);
            assert!(found.has_unversioned && found.versions.is_empty(), "{extensions}");
            assert!(!home.traces(Client::Codex).has_unversioned, "{extensions}");
            home.put(
                &format!("{extensions}/openai.chatgpt-0.4.15-linux-x64/bin/linux-x86_64/codex"),
                "",
            );
            assert!(home.traces(Client::Codex).has_unversioned, "{extensions}");
        }
        let home = Home::new("brought");
        home.put(".config/Claude/claude-code/2.1.331/claude", "");
        assert!(home.traces(Client::ClaudeCode).has_unversioned);
    }

    #[test]
    fn what_lies_in_a_folder_is_known_with_whose_it_is_and_one_that_is_hidden_is_not_empty() {
        use std::os::unix::fs::PermissionsExt;
        let home = Home::new("inside");
        home.put("ada/x", "");
        home.put("file", "");
        symlink("ada", home.0.join("linked")).unwrap();
        let mut found = inside(&home.0).unwrap();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let owner = home.0.metadata().unwrap().uid();
        let known = |name: &str, is_folder| Inside {
            path: home.0.join(name),
            is_folder,
            owner: Some(owner),
        };
        assert_eq!(
            found,
            [known("ada", true), known("file", false), known("linked", true)]
        );
        assert_eq!(inside(&home.0.join("none")), Some(Vec::new()));
        // What stands for a folder that a service may not see has no bits, and is empty.
        let hidden = home.0.join("hidden");
        fs::create_dir(&hidden).unwrap();
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(inside(&hidden), None);
        assert!(of_home(&hidden, Client::Codex, Platform::Linux, 0, &|| false).is_incomplete);
    }

    #[test]
    fn conversations_are_seen_by_name_and_time_and_none_behind_a_link_that_leaves() {
        let (home, other) = (Home::new("sessions"), Home::new("elsewhere"));
        home.put(".claude/projects/-work/1f.jsonl", "secret");
        home.put(".claude/projects/-work/notes.txt", "secret");
        home.put(".codex/sessions/2026/11/28/rollout-x-1.jsonl", "secret");
        other.put("2.jsonl", "secret");
        let stems = |found: &Traces| {
            found
                .sessions
                .iter()
                .map(|file| file.stem.clone())
                .collect::<Vec<_>>()
        };
        let found = home.traces(Client::ClaudeCode);
        assert_eq!(stems(&found), ["1f"]);
        assert!(found.is_there && !found.is_incomplete);
        assert_eq!(stems(&home.traces(Client::Codex)), ["rollout-x-1"]);
        let of_gemini = ".gemini/tmp/work/chats";
        for name in ["a.json", "b.jsonl", "b.lock", "parent/helper.jsonl"] {
            home.put(&format!("{of_gemini}/{name}"), "secret");
        }
        assert_eq!(stems(&home.traces(Client::GeminiCli)), ["a", "b"]);
        let later = of_home(&home.0, Client::ClaudeCode, Platform::Linux, i64::MAX, &|| false);
        assert!(later.sessions.is_empty() && later.is_there);
        symlink(&other.0, home.0.join(".claude/projects/away")).unwrap();
        let found = home.traces(Client::ClaudeCode);
        assert_eq!(
            (stems(&found), found.is_incomplete),
            (vec!["1f".to_owned()], true)
        );
        // A home that is not there is not known to be empty.
        let none = of_home(&home.0.join("none"), Client::Codex, Platform::Linux, 0, &|| false);
        assert!(none.is_incomplete && !none.is_there);
    }
}
