//! What a server keeps of a report: nothing that looks like a value, whoever wrote it.

use super::key::{WITHHELD as WITHHELD_KEY, is_always_weak, is_builtin, is_shown as is_shown_key};
use super::limits::{is_digest, is_fingerprint, is_hidden, is_project_name, is_version};
use super::{Place, Report, Section, SectionFault, Sighting};
use crate::client::Client;
use crate::hide::is_wordy;
use crate::readers::{FILES, Part, SESSIONS, SKILLS};
use crate::report::Transport;
use crate::secrets::known;

/// What stands for a name that is not kept.
const WITHHELD: &str = "hidden:withheld";
/// What stands for a kind of file that no reader has.
const OTHER: &str = "other";

impl Report {
    /// Returns the report without what looks like a value.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.sections = self.sections.into_iter().map(Section::kept).collect();
        for section in &mut self.unchanged {
            keep(&mut section.user);
        }
        self
    }
}

impl Section {
    /// Returns the section without what looks like a value. An agent of ours has hidden all that already, so that of its reports all is
    /// kept; the digest stays that of what was sent.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.user = shown(self.user);
        for SectionFault { place, .. } in &mut self.faults {
            place.keep();
            place.project_name = None;
        }
        for sighting in &mut self.observations {
            sighting.keep(self.client);
        }
        self
    }
}

impl Place {
    fn keep(&mut self) {
        let files = FILES.into_iter().flatten().map(|file| file.class);
        let skills = SKILLS.iter().map(|folder| folder.class);
        let sessions = SESSIONS.iter().map(|files| files.class);
        if !files
            .chain(skills)
            .chain(sessions)
            .any(|class| class == self.class)
        {
            OTHER.clone_into(&mut self.class);
        }
        self.project_name = self.project_name.take().filter(|name| is_project_name(name));
    }
}

impl Sighting {
    fn keep(&mut self, client: Client) {
        match self {
            Self::McpServer {
                place,
                key,
                configured_name,
                transport,
                version,
                arg_shapes,
                env_names,
                header_names,
                weak,
                ..
            } => {
                place.keep();
                // A key may have a digest in it, and so is measured by its kind.
                if !is_shown_key(key) || known(key).is_some() {
                    WITHHELD_KEY.clone_into(key);
                }
                // What says of itself that Goose ships it is so only within Goose, of what Goose ships.
                let is_said = *transport == Transport::Builtin || key.starts_with("builtin:goose/");
                let is_so = *transport == Transport::Builtin && is_builtin(client, key);
                *weak |= is_always_weak(key) || is_said != is_so;
                keep(configured_name);
                let is_shown =
                    |version: &String| is_digest(version) || (is_version(version) && !is_hidden(version));
                *version = version.take().filter(is_shown);
                arg_shapes.iter_mut().for_each(keep_shape);
                env_names.iter_mut().for_each(keep);
                header_names.iter_mut().for_each(keep);
            }
            Self::Skill { place, name, .. } | Self::Extension { place, name, .. } => {
                place.keep();
                keep(name);
            }
            Self::Hook { place, event, .. } => {
                place.keep();
                keep(event);
            }
            Self::Setting { place, name, value } => {
                place.keep();
                keep(name);
                if !is_setting(name, value) {
                    "set".clone_into(value);
                }
            }
            Self::Environment { place, names } => {
                place.keep();
                names.iter_mut().for_each(keep);
            }
            Self::Credential {
                place, member_name, ..
            } => {
                place.keep();
                if member_name.contains('@') {
                    WITHHELD.clone_into(member_name);
                }
                keep(member_name);
            }
            Self::Sessions { place, .. } => place.keep(),
        }
    }
}

fn keep(name: &mut String) {
    *name = shown(std::mem::take(name));
}

/// Keeps a flag and the kind of its value: what stands in angle brackets, and nothing else that is no flag.
fn keep_shape(shape: &mut String) {
    let flag = match shape.split_once('=') {
        Some((flag, kind)) if is_kind(kind) => flag,
        None if is_kind(shape) => return,
        None => shape.as_str(),
        Some(_) => "",
    };
    let is_flag = flag.starts_with('-') || hidden(flag);
    let is_shown = hidden(flag) || (is_wordy(flag) && shown(flag.to_owned()) == flag);
    if !is_flag || !is_shown {
        WITHHELD.clone_into(shape);
    }
}

fn is_kind(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    inner.is_some_and(|kind| kind.len() <= 16 && kind.bytes().all(|b| b.is_ascii_lowercase()))
}

fn hidden(name: &str) -> bool {
    name == WITHHELD || name.strip_prefix("hidden:").is_some_and(is_fingerprint)
}

fn shown(name: String) -> String {
    if is_hidden(&name) && !hidden(&name) {
        return WITHHELD.to_owned();
    }
    name
}

/// Says whether a setting can have this value: a truth, a number, or a word that a reader shows.
fn is_setting(name: &str, value: &str) -> bool {
    let mut parts = FILES.into_iter().flatten().flat_map(|file| file.parts);
    ["true", "false", "set"].contains(&value)
        || (value.len() <= 9 && value.bytes().all(|b| b.is_ascii_digit()))
        || parts.any(|part| {
            matches!(part, Part::Switch(_, setting, words) if *setting == name && words.contains(&value))
        })
}
