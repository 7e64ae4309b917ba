//! What a scan found. Nothing in these types holds a value of an environment, a header, an argument or a credential.

use crate::client::Client;
use crate::disk::Fault;
use crate::readers::reads_projects;
use crate::secrets::Pattern;
use provost_words::digest::{document_sha256, sha256_hex};
use provost_words::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How exactly a version is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Pin {
    /// One release.
    Exact,
    /// Whatever is the newest, or the newest of a range.
    Floating,
    /// One content.
    Digest,
    /// It has no versions.
    None,
}

impl Pin {
    /// Returns its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Floating => "floating",
            Self::Digest => "digest",
            Self::None => "none",
        }
    }
}

word! {
    /// Whose configuration it is.
    pub enum Scope {
        /// The account's.
        User = "user",
        /// A project's.
        Project = "project",
        /// The machine's, or an administrator's.
        Managed = "managed",
        /// A plugin's or an extension's.
        Plugin = "plugin",
    }
}

word! {
    /// How a server is reached.
    pub enum Transport {
        /// It is started.
        Stdio = "stdio",
        /// By HTTP.
        Http = "http",
        /// By server-sent events.
        Sse = "sse",
        /// Its client has it within itself.
        Builtin = "builtin",
    }
}

word! {
    /// What is special about a command.
    pub enum Shape {
        /// Only a shell understands it.
        Pipeline = "pipeline",
    }
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The kind of file: `~/.claude.json`, `P/.mcp.json`.
    pub class: &'static str,
    /// The fingerprint of its path.
    pub path: String,
    /// The fingerprint of the project's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What the project's folder is called, once [`Scan::name_projects`] said so; never printed, and in no digest of a scan.
    #[serde(skip)]
    pub project_name: Option<String>,
}

/// What is known of a configured server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFacts {
    /// Its identity.
    pub key: String,
    /// How its client calls it.
    pub configured_name: String,
    /// Whose configuration names it.
    pub scope: Scope,
    /// How it is reached.
    pub transport: Transport,
    /// The version, where one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How exactly.
    pub version_pin: Pin,
    /// What is special about its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Whether the key does not say wholly what runs.
    pub weak: bool,
    /// The kinds of its arguments.
    pub arg_shapes: Vec<String>,
    /// The names of its variables.
    pub env_names: Vec<String>,
    /// The names of its headers.
    pub header_names: Vec<String>,
    /// How many credentials stand in its configuration.
    pub secrets_inline: usize,
    /// Whether its client starts it.
    pub enabled: bool,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Observation {
    /// An MCP server in a configuration.
    McpServer(ServerFacts),
    /// A skill.
    #[serde(rename_all = "camelCase")]
    Skill {
        /// The name of its folder.
        name: String,
        /// The digest of its files, as the registry makes it; absent where not all could be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A plugin or an extension of a client.
    Extension {
        /// Its name.
        name: String,
        /// Whether its client loads it.
        enabled: bool,
    },
    /// Commands that a client runs at an event.
    Hook {
        /// The event.
        event: String,
        /// How many.
        commands: usize,
    },
    /// A setting that decides what a client may do.
    Setting {
        /// Its name.
        name: &'static str,
        /// A truth, a number of members, a known word, or `set`.
        value: String,
    },
    /// Names of variables that a client sets for everything that it starts.
    Environment {
        /// The names.
        names: Vec<String>,
    },
    /// A credential in a file.
    #[serde(rename_all = "camelCase")]
    Credential {
        /// What it looks like.
        pattern: Pattern,
        /// The member that holds it.
        member_name: String,
        /// Its fingerprint; of one of our own tokens the part that may be shown.
        fingerprint: String,
        /// The bits of the file's permissions, octal.
        file_mode: String,
        /// Whether everybody on the machine can read it.
        world_readable: bool,
    },
    /// Conversations that a client kept.
    Sessions {
        /// How many files.
        files: usize,
    },
}

/// An observation, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sighting {
    /// Where, without the path itself.
    pub place: Place,
    /// What.
    #[serde(flatten)]
    pub observation: Observation,
    /// The path on this machine; no part of a report.
    #[serde(skip)]
    pub file: PathBuf,
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SectionFault {
    /// Where.
    pub place: Place,
    /// Why.
    pub fault: Fault,
    /// The path on this machine; no part of a report.
    #[serde(skip)]
    pub file: PathBuf,
}

/// What was found of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The client.
    pub client: Client,
    /// The account whose home was read.
    pub user: String,
    /// The digest of the observations and faults.
    pub digest: String,
    /// Whether everything could be read.
    pub complete: bool,
    /// What could not.
    pub faults: Vec<SectionFault>,
    /// What was found.
    pub observations: Vec<Sighting>,
}

impl Section {
    pub(crate) fn new(
        client: Client,
        user: String,
        faults: Vec<SectionFault>,
        observations: Vec<Sighting>,
    ) -> Self {
        let said = serde_json::to_value((&observations, &faults)).map(|said| document_sha256(&said));
        Self {
            client,
            user,
            digest: format!("sha256:{}", said.unwrap_or_else(|_| sha256_hex(b""))),
            complete: faults.is_empty(),
            faults,
            observations,
        }
    }
}

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// One for each client that has left something.
    pub sections: Vec<Section>,
    /// Whether there may be projects in which nothing was looked for.
    #[serde(skip)]
    pub(crate) is_unsure: bool,
    /// What folders of projects are called, by the fingerprint of their paths.
    #[serde(skip)]
    pub(crate) project_names: BTreeMap<String, String>,
}

impl Scan {
    /// Says whether files of a client may be there although it has no section. A fault of another client hides none of its files, but for
    /// one by which projects are missing.
    pub fn may_miss(&self, client: Client) -> bool {
        self.is_unsure && reads_projects(client)
    }

    /// Has each observation of a project say what the project's folder is called, beside the fingerprint of its path (F3.6). Without it none
    /// does, and only projects that a client lists have a name.
    ///
    /// Keeps PV-2.
    #[must_use]
    pub fn name_projects(mut self) -> Self {
        for place in self
            .sections
            .iter_mut()
            .flat_map(|section| &mut section.observations)
        {
            let place = &mut place.place;
            let project = place.project.as_ref();
            place.project_name = project
                .and_then(|project| self.project_names.get(project))
                .cloned();
        }
        self
    }

    /// Returns the report as a server gets it, one member a line: what people read before they agree is what is sent.
    ///
    /// Errors: those of the writer, which has none for these types.
    pub fn report(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
