//! What works with which client or format: tables that the tasks keep, and the page that is made of them.
//!
//! A task that tried clients writes its table with `--record`, only after it succeeded. A table of what no task of this program tries
//! says itself how it was tried.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// Write docs/compatibility.md from the tables that the tasks keep
#[derive(clap::Args)]
pub struct Arguments {
    /// Change nothing; fail if the page is not what the tables say
    #[arg(long)]
    check: bool,
}

/// The tables by their names, in whose order they stand on the page.
type Tables = BTreeMap<String, Table>;

/// What was tried of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Table {
    /// The heading.
    pub title: String,
    /// The day, as YYYY-MM-DD.
    pub date: String,
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// A row for each client or source; cells may be Markdown.
    pub rows: Vec<Vec<String>>,
    /// How it was tried, and what is still refused or not told.
    pub how: Vec<String>,
}

impl Table {
    /// A table of today without rows.
    pub fn new(title: &str, columns: &[&str], how: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            title: title.to_owned(),
            date: clock::today(),
            columns: owned(columns),
            rows: Vec::new(),
            how: owned(how),
        }
    }

    /// Makes it the table of that name, and the page with it.
    pub fn write(self, name: &str) -> Outcome {
        let mut tables = read()?;
        tables.insert(name.to_owned(), self);
        let text = serde_json::to_string_pretty(&tables).context("cannot write what was tried")? + "\n";
        std::fs::write(file(), text).context(file().display())?;
        std::fs::write(page_file(), page(&tables)).context(page_file().display())?;
        println!("Recorded as {name} in {}.", file().display());
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let page = page(&read()?);
    if !arguments.check {
        return std::fs::write(page_file(), page).context(page_file().display());
    }
    let there = std::fs::read_to_string(page_file()).context(page_file().display())?;
    if there == page {
        println!("docs/compatibility.md says what the tables say.");
        return Ok(());
    }
    Err(Failure::new(
        "docs/compatibility.md is not what the tables say; write it with: cargo xtask compatibility",
    ))
}

fn file() -> PathBuf {
    process::root().join("docs/compatibility.json")
}

fn page_file() -> PathBuf {
    process::root().join("docs/compatibility.md")
}

fn read() -> Outcome<Tables> {
    let text = std::fs::read_to_string(file()).context(file().display())?;
    serde_json::from_str(&text).context(format_args!("{} holds no tables", file().display()))
}

fn page(tables: &Tables) -> String {
    let mut page = String::from(
        "# Compatibility\n\nWhat works with which client or format, when it was tried, and how. The page is made by `cargo xtask \
         compatibility`\nfrom [the tables](compatibility.json) that the tasks keep.\n",
    );
    for table in tables.values() {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule = vec!["---".to_owned(); table.columns.len()];
        write!(
            page,
            "\n## {}\n\nTried on {}.\n\n{}\n{}\n",
            table.title,
            table.date,
            line(&table.columns),
            line(&rule)
        )
        .unwrap_or_default();
        for row in &table.rows {
            page.push_str(&line(row));
            page.push('\n');
        }
        for paragraph in &table.how {
            page.push('\n');
            page.push_str(paragraph);
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_tables_say() {
        let tables = read().unwrap();
        assert!(
            std::fs::read_to_string(page_file()).unwrap() == page(&tables),
            "write it with: cargo xtask compatibility"
        );
        for (name, table) in &tables {
            let width = table.columns.len();
            assert!(
                !table.rows.is_empty() && table.rows.iter().all(|row| row.len() == width),
                "{name}"
            );
        }
    }
}
