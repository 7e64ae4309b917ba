//! Texts that callers of the registry send, with their limits (D1.10).

use super::reference::is_namespace;
use super::version::Version;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;

macro_rules! input {
    ($name:ident($of:ty), $doc:literal, $must:literal, $read:expr, $schema:tt) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name($of);

        impl $name {
            /// Returns what was read.
            pub fn get(&self) -> &$of {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <Cow<'de, str>>::deserialize(deserializer)?;
                let read: fn(&str) -> Option<$of> = $read;
                read(&text)
                    .map(Self)
                    .ok_or_else(|| de::Error::custom($must))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

fn line(text: &str, max: usize) -> Option<String> {
    let fits = (1..=max).contains(&text.chars().count()) && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}

input!(
    Namespace(String),
    "A namespace: `@scope` or a reverse DNS name, in lower case.",
    "must be @scope or a reverse DNS name of at least two labels, in lower case",
    |text| is_namespace(text).then(|| text.to_owned()),
    {
        "type": "string", "minLength": 2, "maxLength": 128,
        "pattern": r"^(@[a-z0-9]+([._-][a-z0-9]+)*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+)$",
    }
);

input!(
    VersionText(Version),
    "A semantic version without build metadata.",
    "must be a semantic version without build metadata, of at most 64 characters and numbers of at most 9 digits",
    Version::parse,
    {
        "type": "string", "minLength": 5, "maxLength": 64,
        "pattern": r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$",
    }
);

input!(
    ClientName(String),
    "The name of a local client, for example `claude-code`.",
    "must have 1 to 64 of a-z, 0-9, '.', '_', '-' and begin with a letter or digit",
    |text| {
        let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = matches!(text.len(), 1..=64)
            && text.as_bytes().first().is_some_and(is_plain)
            && text.bytes().all(|b| is_plain(&b) || b"._-".contains(&b));
        fits.then(|| text.to_owned())
    },
    { "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9][a-z0-9._-]*$" }
);

input!(
    Shown(String),
    "A text of one line, shown to people.",
    "must have 1 to 128 characters and no control character",
    |text| line(text, 128),
    { "type": "string", "minLength": 1, "maxLength": 128, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$" }
);

input!(
    FolderName(String),
    "What a folder is called.",
    "must have 1 to 255 characters and no control character",
    |text| line(text, 255),
    { "type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$" }
);

input!(
    LocalPath(String),
    "Where files lie on a client's machine. The server shows it and opens nothing.",
    "must have 1 to 1024 characters and no control character",
    |text| line(text, 1024),
    { "type": "string", "minLength": 1, "maxLength": 1024, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$" }
);

input!(
    Search(String),
    "What a list is searched for.",
    "must have 1 to 256 characters and no control character",
    |text| line(text, 256),
    { "type": "string", "minLength": 1, "maxLength": 256, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$" }
);
