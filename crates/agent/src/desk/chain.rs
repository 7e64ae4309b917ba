//! The chain of what was judged: each entry is bound to the one before it.
//!
//! ```text
//! a segment   provost-decisions 1 FIRST PREVIOUS\n
//!             HASH JSON\n          HASH = SHA-256(the digits of the hash before ‖ the JSON)
//!             HASH JSON\n
//! ```

use provost_words::digest::sha256_hex;

const LEAD: &str = "provost-decisions 1 ";
/// The hash before the first entry.
pub(crate) const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Where a chain stands: the number of the next entry, and the hash of the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub next: u64,
    pub previous: String,
}

impl Link {
    /// Returns the beginning of a chain.
    pub fn first() -> Self {
        Self {
            next: 1,
            previous: NOTHING.to_owned(),
        }
    }

    /// Returns the first line of a segment that begins here.
    pub fn head(&self) -> String {
        format!("{LEAD}{} {}\n", self.next, self.previous)
    }

    /// Returns where a segment begins, and how long its first line is; `None` where it is none.
    pub fn of_head(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.iter().take(160).position(|byte| *byte == b'\n')?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(LEAD)?;
        let (next, previous) = text.split_once(' ')?;
        let next = next.parse().ok().filter(|next| *next > 0)?;
        let link = Self {
            next,
            previous: is_hash(previous).then(|| previous.to_owned())?,
        };
        Some((link, end + 1))
    }

    /// Returns the line of an entry, and where the chain stands behind it. The entry is JSON on one line.
    pub fn line(&self, entry: &str) -> (String, Self) {
        let hash = hash(&self.previous, entry);
        let line = format!("{hash} {entry}\n");
        let behind = Self {
            next: self.next + 1,
            previous: hash,
        };
        (line, behind)
    }

    /// Returns the entry of a line that follows, without its end, and where the chain stands behind it; `None` where it does not follow.
    pub fn follow<'a>(&self, line: &'a [u8]) -> Option<(&'a str, Self)> {
        let (said, entry) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let behind = Self {
            next: self.next + 1,
            previous: said.to_owned(),
        };
        (hash(&self.previous, entry) == said).then_some((entry, behind))
    }
}

/// Says whether a text is a hash of a chain.
pub(crate) fn is_hash(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(is_digit)
}

/// Returns the hash of an entry: of the hash before it, in its digits, and of its text.
fn hash(previous: &str, entry: &str) -> String {
    sha256_hex([previous.as_bytes(), entry.as_bytes()].concat().as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_bound_to_the_one_before_it() {
        let first = Link::first();
        let text = r#"{"kind":"count","count":1}"#;
        let (line, second) = first.line(text);
        assert_eq!(
            line,
            format!("{} {text}\n", sha256_hex(format!("{NOTHING}{text}").as_bytes()))
        );
        assert_eq!(
            first.follow(line.trim_end().as_bytes()),
            Some((text, second.clone()))
        );
        // At another place it does not follow, nor with another byte.
        assert_eq!(second.follow(line.trim_end().as_bytes()), None);
        assert_eq!(
            first.follow(line.trim_end().replace(":1}", ":2}").as_bytes()),
            None
        );
        let (head, length) = Link::of_head(second.head().as_bytes()).unwrap();
        assert_eq!((head, length), (second.clone(), second.head().len()));
        assert_eq!(Link::of_head(b"provost-decisions 1 0 00\n"), None);
    }
}
