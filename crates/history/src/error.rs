//! Why history cannot be recorded, read or sealed.
//!
//! Absent on purpose: the values of events. An error names a column or a kind of damage, so that it can be logged.

use std::fmt;
use std::io;

/// The outcome of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// The event, schema or question breaks a rule; the sentence says which.
    Invalid(String),
    /// The bytes are not what was written; the word says which part.
    Corrupt(&'static str),
    /// The bytes were written by a later version of the program or of the schema.
    Newer,
    /// The storage failed.
    Storage(io::Error),
    /// There are more distinct projections than the limits of a grouping allow: judge event by event.
    TooDistinct,
    /// The cancel flag was seen.
    Canceled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
            Self::Corrupt(part) => write!(f, "recorded history is damaged: {part}"),
            Self::Newer => f.write_str("recorded history was written by a later version"),
            Self::Storage(_) => f.write_str("the storage of the history failed"),
            Self::TooDistinct => f.write_str("there are too many distinct projections to group them"),
            Self::Canceled => f.write_str("canceled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Storage(cause)
    }
}

/// Returns `Invalid` with this sentence.
pub(crate) fn invalid<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(why.into()))
}
