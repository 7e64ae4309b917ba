//! `docs/assurance.md`: every goal of reliability with the figure that was reached, or "not run".
//!
//! The page is made from two things: the goals (`docs/assurance/goals.json`), which name tests of the suite, and the records
//! that runs left. Nothing on it is written by hand beside the table's words, and a test refuses a page that is not what these
//! say.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::{self, Record, Records};

/// Write docs/assurance.md from the records of the runs
#[derive(clap::Args)]
pub struct Arguments {
    /// Change nothing; fail if the page is not what the records say
    #[arg(long)]
    check: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Goal {
    /// A heading that begins before this goal.
    section: Option<String>,
    /// "R1" and so on.
    id: String,
    /// What is promised.
    promise: String,
    /// The figure to reach.
    figure: String,
    /// Tests of the suite that would refute it.
    tests: Vec<String>,
    /// What of the figure is missing, and why; empty when nothing is.
    open: String,
}

/// Returns the goals in their order.
fn goals() -> Outcome<Vec<Goal>> {
    let file = process::root().join("docs/assurance/goals.json");
    let text = std::fs::read_to_string(&file).context(format_args!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).context(format_args!("{} holds no goals", file.display()))
}

pub fn run(arguments: &Arguments) -> Outcome {
    let page = page(&goals()?, &record::read()?);
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

fn page(goals: &[Goal], records: &Records) -> String {
    let count =
        |keep: fn(GoalStatus) -> bool| goals.iter().filter(|goal| keep(standing(goal, records))).count();
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
        goals.len(),
        count(|standing| standing == GoalStatus::Recorded),
        count(|standing| standing == GoalStatus::Suite),
        count(|standing| standing == GoalStatus::NotRun),
    );
    for goal in goals {
        if let Some(section) = &goal.section {
            let _ = write!(
                page,
                "\n## {section}\n\n| | goal | verdict | last run | measured by |\n| --- | --- | --- | --- | --- |\n"
            );
        }
        page.push_str(&row(goal, records));
    }
    page.push_str("\n## What is missing\n\n");
    for goal in goals.iter().filter(|goal| !goal.open.is_empty()) {
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
    let word = match (best, goal.open.as_str(), goal.tests.as_slice()) {
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
        goal.id.as_str(),
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
enum GoalStatus {
    Recorded,
    Suite,
    NotRun,
}

fn standing(goal: &Goal, records: &Records) -> GoalStatus {
    if records.values().any(|record| speaks_for(record, goal)) {
        GoalStatus::Recorded
    } else if goal.tests.is_empty() {
        GoalStatus::NotRun
    } else {
        GoalStatus::Suite
    }
}

fn speaks_for(record: &Record, goal: &Goal) -> bool {
    record.goals.contains(&goal.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_records_say() {
        let there = std::fs::read_to_string(file()).unwrap();
        assert!(
            there == page(&goals().unwrap(), &record::read().unwrap()),
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
        let all = process::sources("crates");
        for (index, goal) in goals().unwrap().iter().enumerate() {
            assert_eq!(goal.id, format!("R{}", index + 1));
            for test in &goal.tests {
                let is_there = all.iter().any(|(_, text)| text.contains(&format!("fn {test}(")));
                assert!(is_there, "{}: no test {test}", goal.id);
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
        let goals = goals().unwrap();
        for (name, record) in record::read().unwrap() {
            assert!(!record.goals.is_empty(), "{name}");
            for id in &record.goals {
                assert!(goals.iter().any(|goal| goal.id == *id), "{name}: no goal {id}");
            }
        }
    }
}
