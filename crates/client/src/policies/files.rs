//! Policies as files: which files there are, what they hold, and what lies beside them.

use crate::backtests::{FAMILIES, definition_of, json_file};
use crate::cli::{Failure, Terminal};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, ValueHint, value_parser};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What the name of a file of cases ends with.
const CASES: &str = ".cases.json";
/// LIMIT: folders below one another. Ours: a link that leads upwards ends somewhere.
const DEPTH: usize = 16;

/// A policy in a file.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    /// Where it lies, as a person named it.
    pub path: PathBuf,
    /// Its family, as the API says it.
    pub family: String,
    /// The definition as it is written.
    pub definition: Value,
}

impl PolicyFile {
    /// Reads a file; the family is what it says, else what was said, else what only one family has.
    ///
    /// Errors: usage.
    pub fn read(path: &Path, family: Option<&str>, terminal: &Terminal) -> Result<Self, Failure> {
        let json = json_file(path, terminal)?;
        let read = definition_of(json, family);
        let (family, definition) =
            read.map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
        if !FAMILIES.contains(&family.as_str()) {
            let line = format!(
                "{}: {family} is no family: say {}",
                path.display(),
                FAMILIES.join(", ")
            );
            return Err(Failure::usage(line));
        }
        Ok(Self {
            path: path.to_owned(),
            family,
            definition,
        })
    }

    /// Returns the id that the definition says.
    ///
    /// Errors: usage, when it says none.
    pub fn id(&self) -> Result<&str, Failure> {
        let id = self.definition.get("id").and_then(Value::as_str);
        id.filter(|id| !id.is_empty()).ok_or_else(|| {
            let path = self.path.display();
            Failure::usage(format!(
                "{path}: the definition has no id, so that it names no policy"
            ))
        })
    }

    /// Returns where its cases lie.
    pub fn cases(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".json").unwrap_or(&name);
        self.path.with_file_name(format!("{stem}{CASES}"))
    }
}

/// Returns the argument for files and folders.
pub fn files_arg() -> Arg {
    Arg::new("files")
        .value_name("FILE|DIR")
        .value_hint(ValueHint::AnyPath)
        .value_parser(value_parser!(PathBuf))
        .num_args(1..)
        .required(true)
        .help("Files with one policy each, or folders of them; NAME.cases.json are their cases")
}

/// Returns the flag for the folder that is the truth.
pub fn folder_arg() -> Arg {
    Arg::new("folder")
        .short('f')
        .long("file")
        .value_name("FILE|DIR")
        .value_hint(ValueHint::AnyPath)
        .value_parser(value_parser!(PathBuf))
        .num_args(1)
        .action(clap::ArgAction::Append)
        .required(true)
        .help("A file with one policy, or a folder of them; may be repeated")
}

/// Returns the flag for the family of files that do not say it.
pub fn family_arg() -> Arg {
    Arg::new("family")
        .long("family")
        .value_name("WORD")
        .value_parser(PossibleValuesParser::new(FAMILIES))
        .help("The family of files that do not say it [default: by their members]")
}

/// Returns the policies that a command line names, in the order of their paths.
///
/// Errors: usage, when a file cannot be read or a folder holds none.
pub fn named(matches: &ArgMatches, id: &str, terminal: &Terminal) -> Result<Vec<PolicyFile>, Failure> {
    let family = matches.get_one::<String>("family").map(String::as_str);
    let mut files = Vec::new();
    for path in matches.get_many::<PathBuf>(id).into_iter().flatten() {
        if !path.is_dir() {
            files.push(PolicyFile::read(path, family, terminal)?);
            continue;
        }
        let mut paths = Vec::new();
        walk(path, DEPTH, &mut paths)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        paths.sort();
        if paths.is_empty() {
            let line = format!(
                "{} holds no policy: no file whose name ends with .json",
                path.display()
            );
            return Err(Failure::usage(line));
        }
        for path in paths {
            files.push(PolicyFile::read(&path, family, terminal)?);
        }
    }
    Ok(files)
}

/// Refuses files of which two are one policy.
///
/// Errors: usage, naming both.
pub fn must_differ(files: &[PolicyFile]) -> Result<(), Failure> {
    let mut seen: BTreeMap<&str, &Path> = BTreeMap::new();
    for file in files {
        if let Some(other) = seen.insert(file.id()?, &file.path) {
            let (one, other) = (file.path.display(), other.display());
            return Err(Failure::usage(format!(
                "{other} and {one} have the same id {}; an id names one policy of the organization",
                file.id()?
            )));
        }
    }
    Ok(())
}

fn walk(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, paths)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "json") && !name.ends_with(CASES) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(path: &str, id: &str) -> PolicyFile {
        PolicyFile {
            path: path.into(),
            family: "content".into(),
            definition: json!({ "id": id }),
        }
    }

    #[test]
    fn cases_lie_beside_their_policy() {
        assert_eq!(file("a/b.json", "b").cases(), Path::new("a/b.cases.json"));
        assert_eq!(file("b", "b").cases(), Path::new("b.cases.json"));
    }

    #[test]
    fn two_files_of_one_policy_are_refused_with_both_names() {
        assert!(must_differ(&[file("a", "x"), file("b", "y")]).is_ok());
        let refused = must_differ(&[file("a", "x"), file("b", "x")]).unwrap_err();
        assert!(
            refused.lines[0].contains("a and b have the same id x"),
            "{refused:?}"
        );
    }
}
