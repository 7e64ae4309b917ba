//! The profile file: named servers with an organization and, if wanted, a token.

use super::failure::Failure;
use super::terminal::Surroundings;
use super::whole_file::replace_file;
use provost_words::Secret;
use provost_words::durable::folder_of;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// LIMIT: a profile has a few hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// One named server.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    pub(super) url: Option<String>,
    pub(super) organization: Option<String>,
    pub(super) token: Option<Secret<String>>,
}

/// The whole file.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    pub(super) current: Option<String>,
    pub(super) by_name: BTreeMap<String, Profile>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    current: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Entry>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    organization: Option<String>,
    token: Option<String>,
}

/// Returns where the file is when nobody says.
pub(super) fn default_path(surroundings: &Surroundings) -> Option<PathBuf> {
    let config = surroundings
        .config_home
        .clone()
        .or_else(|| Some(surroundings.home.as_ref()?.join(".config")))?;
    Some(config.join("provost").join("profiles.toml"))
}

/// Says whether a file's permissions keep other people out: the six bits of group and others are clear.
pub(super) fn is_private(mode: u32) -> bool {
    mode.trailing_zeros() >= 6
}

impl Profiles {
    /// Reads the file; `None` when there is none.
    ///
    /// Errors: usage, when it cannot be read, is not a profile file, or holds a token that others can read.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, Failure> {
        let shown = path.display();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {shown}: {error}"))),
        };
        let cannot = |error: io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
        // Of the open file, so that what is judged is what is read.
        let mode = file.metadata().map_err(cannot)?.mode();
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(cannot)?;
        let document: Document = toml::from_str(&text).map_err(|error| {
            // Only the place: a line of this file may hold a token.
            let line = error
                .span()
                .map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            Failure::usage(format!(
                "{shown} is not a profile file: line {}: {}",
                line.max(1),
                error.message()
            ))
        })?;
        if document.profiles.values().any(|entry| entry.token.is_some()) && !is_private(mode) {
            let line = format!("{shown} holds a token and other users of this machine can read or change it");
            return Err(Failure::usage(line).and(format!("close it first: chmod 600 {shown}")));
        }
        let profile = |(name, entry): (String, Entry)| {
            let token = entry.token.map(Secret::new);
            (
                name,
                Profile {
                    url: entry.url,
                    organization: entry.organization,
                    token,
                },
            )
        };
        Ok(Some(Self {
            current: document.current,
            by_name: document.profiles.into_iter().map(profile).collect(),
        }))
    }

    /// Writes the file anew, readable by its owner alone, in one step.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let folder = folder_of(path);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        replace_file(path, self.text().expose().as_bytes(), 0o600)
    }

    fn text(&self) -> Secret<String> {
        let mut text = String::new();
        if let Some(current) = &self.current {
            line(&mut text, "current", current);
        }
        for (name, profile) in &self.by_name {
            let _ = writeln!(text, "\n[profiles.{}]", Value::from(name.as_str()));
            let token = profile.token.as_ref().map(Secret::expose);
            let members = [
                ("url", profile.url.as_ref()),
                ("organization", profile.organization.as_ref()),
                ("token", token),
            ];
            for (member, value) in members {
                if let Some(value) = value {
                    line(&mut text, member, value);
                }
            }
        }
        Secret::new(text)
    }
}

/// No value has a character that TOML and JSON spell differently; `profile set` sees to it.
fn line(text: &mut String, member: &str, value: &str) {
    let _ = writeln!(text, "{member} = {}", Value::from(value));
}
