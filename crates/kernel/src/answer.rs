//! What an operation answers, for its caller and for whoever repeats its request.

use bytes::Bytes;

/// An answer, ready to be sent.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `ETag`, `Location` and the like.
    pub headers: Vec<(&'static str, String)>,
    /// The bytes.
    pub body: Bytes,
    /// The media type of the bytes.
    pub media_type: &'static str,
    /// Set when the bytes were stored by an earlier request.
    pub replayed: bool,
}
