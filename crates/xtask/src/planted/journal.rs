//! What the drill found so far, one line for each planted bug, kept when the drill is stopped.

use serde::{Deserialize, Serialize};

use super::patch::Patch;
use super::runner::Verdict;

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

pub type Journal = crate::journal::Journal<Entry>;

impl Journal {
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
    use std::io::Write;

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
