//! What a person calls a skill: its name in the registry or its id (D10.1).

use super::receipt::Receipt;
use crate::cli::Failure;
use clap::{Arg, ArgMatches};
use provost_skill_package::is_valid_name;

/// `[namespace/]name[@version]`, or `ski_…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Without the version.
    pub item: String,
    /// Behind the last `@`.
    pub version: Option<String>,
    /// The last part; absent for an id.
    pub name: Option<String>,
}

/// Returns the positional argument.
pub fn arg() -> Arg {
    Arg::new("ref")
        .value_name("REF")
        .help("The skill: [NAMESPACE/]NAME[@VERSION], or its id")
}

impl Reference {
    /// Reads the argument of [`arg`], if it was given.
    ///
    /// Errors: usage, when it can be no reference.
    pub fn of(matches: &ArgMatches) -> Result<Option<Self>, Failure> {
        let Some(text) = matches.get_one::<String>("ref") else {
            return Ok(None);
        };
        Self::parse(text).map(Some).ok_or_else(|| {
            Failure::usage("REF must be [NAMESPACE/]NAME[@VERSION] or the id of an item (ski_…)")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        // Everything else is the server's to judge; what it does not know is 404.
        if text.is_empty() || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        if text.starts_with("ski_") {
            return Some(Self {
                item: text.to_owned(),
                version: None,
                name: None,
            });
        }
        // A namespace may begin with an @.
        let (item, version) = match text.rfind('@') {
            Some(at) if at > 0 => (&text[..at], Some(&text[at + 1..])),
            _ => (text, None),
        };
        let name = item.rsplit('/').next().filter(|name| is_valid_name(name))?;
        if item.matches('/').count() > 1 || item.starts_with('/') || version == Some("") {
            return None;
        }
        Some(Self {
            item: item.to_owned(),
            version: version.map(str::to_owned),
            name: Some(name.to_owned()),
        })
    }

    /// Returns the segment of the path.
    pub fn segment(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.item),
            None => self.item.clone(),
        }
    }

    /// Says whether a receipt is of this item, and of this version if one is said.
    pub fn names(&self, receipt: &Receipt) -> bool {
        let is_item = self.item == receipt.item_ref || self.item == receipt.item_id;
        let is_version = |version: &String| *version == receipt.version || *version == receipt.digest;
        is_item && self.version.as_ref().is_none_or(is_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, Option<String>, Option<String>)> {
        Reference::parse(text).map(|found| (found.item, found.version, found.name))
    }

    #[test]
    fn a_reference_has_an_item_and_perhaps_a_version() {
        let some = |text: &str| Some(text.to_owned());
        for (text, item, version, name) in [
            ("reading", "reading", None, some("reading")),
            ("reading@1.2.0", "reading", some("1.2.0"), some("reading")),
            ("@acme/reading", "@acme/reading", None, some("reading")),
            (
                "@acme/reading@1.0.0-rc.1",
                "@acme/reading",
                some("1.0.0-rc.1"),
                some("reading"),
            ),
            (
                "io.github.acme/reading",
                "io.github.acme/reading",
                None,
                some("reading"),
            ),
            ("reading@sha256:ab", "reading", some("sha256:ab"), some("reading")),
            ("ski_01", "ski_01", None, None),
        ] {
            assert_eq!(parts(text), Some((item.to_owned(), version, name)), "{text}");
        }
        for text in [
            "", "/", "a/b/c", "/a", "a/", "@acme", "A", "..", "a/..", "a b", "a@", "a\n", "a\0b",
        ] {
            assert_eq!(parts(text), None, "{text:?}");
        }
    }
}
