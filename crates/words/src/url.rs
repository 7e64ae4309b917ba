//! Paths of the API, and text as a part of a URL or a form: everything but the unreserved characters is escaped
//! (RFC 3986 §2.3).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode};

/// What stands before every operation's path.
pub const BASE: &str = "/api/headless/v1/organizations/{organizationId}";

/// What stands in a path for an id that is said in the query, because proxies would make another path of it: `a//b`, `a/..`.
pub const IN_QUERY: &str = "-";

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the text escaped; it can be written and collected.
pub fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ESCAPED)
}

/// Returns what a name or a value of a form or a query says; nothing where it is no text.
pub fn decoded_form(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Says whether a text means the same in a path wherever it passes: proxies take out empty segments and those of a dot or two.
pub fn fits_path(text: &str) -> bool {
    text.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::{decoded_form, encoded, fits_path};

    #[test]
    fn a_path_carries_what_has_neither_empty_segments_nor_dots_alone() {
        for fits in ["a", "a/b", "a.b/..c/d..", "...", "a/.b"] {
            assert!(fits_path(fits), "{fits}");
        }
        for other in ["", "a/", "/a", "a//b", "a/.", "./a", "a/../b", ".."] {
            assert!(!fits_path(other), "{other}");
        }
    }

    #[test]
    fn everything_but_the_unreserved_is_escaped() {
        assert_eq!(encoded("aZ09-._~").to_string(), "aZ09-._~");
        assert_eq!(encoded("a b&c=ü/\r\n").to_string(), "a%20b%26c%3D%C3%BC%2F%0D%0A");
        assert_eq!(decoded_form("a+b%20c%26%C3%BC%2B").as_deref(), Some("a b c&ü+"));
        assert_eq!(decoded_form("%FF"), None);
    }
}
