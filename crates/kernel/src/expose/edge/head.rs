//! The strict reading of one HTTP/1 request head (RFC 9112).
//!
//! It exists to refuse, with an envelope, everything that two parsers could read differently, and everything
//! that the HTTP library would answer without a body. It decides nothing else: the library parses the head
//! again and is the one that is believed.

use super::layer::MAX_HEADER_FIELDS;
use crate::{Code, Error, Result};

/// How long the message is that follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes, often none.
    Sized(u64),
    /// Until the last chunk.
    Chunked,
}

/// Where the scan for the end of a head stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The head ends before this offset.
    At(usize),
    /// There is no end yet; scan on from this offset.
    NotYet(usize),
}

/// Finds the empty line that ends a head, looking from offset `from` on.
///
/// Errors: `InvalidRequest` for a line that ends in a bare LF (a front end may see a line end there, or not).
pub(super) fn find_end(bytes: &[u8], from: usize) -> Result<End> {
    let mut at = from;
    while let Some(step) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        at += step;
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(malformed("lines end in CR LF"));
        }
        at += 1;
        if bytes[..at].ends_with(b"\r\n\r\n") {
            return Ok(End::At(at));
        }
    }
    Ok(End::NotYet(at.max(bytes.len())))
}

/// Reads a complete head, from the first byte of its request line to its empty line.
///
/// Errors: `UriTooLong`, `HeadersTooLarge`, `InvalidRequest`.
pub(super) fn check(head: &[u8], max_target_bytes: usize) -> Result<Framing> {
    let head = head.strip_suffix(b"\r\n\r\n").unwrap_or(head);
    let mut lines = HeadLines(Some(head));
    let is_http_11 = check_request_line(lines.next().unwrap_or_default(), max_target_bytes)?;
    let mut framing = None;
    let (mut hosts, mut fields) = (0, 0);
    for line in lines {
        fields += 1;
        if fields > MAX_HEADER_FIELDS {
            return Err(too_many_fields());
        }
        let (name, value) = split_field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = parse_length(value)?;
            if framing.replace(Framing::Sized(length)).is_some() {
                return Err(malformed("the length of the body is given more than once"));
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !is_http_11 || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("the only transfer encoding is chunked, of HTTP/1.1"));
            }
            if framing.replace(Framing::Chunked).is_some() {
                return Err(malformed("the length of the body is given more than once"));
            }
        } else if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        }
    }
    if hosts > 1 || (is_http_11 && hosts == 0) {
        return Err(malformed("a request has exactly one Host header"));
    }
    Ok(framing.unwrap_or(Framing::Sized(0)))
}

/// Returns the refusal of a head that has grown over every limit before it ended.
pub(super) fn overgrown(bytes: &[u8], max_target_bytes: usize) -> Error {
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or(line);
    if target.len() > max_target_bytes {
        too_long(max_target_bytes)
    } else {
        Error::new(Code::HeadersTooLarge, "the headers are too large")
    }
}

pub(super) fn too_long(max_target_bytes: usize) -> Error {
    let message = format!("the request target is longer than {max_target_bytes} bytes");
    Error::new(Code::UriTooLong, message)
}

pub(super) fn too_many_fields() -> Error {
    let message = format!("there are more than {MAX_HEADER_FIELDS} header fields");
    Error::new(Code::HeadersTooLarge, message)
}

/// Returns whether the request line is that of HTTP/1.1 (otherwise HTTP/1.0).
fn check_request_line(line: &[u8], max_target_bytes: usize) -> Result<bool> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed("the request line is method, target and version"));
    };
    if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
        return Err(malformed("the method is not a word"));
    }
    if target.len() > max_target_bytes {
        return Err(too_long(max_target_bytes));
    }
    if !target.iter().all(u8::is_ascii_graphic) || http::Uri::try_from(target).is_err() {
        return Err(malformed("the request target is not valid"));
    }
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        _ => Err(malformed("the version is HTTP/1.1 or HTTP/1.0")),
    }
}

/// A line that starts with a blank is an obsolete folded line; it fails here because its name is no token.
fn split_field(line: &[u8]) -> Result<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or_default();
    let name = &line[..colon];
    if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) {
        return Err(malformed("a header line is a name, a colon and a value"));
    }
    let value = &line[colon + 1..];
    if value
        .iter()
        .any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
    {
        return Err(malformed("a header value contains a control character"));
    }
    Ok((name, value.trim_ascii()))
}

fn parse_length(value: &[u8]) -> Result<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(malformed("the Content-Length is not a number"));
    }
    let parsed = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    // The HTTP library keeps the two largest numbers for itself; nobody has that many bytes.
    let length = parsed.filter(|&length: &u64| length < u64::MAX / 2);
    length.ok_or_else(|| Error::new(Code::PayloadTooLarge, "the body is too large"))
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn malformed(why: &'static str) -> Error {
    Error::new(
        Code::InvalidRequest,
        format!("the request is not valid HTTP: {why}"),
    )
}

/// Lines of a head whose every LF is known to follow a CR. A CR alone stays in its line and is refused there.
struct HeadLines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for HeadLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let Some(at) = rest.iter().position(|&byte| byte == b'\n') else {
            self.0 = None;
            return Some(rest);
        };
        self.0 = Some(&rest[at + 1..]);
        Some(&rest[..at - 1])
    }
}
