//! The words of an import, without storage.

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
/// LIMIT: refused lines that are kept of an import; the counts know of all.
pub const MAX_KEPT_REFUSALS: i64 = 1_000;
/// An import into which nothing arrives for so long is aborted. Units: seconds.
pub const ABANDONED_AFTER_SECS: i64 = 3_600;
/// How long a finished import can be read. Units: seconds.
pub const KEPT_SECS: i64 = 30 * 86_400;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(inline)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Returns the word on the wire and in the store.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns what a stored word says.
            ///
            /// Errors: `Internal` for any other word.
            pub fn from_store(text: &str) -> Result<Self> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(Error::internal(concat!("a stored import has an unknown ", stringify!($name)))),
                }
            }
        }
    };
}

words! {
    /// How the file is written.
    Format {
        /// One JSON object a line.
        Jsonl = "jsonl",
        /// RFC 4180 with a header line.
        Csv = "csv",
    }
}

words! {
    /// What becomes of records that the file does not name.
    Mode {
        /// They stay.
        Merge = "merge",
        /// Those of the directory go.
        Replace = "replace",
    }
}

words! {
    /// Where an import stands.
    State {
        /// It takes chunks.
        Open = "open",
        /// What the file does not name is being marked, before everything becomes visible at once.
        Applying = "applying",
        /// It is visible.
        Applied = "applied",
        /// Staged versions are being removed.
        Aborting = "aborting",
        /// It never was visible.
        Aborted = "aborted",
    }
}

words! {
    /// Why an import was aborted.
    AbortReason {
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
#[schemars(inline)]
pub struct Counts {
    /// Lines of data.
    pub lines: i64,
    /// Lines that were refused.
    pub refused: i64,
    /// Lines whose record was deleted through the API while the import was open.
    pub superseded: i64,
    /// Users.
    pub users: RecordCounts,
    /// Groups.
    pub groups: RecordCounts,
    /// Memberships.
    pub memberships: MembershipCounts,
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
