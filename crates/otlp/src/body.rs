//! The body of a request: its encoding and its compression.
//!
//! INVARIANT OT-1: no body of telemetry expands beyond 16 MiB.

use crate::Error;
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;

/// How large a body may be once expanded. Units: bytes. Source: D9.11.
pub const MAX_EXPANDED: usize = 16 << 20;

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol buffers.
    Protobuf,
    /// JSON, with the rules of OTLP: identifiers in hexadecimal, 64-bit numbers as numbers or texts.
    Json,
}

impl Encoding {
    /// Returns the encoding that a content type names; parameters do not matter.
    pub fn of(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-protobuf") {
            Some(Self::Protobuf)
        } else if essence.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    /// Returns the content type of an answer to a request in this encoding.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// Returns a body without its compression (OT-1).
///
/// Errors: `UnknownCompression`, `TooLarge`, `Malformed`.
pub fn expand<'a>(content_encoding: Option<&str>, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Error> {
    let coding = content_encoding.unwrap_or("identity").trim();
    if coding.is_empty() || coding.eq_ignore_ascii_case("identity") {
        return if body.len() > MAX_EXPANDED {
            Err(Error::TooLarge)
        } else {
            Ok(Cow::Borrowed(body))
        };
    }
    if !coding.eq_ignore_ascii_case("gzip") {
        return Err(Error::UnknownCompression);
    }
    let mut expanded = Vec::new();
    // One byte more than allowed tells a body of exactly the limit from a larger one.
    let mut limited = MultiGzDecoder::new(body).take(MAX_EXPANDED as u64 + 1);
    limited
        .read_to_end(&mut expanded)
        .map_err(|_| Error::Malformed("gzip stream"))?;
    if expanded.len() > MAX_EXPANDED {
        return Err(Error::TooLarge);
    }
    Ok(Cow::Owned(expanded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Proves OT-1.
    #[test]
    fn a_body_expands_to_the_limit_and_not_beyond() {
        let most = gzip(&vec![0; MAX_EXPANDED]);
        assert_eq!(expand(Some("gzip"), &most).unwrap().len(), MAX_EXPANDED);

        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 128 << 10, "a bomb is small: {}", bomb.len());
        assert_eq!(expand(Some("gzip"), &bomb), Err(Error::TooLarge));

        // The limit counts over all members of the stream.
        let members = [gzip(&vec![0; MAX_EXPANDED]), gzip(&[1])].concat();
        assert_eq!(expand(Some("GZIP"), &members), Err(Error::TooLarge));
    }

    #[test]
    fn other_codings_and_broken_streams_are_refused() {
        assert_eq!(expand(Some("br"), b"x"), Err(Error::UnknownCompression));
        assert_eq!(
            expand(Some("gzip"), b"no gzip"),
            Err(Error::Malformed("gzip stream"))
        );
        let cut = gzip(b"a longer text");
        assert!(expand(Some("gzip"), &cut[..cut.len() - 4]).is_err());
        assert_eq!(&*expand(None, b"plain").unwrap(), b"plain");
        assert_eq!(
            expand(Some("identity"), &vec![0; MAX_EXPANDED + 1]),
            Err(Error::TooLarge)
        );
    }

    #[test]
    fn content_types_name_encodings() {
        assert_eq!(Encoding::of("application/x-protobuf"), Some(Encoding::Protobuf));
        assert_eq!(
            Encoding::of("Application/JSON; charset=utf-8"),
            Some(Encoding::Json)
        );
        assert_eq!(Encoding::of("application/grpc"), None);
    }
}
