//! What a run that proves a goal leaves behind: one small file that `docs/assurance.md` is made from.
//!
//! A figure on that page comes from the run itself. A task writes its record with `--record`, only after it
//! succeeded; a later run of the same name replaces it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::failure::{Context, Outcome};
use crate::{clock, process};

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

    /// Writes `docs/assurance/<name>.json`.
    pub fn write(&self, name: &str) -> Outcome {
        let mut text = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"  "));
        self.serialize(&mut serializer)
            .context("cannot write the record")?;
        text.push(b'\n');
        let file = folder().join(format!("{name}.json"));
        std::fs::write(&file, text).context(format_args!("cannot write {}", file.display()))?;
        println!("Recorded in {}.", file.display());
        Ok(())
    }
}

/// The folder of the records.
pub fn folder() -> PathBuf {
    process::root().join("docs/assurance")
}
