//! Servers that are started with Python's tools.

use super::{Ground, Identity, known};
use crate::launch::after;
use crate::packages;

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

pub(super) fn uv(words: &[String], ground: &Ground<'_>, levels: usize) -> Option<Identity> {
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
