//! What was tried so far, one line for each subject, kept when the drill is stopped.

use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// What came of one subject.
#[derive(Clone, Serialize, Deserialize)]
pub struct Entry {
    pub subject: String,
    /// Percent of its points.
    pub sample: u64,
    /// The tested binary: another one is another drill.
    pub binary: u64,
    pub tally: Tally,
}

pub type Journal = crate::journal::Journal<Entry>;

impl Journal {
    /// A run of a subject without a violation, with this binary or, if that may count, an earlier one.
    pub fn known(&self, subject: &str, sample: u64, binary: u64, accept_earlier: bool) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| {
            entry.subject == subject
                && entry.sample >= sample
                && (entry.binary == binary || accept_earlier)
                && entry.tally.violations.is_empty()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_violation_a_smaller_sample_and_another_binary_do_not_count() {
        let folder = process::target().join(format!("faults-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        let entry = |subject: &str, sample, violations: &[&str]| Entry {
            subject: subject.into(),
            sample,
            binary: 7,
            tally: Tally {
                calls: 3,
                violations: violations.iter().map(|&one| one.to_owned()).collect(),
                ..Tally::default()
            },
        };
        journal.add(entry("init", 100, &[])).unwrap();
        journal.add(entry("start", 100, &["it lies"])).unwrap();
        journal.add(entry("checkpoint", 1, &[])).unwrap();
        let journal = Journal::open(&folder).unwrap();
        let known = |subject, binary, earlier| journal.known(subject, 100, binary, earlier).is_some();
        assert!(known("init", 7, false) && known("init", 8, true));
        assert!(!known("init", 8, false));
        assert!(!known("start", 7, true) && !known("checkpoint", 7, true) && !known("restore", 7, true));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
