//! Verification of a log without the installation: pure, in order, one entry at a time (D12.5).
//!
//! What is fed are the lines of an export, or the canonical texts of entries without their hashes. The
//! hashes locate a change; signed checkpoints, kept elsewhere, exclude that the whole chain was written anew.

use super::model::origin;
use provost_kernel::audit::{entry_hash, entry_seq};
use provost_kernel::checkpoint::Checkpoint;
use provost_kernel::merkle::{self, Hash};
use serde::Deserialize;
use std::fmt;

/// Reads a chain from its first entry on.
pub struct Verifier {
    organization: String,
    previous: Hash,
    leaves: Vec<Hash>,
    /// An entry that came too early: what follows tells whether others are missing or out of order.
    early: Option<EntryReference>,
}

/// Where a log was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A line that is no entry.
    Malformed {
        /// The number of the last good entry; 0 when there is none.
        after: i64,
    },
    /// An entry of another chain.
    Foreign {
        /// The entry.
        entry: EntryReference,
        /// The organization that it names.
        organization: String,
    },
    /// An entry whose content is not what was hashed.
    Edited(EntryReference),
    /// Entries are missing.
    Deleted {
        /// The first missing number.
        first: i64,
        /// The last missing number.
        last: i64,
        /// The entry behind the gap.
        next: EntryReference,
    },
    /// An entry too many: its number was there already.
    Inserted(EntryReference),
    /// An entry stands before one with a lower number.
    Swapped {
        /// The entry that stands too early.
        entry: EntryReference,
        /// The entry that stands behind it.
        behind: EntryReference,
    },
    /// The log ends before a signed checkpoint does.
    Truncated {
        /// The last entry; `None` when there is none.
        last: Option<i64>,
        /// How many entries were signed.
        size: u64,
    },
    /// The chain holds together, but it is not the one that was signed.
    Rewritten {
        /// The last number that an earlier checkpoint vouches for; 0 when none does.
        after: u64,
        /// The checkpoint that disagrees.
        size: u64,
    },
    /// A checkpoint of another log.
    ForeignCheckpoint {
        /// What it is about.
        origin: String,
    },
}

/// An entry, as findings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryReference {
    /// The entry's number.
    pub seq: i64,
    /// The entry's id.
    pub id: String,
}

/// What was verified, and what vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The chain.
    pub organization: String,
    /// How many entries were read.
    pub entries: u64,
    /// How many of them the largest checkpoint covers; `None` without a checkpoint.
    pub anchor: Option<u64>,
    /// How many checkpoints agreed.
    pub checkpoints: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    id: String,
    seq: i64,
    organization_id: String,
    hash: Option<serde_json::Value>,
    previous_hash: Option<serde_json::Value>,
}

impl Verifier {
    /// Returns a verifier of one organization's chain.
    pub fn new(organization: impl Into<String>) -> Self {
        Self {
            organization: organization.into(),
            previous: [0; 32],
            leaves: Vec::new(),
            early: None,
        }
    }

    /// Reads the next line.
    ///
    /// Errors: the first change of the log; it may be found one entry later. Nothing can be fed after it.
    pub fn feed(&mut self, line: &str) -> Result<(), Finding> {
        let read = self.last();
        let malformed = || Finding::Malformed { after: read };
        let (canonical, hashes) = split(line.trim_end_matches(['\r', '\n']));
        let members: Members = serde_json::from_str(&canonical).map_err(|_| malformed())?;
        if members.hash.is_some() || members.previous_hash.is_some() {
            return Err(malformed());
        }
        let place = EntryReference {
            seq: members.seq,
            id: members.id,
        };
        if members.organization_id != self.organization {
            return Err(Finding::Foreign {
                entry: place,
                organization: members.organization_id,
            });
        }
        if let Some(early) = self.early.take() {
            return Err(self.explain(early, place));
        }
        if place.seq <= read {
            return Err(Finding::Inserted(place));
        }
        if place.seq > read + 1 {
            self.early = Some(place);
            return Ok(());
        }
        let hash = entry_hash(&self.previous, &canonical);
        let agrees = hashes.is_none_or(|(previous, stated)| previous == self.previous && stated == hash);
        if !agrees || entry_seq(&place.id) != Some(place.seq) {
            return Err(Finding::Edited(place));
        }
        self.previous = hash;
        self.leaves.push(merkle::leaf(&hash));
        Ok(())
    }

    /// Ends the log and compares it with checkpoints whose signatures were verified.
    ///
    /// Errors: a change that shows at the end only, or against a checkpoint.
    pub fn finish(mut self, checkpoints: &[Checkpoint]) -> Result<Report, Finding> {
        if let Some(early) = self.early.take() {
            return Err(self.deleted_before(early));
        }
        let own = origin(&self.organization);
        if let Some(foreign) = checkpoints.iter().find(|c| c.origin != own) {
            return Err(Finding::ForeignCheckpoint {
                origin: foreign.origin.clone(),
            });
        }
        let mut checkpoints: Vec<&Checkpoint> = checkpoints.iter().collect();
        checkpoints.sort_by_key(|c| c.size);
        let entries = self.leaves.len() as u64;
        let mut tree = Frontier::default();
        let mut leaves = self.leaves.iter();
        let mut vouched = None;
        for checkpoint in &checkpoints {
            if checkpoint.size > entries {
                let last = Some(self.last()).filter(|seq| *seq > 0);
                return Err(Finding::Truncated {
                    last,
                    size: checkpoint.size,
                });
            }
            while tree.size < checkpoint.size {
                leaves.next().into_iter().for_each(|leaf| tree.push(*leaf));
            }
            if tree.root() != checkpoint.root {
                return Err(Finding::Rewritten {
                    after: vouched.unwrap_or(0),
                    size: checkpoint.size,
                });
            }
            vouched = Some(checkpoint.size);
        }
        let organization = self.organization;
        Ok(Report {
            organization,
            entries,
            anchor: vouched,
            checkpoints: checkpoints.len(),
        })
    }

    /// Returns the number of the last good entry.
    fn last(&self) -> i64 {
        i64::try_from(self.leaves.len()).unwrap_or(i64::MAX)
    }

    fn explain(&self, early: EntryReference, next: EntryReference) -> Finding {
        match next.seq.cmp(&early.seq) {
            std::cmp::Ordering::Less => Finding::Swapped {
                entry: early,
                behind: next,
            },
            std::cmp::Ordering::Equal => Finding::Inserted(next),
            std::cmp::Ordering::Greater => self.deleted_before(early),
        }
    }

    fn deleted_before(&self, next: EntryReference) -> Finding {
        Finding::Deleted {
            first: self.last() + 1,
            last: next.seq - 1,
            next,
        }
    }
}

/// Splits an exported line into the canonical text and the two hashes. The hashes are cut off as text: the
/// bytes that were hashed are compared, not a reading of them.
fn split(line: &str) -> (std::borrow::Cow<'_, str>, Option<(Hash, Hash)>) {
    const HEX: usize = 64;
    let cut = || {
        let rest = line.strip_suffix("\"}")?;
        let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
        let rest = rest.strip_suffix(r#"","hash":""#)?;
        let (rest, previous) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
        let rest = rest.strip_suffix(r#","previousHash":""#)?;
        Some((format!("{rest}}}"), (from_hex(previous)?, from_hex(hash)?)))
    };
    match cut() {
        Some((canonical, hashes)) => (canonical.into(), Some(hashes)),
        None => (line.into(), None),
    }
}

fn from_hex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |at: usize| {
            pair.get(at)
                .filter(|b| !b.is_ascii_uppercase())
                .and_then(|b| char::from(*b).to_digit(16))
        };
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(hash)
}

/// The roots of the perfect subtrees of a growing tree, the largest first.
#[derive(Default)]
struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                hash = merkle::node(&left, &hash);
            }
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev().copied();
        let Some(smallest) = peaks.next() else {
            return empty_root();
        };
        peaks.fold(smallest, |right, left| merkle::node(&left, &right))
    }
}

/// Returns the root over no entries.
fn empty_root() -> Hash {
    merkle::root(0, &mut merkle::MemoryNodes::default()).unwrap_or_default()
}

impl fmt::Display for EntryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} (number {})", self.id, self.seq)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { after: 0 } => write!(f, "the first line is no audit entry"),
            Self::Malformed { after } => write!(f, "the line after entry number {after} is no audit entry"),
            Self::Foreign { entry, organization } => {
                write!(f, "{entry} belongs to the organization {organization}")
            }
            Self::Edited(entry) => {
                write!(
                    f,
                    "{entry} was edited: its content, or the hash of the entry before it, is not what was hashed"
                )
            }
            Self::Deleted { first, last, next } if first == last => {
                write!(f, "entry number {first} was deleted: it is missing before {next}")
            }
            Self::Deleted { first, last, next } => {
                write!(
                    f,
                    "the entries number {first} to {last} were deleted: they are missing before {next}"
                )
            }
            Self::Inserted(entry) => {
                write!(
                    f,
                    "{entry} was inserted: an entry of this number stands before it already"
                )
            }
            Self::Swapped { entry, behind } => {
                write!(f, "entries were swapped: {entry} stands before {behind}")
            }
            Self::Truncated { last: None, size } => {
                write!(
                    f,
                    "the log was truncated: it is empty, and a signed checkpoint covers {size} entries"
                )
            }
            Self::Truncated {
                last: Some(last),
                size,
            } => write!(
                f,
                "the log was truncated: it ends with entry number {last}, and a signed checkpoint covers {size} \
                 entries"
            ),
            Self::Rewritten { after, size } => write!(
                f,
                "the log was rewritten between entry number {} and entry number {size}: the chain holds \
                 together, but it is not the one that the checkpoint of {size} entries signed",
                after + 1
            ),
            Self::ForeignCheckpoint { origin } => {
                write!(f, "the checkpoint of {origin} is about another log")
            }
        }
    }
}

impl std::error::Error for Finding {}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            organization,
            entries,
            anchor,
            checkpoints,
        } = self;
        write!(
            f,
            "the audit log of {organization} has {entries} entries in an unbroken chain; "
        )?;
        let Some(anchor) = anchor else {
            return write!(
                f,
                "no checkpoint was given, so nothing excludes that its end was cut off or that it was written anew"
            );
        };
        write!(
            f,
            "{checkpoints} signed checkpoints agree, the largest over the first {anchor} entries; "
        )?;
        match entries - anchor {
            0 => write!(f, "no entry came after it"),
            tail => write!(f, "for the last {tail} nothing but the chain itself vouches"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::make_checkpoints;
    use crate::audit::model::Record;
    use crate::audit::testing::{START, on_every_store};
    use provost_kernel::audit::{AuditRecord, Head};
    use provost_kernel::auth::OrganizationId;
    use provost_kernel::checkpoint::parse_and_verify;
    use provost_kernel::db::Param;
    use provost_kernel::merkle::MemoryNodes;

    /// Returns the lines of a log whose reasons are these.
    fn log(reasons: &[&str]) -> Vec<String> {
        let acme = OrganizationId::parse("acme").unwrap();
        let mut head = Head::empty(acme.clone());
        let line = |reason: &&str| {
            let mut note = AuditRecord::new(acme.clone(), START, "test");
            note.reason = Some((*reason).to_owned());
            let (mut calls, previous) = (Vec::new(), head.hash);
            head.append(&note, |_| [7; 32], &mut calls).unwrap();
            let Param::Text(entry) = &calls[0].params[7] else {
                panic!("the entry is text")
            };
            Record {
                seq: head.seq,
                entry: entry.to_string(),
                hash: head.hash,
                previous,
            }
            .line()
            .unwrap()
        };
        reasons.iter().map(line).collect()
    }

    fn nine() -> Vec<String> {
        log(&["a", "b", "c", "d", "e", "f", "g", "h", "i"])
    }

    fn checkpoint(lines: &[String], size: usize) -> Checkpoint {
        let leaves = lines[..size]
            .iter()
            .map(|line| merkle::leaf(&split(line).1.unwrap().1))
            .collect();
        let root = merkle::root(size as u64, &mut MemoryNodes(leaves)).unwrap();
        Checkpoint {
            origin: "provost.audit/acme".into(),
            size: size as u64,
            root,
        }
    }

    fn verify(lines: &[String], checkpoints: &[Checkpoint]) -> Result<Report, Finding> {
        let mut verifier = Verifier::new("acme");
        lines.iter().try_for_each(|line| verifier.feed(line))?;
        verifier.finish(checkpoints)
    }

    fn place(lines: &[String], seq: i64) -> EntryReference {
        let members: Members = serde_json::from_str(&lines[usize::try_from(seq).unwrap() - 1]).unwrap();
        EntryReference { seq, id: members.id }
    }

    #[test]
    fn an_untouched_log_verifies_and_says_what_vouches_for_it() {
        let lines = nine();
        let report = verify(&lines, &[checkpoint(&lines, 7), checkpoint(&lines, 3)]).unwrap();
        assert_eq!(report.anchor, Some(7));
        assert_eq!(
            report.to_string(),
            "the audit log of acme has 9 entries in an unbroken chain; 2 signed checkpoints agree, the largest \
             over the first 7 entries; for the last 2 nothing but the chain itself vouches"
        );
        let bare = verify(&lines, &[]).unwrap().to_string();
        assert!(bare.contains("no checkpoint was given"), "{bare}");
        let whole = verify(&lines, &[checkpoint(&lines, 9)]).unwrap().to_string();
        assert!(whole.ends_with("no entry came after it"), "{whole}");
    }

    #[test]
    fn every_size_has_the_root_of_the_tree() {
        let lines = nine();
        for size in 1..=9 {
            assert_eq!(
                verify(&lines, &[checkpoint(&lines, size)]).unwrap().anchor,
                Some(size as u64)
            );
        }
    }

    #[test]
    fn an_edited_entry_is_named_wherever_it_stands() {
        let lines = nine();
        for at in 0..9 {
            let mut edited = lines.clone();
            edited[at] = edited[at].replace(r#""reason":""#, r#""reason":"x"#);
            let seq = i64::try_from(at).unwrap() + 1;
            let finding = verify(&edited, &[]).unwrap_err();
            assert_eq!(finding, Finding::Edited(place(&lines, seq)));
            let id = place(&lines, seq).id;
            assert!(
                finding
                    .to_string()
                    .starts_with(&format!("entry {id} (number {seq}) was edited"))
            );
        }
    }

    /// Proves AD-4.
    #[test]
    fn every_changed_character_of_a_log_is_found() {
        let lines = log(&["a", "b", "c"]);
        let anchor = [checkpoint(&lines, 3)];
        for line in 0..3 {
            for at in 0..lines[line].len() {
                let mut changed = lines.clone();
                let replacement = if lines[line].as_bytes()[at] == b'1' {
                    "2"
                } else {
                    "1"
                };
                changed[line].replace_range(at..=at, replacement);
                verify(&changed, &anchor).unwrap_err();
            }
        }
    }

    #[test]
    fn an_entry_whose_hash_was_computed_anew_breaks_the_next_one() {
        let lines = nine();
        let mut forged = lines.clone();
        forged[3] = log(&["a", "b", "c", "forged"]).remove(3);
        let finding = verify(&forged, &[]).unwrap_err();
        assert_eq!(finding, Finding::Edited(place(&lines, 5)));
        assert!(finding.to_string().contains("or the hash of the entry before it"));
    }

    /// Proves AD-2.
    #[test]
    fn deleted_entries_are_named() {
        let lines = nine();
        for (gone, first, last) in [(0..1, 1, 1), (3..4, 4, 4), (2..6, 3, 6), (7..8, 8, 8)] {
            let mut cut = lines.clone();
            cut.drain(gone);
            let next = place(&lines, last + 1);
            let finding = verify(&cut, &[]).unwrap_err();
            assert_eq!(finding, Finding::Deleted { first, last, next });
        }
        let mut cut = lines.clone();
        cut.remove(3);
        let sentence = verify(&cut, &[]).unwrap_err().to_string();
        let id = place(&lines, 5).id;
        assert_eq!(
            sentence,
            format!("entry number 4 was deleted: it is missing before entry {id} (number 5)")
        );
    }

    #[test]
    fn an_inserted_entry_is_named() {
        let lines = nine();
        let forged = log(&["a", "b", "c", "forged"]).remove(3);
        for (at, line, seq) in [
            (4, &lines[3], 4),
            (9, &lines[0], 1),
            (4, &forged, 4),
            (1, &lines[0], 1),
        ] {
            let mut grown = lines.clone();
            grown.insert(at, line.clone());
            let finding = verify(&grown, &[]).unwrap_err();
            assert_eq!(finding, Finding::Inserted(place(&lines, seq)), "at {at}");
            assert!(finding.to_string().contains("was inserted"));
        }
        let mut before = lines.clone();
        before.insert(3, forged);
        assert_eq!(
            verify(&before, &[]).unwrap_err(),
            Finding::Inserted(place(&lines, 4)),
            "the second one is named"
        );
    }

    #[test]
    fn swapped_entries_are_named() {
        let lines = nine();
        for (a, b) in [(0, 1), (3, 4), (7, 8), (2, 6), (0, 8)] {
            let mut swapped = lines.clone();
            swapped.swap(a, b);
            let entry = place(&lines, i64::try_from(b).unwrap() + 1);
            let finding = verify(&swapped, &[]).unwrap_err();
            assert!(
                matches!(&finding, Finding::Swapped { entry: found, .. } if *found == entry),
                "{finding}"
            );
        }
    }

    #[test]
    fn a_truncated_log_is_found_by_a_checkpoint_alone() {
        let lines = nine();
        let anchor = [checkpoint(&lines, 8)];
        assert_eq!(
            verify(&lines[..7], &anchor).unwrap_err(),
            Finding::Truncated {
                last: Some(7),
                size: 8
            }
        );
        assert_eq!(
            verify(&[], &anchor).unwrap_err(),
            Finding::Truncated { last: None, size: 8 }
        );
        assert!(verify(&lines[..8], &anchor).is_ok());
        assert!(verify(&lines[..7], &[]).is_ok(), "which is why checkpoints exist");
    }

    #[test]
    fn a_log_that_was_written_anew_is_found_by_a_checkpoint_alone() {
        let lines = nine();
        let anew = log(&["a", "b", "c", "d", "forged", "f", "g", "h", "i"]);
        assert!(verify(&anew, &[]).is_ok());
        let anchors = [
            checkpoint(&lines, 2),
            checkpoint(&lines, 4),
            checkpoint(&lines, 7),
        ];
        let finding = verify(&anew, &anchors).unwrap_err();
        assert_eq!(finding, Finding::Rewritten { after: 4, size: 7 });
        assert!(
            finding
                .to_string()
                .contains("between entry number 5 and entry number 7"),
            "{finding}"
        );
    }

    #[test]
    fn another_log_or_checkpoint_is_refused() {
        let lines = nine();
        let mut verifier = Verifier::new("globex");
        assert!(matches!(verifier.feed(&lines[0]), Err(Finding::Foreign { .. })));
        let foreign = Checkpoint {
            origin: "provost.audit/globex".into(),
            ..checkpoint(&lines, 3)
        };
        assert!(matches!(
            verify(&lines, &[foreign]),
            Err(Finding::ForeignCheckpoint { .. })
        ));
        for line in ["", "{}", "x", "[1]"] {
            assert_eq!(
                verify(&[line.to_owned()], &[]).unwrap_err(),
                Finding::Malformed { after: 0 }
            );
        }
    }

    #[test]
    fn texts_without_hashes_are_measured_by_checkpoints() {
        let lines = nine();
        let mut texts: Vec<String> = lines.iter().map(|line| split(line).0.into_owned()).collect();
        let anchor = [checkpoint(&lines, 9)];
        assert!(verify(&texts, &anchor).is_ok());
        texts[4] = texts[4].replace(r#""reason":"e""#, r#""reason":"x""#);
        assert_eq!(
            verify(&texts, &anchor).unwrap_err(),
            Finding::Rewritten { after: 0, size: 9 }
        );
    }

    #[test]
    fn an_export_verifies_against_the_checkpoints_beside_the_keys() {
        on_every_store("verify_export", |world| {
            for count in [3, 300, 40] {
                world.grow(count);
                world.advance_secs(60);
                world.run(make_checkpoints(&world.kernel)).unwrap();
            }
            world.put(
                "admin",
                "updateHeadlessAutomationSettings",
                &serde_json::json!({}),
            );
            let keys = world.kernel.keys.checkpoint_public_keys();
            let checkpoints = world
                .kernel
                .keys
                .checkpoint_lines()
                .unwrap()
                .into_iter()
                .map(|line| {
                    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                    parse_and_verify(line["note"].as_str().unwrap(), &keys).unwrap()
                });
            let checkpoints: Vec<Checkpoint> = checkpoints.collect();
            let lines = world.exported();
            let report = verify(&lines, &checkpoints).unwrap();
            assert_eq!(
                (report.entries, report.anchor, report.checkpoints),
                (347, Some(345), 3)
            );
        });
    }
}
