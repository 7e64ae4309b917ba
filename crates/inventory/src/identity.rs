//! The identity of an MCP server: one key for every spelling of the same thing.
//!
//! What a key does not say wholly is weak: a command of no known form, a program that another environment or registry may replace. A
//! weak key names a form; nothing should be approved by it.

mod javascript;
mod python;

use crate::disk::Disk;
use crate::hide;
use crate::launch::{Launch, after, base, simple, unwrapped};
use crate::packages::{self, Package};
use crate::report::Pin;
use crate::secrets::looks_secret;
use provost_words::digest::sha256_hex;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// LIMIT: a program whose content is its identity. Ours.
const MAX_PROGRAM: u64 = 64 << 20;
/// A shorter file could be found by trying what it may hold; it might be a credential that a command names. Ours.
const LEAST_PROGRAM: usize = 64;
/// LIMIT: commands within commands.
const LEVELS: usize = 4;

/// Variables that let other code run than the command names.
const TURNING: [&str; 16] = [
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NPM_CONFIG_REGISTRY",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "BUN_CONFIG_REGISTRY",
    "PATH",
];

/// Which server it is.
pub(crate) struct Identity {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) pin: Pin,
    pub(crate) is_pipeline: bool,
    pub(crate) is_weak: bool,
}

/// Where the paths of a command lead.
pub(crate) struct Ground<'a> {
    pub(crate) disk: &'a Disk<'a>,
    pub(crate) root: &'a Path,
    pub(crate) home: &'a Path,
    /// Where a relative path begins, and the fence around it.
    pub(crate) base: (&'a Path, &'a Path),
}

impl Ground<'_> {
    fn place(&self, text: &str) -> (PathBuf, &Path) {
        for begin in ["~/", "$HOME/", "${HOME}/", "${env:HOME}/", "${userHome}/"] {
            if let Some(rest) = text.strip_prefix(begin) {
                return (self.home.join(rest), self.home);
            }
        }
        if let Some(rest) = text.strip_prefix('/') {
            let path = self.root.join(rest);
            let fence = if path.starts_with(self.home) {
                self.home
            } else {
                self.root
            };
            return (path, fence);
        }
        let text = text.strip_prefix("${workspaceFolder}/").unwrap_or(text);
        (self.base.0.join(text), self.base.1)
    }

    fn hashed(&self, text: &str, kind: &str) -> Option<Identity> {
        let (path, fence) = self.place(text);
        let content = self.disk.read(&path, fence, MAX_PROGRAM).ok()??;
        (content.bytes.len() >= LEAST_PROGRAM).then(|| Identity {
            key: format!("{kind}:sha256:{}", sha256_hex(&content.bytes)),
            version: None,
            pin: Pin::Digest,
            is_pipeline: false,
            is_weak: false,
        })
    }

    /// Returns the version that stands in a package's own file.
    fn installed(&self, text: &str) -> Option<String> {
        let (path, fence) = self.place(text);
        let content = self.disk.read(&path, fence, 1 << 20).ok()??;
        let value: Value = serde_json::from_slice(&content.bytes).ok()?;
        value["version"]
            .as_str()
            .filter(|version| version.len() <= 64 && !looks_secret(version))
            .map(str::to_owned)
    }
}

impl From<Package> for Identity {
    fn from(package: Package) -> Self {
        Self {
            key: package.key,
            version: package.version,
            pin: package.pin,
            is_pipeline: false,
            is_weak: false,
        }
    }
}

/// Returns the identity of a server at an address.
pub(crate) fn of_url(text: &str) -> Identity {
    let key = packages::url(text);
    Identity {
        is_weak: key.is_none(),
        key: key.unwrap_or_else(|| form(&["url".to_owned()])),
        version: None,
        pin: Pin::None,
        is_pipeline: false,
    }
}

/// Returns the identity of a server that a command starts.
pub(crate) fn of_command(mut words: Vec<String>, variables: &[String], ground: &Ground<'_>) -> Identity {
    // Some write the whole line as the command.
    if let [line] = words.as_slice()
        && line.contains(' ')
        && !line.starts_with(['/', '~', '.'])
        && let Some(split) = simple(line)
    {
        words = split;
    }
    let (launch, set) = unwrapped(words);
    let mut identity = match &launch {
        Launch::Program(words) => known(words, ground, LEVELS).unwrap_or_else(|| of_form(words, false)),
        Launch::Pipeline(words) => of_form(words, true),
    };
    let turns = |name: &String| TURNING.iter().any(|turning| name.eq_ignore_ascii_case(turning));
    identity.is_weak |= set.iter().chain(variables).any(turns);
    identity
}

fn of_form(words: &[String], is_pipeline: bool) -> Identity {
    Identity {
        key: form(words),
        version: None,
        pin: Pin::None,
        is_pipeline,
        is_weak: true,
    }
}

/// Returns the key of a command by its form: the program, the names of its flags, and the kinds of everything else.
fn form(words: &[String]) -> String {
    let program = words.first().map(|program| base(program)).unwrap_or_default();
    let mut text = if looks_secret(&program) {
        "secret".to_owned()
    } else {
        program
    };
    let mut is_first = true;
    for word in words.iter().skip(1) {
        text.push('\n');
        match hide::flag(word) {
            Some((flag, _)) if looks_secret(flag) => text.push_str("-secret"),
            Some((flag, value)) => {
                text.push_str(flag);
                text.push_str(value.map_or("", hide::kind));
            }
            // A verb or a package tells servers apart that one program starts.
            None if std::mem::take(&mut is_first) && matches!(hide::kind(word), "word") => {
                text.push_str(word);
            }
            None => text.push_str(hide::kind(word)),
        }
    }
    format!("cmd:sha256:{}", sha256_hex(text.to_lowercase().as_bytes()))
}

fn known(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let levels = levels.checked_sub(1)?;
    let (program, rest) = words.split_first()?;
    let verb = rest.first().map(String::as_str);
    match base(program).as_str() {
        "npx" | "bunx" | "pnpx" => javascript::npm(rest, ground, levels),
        "npm" if matches!(verb, Some("exec" | "x")) => javascript::npm(&rest[1..], ground, levels),
        "pnpm" | "yarn" if verb == Some("dlx") => javascript::npm(&rest[1..], ground, levels),
        "bun" if verb == Some("x") => javascript::npm(&rest[1..], ground, levels),
        "uvx" => python::pypi(rest),
        "uv" => python::uv(rest, ground, levels),
        "pipx" if verb == Some("run") => python::pypi(&rest[1..]),
        "docker" | "podman" | "nerdctl" => container(rest),
        "go" if verb == Some("run") => packages::go(rest.get(1)?).map(Identity::from),
        "dnx" => packages::nuget(
            &after(rest, &["--version"], &["-y", "--yes"])?
                .into_iter()
                .next()?,
        )
        .map(Identity::from),
        "deno" if verb == Some("run") => javascript::deno(&rest[1..], ground),
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => javascript::node(rest, ground),
        name if name == "py"
            || name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python" =>
        {
            python::python(program, rest, ground)
        }
        "bash" | "sh" | "zsh" | "dash" | "ruby" | "perl" | "php" | "pwsh" | "powershell" => {
            ground.hashed(rest.first().filter(|word| !word.starts_with('-'))?, "script")
        }
        _ if program.contains(['/', '\\']) => by_path(program, ground),
        _ => None,
    }
}

fn container(words: &[String]) -> Option<Identity> {
    const WITH_VALUE: [&str; 40] = [
        "-e",
        "--env",
        "-v",
        "--volume",
        "--mount",
        "--name",
        "-p",
        "--publish",
        "--network",
        "--net",
        "-w",
        "--workdir",
        "-u",
        "--user",
        "--entrypoint",
        "--env-file",
        "-l",
        "--label",
        "--add-host",
        "-m",
        "--memory",
        "--cpus",
        "--platform",
        "--pull",
        "-h",
        "--hostname",
        "--device",
        "--cap-add",
        "--cap-drop",
        "--security-opt",
        "--tmpfs",
        "--ulimit",
        "--restart",
        "--gpus",
        "--runtime",
        "--dns",
        "--pid",
        "--ipc",
        "--shm-size",
        "--pids-limit",
    ];
    const ALONE: [&str; 14] = [
        "-i",
        "-t",
        "-it",
        "-ti",
        "-d",
        "--rm",
        "--init",
        "--privileged",
        "--read-only",
        "--interactive",
        "--tty",
        "--detach",
        "-q",
        "--quiet",
    ];
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = match texts.as_slice() {
        ["mcp", "gateway", ..] => {
            return Some(Identity {
                key: "builtin:docker-mcp-gateway".to_owned(),
                version: None,
                pin: Pin::None,
                is_pipeline: false,
                is_weak: false,
            });
        }
        ["run", ..] => &words[1..],
        ["container", "run", ..] => &words[2..],
        _ => return None,
    };
    packages::oci(after(rest, &WITH_VALUE, &ALONE)?.first()?).map(Identity::from)
}

fn by_path(program: &str, ground: &Ground<'_>) -> Option<Identity> {
    ground.hashed(program, "bin")
}
