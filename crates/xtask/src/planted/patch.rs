//! One planted bug: a patch with some words before its diff.

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// A file of `tests/planted`.
pub struct Patch {
    /// The file's name without its ending: `01-expired-token-accepted`.
    pub name: String,
    pub file: PathBuf,
    /// The whole file, by which the journal knows whether it changed.
    pub text: String,
    /// What goes wrong, for whom.
    pub bug: String,
    /// The invariant or goal that it breaks.
    pub promise: String,
    pub run: Run,
    pub needs_postgres: bool,
}

/// What is built and run to catch it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub package: String,
    /// Which of the package's test programs are built: `--lib`, `--test it`; all of them when empty.
    pub targets: Vec<String>,
    /// A filter expression of nextest; everything when empty.
    pub filter: String,
}

impl Display for Run {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let words = [self.package.clone(), self.targets.join(" "), self.filter.clone()];
        let said: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        formatter.write_str(&said.join(" "))
    }
}

impl Run {
    /// Reads `package [--lib | --bins | --test NAME]… [filter]`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().peekable();
        let package = words.next()?.to_owned();
        let mut targets = Vec::new();
        while let Some(word) = words.next_if(|word| word.starts_with("--")) {
            targets.push(word.to_owned());
            if word == "--test" {
                targets.push(words.next()?.to_owned());
            }
        }
        Some(Self {
            package,
            targets,
            filter: words.collect::<Vec<_>>().join(" "),
        })
    }
}

impl Patch {
    fn read(file: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(file).context(file.display())?;
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Self::parse(name, file.to_owned(), text)
            .map_err(|missing| Failure::new(format!("{}: {missing}", file.display())))
    }

    fn parse(name: String, file: PathBuf, text: String) -> Result<Self, String> {
        let (header, _) = text
            .split_once("diff --git ")
            .ok_or("no line begins with “diff --git”")?;
        let said = |word: &str| {
            header
                .lines()
                .find_map(|line| line.strip_prefix(word)?.strip_prefix(": "))
        };
        let wanted = |word: &str| said(word).ok_or(format!("a line “{word}: …” is missing before the diff"));
        if name
            .split('-')
            .next()
            .is_none_or(|number| number.parse::<u32>().is_err())
        {
            return Err("its name does not begin with a number".to_owned());
        }
        let engine = said("Engine").unwrap_or("sqlite");
        if !["sqlite", "both"].contains(&engine) {
            return Err(format!("“Engine: {engine}” is neither sqlite nor both"));
        }
        Ok(Self {
            bug: wanted("Bug")?.to_owned(),
            promise: wanted("Promise")?.to_owned(),
            run: Run::parse(wanted("Run")?).ok_or("its line “Run: …” names no package")?,
            needs_postgres: engine == "both",
            name,
            file,
            text,
        })
    }

    /// The number that its name begins with.
    pub fn number(&self) -> u32 {
        let number = self.name.split('-').next().unwrap_or_default();
        number.parse().unwrap_or_default()
    }
}

/// The folder of the patches.
pub fn folder() -> PathBuf {
    process::root().join("tests/planted")
}

/// All patches in the order of their names: those of one crate stand together, because building is what costs.
pub fn read_all() -> Outcome<Vec<Patch>> {
    let folder = folder();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).context(folder.display())? {
        let path = entry.context(folder.display())?.path();
        if path.extension().is_some_and(|ending| ending == "patch") {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| Patch::read(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Patch, String> {
        Patch::parse("07-some-bug".into(), PathBuf::new(), text.into())
    }

    #[test]
    fn the_words_before_the_diff_are_read() {
        let text = "Bug: It lies.\nPromise: AD-1\nRun: provost-server --lib --test it test(/^audit/) | test(x)\n\
                    Engine: both\n\ndiff --git a/x b/x\n";
        let patch = parse(text).unwrap();
        assert_eq!((patch.number(), patch.needs_postgres), (7, true));
        assert_eq!((patch.bug.as_str(), patch.promise.as_str()), ("It lies.", "AD-1"));
        assert_eq!(patch.run.targets, ["--lib", "--test", "it"]);
        assert_eq!(patch.run.filter, "test(/^audit/) | test(x)");
        assert_eq!(
            patch.run.to_string(),
            "provost-server --lib --test it test(/^audit/) | test(x)"
        );
    }

    #[test]
    fn a_patch_without_its_words_is_refused() {
        for text in [
            "Bug: a\nPromise: b\nRun: c\n",
            "Bug: a\nPromise: b\ndiff --git a/x b/x\n",
            "Promise: b\nRun: c\ndiff --git a/x b/x\n",
            "Bug: a\nPromise: b\nRun: c\nEngine: other\ndiff --git a/x b/x\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
