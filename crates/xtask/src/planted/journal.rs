//! What the drill found so far, one line for each planted bug, kept when the drill is stopped.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::patch::Patch;
use super::runner::Verdict;
use crate::failure::{Context, Outcome};

/// The result of one planted bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub name: String,
    /// The patch as it was: another text is another bug.
    pub patch: String,
    pub commit: String,
    pub verdict: Verdict,
    pub seconds: u64,
}

pub struct Journal {
    file: PathBuf,
    entries: Vec<Entry>,
}

impl Journal {
    /// Reads the journal; a line that a stopped drill left half-written is as if it were not there.
    pub fn open(workplace: &Path) -> Outcome<Self> {
        let file = workplace.join("journal.jsonl");
        let text = if file.exists() {
            std::fs::read_to_string(&file).context(file.display())?
        } else {
            String::new()
        };
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok(Self { file, entries })
    }

    pub fn add(&mut self, entry: Entry) -> Outcome {
        let line = serde_json::to_string(&entry).context("cannot write the journal")?;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .context(self.file.display())?;
        // The line break comes first, so that a half-written line spoils itself alone.
        file.write_all(format!("\n{line}").as_bytes())
            .context(self.file.display())?;
        self.entries.push(entry);
        Ok(())
    }

    /// What is known of a bug: found at this commit, or caught at an earlier one if that may count.
    pub fn known(&self, patch: &Patch, commit: &str, accept_earlier: bool) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| {
            let counts = entry.commit == commit || accept_earlier;
            entry.name == patch.name && entry.patch == patch.text && counts && entry.verdict.is_caught()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_journal_is_read_again_and_a_half_written_line_is_skipped() {
        let folder = process::target().join(format!("planted-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let entry = |name: &str| Entry {
            name: name.into(),
            patch: "text".into(),
            commit: "c".into(),
            verdict: Verdict::Escaped,
            seconds: 1,
        };
        let mut journal = Journal::open(&folder).unwrap();
        journal.add(entry("01-a")).unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(folder.join("journal.jsonl"))
            .unwrap()
            .write_all(b"\n{\"name\":\"02")
            .unwrap();
        journal.add(entry("03-c")).unwrap();
        let names: Vec<String> = Journal::open(&folder)
            .unwrap()
            .entries
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["01-a", "03-c"]);
    }
}
