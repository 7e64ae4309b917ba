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
    early: Option<Place>,
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
        entry: Place,
        /// The organization that it names.
        organization: String,
    },
    /// An entry whose content is not what was hashed.
    Edited(Place),
    /// Entries are missing.
    Deleted {
        /// The first missing number.
        first: i64,
        /// The last missing number.
        last: i64,
        /// The entry behind the gap.
        next: Place,
    },
    /// An entry too many: its number was there already.
    Inserted(Place),
    /// An entry stands before one with a lower number.
    Swapped {
        /// The entry that stands too early.
        entry: Place,
        /// The entry that stands behind it.
        behind: Place,
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
pub struct Place {
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
        let place = Place {
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

    fn explain(&self, early: Place, next: Place) -> Finding {
        match next.seq.cmp(&early.seq) {
            std::cmp::Ordering::Less => Finding::Swapped {
                entry: early,
                behind: next,
            },
            std::cmp::Ordering::Equal => Finding::Inserted(next),
            std::cmp::Ordering::Greater => self.deleted_before(early),
        }
    }

    fn deleted_before(&self, next: Place) -> Finding {
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

impl fmt::Display for Place {
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
