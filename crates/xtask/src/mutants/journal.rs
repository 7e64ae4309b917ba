//! What is known of the mutants, one line for each judgement, kept when a run is stopped.

use serde::{Deserialize, Serialize};

use super::mutant::Mutant;

/// What one judge said of one mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "result", content = "tests")]
pub enum Verdict {
    /// It does not compile.
    Unviable,
    /// These tests failed.
    Caught(Vec<String>),
    /// A test did not come to an end.
    OutOfTime,
    /// No test comes to its place.
    Unreached,
    /// Every test that comes to its place passed.
    Missed,
    /// It cannot be woven in beside the others, so it was not tried.
    LeftOut,
}

/// One judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// [`Mutant::identity`].
    pub mutant: String,
    pub commit: String,
    /// The tree of what the tests were made of.
    pub ground: String,
    pub verdict: Verdict,
    pub seconds: u64,
}

pub type Journal = crate::journal::Journal<Entry>;

impl Journal {
    /// Leaves out, in this run, what was found on a ground.
    pub fn forget(&mut self, ground: &str) {
        self.entries.retain(|entry| entry.ground != ground);
    }

    /// What a judge said of a mutant: on this ground, or on an earlier one if that may count. What was missed earlier
    /// never counts: there may be a test by now.
    pub fn known(&self, mutant: &Mutant, ground: &str, accept_earlier: bool) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| {
            let is_noticed = !matches!(
                entry.verdict,
                Verdict::Missed | Verdict::Unreached | Verdict::LeftOut
            );
            entry.mutant == mutant.identity && (entry.ground == ground || (accept_earlier && is_noticed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn entry(ground: &str, verdict: Verdict) -> Entry {
        Entry {
            mutant: "m".into(),
            commit: "c".into(),
            ground: ground.into(),
            verdict,
            seconds: 1,
        }
    }

    #[test]
    fn what_was_missed_earlier_is_judged_again_and_what_was_caught_may_count() {
        let folder = process::target().join(format!("mutants-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        journal.add(entry("a", Verdict::Missed)).unwrap();
        let mutant = Mutant::sample("m");
        let known = |journal: &Journal, ground: &str, earlier| {
            let entry = journal.known(&mutant, ground, earlier);
            entry.map(|entry| entry.verdict.clone())
        };
        assert_eq!(known(&journal, "a", false), Some(Verdict::Missed));
        assert_eq!(known(&journal, "b", true), None);
        journal
            .add(entry("b", Verdict::Caught(vec!["t".into()])))
            .unwrap();
        let again = Journal::open(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(known(&again, "c", false), None);
        assert_eq!(known(&again, "c", true), Some(Verdict::Caught(vec!["t".into()])));
        assert_eq!(again.known(&Mutant::sample("another"), "b", true), None);
    }
}
