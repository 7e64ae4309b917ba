//! The words of an import, without storage.

use super::super::model::UserId;
use provost_kernel::error::{Code, Error};
use provost_kernel::{Result, Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(ImportId, "imp", "Names an import.");

/// LIMIT: bytes of a chunk.
pub const MAX_CHUNK_BYTES: usize = 1024 * 1024;
/// LIMIT: lines of data in a chunk: what one unit of work stages well within its 250 ms on either engine.
pub const MAX_CHUNK_LINES: usize = 500;
/// LIMIT: group names in the user lines of a chunk.
pub const MAX_CHUNK_GROUPS: usize = 5_000;
/// LIMIT: bytes of a line (D1.10).
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// LIMIT: refused lines, and warnings, that are kept of an import; the counts know of all.
pub const MAX_KEPT_REFUSALS: i64 = 1_000;
/// An import into which nothing arrives for so long is aborted. Units: seconds.
pub const ABANDONED_AFTER_SECS: i64 = 3_600;
/// How long a finished import can be read. Units: seconds.
pub const KEPT_SECS: i64 = 30 * 86_400;

provost_kernel::word! {
    /// How the file is written.
    pub enum Format {
        /// One JSON object a line.
        Jsonl = "jsonl",
        /// RFC 4180 with a header line.
        Csv = "csv",
    }
}

provost_kernel::word! {
    /// What becomes of records that the file does not name.
    pub enum Mode {
        /// They stay.
        Merge = "merge",
        /// Those of the directory go.
        Replace = "replace",
    }
}

provost_kernel::word! {
    /// Where an import stands.
    pub enum State {
        /// It takes chunks.
        Open = "open",
        /// What the file does not name is being marked, and addresses that others have are judged, before everything becomes
        /// visible at once.
        Applying = "applying",
        /// It is visible.
        Applied = "applied",
        /// Staged versions are being removed.
        Aborting = "aborting",
        /// It never was visible.
        Aborted = "aborted",
    }
}

provost_kernel::word! {
    /// Why an import was aborted.
    pub enum AbortReason {
        /// Somebody asked.
        Requested = "requested",
        /// Nothing arrived for an hour.
        Expired = "expired",
    }
}

impl Format {
    /// Returns the media type of a chunk.
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Jsonl => "application/x-ndjson",
            Format::Csv => "text/csv",
        }
    }
}

/// What became of the records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecordCounts {
    /// New ones.
    pub created: i64,
    /// Those that a line changes.
    pub updated: i64,
    /// Those that a line leaves as they are.
    pub unchanged: i64,
    /// Those that the file does not name, in mode replace.
    pub removed: i64,
}

/// What became of the memberships.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MembershipCounts {
    /// New ones.
    pub added: i64,
    /// Those that a line or a removal ends.
    pub removed: i64,
}

/// What an import has seen and does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, extend("required" = [
    "lines", "refused", "held", "warnings", "superseded", "users", "groups", "memberships"
]))]
pub struct Counts {
    /// Lines of data.
    pub lines: i64,
    /// Lines that were refused.
    pub refused: i64,
    /// Lines that would need more than their caller holds: the record stays as it is, and an admin applies or drops the
    /// change.
    pub held: i64,
    /// What was found when the whole file was judged: lines that were taken without their e-mail address, because another
    /// user of the directory has it, and lines whose login name is another user's address.
    pub warnings: i64,
    /// Lines whose record was deleted through the API while the import was open.
    pub superseded: i64,
    /// Users.
    pub users: RecordCounts,
    /// Groups.
    pub groups: RecordCounts,
    /// Memberships.
    pub memberships: MembershipCounts,
}

/// How many records of a kind go, and of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Removal {
    /// Those that go.
    pub removed: i64,
    /// Those that the directory has; 0 where it was not counted, because only a few go.
    pub of: i64,
}

/// LIMIT: records of a kind that go without a word, however small the directory.
pub const FEW: i64 = 5;

impl Removal {
    /// Says whether more goes than a percentage of what is there, and more than a few.
    pub const fn is_too_much(self, max_percent: i64) -> bool {
        self.removed > FEW && self.removed * 100 > self.of * max_percent
    }
}

/// How much of its directory an import removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Removals {
    /// Users that the file does not name.
    pub users: Removal,
    /// Groups that the file does not name.
    pub groups: Removal,
    /// Memberships that lines end, and those that end with users and groups.
    pub memberships: Removal,
}

impl Removals {
    /// Returns how many records go.
    pub const fn sum(self) -> i64 {
        self.users.removed + self.groups.removed + self.memberships.removed
    }

    /// Says whether too much of any kind goes to go without a word.
    pub fn are_too_many(self, max_percent: i64) -> bool {
        [self.users, self.groups, self.memberships]
            .into_iter()
            .any(|removal| removal.is_too_much(max_percent))
    }

    /// Refuses too much, unless the caller named the number.
    ///
    /// INVARIANT DI-12: too much goes only with the sum of what goes.
    ///
    /// Errors: `TooManyRemovals` with `removals` and `confirmRemovals`.
    pub fn must_be_few(self, max_percent: i64, confirmed: Option<i64>) -> Result<()> {
        let sum = self.sum();
        if !self.are_too_many(max_percent) || confirmed == Some(sum) {
            return Ok(());
        }
        let (users, groups, memberships) =
            (self.users.removed, self.groups.removed, self.memberships.removed);
        let message = format!(
            "{users} users, {groups} groups and {memberships} memberships would go, which is more than {max_percent} % of a \
             kind; if that is right, apply with confirmRemovals {sum}"
        );
        Err(Error::new(Code::TooManyRemovals, message)
            .with(
                "removals",
                serde_json::json!({ "users": users, "groups": groups, "memberships": memberships }),
            )
            .with("confirmRemovals", sum))
    }
}

/// An import as it is stored.
#[derive(Clone, Debug)]
pub struct Import {
    /// Its id.
    pub id: ImportId,
    /// Its organization, for the view.
    pub organization_id: String,
    /// Whose records it says.
    pub directory_id: String,
    /// How it is written.
    pub format: Format,
    /// What becomes of other records.
    pub mode: Mode,
    /// It may be applied in spite of refused lines.
    pub partial: bool,
    /// Where it stands.
    pub state: State,
    /// Why it was aborted.
    pub abort_reason: Option<AbortReason>,
    /// The generation in which its versions are visible. No other import ever has it.
    pub generation: i64,
    /// The chunk that is expected.
    pub next_sequence: i64,
    /// Lines of the file so far, headers and blank ones included.
    pub file_lines: i64,
    /// What it has seen and does.
    pub counts: Counts,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was applied or aborted.
    pub finished_at: Option<Timestamp>,
}

impl Import {
    /// Refuses what only an open import takes.
    ///
    /// Errors: `Conflict` with `state`.
    pub fn must_be_open(&self) -> Result<()> {
        if self.state == State::Open {
            return Ok(());
        }
        let state = self.state.as_str();
        Err(Error::new(Code::Conflict, format!("the import is {state}, not open")).with("state", state))
    }

    /// Refuses to apply a file of which lines were refused, unless it was opened for that (DI-7).
    ///
    /// Errors: `Conflict` with `refused`.
    pub fn must_be_clean(&self) -> Result<()> {
        let refused = self.counts.refused;
        if refused == 0 || self.partial {
            return Ok(());
        }
        let message =
            format!("{refused} lines were refused and the import is not partial; nothing is applied");
        Err(Error::new(Code::Conflict, message).with("refused", refused))
    }

    /// Refuses any chunk but the next one.
    ///
    /// Errors: `Conflict` with `nextSequence`.
    pub fn must_be_next(&self, sequence: i64) -> Result<()> {
        let next = self.next_sequence;
        let message = match sequence.cmp(&next) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => format!("chunk {sequence} has arrived already; chunk {next} is next"),
            std::cmp::Ordering::Greater => format!("chunk {next} has not arrived yet"),
        };
        Err(Error::new(Code::Conflict, message).with("nextSequence", next))
    }

    /// Notes a change: never at or before the last one (D1.2).
    pub fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.max(self.updated_at.plus_ms(1));
    }

    /// Ends the import.
    pub fn finish(&mut self, now: Timestamp, state: State) {
        self.touch(now);
        self.state = state;
        self.finished_at = Some(self.updated_at);
    }
}

/// A file of users and groups on its way into a directory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DirectoryImport")]
pub struct ImportView {
    id: ImportId,
    organization_id: String,
    directory_id: String,
    format: Format,
    mode: Mode,
    partial: bool,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    abort_reason: Option<AbortReason>,
    /// The number of the chunk that is expected.
    next_sequence: i64,
    counts: Counts,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
}

impl From<Import> for ImportView {
    fn from(import: Import) -> Self {
        Self {
            id: import.id,
            organization_id: import.organization_id,
            directory_id: import.directory_id,
            format: import.format,
            mode: import.mode,
            partial: import.partial,
            state: import.state,
            abort_reason: import.abort_reason,
            next_sequence: import.next_sequence,
            counts: import.counts,
            created_at: import.created_at,
            updated_at: import.updated_at,
            finished_at: import.finished_at,
        }
    }
}

/// A line that changes nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RefusedLine {
    /// Its number in the file; the headers that later chunks repeat do not count.
    pub line: i64,
    /// A JSON Pointer to the member that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// A line that was taken, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct WarnedLine {
    /// Its number in the file, as that of a refused line; absent where the API has renamed the user since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// The user that it says.
    pub user_id: UserId,
    /// A JSON Pointer to the member that is meant.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// The answer of operations on one import.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneImport {
    /// The import, after the change if there was one.
    pub import: ImportView,
}

/// The path of operations on one import.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ImportPath {
    /// The import.
    pub import_id: ImportId,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves DI-12.
    #[test]
    fn each_kind_alone_can_be_too_much_and_a_few_never_are() {
        let removal = |removed, of| Removal { removed, of };
        assert!(!removal(5, 5).is_too_much(10), "a few");
        assert!(removal(6, 59).is_too_much(10));
        assert!(
            !removal(6, 60).is_too_much(10),
            "a tenth is not more than a tenth"
        );
        assert!(!removal(6, 6).is_too_much(100), "the setting lets everything go");
        let none = Removals::default();
        for removals in [
            Removals {
                users: removal(6, 6),
                ..none
            },
            Removals {
                groups: removal(6, 6),
                ..none
            },
            Removals {
                memberships: removal(6, 6),
                ..none
            },
        ] {
            let error = removals.must_be_few(10, None).unwrap_err();
            assert_eq!(error.code(), Code::TooManyRemovals);
            assert!(removals.must_be_few(10, Some(5)).is_err(), "another number");
            assert!(removals.must_be_few(10, Some(7)).is_err(), "another number");
            assert!(removals.must_be_few(10, Some(6)).is_ok());
        }
        assert!(none.must_be_few(1, None).is_ok());
    }
}
