//! The identity of an MCP server: one key for every spelling of the same thing.
//!
//! What a key does not say wholly is weak: a command of no known form, a program that another environment, folder or registry may
//! replace, an interpreter, a script, an address of which a part is hidden or that each machine has for itself. What makes a key strong is
//! what decides which code runs: where a project may bring that, the key is weak. When in doubt a key is weak; nothing should be approved by
//! it.

mod container;
mod ground;
mod javascript;
mod python;

pub(crate) use ground::{Ground, Manifests};

use crate::address::url;
use crate::fingerprint::InventoryKey;
use crate::hide;
use crate::launch::{Launch, after, base, simple, tool, unwrapped};
use crate::packages::{self, Package};
use crate::report::Pin;
use crate::secrets::looks_secret;

/// LIMIT: commands within commands.
const LEVELS: usize = 4;

/// Beginnings of variables that let other code run than the command names, or bring it from elsewhere; their case does not count.
const TURNING_BEGINNINGS: [&str; 16] = [
    "NPM_CONFIG_",
    "PNPM_",
    "YARN_",
    "COREPACK_",
    "UV_",
    "PIP_",
    "LD_",
    "DYLD_",
    "NODE_",
    "PYTHON",
    "BUN_",
    "DENO_",
    "DOCKER_",
    "XDG_",
    "RUBY",
    "PERL5",
];
/// The same, whole.
const TURNING: [&str; 5] = ["BASH_ENV", "ENV", "PATH", "HOME", "USERPROFILE"];

/// Says whether a variable, `NAME` or `NAME=value`, lets other code run than the command names.
fn turns(variable: &str) -> bool {
    let name = variable
        .split('=')
        .next()
        .unwrap_or_default()
        .trim()
        .to_uppercase();
    // Go has no mark in its names but the first letters, which Google's and Goose's credentials have as well.
    let is_go = name.starts_with("GO") && !name.starts_with("GOOGLE_") && !name.starts_with("GOOSE_");
    is_go
        || TURNING.contains(&name.as_str())
        || TURNING_BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Which server it is.
pub(crate) struct Identity {
    pub(crate) key: String,
    pub(crate) version: Option<String>,
    pub(crate) pin: Pin,
    pub(crate) is_pipeline: bool,
    pub(crate) is_weak: bool,
}

impl Identity {
    fn named(key: String) -> Self {
        Self {
            key,
            version: None,
            pin: Pin::None,
            is_pipeline: false,
            is_weak: false,
        }
    }

    fn weak(self) -> Self {
        Self {
            is_weak: true,
            ..self
        }
    }
}

impl From<Package> for Identity {
    fn from(package: Package) -> Self {
        Self {
            version: package.version,
            pin: package.pin,
            is_weak: package.runs_others,
            ..Self::named(package.key)
        }
    }
}

/// Returns the identity of what a client has within itself.
pub(crate) fn builtin(key: String) -> Identity {
    Identity::named(key)
}

/// Returns the identity of a server of which only its client knows what it is, by what is written of it.
pub(crate) fn of_unknown(words: &[&str], key: &InventoryKey) -> Identity {
    Identity::named(format!("cmd:hmac:{}", key.of("unknown", &words.join("\n")))).weak()
}

/// Returns the identity of a server at an address.
pub(crate) fn of_url(text: &str, key: &InventoryKey) -> Identity {
    match url(text) {
        Some(address) => Identity {
            is_weak: !address.is_whole || address.is_private,
            ..Identity::named(address.key)
        },
        None => of_form(&["url".to_owned()], key),
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
    let mut identity = launched(words, ground, LEVELS);
    identity.is_weak |= variables.iter().any(|name| turns(name));
    identity
}

/// Returns the identity of what a command line starts behind the programs around it.
fn launched(words: Vec<String>, ground: &Ground<'_>, levels: usize) -> Identity {
    let line = unwrapped(words);
    let mut identity = match &line.launch {
        Launch::Program(words) => known(words, ground, levels).unwrap_or_else(|| of_form(words, ground.key)),
        Launch::Pipeline(words) => Identity {
            is_pipeline: true,
            ..of_form(words, ground.key)
        },
    };
    identity.is_weak |= line.is_moved || line.variables.iter().any(|name| turns(name));
    identity
}

/// Returns the identity of a command by its form: the program, the names of its flags, and the kinds of everything else. Its key is one
/// of the inventory: who has only the report could find a program, a verb and a package by trying.
fn of_form(words: &[String], key: &InventoryKey) -> Identity {
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
    Identity::named(format!("cmd:hmac:{}", key.of("command", &text.to_lowercase()))).weak()
}

fn known(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let levels = levels.checked_sub(1)?;
    let (program, rest) = words.split_first()?;
    let verb = rest.first().map(String::as_str);
    let Some(name) = tool(program) else {
        return by_path(program, rest, ground);
    };
    match name.as_str() {
        "npx" | "pnpx" => javascript::npm(rest, ground, levels),
        "bunx" => javascript::bun(rest, ground, levels),
        "npm" if matches!(verb, Some("exec" | "x")) => javascript::npm_exec(&rest[1..], ground, levels),
        "pnpm" | "yarn" if verb == Some("dlx") => javascript::npm(&rest[1..], ground, levels),
        "bun" if verb == Some("x") => javascript::bun(&rest[1..], ground, levels),
        "uvx" => python::pypi(rest),
        "uv" => python::uv(rest, ground, levels),
        "pipx" if verb == Some("run") => python::pipx(&rest[1..], ground),
        "docker" | "podman" | "nerdctl" => container::container(rest),
        "go" if verb == Some("run") => packages::go(rest.get(1)?).map(Identity::from),
        "dnx" => dnx(rest, ground),
        "deno" if verb == Some("run") => javascript::deno(&rest[1..], ground),
        // A word that is no path is the name of a script in a package.
        "bun" if !verb.is_some_and(|word| word.contains(['.', '/'])) => None,
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => javascript::node(rest, ground),
        name if name == "py"
            || name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python" =>
        {
            python::python(program, rest, ground)
        }
        "bash" | "sh" | "zsh" | "dash" | "ruby" | "perl" | "php" | "pwsh" | "powershell" => {
            ground.hashed(rest.first().filter(|word| !word.starts_with('-'))?, "script")
        }
        _ if program.contains(['/', '\\']) => by_path(program, rest, ground),
        _ => None,
    }
}

/// Returns the package of a tool; its own flags may also stand behind the name.
fn dnx(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    let behind = after(words, &["--version"], &["-y", "--yes"])?;
    let (name, more) = behind.split_first()?;
    let mut own = more.iter().take_while(|word| *word != "--");
    let mut identity = Identity::from(packages::nuget(name)?);
    identity.is_weak |= own.any(|word| word.starts_with('-') && !["-y", "--yes"].contains(&word.as_str()));
    identity.is_weak |= ground.brings(None);
    Some(identity)
}

/// Returns the identity of a program by its content. With arguments it may be one that runs them: a copy of an interpreter, a wrapper.
fn by_path(program: &str, arguments: &[String], ground: &Ground<'_>) -> Option<Identity> {
    let mut identity = ground.hashed(program, "bin")?;
    identity.is_weak |= !arguments.is_empty();
    Some(identity)
}
