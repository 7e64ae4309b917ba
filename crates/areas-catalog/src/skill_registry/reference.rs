//! What a path says of an item: `itemRef` (D10.1).
//!
//! ```text
//! ref       = id | [namespace "/"] name ["@" version]
//! id        = "ski_" 26 characters
//! namespace = "@" scope | reverse DNS name
//! version   = semantic version without build metadata | "sha256:" 64 hexadecimal digits
//! ```
//!
//! The router has decoded the segment once. Nothing of it ever reaches a file name: an item is found by equality
//! in a table. A text that is no reference names nothing, which is the same answer as for an unknown item.

use super::model::{Item, SkillItemId};
use super::version::{Version, is_digest};
use schemars::JsonSchema;
use serde::Deserialize;

/// LIMIT: characters of a namespace.
const MAX_NAMESPACE: usize = 128;
/// LIMIT: characters of a name (agent-skills).
const MAX_NAME: usize = 64;

/// A reference as the grammar has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An item by its id.
    Id(SkillItemId),
    /// An item by its name, and perhaps one of its versions.
    Named {
        /// Empty for none.
        namespace: String,
        /// The name.
        name: String,
        /// The version that is meant.
        version: Option<VersionReference>,
    },
}

/// A version as a reference names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionReference {
    /// By its number.
    Version(Version),
    /// By its content.
    Digest(String),
}

impl Reference {
    /// Returns the reference that `text` spells; anything else names nothing.
    pub fn parse(text: &str) -> Option<Self> {
        if provost_kernel::id::parse("ski", text).is_some() {
            return Some(Self::Id(SkillItemId::from_text(text)));
        }
        let (namespace, rest) = match text.split_once('/') {
            Some((namespace, rest)) if is_namespace(namespace) => (namespace, rest),
            Some(_) => return None,
            None => ("", text),
        };
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => (name, Some(VersionReference::parse(version)?)),
            None => (rest, None),
        };
        is_name(name).then(|| Self::Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version,
        })
    }

    /// Returns the version that the reference names.
    pub fn version(&self) -> Option<&VersionReference> {
        match self {
            Self::Named { version, .. } => version.as_ref(),
            Self::Id(_) => None,
        }
    }

    /// Says whether it names this item.
    pub fn names(&self, item: &Item) -> bool {
        match self {
            Self::Id(id) => *id == item.id,
            Self::Named { namespace, name, .. } => *namespace == item.namespace && *name == item.name,
        }
    }
}

impl VersionReference {
    fn parse(text: &str) -> Option<Self> {
        if is_digest(text) {
            return Some(Self::Digest(text.to_owned()));
        }
        Version::parse(text).map(Self::Version)
    }

    /// Says whether it means a version of this number and content.
    pub fn is(&self, version: &Version, digest: &str) -> bool {
        match self {
            Self::Version(wanted) => wanted == version,
            Self::Digest(wanted) => wanted == digest,
        }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => f.write_str(id.as_str()),
            Self::Named {
                namespace,
                name,
                version,
            } => {
                f.write_str(&full_name(namespace, name))?;
                match version {
                    Some(VersionReference::Version(version)) => write!(f, "@{version}"),
                    Some(VersionReference::Digest(digest)) => write!(f, "@{digest}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns `[namespace/]name`.
pub fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        return name.to_owned();
    }
    format!("{namespace}/{name}")
}

/// The names of skills, and those of MCP servers, which may also hold `.` and `_`: lower case, alphanumeric ends,
/// no two separators in a row. `..` is none, and nothing that looks like an id.
pub fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && is_separated(text, b"-._") && !text.starts_with("ski_")
}

/// Says whether a text is `@scope` or a reverse DNS name of two labels or more.
pub fn is_namespace(text: &str) -> bool {
    if text.len() > MAX_NAMESPACE {
        return false;
    }
    if let Some(scope) = text.strip_prefix('@') {
        return is_separated(scope, b"-._");
    }
    text.contains('.') && text.split('.').all(|label| label.len() <= 63 && is_label(label))
}

/// A label of a domain name; unlike in names, hyphens may follow each other (`xn--…`).
fn is_label(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// One or more runs of lower-case letters and digits, each two with one separator between them.
fn is_separated(text: &str, separators: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.as_bytes()
        .split(|b| separators.contains(b))
        .all(|run| !run.is_empty() && run.iter().all(is_plain))
}

/// The path of operations on one item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ItemPath {
    /// The item: its id, or `[namespace/]name`, with `@version` behind the name where one version is meant.
    pub item_ref: ItemRef,
}

/// A path segment that names an item, or nothing.
#[derive(Clone, Debug)]
pub struct ItemRef(pub Option<Reference>);

impl<'de> Deserialize<'de> for ItemRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Self(Reference::parse(&text)))
    }
}

impl JsonSchema for ItemRef {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ItemRef".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(text: &str) -> Option<(String, String, Option<String>)> {
        match Reference::parse(text)? {
            Reference::Id(id) => Some((String::new(), id.as_str().to_owned(), None)),
            Reference::Named {
                namespace,
                name,
                version,
            } => {
                let version = version.map(|wanted| match wanted {
                    VersionReference::Version(version) => version.to_string(),
                    VersionReference::Digest(digest) => digest,
                });
                Some((namespace, name, version))
            }
        }
    }

    #[test]
    fn every_form_of_the_grammar_is_read() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let cases = [
            ("pdf-tools", ("", "pdf-tools", None)),
            ("@acme/pdf-tools", ("@acme", "pdf-tools", None)),
            (
                "io.github.user/server.name_x",
                ("io.github.user", "server.name_x", None),
            ),
            ("pdf-tools@1.2.3-rc.1", ("", "pdf-tools", Some("1.2.3-rc.1"))),
            ("@acme/pdf-tools@2.0.0", ("@acme", "pdf-tools", Some("2.0.0"))),
        ];
        for (text, (namespace, name, version)) in cases {
            let expected = (namespace.to_owned(), name.to_owned(), version.map(str::to_owned));
            assert_eq!(parts(text), Some(expected), "{text}");
        }
        let by_digest = parts(&format!("pdf@{digest}")).unwrap();
        assert_eq!(by_digest.2, Some(digest));
        let id = "ski_01kadh5j9v0000000000000000";
        assert!(matches!(Reference::parse(id), Some(Reference::Id(_))));
    }

    #[test]
    fn everything_else_names_nothing() {
        for text in [
            "",
            ".",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "/a",
            "a/",
            "a/b",
            "acme/b",
            "@/b",
            "@acme",
            "@acme/",
            "@acme/b/c",
            "a\\b",
            "a\0b",
            "a\nb",
            "a b",
            "A",
            "a--b",
            "-a",
            "a-",
            "a..b",
            "a_",
            "ä",
            "a%2Fb",
            "@acme%2Fb",
            "a@",
            "a@1",
            "a@latest",
            "a@1.0.0@1.0.0",
            "a@1.0.0+b",
            "a@sha256:AB",
            "@a@b/c",
            "ski_01kadh5j9v0000000000000000@1.0.0",
            "ski_01KADH5J9V0000000000000000",
            "@acme/@b",
            "@Acme/b",
            "com/b",
            "com./b",
            ".com/b",
            "a@1.0.0/b",
        ] {
            assert_eq!(parts(text), None, "{text:?}");
        }
        assert_eq!(parts(&"a".repeat(65)), None);
        assert!(parts(&"a".repeat(64)).is_some());
    }

    proptest! {
        #[test]
        fn a_reference_prints_as_it_was_read(
            text in "(@[a-z0-9]{1,4}/|[a-z]{1,3}\\.[a-z-]{1,3}/)?[a-z0-9._-]{1,6}(@[0-9]{1,2}\\.[0-9]\\.[0-9](-[a-z0-9.]{1,4})?)?"
        ) {
            if let Some(reference) = Reference::parse(&text) {
                prop_assert_eq!(reference.to_string(), text);
            }
        }

        #[test]
        fn what_is_read_has_none_of_the_dangerous_parts(text in "[a-z0-9@./\\\\%\\x00-\\x1f _-]{0,24}") {
            if let Some(reference) = Reference::parse(&text) {
                prop_assert!(!text.contains(['\\', '%', ' ']) && !text.contains(char::is_control));
                prop_assert!(!text.contains("..") && text.matches('/').count() <= 1);
                prop_assert_eq!(reference.to_string(), text);
            }
        }

        #[test]
        fn every_name_of_a_skill_is_one_here(name in "[a-z0-9-]{1,66}") {
            if provost_skill_package::is_valid_name(&name) {
                prop_assert!(is_name(&name));
            }
        }

        #[test]
        fn no_text_makes_the_parser_fail(text in "\\PC{0,64}") {
            let _ = Reference::parse(&text);
        }
    }
}
