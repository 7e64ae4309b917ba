//! `docs/assurance.md`: every goal of reliability with the figure that was reached, or "not run".
//!
//! The page is made from two things: the table of goals (`goals.rs`), which names tests of the suite, and the records that
//! runs left. Nothing on it is written by hand beside the table's words, and a test refuses a page that is not what these
//! say.

mod goals;

use std::fmt::Write;
use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::{self, Record, Records};
use goals::{GOALS, Goal};

/// Write docs/assurance.md from the records of the runs
#[derive(clap::Args)]
pub struct Arguments {
    /// Change nothing; fail if the page is not what the records say
    #[arg(long)]
    check: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let page = page(&record::read()?);
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

/// How many letters of a figure stand on the page; all of it stands with the records.
const MOST_LETTERS: usize = 200;

fn page(records: &Records) -> String {
    let count =
        |keep: fn(Standing) -> bool| GOALS.iter().filter(|goal| keep(standing(goal, records))).count();
    let mut page = format!(
        "# Assurance\n\n\
         What was tried to break Provost, with which figure, when, and how to try it again. The goals are those that the \
         project set itself. Written by `cargo xtask assurance`: a figure is the beginning of what the last run with \
         `--record` said, and [records.json](assurance/records.json) holds all of it with its seed. Tests of the suite run \
         at every change, on SQLite and on PostgreSQL, walks to which no engine makes a difference on SQLite and at night on both; how the long nets ended last stands in \
         [nightly.json](assurance/nightly.json).\n\n\
         Of {} goals {} have a run on record, {} are held by tests of the suite alone, {} were not run. *In part* means that \
         [something is missing](#what-is-missing). Faults that these runs found are in [CHANGELOG.md](../CHANGELOG.md); what \
         the code promises line by line is in [INVARIANTS.md](../INVARIANTS.md).\n",
        GOALS.len(),
        count(|standing| standing == Standing::Recorded),
        count(|standing| standing == Standing::Suite),
        count(|standing| standing == Standing::NotRun),
    );
    for goal in GOALS {
        if let Some(section) = goal.section {
            let _ = write!(
                page,
                "\n## {section}\n\n| | goal | verdict | last run | measured by |\n| --- | --- | --- | --- | --- |\n"
            );
        }
        page.push_str(&row(goal, records));
    }
    page.push_str("\n## What is missing\n\n");
    for goal in GOALS.iter().filter(|goal| !goal.open.is_empty()) {
        let _ = writeln!(page, "- {}: {}", goal.id, goal.open);
    }
    page
}

/// One goal as a row of its table.
fn row(goal: &Goal, records: &Records) -> String {
    let found: Vec<&Record> = records
        .values()
        .filter(|record| speaks_for(record, goal))
        .collect();
    // What was run for this goal alone says most about it; of several, the newest, and of these the one with most to say.
    let best = found.iter().max_by_key(|record| {
        let goals = std::cmp::Reverse(record.goals.len());
        (goals, &record.date, record.figure.len())
    });
    let word = match (best, goal.open, goal.tests) {
        (Some(_), "", _) => "**reached**",
        (Some(_), ..) => "**in part**",
        (None, _, []) => "**not run**",
        (None, ..) => "**reached** by the suite alone",
    };
    let (mut verdict, mut date, mut ways) = (word.to_owned(), "", Vec::new());
    if let Some(record) = best {
        let _ = write!(verdict, ": {}", beginning(&record.figure));
        date = &record.date;
        ways.push(format!("`{}`", record.command));
    }
    if found.len() > 1 {
        ways.push(format!("{} more", found.len() - 1));
    }
    match goal.tests.len() {
        0 => {}
        1 => ways.push("a test at every change".to_owned()),
        tests => ways.push(format!("{tests} tests at every change")),
    }
    let cells = [
        goal.id,
        &format!("{}: {}", goal.promise, goal.figure),
        &verdict,
        date,
        &ways.join(", "),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

/// The first clause of a figure, and less where that is long.
fn beginning(figure: &str) -> String {
    let mut depth = 0_u32;
    let mut end = figure.len();
    let mut breaks = Vec::new();
    for (at, letter) in figure.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let rest = &figure[at..];
        if depth == 0 && (rest == "." || rest.starts_with(". ") || rest.starts_with("; ")) {
            end = at;
            break;
        }
        if depth == 0 && rest.starts_with(", ") {
            breaks.push(at);
        }
    }
    if figure[..end].chars().count() <= MOST_LETTERS {
        return figure[..end].to_owned();
    }
    let fits = |at: &&usize| figure[..**at].chars().count() <= MOST_LETTERS;
    let end = breaks.iter().rfind(fits).copied().unwrap_or(end);
    format!("{} …", &figure[..end])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Recorded,
    Suite,
    NotRun,
}

fn standing(goal: &Goal, records: &Records) -> Standing {
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
            there == page(&record::read().unwrap()),
            "write it with: cargo xtask assurance"
        );
    }

    #[test]
    fn a_figure_begins_with_its_first_clause_and_is_cut_between_clauses() {
        assert_eq!(
            beginning("3 kills (1 slow; 2 fast), 0 lost; more."),
            "3 kills (1 slow; 2 fast), 0 lost"
        );
        assert_eq!(beginning("p99 4.5 ms. Later."), "p99 4.5 ms");
        assert_eq!(beginning("All of it."), "All of it");
        let long = format!("{}, {}.", "a".repeat(150), "b".repeat(150));
        assert_eq!(beginning(&long), format!("{} …", "a".repeat(150)));
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
                    || record::read().unwrap().values().any(|r| speaks_for(r, goal)),
                "{}: nothing speaks for it, and nothing says why",
                goal.id
            );
        }
    }

    #[test]
    fn records_are_about_goals_that_exist() {
        for (name, record) in record::read().unwrap() {
            assert!(!record.goals.is_empty(), "{name}");
            for id in &record.goals {
                assert!(GOALS.iter().any(|goal| goal.id == id), "{name}: no goal {id}");
            }
        }
    }
}
