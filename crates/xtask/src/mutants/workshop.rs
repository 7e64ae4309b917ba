//! The scratch tree with all mutants in it, and the test programs that are built from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::mutant::{self, Mutant};
use super::weave::{self, Apart};
use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::scratch::Scratch;

/// Pinned, because the mutants that exist are those of a version.
const VERSION: &str = "27.1.0";

/// The test programs that judge: the unit tests of both crates that have guarded code, and the scenarios.
const PROGRAMS: &[&str] = &["--workspace", "--lib", "--test", "it"];

/// LIMIT: each build names some mutants that do not compile; those of a later pass of the compiler come later.
const MOST_BUILDS: usize = 40;

/// Says which mutants are meant, and, when asked, which ones a test comes to. `COUNT` becomes their number.
const QUESTION: &str = r#"
#[doc(hidden)]
pub mod woven {
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static MEANT: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let numbers = std::env::var("XTASK_MUTANT").unwrap_or_default();
        numbers.split(',').filter_map(|number| number.parse().ok()).collect()
    });
    static TRACE: LazyLock<Option<std::path::PathBuf>> = LazyLock::new(|| {
        let folder = std::env::var_os("XTASK_MUTANT_TRACE")?;
        let program = std::env::var("NEXTEST_BINARY_ID").ok()?;
        let test = std::env::var("NEXTEST_TEST_NAME").ok()?;
        Some(std::path::Path::new(&folder).join(format!("{program} {test}")))
    });
    static SEEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    pub fn is(number: usize) -> bool {
        if let Some(file) = &*TRACE && !SEEN[number].swap(true, Ordering::Relaxed) {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
            file.write_all(format!("{number}\n").as_bytes()).unwrap();
        }
        MEANT.contains(&number)
    }
}
"#;

pub struct Workshop<'a> {
    pub scratch: &'a Scratch,
    pub target: PathBuf,
    /// For logs and lists.
    pub folder: PathBuf,
    program: PathBuf,
}

/// What was built.
pub struct Built {
    /// Mutants that do not compile, with the compiler's reason.
    pub unviable: BTreeMap<usize, String>,
    /// Mutants that the programs do not have, and why.
    pub apart: BTreeMap<usize, Apart>,
}

impl<'a> Workshop<'a> {
    pub fn open(scratch: &'a Scratch, target: PathBuf, folder: PathBuf) -> Outcome<Self> {
        if !process::works(process::cargo().args(["nextest", "--version"])) {
            return Err(Failure::new(
                "this task needs cargo-nextest: cargo install --locked cargo-nextest",
            ));
        }
        let program = process::find_or_install_crate("cargo-mutants", VERSION)?;
        Ok(Self {
            scratch,
            target,
            folder,
            program,
        })
    }

    /// Names everything that the tests are made of: the trees of the crates, without these tasks.
    pub fn ground(&self) -> Outcome<String> {
        let mut git = Command::new("git");
        git.current_dir(self.scratch.folder())
            .args(["ls-tree", "--abbrev=12", "HEAD", "crates/"]);
        let trees = process::output(&mut git)?;
        let trees = trees.lines().filter(|line| !line.ends_with("/xtask"));
        let trees: Vec<&str> = trees.filter_map(|line| line.split_whitespace().nth(2)).collect();
        Ok(trees.join(" "))
    }

    /// Lists the mutants of some files.
    pub fn list<'f>(&self, files: impl IntoIterator<Item = &'f str>) -> Outcome<Vec<Mutant>> {
        let mut command = Command::new(&self.program);
        process::without_settings(&mut command);
        // Without --workspace only the default members are looked at.
        command
            .current_dir(self.scratch.folder())
            .args(["mutants", "--workspace", "--no-config", "--colors", "never"])
            .args(["--list", "--json"]);
        for file in files {
            command.args(["--file", file]);
        }
        mutant::read(&process::output(&mut command)?, self.scratch.folder())
    }

    /// Builds the test programs with every mutant in them that compiles. Mutants have their places as numbers.
    pub fn build(&self, mutants: &[&Mutant]) -> Outcome<Built> {
        let mut built = Built {
            unviable: BTreeMap::new(),
            apart: BTreeMap::new(),
        };
        let mut constant = BTreeSet::new();
        for _ in 0..MOST_BUILDS {
            let lines = self.weave(mutants, &constant, &mut built)?;
            let errors = self.compile()?;
            if errors.is_empty() {
                self.list_programs()?;
                return Ok(built);
            }
            let before = built.unviable.len() + constant.len();
            for error in &errors {
                if let Some(name) = error.needed_in_a_constant() {
                    constant.insert(name.to_owned());
                    continue;
                }
                let guilty = error.guilty(&lines);
                if guilty.is_empty() {
                    return Err(Failure::new(format!(
                        "no mutant explains this:\n{}",
                        error.rendered
                    )));
                }
                for number in guilty {
                    built.unviable.insert(number, error.rendered.clone());
                }
            }
            println!(
                "{} mutants do not compile, {} others are left.",
                built.unviable.len(),
                mutants.len() - built.unviable.len() - built.apart.len()
            );
            if built.unviable.len() + constant.len() == before {
                return Err(Failure::new("the build fails, and no mutant more explains it"));
            }
        }
        Err(Failure::new(format!("{MOST_BUILDS} builds did not suffice")))
    }

    /// Writes the mutants into the tree; returns the lines of each, by file.
    fn weave(&self, mutants: &[&Mutant], constant: &BTreeSet<String>, built: &mut Built) -> Outcome<Lines> {
        self.scratch.revert()?;
        built.apart.clear();
        let mut lines = Lines::new();
        let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        for file in files {
            let of_file: Vec<(usize, &Mutant)> = mutants
                .iter()
                .copied()
                .enumerate()
                .filter(|(number, mutant)| mutant.file == file && !built.unviable.contains_key(number))
                .collect();
            let question = if file.starts_with("crates/kernel/") {
                "crate::woven::is"
            } else {
                "provost_kernel::woven::is"
            };
            let place = self.scratch.folder().join(file);
            let text = std::fs::read_to_string(&place).context(file)?;
            let woven = weave::weave(&text, &of_file, question, constant).context(file)?;
            std::fs::write(&place, woven.text).context(file)?;
            built.apart.extend(woven.apart);
            lines.insert(file.to_owned(), woven.lines);
        }
        // What is woven is not beautiful: unreachable code, needless brackets.
        for root in ["crates/kernel/src/lib.rs", "crates/server/src/lib.rs"] {
            let place = self.scratch.folder().join(root);
            let text = std::fs::read_to_string(&place).context(root)?;
            let question = if root.starts_with("crates/kernel/") {
                QUESTION.replace("COUNT", &mutants.len().to_string())
            } else {
                String::new()
            };
            std::fs::write(&place, format!("#![allow(warnings)]\n{text}{question}")).context(root)?;
            // The line that was put before the text.
            if let Some(of_root) = lines.get_mut(root) {
                for (_, lines) in of_root {
                    *lines = lines.start + 1..lines.end + 1;
                }
            }
        }
        Ok(lines)
    }

    /// Compiles the tests; returns the errors.
    fn compile(&self) -> Outcome<Vec<Said>> {
        let mut command = self.cargo();
        command
            .args(["test", "--no-run", "--profile", "ci", "--message-format", "json"])
            .args(PROGRAMS);
        let output = command.output().context("cannot run cargo")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut errors = Vec::new();
        for message in text
            .lines()
            .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        {
            let Some(said) = message.message else { continue };
            if said.level == "error" && !said.spans.is_empty() {
                errors.push(Said {
                    message: said.message,
                    rendered: said.rendered,
                    spans: said.spans,
                });
            }
        }
        if !output.status.success() && errors.is_empty() {
            return Err(Failure::new(format!(
                "the build fails without naming a line:\n{}",
                String::from_utf8_lossy(&output.stderr)
            )));
        }
        Ok(errors)
    }

    /// Keeps the lists that save the runner from asking cargo each time.
    fn list_programs(&self) -> Outcome {
        let mut metadata = self.cargo();
        metadata.args(["metadata", "--format-version", "1", "--all-features"]);
        let mut programs = self.cargo();
        programs
            .args([
                "nextest",
                "list",
                "--cargo-profile",
                "ci",
                "--list-type",
                "binaries-only",
            ])
            .args(["--message-format", "json"])
            .args(PROGRAMS);
        for (mut command, file) in [(metadata, self.metadata_file()), (programs, self.programs_file())] {
            let text = process::output(&mut command)?;
            std::fs::write(&file, text).context(file.display())?;
        }
        Ok(())
    }

    fn metadata_file(&self) -> PathBuf {
        self.folder.join("metadata.json")
    }

    fn programs_file(&self) -> PathBuf {
        self.folder.join("programs.json")
    }

    /// The runner of the tests that were built, with its settings in a file.
    pub fn runner(&self, settings: &Path) -> Command {
        let mut command = self.cargo();
        command
            .args(["nextest", "run", "--cargo-metadata"])
            .arg(self.metadata_file())
            .arg("--binaries-metadata")
            .arg(self.programs_file())
            .arg("--config-file")
            .arg(settings);
        command
    }

    fn cargo(&self) -> Command {
        let mut command = process::cargo();
        process::without_settings(&mut command);
        command
            .current_dir(self.scratch.folder())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never");
        command
    }
}

/// The lines that mutants alone have, by file.
type Lines = BTreeMap<String, Vec<(usize, std::ops::Range<usize>)>>;

#[derive(Deserialize)]
struct Message {
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    rendered: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    line_end: usize,
    is_primary: bool,
}

/// An error of the compiler.
struct Said {
    message: String,
    rendered: String,
    spans: Vec<Span>,
}

impl Said {
    /// The function that has to be `const`, if that is the error.
    fn needed_in_a_constant(&self) -> Option<&str> {
        let rest = self.message.strip_prefix("cannot call non-const ")?;
        let path = rest.split('`').nth(1)?;
        let name = path.rsplit("::").next()?;
        Some(name.split('<').next().unwrap_or(name))
    }

    /// The mutants whose lines it names: first of all those that it points at.
    fn guilty(&self, lines: &Lines) -> Vec<usize> {
        let named = |span: &Span| -> Vec<usize> {
            let of_file = lines.get(&span.file_name).into_iter().flatten();
            of_file
                .filter(|(_, lines)| lines.start <= span.line_start && span.line_end < lines.end)
                .map(|(number, _)| *number)
                .collect()
        };
        for is_primary in [true, false] {
            let spans = self.spans.iter().filter(|span| span.is_primary == is_primary);
            let guilty: Vec<usize> = spans.flat_map(named).collect();
            if !guilty.is_empty() {
                return guilty;
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(line: usize, is_primary: bool) -> Span {
        Span {
            file_name: "a.rs".into(),
            line_start: line,
            line_end: line,
            is_primary,
        }
    }

    #[test]
    fn the_mutant_on_the_line_of_an_error_is_guilty_and_whoever_is_only_mentioned_is_second() {
        let lines = Lines::from([("a.rs".to_owned(), vec![(0, 3..4), (1, 7..9)])]);
        let said = |spans| Said {
            message: String::new(),
            rendered: String::new(),
            spans,
        };
        assert_eq!(said(vec![span(3, true), span(8, false)]).guilty(&lines), [0]);
        assert_eq!(said(vec![span(5, true), span(8, false)]).guilty(&lines), [1]);
        assert!(said(vec![span(9, true)]).guilty(&lines).is_empty());
    }

    #[test]
    fn a_function_that_a_constant_needs_is_named() {
        let said = |message: &str| Said {
            message: message.into(),
            rendered: String::new(),
            spans: Vec::new(),
        };
        let named = said("cannot call non-const associated function `Scopes::of` in constants");
        assert_eq!(named.needed_in_a_constant(), Some("of"));
        assert_eq!(said("mismatched types").needed_in_a_constant(), None);
    }
}
