//! Why a whole body is refused.

use std::fmt;

/// Why a body is refused; its sender must not send it again as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Its content encoding is neither `gzip` nor `identity`.
    UnknownCompression,
    /// It expands beyond the limit.
    TooLarge,
    /// It is no gzip stream, no message or no JSON.
    Malformed(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCompression => f.write_str("the content encoding is neither gzip nor identity"),
            Self::TooLarge => f.write_str("the body is larger than 16 MiB when expanded"),
            Self::Malformed(what) => write!(f, "the body is no {what}"),
        }
    }
}

impl std::error::Error for Error {}
