//! A report as a device sends it and a server reads it (F3.9).
//!
//! Both sides have the same types and the same limits. What a server keeps of a report is what [`Section::kept`] returns: an agent that
//! is broken, or not ours, may write a value or a path where a name belongs, and what looks like one is not kept.

mod keep;
mod key;
mod limits;
mod make;
#[cfg(test)]
mod tests;

use crate::client::Client;
use crate::disk::Fault;
use crate::report::Pin;
pub use crate::report::{Scope, Shape, Transport};
pub use crate::secrets::Pattern;
use provost_words::digest::sha256_hex;
use provost_words::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use key::is_extension_key;
pub use key::{is_always_weak, is_builtin, is_server_key};
pub(crate) use limits::is_version;
pub use limits::{MAX_BYTES, MAX_FAULTS, MAX_OBSERVATIONS, MAX_SECTIONS, is_project_name, is_shown_name};
pub use make::digest;

/// What a device found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Report {
    /// The name that the device gives this scan; sent again after a failure, it is the same.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub scan_id: String,
    /// Which scan of the device it is: the device counts in a file beside its key, and never goes back. Without it, reports are taken in the
    /// order in which they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_i64))]
    pub counter: Option<i64>,
    /// The device's clock when the scan began; it is kept, and decides nothing.
    pub started_at: Timestamp,
    /// The device's clock when it ended.
    pub finished_at: Timestamp,
    /// One for each client and account of which something changed.
    #[schemars(length(max = 256))]
    pub sections: Vec<Section>,
    /// The sections that are as they were sent before.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub unchanged: Vec<Unchanged>,
}

impl Report {
    /// Returns a digest of the name that the device gave the scan, by which it is known again: a name may hold anything.
    pub fn name_digest(&self) -> String {
        sha256_hex(self.scan_id.as_bytes())
    }
}

/// What was found of one client in one home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Section {
    /// The client.
    pub client: Client,
    /// The account whose home was read.
    #[schemars(length(min = 1, max = 160))]
    pub user: String,
    /// `sha256:` and the digest of the observations and the faults.
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Whether everything could be read; true where and only where there is no fault.
    pub complete: bool,
    /// What could not.
    #[schemars(length(max = 100))]
    pub faults: Vec<SectionFault>,
    /// What was found.
    #[schemars(length(max = 2000))]
    pub observations: Vec<Sighting>,
}

/// A section that is as it was sent before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Unchanged {
    /// The client.
    pub client: Client,
    /// The account whose home was read.
    #[schemars(length(min = 1, max = 160))]
    pub user: String,
    /// Its digest.
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SectionFault {
    /// Where.
    pub place: Place,
    /// Why.
    pub fault: Fault,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Place {
    /// The kind of file: `~/.claude.json`, `P/.mcp.json`.
    #[schemars(length(min = 1, max = 160))]
    pub class: String,
    /// The fingerprint of its path.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    pub path: String,
    /// The fingerprint of the project's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    pub project: Option<String>,
    /// What the project's folder is called: the last part of its path. A device says it only where the settings show names of projects
    /// (`fleet.privacy.projectNames`); where they do not, it is left out of what is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub project_name: Option<String>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[schemars(inline)]
pub enum Sighting {
    /// An MCP server in a configuration.
    McpServer {
        /// Where.
        place: Place,
        /// Its identity: a kind of a closed list and what stands behind it, in one spelling.
        #[schemars(length(min = 1, max = 512))]
        key: String,
        /// How its client calls it.
        #[schemars(length(min = 1, max = 160))]
        configured_name: String,
        /// Whose configuration names it.
        scope: Scope,
        /// How it is reached.
        transport: Transport,
        /// The version, where one is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(max = 160))]
        version: Option<String>,
        /// How exactly.
        version_pin: Pin,
        /// What is special about its command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shape: Option<Shape>,
        /// Whether the key does not say wholly what runs.
        weak: bool,
        /// The kinds of its arguments.
        #[schemars(length(max = 32))]
        arg_shapes: Vec<String>,
        /// The names of its variables.
        #[schemars(length(max = 64))]
        env_names: Vec<String>,
        /// The names of its headers.
        #[schemars(length(max = 32))]
        header_names: Vec<String>,
        /// How many credentials stand in its configuration.
        secrets_inline: u32,
        /// Whether its client starts it.
        enabled: bool,
    },
    /// A skill.
    Skill {
        /// Where.
        place: Place,
        /// The name of its folder.
        #[schemars(length(min = 1, max = 160))]
        name: String,
        /// The digest of its files, as the registry makes it; absent where not all could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
        digest: Option<String>,
    },
    /// A plugin or an extension of a client.
    Extension {
        /// Where.
        place: Place,
        /// Its name.
        #[schemars(length(min = 1, max = 160))]
        name: String,
        /// Whether its client loads it.
        enabled: bool,
    },
    /// Commands that a client runs at an event.
    Hook {
        /// Where.
        place: Place,
        /// The event.
        #[schemars(length(min = 1, max = 160))]
        event: String,
        /// How many.
        commands: u32,
    },
    /// A setting that decides what a client may do.
    Setting {
        /// Where.
        place: Place,
        /// Its name.
        #[schemars(length(min = 1, max = 160))]
        name: String,
        /// A truth, a number of members, a known word, or `set`.
        #[schemars(length(min = 1, max = 64))]
        value: String,
    },
    /// Names of variables that a client sets for everything that it starts.
    Environment {
        /// Where.
        place: Place,
        /// The names.
        #[schemars(length(max = 64))]
        names: Vec<String>,
    },
    /// A credential in a file.
    Credential {
        /// Where.
        place: Place,
        /// What it looks like.
        pattern: Pattern,
        /// The member that holds it.
        #[schemars(length(max = 160))]
        member_name: String,
        /// Its fingerprint; of one of our own tokens the part that may be shown.
        #[schemars(regex(pattern = "^([0-9a-f]{32}|prov_[a-z]{3}_[A-Za-z0-9]{12})$"))]
        fingerprint: String,
        /// The bits of the file's permissions, octal.
        #[schemars(regex(pattern = "^[0-7]{1,6}$"))]
        file_mode: String,
        /// Whether everybody on the machine can read it.
        world_readable: bool,
    },
    /// Conversations that a client kept.
    Sessions {
        /// Where.
        place: Place,
        /// How many files.
        files: u32,
    },
}

impl Sighting {
    /// Returns where it stands.
    pub fn place(&self) -> &Place {
        match self {
            Self::McpServer { place, .. }
            | Self::Skill { place, .. }
            | Self::Extension { place, .. }
            | Self::Hook { place, .. }
            | Self::Setting { place, .. }
            | Self::Environment { place, .. }
            | Self::Credential { place, .. }
            | Self::Sessions { place, .. } => place,
        }
    }

    fn place_mut(&mut self) -> &mut Place {
        match self {
            Self::McpServer { place, .. }
            | Self::Skill { place, .. }
            | Self::Extension { place, .. }
            | Self::Hook { place, .. }
            | Self::Setting { place, .. }
            | Self::Environment { place, .. }
            | Self::Credential { place, .. }
            | Self::Sessions { place, .. } => place,
        }
    }

    /// Takes the name of its project out of it, if it says one.
    pub fn take_project_name(&mut self) -> Option<String> {
        self.place_mut().project_name.take()
    }

    /// Returns the word of its kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::McpServer { .. } => "mcp_server",
            Self::Skill { .. } => "skill",
            Self::Extension { .. } => "extension",
            Self::Hook { .. } => "hook",
            Self::Setting { .. } => "setting",
            Self::Environment { .. } => "environment",
            Self::Credential { .. } => "credential",
            Self::Sessions { .. } => "sessions",
        }
    }

    /// Returns what makes it the same one in the next scan of its section: its kind, its names and its place, of which the name of the project
    /// is no part.
    pub fn ident(&self) -> String {
        let (place, kind) = (self.place(), self.kind());
        let (name, more) = match self {
            Self::McpServer {
                key, configured_name, ..
            } => (configured_name.as_str(), key.as_str()),
            Self::Skill { name, .. } | Self::Extension { name, .. } | Self::Setting { name, .. } => {
                (name.as_str(), "")
            }
            Self::Hook { event, .. } => (event.as_str(), ""),
            Self::Credential {
                member_name,
                fingerprint,
                ..
            } => (member_name.as_str(), fingerprint.as_str()),
            Self::Environment { .. } | Self::Sessions { .. } => ("", ""),
        };
        let project = place.project.as_deref().unwrap_or_default();
        // No text of a report has two lines.
        sha256_hex(
            [kind, name, more, &place.class, &place.path, project]
                .join("\n")
                .as_bytes(),
        )
    }
}
