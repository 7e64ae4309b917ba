//! `docs/assurance.md`: every goal of reliability with the figure that was reached, or "not run".
//!
//! The page is made from three things: the table of goals (`goals.rs`), the records that runs left in
//! `docs/assurance/`, and the names of the suite's tests. Nothing on it is written by hand beside the table's
//! words, and a test refuses a page that is not what these three say.

mod goals;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::{self, Record};
use goals::{GOALS, Goal};

/// Write docs/assurance.md from the records of the runs
#[derive(clap::Args)]
pub struct Arguments {
    /// Change nothing; fail if the page is not what the records say
    #[arg(long)]
    check: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let page = page(&records()?);
    let file = file();
    if arguments.check {
        let there = std::fs::read_to_string(&file).context(format_args!("cannot read {}", file.display()))?;
        if there != page {
            return Err(Failure::new(
                "docs/assurance.md is not what the records say; write it with: cargo xtask assurance",
            ));
        }
        println!("docs/assurance.md says what the records say.");
        return Ok(());
    }
    std::fs::write(&file, page).context(format_args!("cannot write {}", file.display()))?;
    println!("Wrote {}.", file.display());
    Ok(())
}

fn file() -> PathBuf {
    process::root().join("docs/assurance.md")
}

/// The records by the names of their files.
fn records() -> Outcome<BTreeMap<String, Record>> {
    let folder = record::folder();
    let mut records = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).context(format_args!("cannot read {}", folder.display()))? {
        let path = entry.context("cannot read the folder of the records")?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).context(format_args!("cannot read {}", path.display()))?;
        let record: Record =
            serde_json::from_str(&text).context(format_args!("{} is no record", path.display()))?;
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        records.insert(stem, record);
    }
    Ok(records)
}

fn page(records: &BTreeMap<String, Record>) -> String {
    let count =
        |keep: fn(Standing) -> bool| GOALS.iter().filter(|goal| keep(standing(goal, records))).count();
    let mut page = format!(
        "# Assurance\n\n\
         What was tried to break Provost, with which figure, when and how to try it again. The goals are those that the \
         project set itself; a goal that nothing speaks for says \"not run\". Written by `cargo xtask assurance` from the \
         records that the runs left in `docs/assurance/`; tests of the suite run at every change, on SQLite and on \
         PostgreSQL.\n\n\
         Of {} goals {} have a run on record, {} are held by tests of the suite alone, {} were not run. *Open* says what \
         of the goal's figure is missing. Faults that these runs found are in [CHANGELOG.md](../CHANGELOG.md); what the \
         code promises line by line is in [INVARIANTS.md](../INVARIANTS.md).\n",
        GOALS.len(),
        count(|standing| standing == Standing::Recorded),
        count(|standing| standing == Standing::Suite),
        count(|standing| standing == Standing::NotRun),
    );
    for goal in GOALS {
        if let Some(section) = goal.section {
            let _ = write!(page, "\n## {section}\n");
        }
        let _ = write!(
            page,
            "\n### {}: {}\n\nGoal: {}\n\n",
            goal.id, goal.promise, goal.figure
        );
        if standing(goal, records) == Standing::NotRun {
            page.push_str("- **Not run.**\n");
        }
        for record in records.values().filter(|record| speaks_for(record, goal)) {
            let seeds = record
                .seeds
                .as_ref()
                .map_or_else(String::new, |seeds| format!(", seeds {seeds}"));
            let _ = writeln!(
                page,
                "- **{}{seeds}:** {} `{}`",
                record.date, record.figure, record.command
            );
        }
        if !goal.tests.is_empty() {
            let names: Vec<_> = goal.tests.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "- **Every change:** {}", names.join(", "));
        }
        if !goal.open.is_empty() {
            let _ = writeln!(page, "- *Open:* {}", goal.open);
        }
    }
    page
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Recorded,
    Suite,
    NotRun,
}

fn standing(goal: &Goal, records: &BTreeMap<String, Record>) -> Standing {
    if records.values().any(|record| speaks_for(record, goal)) {
        Standing::Recorded
    } else if goal.tests.is_empty() {
        Standing::NotRun
    } else {
        Standing::Suite
    }
}

fn speaks_for(record: &Record, goal: &Goal) -> bool {
    record.goals.iter().any(|id| id == goal.id)
}

/// Appends the text of every source file below `folder`.
#[cfg(test)]
fn sources(folder: &std::path::Path, all: &mut String) -> Outcome {
    for entry in std::fs::read_dir(folder).context(folder.display())? {
        let path = entry.context(folder.display())?.path();
        if path.is_dir() {
            sources(&path, all)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&std::fs::read_to_string(&path).context(path.display())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_records_say() {
        let there = std::fs::read_to_string(file()).unwrap();
        assert!(
            there == page(&records().unwrap()),
            "write it with: cargo xtask assurance"
        );
    }

    #[test]
    fn goals_are_numbered_and_name_tests_that_exist() {
        let mut all = String::new();
        sources(&process::root().join("crates"), &mut all).unwrap();
        for (index, goal) in GOALS.iter().enumerate() {
            assert_eq!(goal.id, format!("R{}", index + 1));
            for test in goal.tests {
                assert!(
                    all.contains(&format!("fn {test}(")),
                    "{}: no test {test}",
                    goal.id
                );
            }
            assert!(
                !goal.tests.is_empty()
                    || !goal.open.is_empty()
                    || records().unwrap().values().any(|r| speaks_for(r, goal)),
                "{}: nothing speaks for it, and nothing says why",
                goal.id
            );
        }
    }

    #[test]
    fn records_are_about_goals_that_exist() {
        for (name, record) in records().unwrap() {
            assert!(!record.goals.is_empty(), "{name}");
            for id in &record.goals {
                assert!(GOALS.iter().any(|goal| goal.id == id), "{name}: no goal {id}");
            }
        }
    }
}
