//! The identity of an MCP server: one key for every spelling of the same thing. Ours.
//!
//! What a key does not say wholly is weak: a command of no known form, a program that another environment or registry may replace. A
//! weak key names a form; nothing should be approved by it.

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
        "npx" | "bunx" | "pnpx" => npm(rest, ground, levels),
        "npm" if matches!(verb, Some("exec" | "x")) => npm(&rest[1..], ground, levels),
        "pnpm" | "yarn" if verb == Some("dlx") => npm(&rest[1..], ground, levels),
        "bun" if verb == Some("x") => npm(&rest[1..], ground, levels),
        "uvx" => pypi(rest),
        "uv" => uv(rest, ground, levels),
        "pipx" if verb == Some("run") => pypi(&rest[1..]),
        "docker" | "podman" | "nerdctl" => container(rest),
        "go" if verb == Some("run") => packages::go(rest.get(1)?).map(Identity::from),
        "dnx" => packages::nuget(
            &after(rest, &["--version"], &["-y", "--yes"])?
                .into_iter()
                .next()?,
        )
        .map(Identity::from),
        "deno" if verb == Some("run") => deno(&rest[1..], ground),
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => node(rest, ground),
        name if name == "py"
            || name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python" =>
        {
            python(program, rest, ground)
        }
        "bash" | "sh" | "zsh" | "dash" | "ruby" | "perl" | "php" | "pwsh" | "powershell" => {
            ground.hashed(rest.first().filter(|word| !word.starts_with('-'))?, "script")
        }
        _ if program.contains(['/', '\\']) => by_path(program, ground),
        _ => None,
    }
}

fn npm(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let (mut named, mut is_foreign, mut at) = (None, false, 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        let (flag, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        match flag {
            "-y" | "--yes" | "-q" | "--quiet" | "--silent" | "--prefer-offline" | "--prefer-online"
            | "--bun" => {}
            "--" => break,
            "-p" | "--package" | "--registry" | "--cache" | "--prefix" | "--userconfig" => {
                let value = value.map(str::to_owned).or_else(|| {
                    at += 1;
                    words.get(at - 1).cloned()
                })?;
                match flag {
                    // Two packages: nobody can say which of them holds the command.
                    "-p" | "--package" if named.is_some() => return None,
                    "-p" | "--package" => named = Some(value),
                    "--registry" => is_foreign |= value.trim_end_matches('/') != "https://registry.npmjs.org",
                    "--userconfig" => is_foreign = true,
                    _ => {}
                }
            }
            _ => return None,
        }
    }
    let (spec, rest) = match named {
        Some(spec) => (spec, words.get(at + 1..).unwrap_or_default()),
        None => (words.get(at)?.clone(), &words[at + 1..]),
    };
    let package = packages::npm(&spec)?;
    let inner = match package.key.as_str() {
        "npm:mcp-remote" => rest
            .iter()
            .find(|word| packages::url(word).is_some())
            .map(|word| of_url(word)),
        "npm:supergateway" => bridged(rest, ground, levels),
        _ => None,
    };
    let mut identity = inner.unwrap_or_else(|| package.into());
    identity.is_weak |= is_foreign;
    Some(identity)
}

/// Looks through a bridge to what stands behind it.
fn bridged(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    words.windows(2).find_map(|pair| match pair[0].as_str() {
        "--sse" | "--streamableHttp" => packages::url(&pair[1]).map(|_| of_url(&pair[1])),
        "--stdio" => {
            let (Launch::Program(words), _) = unwrapped(simple(&pair[1])?) else {
                return None;
            };
            known(&words, ground, levels)
        }
        _ => None,
    })
}

const PYTHON_PACKAGES: [&str; 10] = [
    "--with",
    "--python",
    "-p",
    "--directory",
    "--project",
    "--cache-dir",
    "--env-file",
    "--with-editable",
    "--with-requirements",
    "--spec",
];
const PYTHON_INDEXES: [&str; 5] = [
    "--index-url",
    "-i",
    "--index",
    "--default-index",
    "--extra-index-url",
];
const PYTHON_ALONE: [&str; 12] = [
    "-q",
    "--quiet",
    "--no-cache",
    "-n",
    "--refresh",
    "--offline",
    "--isolated",
    "--frozen",
    "--locked",
    "--no-project",
    "--native-tls",
    "--no-sync",
];

fn pypi(words: &[String]) -> Option<Identity> {
    let (mut from, mut is_foreign, mut at) = (None, false, 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        let (flag, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        if PYTHON_ALONE.contains(&flag) {
            continue;
        }
        let is_index = PYTHON_INDEXES.contains(&flag);
        if !(is_index || flag == "--from" || PYTHON_PACKAGES.contains(&flag)) {
            return None;
        }
        let value = value.map(str::to_owned).or_else(|| {
            at += 1;
            words.get(at - 1).cloned()
        })?;
        is_foreign |= is_index;
        if flag == "--from" || flag == "--spec" {
            from = Some(value);
        }
    }
    let spec = match from {
        Some(spec) => spec,
        None => words.get(at)?.clone(),
    };
    let mut identity = Identity::from(packages::pypi(&spec)?);
    identity.is_weak = is_foreign;
    Some(identity)
}

fn uv(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let words = after(words, &PYTHON_PACKAGES, &PYTHON_ALONE)?;
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tool", "run", ..] => return pypi(&words[2..]),
        ["run", ..] => {}
        _ => return None,
    }
    let inner = after(&words[1..], &PYTHON_PACKAGES, &PYTHON_ALONE)?;
    let flags = &words[1..words.len() - inner.len()];
    let with: Vec<&str> = flags
        .iter()
        .enumerate()
        .filter_map(|(at, word)| match word.strip_prefix("--with=") {
            Some(value) => Some(value),
            None if word == "--with" => flags.get(at + 1).map(String::as_str),
            None => None,
        })
        .collect();
    let program = inner.first()?;
    let has_script = inner.iter().any(|word| word.to_lowercase().ends_with(".py"));
    let of_program = with
        .iter()
        .filter_map(|spec| packages::pypi(spec))
        .find(|package| package.key == format!("pypi:{}", packages::normalized(program)));
    // `--with` only brings a library along when a script is run.
    match of_program {
        Some(package) if !has_script => Some(package.into()),
        _ if program.to_lowercase().ends_with(".py") => ground.hashed(program, "script"),
        _ => known(&inner, ground, levels),
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

fn deno(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    // Permissions of Deno stand in one word with their value; its other flags may load code.
    let at = words.iter().position(|word| !is_permission(word))?;
    let spec = words.get(at).filter(|word| !word.starts_with('-'))?;
    if ["npm:", "jsr:", "http://", "https://"]
        .iter()
        .any(|begin| spec.starts_with(begin))
    {
        return packages::deno(spec).map(Identity::from);
    }
    ground.hashed(spec, "script")
}

fn is_permission(word: &str) -> bool {
    ["-A", "-q", "--quiet", "--no-prompt", "--unstable"].contains(&word)
        || ["--allow-", "--deny-", "--unstable-", "--node-modules-dir"]
            .iter()
            .any(|begin| word.starts_with(begin))
}

fn node(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    const ALONE: [&str; 6] = [
        "--no-warnings",
        "--enable-source-maps",
        "--trace-warnings",
        "--experimental-strip-types",
        "--experimental-vm-modules",
        "run",
    ];
    let script = after(words, &[], &ALONE)?.into_iter().next()?;
    let plain = script.replace('\\', "/");
    // The last one: packages have packages below them.
    if let Some(at) = plain.rfind("/node_modules/") {
        let below = &plain[at + "/node_modules/".len()..];
        let parts: Vec<&str> = below.split('/').collect();
        let count = if below.starts_with('@') { 2 } else { 1 };
        if parts.len() > count && parts[0] != ".bin" {
            let name = parts[..count].join("/");
            let mut package = packages::npm(&name)?;
            if let Some(version) =
                ground.installed(&format!("{}/node_modules/{name}/package.json", &plain[..at]))
            {
                (package.version, package.pin) = (Some(version), Pin::Exact);
            }
            return Some(package.into());
        }
    }
    ground.hashed(&script, "script")
}

fn python(program: &str, words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    let words = after(words, &[], &["-u", "-B", "-I", "-E", "-s", "-O"]).or_else(|| {
        let at = words.iter().position(|word| word == "-m")?;
        after(&words[..at], &[], &["-u", "-B", "-I", "-E", "-s", "-O"])
            .filter(Vec::is_empty)
            .map(|_| words[at..].to_vec())
    })?;
    match words.as_slice() {
        [flag, module, ..] if flag == "-m" => module_of(program, module, ground),
        [script, ..] => ground.hashed(script, "script"),
        [] => None,
    }
}

/// Returns the package of a module whose files lie beside the interpreter.
fn module_of(program: &str, module: &str, ground: &Ground<'_>) -> Option<Identity> {
    let bin = program.rsplit_once('/')?.0;
    let (library, fence) = ground.place(&format!("{}/lib", bin.rsplit_once('/')?.0));
    let module = packages::normalized(module.split('.').next()?);
    for python in ground.disk.names(&library, fence).ok()? {
        let packages_of = library.join(&python).join("site-packages");
        for entry in ground.disk.names(&packages_of, fence).ok()? {
            let Some((name, version)) = entry
                .strip_suffix(".dist-info")
                .and_then(|name| name.split_once('-'))
            else {
                continue;
            };
            if packages::normalized(name) == module {
                return packages::pypi(&format!("{name}=={version}")).map(Identity::from);
            }
        }
    }
    None
}

fn by_path(program: &str, ground: &Ground<'_>) -> Option<Identity> {
    ground.hashed(program, "bin")
}
