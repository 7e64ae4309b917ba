//! Versions of skills: semantic versions without build metadata, and digests (D10.1).

use std::cmp::Ordering;
use std::fmt;

/// LIMIT: characters of a version.
const MAX_LEN: usize = 64;
/// LIMIT: digits of each of its numbers, so that the next patch always fits.
const MAX_DIGITS: usize = 9;

/// A semantic version, as published. Build metadata is refused: two versions must not differ in nothing that
/// orders them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    core: [u32; 3],
    /// The identifiers of a prerelease; none for a release.
    prerelease: Vec<String>,
}

impl Version {
    /// Returns the first version of a skill whose publisher names none.
    pub fn first() -> Self {
        Self {
            core: [1, 0, 0],
            prerelease: Vec::new(),
        }
    }

    /// Returns the version that `text` spells in its one canonical way.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LEN {
            return None;
        }
        let (core, prerelease) = match text.split_once('-') {
            Some((core, prerelease)) => (core, Some(prerelease)),
            None => (text, None),
        };
        let numbers: Vec<u32> = core.split('.').map(number).collect::<Option<_>>()?;
        let prerelease: Vec<String> = match prerelease {
            Some(text) => text.split('.').map(identifier).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Some(Self {
            core: numbers.try_into().ok()?,
            prerelease,
        })
    }

    /// Says whether it is no prerelease.
    pub fn is_release(&self) -> bool {
        self.prerelease.is_empty()
    }

    /// Returns the release whose patch is one higher.
    #[must_use]
    pub fn next_patch(&self) -> Self {
        let [major, minor, patch] = self.core;
        Self {
            core: [major, minor, patch.saturating_add(1)],
            prerelease: Vec::new(),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

fn number(text: &str) -> Option<u32> {
    (is_number(text) && text.len() <= MAX_DIGITS)
        .then(|| text.parse().ok())
        .flatten()
}

fn identifier(text: &str) -> Option<String> {
    let all_digits = text.bytes().all(|b| b.is_ascii_digit());
    let fits = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && (!all_digits || is_number(text));
    fits.then(|| text.to_owned())
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.core;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease.join("."))?;
        }
        Ok(())
    }
}

impl Ord for Version {
    /// The precedence of Semantic Versioning 2.0.0, section 11.
    fn cmp(&self, other: &Self) -> Ordering {
        let core = self.core.cmp(&other.core);
        core.then_with(|| match (self.is_release(), other.is_release()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self
                .prerelease
                .iter()
                .map(|i| Identifier(i))
                .cmp(other.prerelease.iter().map(|i| Identifier(i))),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One identifier of a prerelease: numbers come before words and are compared as numbers.
#[derive(PartialEq, Eq)]
struct Identifier<'a>(&'a str);

impl Ord for Identifier<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.0, other.0);
        match (is_number(a), is_number(b)) {
            // Without leading zeros the longer number is the greater one.
            (true, true) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => a.cmp(b),
        }
    }
}

impl PartialOrd for Identifier<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Says whether a text is `sha256:` and 64 lower-case hexadecimal digits.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|| panic!("{text} is a version"))
    }

    #[test]
    fn precedence_is_that_of_the_standard() {
        let ascending = [
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "999999999.0.0",
        ];
        for pair in ascending.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn other_spellings_are_no_versions() {
        for text in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "v1.0.0",
            "01.0.0",
            "1.0.00",
            "1.0.0-",
            "1.0.0-01",
            "1.0.0-a..b",
            "1.0.0+build",
            "1.0.0-a+b",
            "1.0.0 ",
            "1.0.0-ä",
            "1234567890.0.0",
            "1.0.0-a_b",
            "-1.0.0",
            "1.0.0/..",
        ] {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
        assert_eq!(Version::parse(&format!("1.0.0-{}", "a".repeat(59))), None);
        assert!(Version::parse(&format!("1.0.0-{}", "a".repeat(58))).is_some());
    }

    #[test]
    fn the_next_patch_is_a_release_above_everything_of_its_core() {
        assert_eq!(version("1.2.3").next_patch().to_string(), "1.2.4");
        assert_eq!(version("1.2.3-rc.1").next_patch().to_string(), "1.2.4");
    }

    proptest! {
        #[test]
        fn a_version_prints_as_it_was_read(text in "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}(-[0-9a-zA-Z-]{1,4}(\\.[0-9a-zA-Z-]{1,4}){0,2})?") {
            if let Some(version) = Version::parse(&text) {
                prop_assert_eq!(version.to_string(), text);
            }
        }

        #[test]
        fn no_text_makes_the_parser_fail(text in ".{0,80}") {
            let _ = Version::parse(&text);
        }
    }
}
