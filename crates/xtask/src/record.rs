//! What a run that proves a goal leaves behind: one line of one file, which `docs/assurance.md` is made from.
//!
//! A figure on that page comes from the run itself. A task writes its record with `--record`, only after it
//! succeeded; a later run of the same name replaces it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::{Context, Outcome};
use crate::{clock, process};

/// The records by their names, in the order of these.
pub type Records = BTreeMap<String, Record>;

/// One successful run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// The goals that it speaks for: "R2", "R3".
    pub goals: Vec<String>,
    /// What was reached, as one or two sentences with figures.
    pub figure: String,
    /// The seeds of the run, if it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<String>,
    /// How it is run again.
    pub command: String,
    /// The day of the run, as YYYY-MM-DD.
    pub date: String,
}

impl Record {
    /// A record of today.
    pub fn new(goals: &[&str], figure: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            goals: goals.iter().map(|goal| (*goal).to_owned()).collect(),
            figure: figure.into(),
            seeds: None,
            command: command.into(),
            date: clock::today(),
        }
    }

    pub fn with_seeds(mut self, seeds: impl Into<String>) -> Self {
        self.seeds = Some(seeds.into());
        self
    }

    /// Makes it the record of that name.
    pub fn write(self, name: &str) -> Outcome {
        let mut records = read()?;
        records.insert(name.to_owned(), self);
        let file = file();
        std::fs::write(&file, lines(&records)?).context(format_args!("cannot write {}", file.display()))?;
        println!("Recorded as {name} in {}.", file.display());
        Ok(())
    }
}

fn file() -> PathBuf {
    process::root().join("docs/assurance/records.json")
}

/// Returns the records that are kept.
pub fn read() -> Outcome<Records> {
    let file = file();
    let text = std::fs::read_to_string(&file).context(format_args!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).context(format_args!("{} holds no records", file.display()))
}

/// One member on each line, so that a later run changes one line.
pub fn lines<T: Serialize>(members: &BTreeMap<String, T>) -> Outcome<String> {
    let line = |(name, member): (&String, &T)| {
        let name = serde_json::to_string(name)?;
        Ok(format!("{name}: {}", serde_json::to_string(member)?))
    };
    let lines: Result<Vec<String>, serde_json::Error> = members.iter().map(line).collect();
    let lines = lines.context("cannot write what was reached")?;
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_are_one_to_a_line() {
        let there = std::fs::read_to_string(file()).unwrap();
        assert!(there == lines(&read().unwrap()).unwrap());
    }
}
