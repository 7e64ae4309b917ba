//! Servers that are started with Python's tools.

use super::{Ground, Identity, known};
use crate::launch::after;
use crate::packages;

/// Flags that bring other packages along, another interpreter, another folder: whatever they are, the key does not say it.
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

pub(super) fn pypi(words: &[String]) -> Option<Identity> {
    let (mut from, mut is_weak, mut at) = (None, false, 0);
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
        if flag == "--from" || flag == "--spec" {
            is_weak |= from.is_some();
            from = Some(value);
        } else {
            is_weak = true;
        }
    }
    let command = words.get(at)?;
    let package = packages::pypi(from.as_ref().unwrap_or(command))?;
    is_weak |= from.is_some() && package.key != format!("pypi:{}", packages::normalized(command));
    let mut identity = Identity::from(package);
    identity.is_weak |= is_weak;
    Some(identity)
}

/// Returns what `pipx run` runs: a file of that name before a package, and what a project has in a folder for packages.
pub(super) fn pipx(words: &[String], ground: &Ground<'_>) -> Option<Identity> {
    let mut identity = pypi(words)?;
    let names = words.iter().filter(|word| !word.starts_with('-'));
    identity.is_weak |= ground.has("__pypackages__") || names.into_iter().any(|name| ground.has(name));
    Some(identity)
}

pub(super) fn uv(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
    let behind = after(words, &PYTHON_PACKAGES, &PYTHON_ALONE)?;
    let is_turned = has_value_flag(&words[..words.len() - behind.len()]);
    let mut identity = match behind.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tool", "run", ..] => pypi(&behind[2..]),
        ["run", ..] => run(&behind, ground, levels),
        _ => None,
    }?;
    identity.is_weak |= is_turned;
    Some(identity)
}

fn has_value_flag(flags: &[String]) -> bool {
    let names = flags.iter().filter_map(|word| word.split('=').next());
    names.into_iter().any(|name| PYTHON_PACKAGES.contains(&name))
}

/// Returns what `uv run` runs: a script by its content, anything else weakly, because the project's own programs come first.
fn run(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
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
        Some(package) if !has_script => Some(Identity::from(package).weak()),
        _ if program.to_lowercase().ends_with(".py") => {
            let mut identity = ground.hashed(program, "script")?;
            identity.is_weak |= has_value_flag(flags);
            Some(identity)
        }
        _ => known(&inner, ground, levels).map(Identity::weak),
    }
}

pub(super) fn python(program: &str, words: &[String], ground: &Ground<'_>) -> Option<Identity> {
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

/// Returns the package of a module whose files lie beside the interpreter: weak, because only names of folders say so.
fn module_of(program: &str, module: &str, ground: &Ground<'_>) -> Option<Identity> {
    let bin = program.rsplit_once('/')?.0;
    let library = format!("{}/lib", bin.rsplit_once('/')?.0);
    let module = packages::normalized(module.split('.').next()?);
    for python in ground.names(&library)? {
        let Some(entries) = ground.names(&format!("{library}/{python}/site-packages")) else {
            continue;
        };
        for entry in entries {
            let Some((name, version)) = entry
                .strip_suffix(".dist-info")
                .and_then(|name| name.split_once('-'))
            else {
                continue;
            };
            if packages::normalized(name) == module {
                let package = packages::pypi(&format!("{name}=={version}"))?;
                return Some(Identity::from(package).weak());
            }
        }
    }
    None
}
