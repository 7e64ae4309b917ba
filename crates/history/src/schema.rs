//! Which columns a recorded event has.
//!
//! Every schema begins with the decision columns (what was decided, by which policies, under which policy set, in
//! which mode); the payload columns follow. A schema grows at its end only and never changes a column, so a later
//! schema reads everything that an earlier one wrote: the columns that did not exist yet are missing there
//! (INVARIANT HI-2: this is checked by the fingerprint that every chunk and segment carries).
//!
//! Absent on purpose: renaming, removing and retyping columns; and what a column means, which is the policy engine's.
//!
//! INVARIANT HI-2: a later schema reads everything that an earlier one wrote; anything else is refused.

use crate::error::{Result, invalid};
use serde::{Deserialize, Serialize};

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Unicode text.
    Text,
    /// A set of texts; order and repetition carry no meaning.
    TextSet,
    /// A finite IEEE 754 double; negative zero is zero.
    Number,
    /// True or false.
    Boolean,
    /// A JSON document, kept as it was spelled.
    Json,
    /// Milliseconds since the Unix epoch, UTC.
    Instant,
}

/// One column of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ColumnSpec {
    /// The name, unique in its schema.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// Whether the column is part of the behaviour of an event.
    ///
    /// Events that agree in all such columns behave equally and are counted together when a segment is sealed.
    /// False for what nearly every event has for itself: a trace id, a prompt, raw arguments.
    pub behaviour: bool,
}

impl ColumnSpec {
    /// Returns a column that is part of the behaviour.
    pub fn of(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            behaviour: true,
        }
    }

    /// Returns a column that is not part of the behaviour.
    pub fn detail(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            behaviour: false,
        }
    }
}

/// The columns of recorded events, in order, with the version of this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    version: u32,
    columns: Vec<ColumnSpec>,
}

/// The name of the column that holds the action that was decided.
pub const ACTION: &str = "action";
/// The name of the column that holds the ids of the deciding policies.
pub const POLICY_IDS: &str = "policy_ids";
/// The name of the column that holds the id of the policy-set version that decided.
pub const POLICY_SET_VERSION: &str = "policy_set_version";
/// The name of the column that holds the mode in which the decision was made.
pub const MODE: &str = "mode";

/// The columns of a segment's file that are not columns of the schema.
pub(crate) const EVENT_ID: &str = "event_id";
pub(crate) const AT: &str = "occurred_at";
pub(crate) const BEHAVIOUR: &str = "behaviour";

// LIMIT: 1 000 columns, names of 128 bytes. Ours; a policy catalogue has some dozens.
const COLUMNS: usize = 1_000;
const NAME_BYTES: usize = 128;

impl Schema {
    /// Returns the schema with the decision columns and then these.
    ///
    /// Errors: `Invalid` when a name is empty, too long, taken or not printable, or when there are too many.
    pub fn new(version: u32, payload: Vec<ColumnSpec>) -> Result<Self> {
        let mut columns = vec![
            ColumnSpec::of(ACTION, Kind::Text),
            ColumnSpec::of(POLICY_IDS, Kind::TextSet),
            ColumnSpec::of(POLICY_SET_VERSION, Kind::Text),
            ColumnSpec::of(MODE, Kind::Text),
        ];
        columns.extend(payload);
        let schema = Self { version, columns };
        schema.check()?;
        Ok(schema)
    }

    /// Refuses a schema that `new` would not have made; for schemas that were read from somewhere.
    pub(crate) fn check(&self) -> Result<()> {
        if self.columns.len() > COLUMNS {
            return invalid(format!("a schema has at most {COLUMNS} columns"));
        }
        let mut names = std::collections::HashSet::from([EVENT_ID, AT, BEHAVIOUR]);
        for column in &self.columns {
            let name = column.name.as_str();
            if name.is_empty() || name.len() > NAME_BYTES || name.chars().any(char::is_control) {
                return invalid(format!("a column's name is 1 to {NAME_BYTES} printable bytes"));
            }
            if !names.insert(name) {
                return invalid(format!("the column {name} exists already"));
            }
        }
        Ok(())
    }

    /// Returns the version of the list of columns.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the columns, the decision columns first.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// Returns the position of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns whether everything that `earlier` wrote can be read with this schema.
    pub fn reads(&self, earlier: &Self) -> bool {
        earlier.version <= self.version
            && earlier.columns.len() <= self.columns.len()
            && earlier
                .columns
                .iter()
                .zip(&self.columns)
                .all(|(old, new)| old.name == new.name && old.kind == new.kind)
    }

    /// Returns a checksum of the names and types of the first `count` columns.
    pub(crate) fn fingerprint(&self, count: usize) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for column in self.columns.iter().take(count) {
            hasher.update(column.name.as_bytes());
            hasher.update(&[0, column.kind.tag()]);
        }
        hasher.finalize()
    }
}

impl Kind {
    /// Returns the number that stands for this type in stored bytes.
    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Text => 1,
            Self::TextSet => 2,
            Self::Number => 3,
            Self::Boolean => 4,
            Self::Json => 5,
            Self::Instant => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_refuses_names_that_are_taken_or_not_printable() {
        for name in [
            "",
            "action",
            "event_id",
            "occurred_at",
            "behaviour",
            "a\nb",
            &"x".repeat(129),
        ] {
            assert!(
                Schema::new(1, vec![ColumnSpec::of(name, Kind::Text)]).is_err(),
                "{name:?}"
            );
        }
        assert!(
            Schema::new(
                1,
                vec![ColumnSpec::of("a", Kind::Text), ColumnSpec::of("a", Kind::Json)]
            )
            .is_err()
        );
    }

    #[test]
    fn a_later_schema_reads_an_earlier_one_iff_it_only_added_columns() {
        let old = Schema::new(1, vec![ColumnSpec::of("tool", Kind::Text)]).unwrap();
        let grown = Schema::new(
            2,
            vec![
                ColumnSpec::of("tool", Kind::Text),
                ColumnSpec::of("cost", Kind::Number),
            ],
        )
        .unwrap();
        let retyped = Schema::new(2, vec![ColumnSpec::of("tool", Kind::Json)]).unwrap();
        assert!(grown.reads(&old) && old.reads(&old));
        assert!(!old.reads(&grown) && !retyped.reads(&old));
        assert_eq!(
            grown.fingerprint(old.columns().len()),
            old.fingerprint(usize::MAX)
        );
        assert_ne!(retyped.fingerprint(5), old.fingerprint(5));
    }
}
