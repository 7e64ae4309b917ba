//! Which files are read of each client, and what in them: data.
//!
//! Claude Code, Codex and Gemini CLI were seen to write what is read of them; the other rows rest on documents and on the lists of other
//! scanners, because their programs could not be run.

mod agents;
mod claude;
mod editors;

use crate::client::Client;
use crate::report::Scope;
use crate::syntax::Format;
use At::{Home, Machine, Plugin, Project, Upwards};
use Client::{ClaudeCode, Codex, Cursor, GeminiCli, Vscode, Windsurf};
use Part::{Hooks, Servers};

/// Where a file is; `*` stands for one name, `**` for up to five folders.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// Below the home.
    Home(&'static str),
    /// Below the home's folder for settings of programs.
    Settings(&'static str),
    /// Below a project.
    Project(&'static str),
    /// Below a project, below the home, and below every folder above them.
    Upwards(&'static str),
    /// In a plugin of Claude Code that is installed; where nothing says which ones are, below the folder of all that have been.
    Plugin(&'static str, &'static str),
    /// Of the machine: on Linux, macOS and Windows.
    Machine([&'static str; 3]),
}

/// What is read in a file. A pointer is the names of members; `*` stands for each.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Servers(&'static [&'static str]),
    /// The command line of one server, which has this name.
    ServerOfLine(&'static [&'static str], &'static str),
    /// Servers in the record of a project, whose path is the first name that `*` stands for.
    ServersOfProjects(&'static [&'static str]),
    /// Servers of a plugin, with or without a member around them.
    ServersOfPlugin,
    /// The manifest of a plugin, which has its servers or names files that have them.
    Manifest,
    /// Servers in the head of a subagent: names of those that are configured elsewhere, and such as it has for itself.
    ServersOfAgent(&'static str),
    /// Where plugins are installed.
    Plugins,
    /// The manifest of an extension of Claude Desktop.
    Bundle,
    /// The manifest of an editor's extension, which may bring servers.
    Providers,
    /// Paths of projects as names of members.
    Projects(&'static [&'static str]),
    /// The address of a project's folder.
    Workspace(&'static [&'static str]),
    Hooks(&'static [&'static str]),
    Environment(&'static [&'static str]),
    Extensions(&'static [&'static str]),
    /// A setting, and the words of it that may be shown.
    Switch(&'static [&'static str], &'static str, &'static [&'static str]),
}

/// One kind of file.
pub(crate) struct File {
    pub(crate) client: Client,
    pub(crate) at: At,
    pub(crate) class: &'static str,
    pub(crate) format: Format,
    pub(crate) scope: Scope,
    pub(crate) parts: &'static [Part],
}

impl Part {
    /// Says whether it names projects, in which files of every client are looked for.
    pub(crate) fn names_projects(self) -> bool {
        matches!(self, Self::Projects(_) | Self::Workspace(_))
    }

    /// Says whether servers stand in it, or it says where more of them are.
    pub(crate) fn leads_to_servers(self) -> bool {
        match self {
            Self::Servers(_)
            | Self::ServerOfLine(..)
            | Self::ServersOfProjects(_)
            | Self::ServersOfPlugin
            | Self::Manifest
            | Self::ServersOfAgent(_)
            | Self::Plugins
            | Self::Bundle
            | Self::Providers
            | Self::Projects(_)
            | Self::Workspace(_) => true,
            Self::Hooks(_) | Self::Environment(_) | Self::Extensions(_) | Self::Switch(..) => false,
        }
    }
}

impl File {
    /// Says whether projects are missing where it cannot be read.
    pub(crate) fn names_projects(&self) -> bool {
        self.parts.iter().any(|part| part.names_projects())
    }

    /// Says whether servers stand in it, or it says where more of them are.
    pub(crate) fn leads_to_servers(&self) -> bool {
        self.parts.iter().any(|part| part.leads_to_servers())
    }
}

/// Says whether files of a client are looked for in projects.
pub(crate) fn reads_projects(client: Client) -> bool {
    let files = FILES.into_iter().flatten().map(|file| (file.client, file.at));
    let skills = SKILLS.iter().map(|folder| (folder.client, folder.at));
    files
        .chain(skills)
        .any(|(of, at)| of == client && matches!(at, Project(_) | Upwards(_)))
}

/// A folder whose folders are skills.
pub(crate) struct Folder {
    pub(crate) client: Client,
    pub(crate) at: At,
    pub(crate) class: &'static str,
}

/// Files that are only counted.
pub(crate) struct SessionFiles {
    pub(crate) client: Client,
    pub(crate) at: At,
    pub(crate) class: &'static str,
}

const fn file(
    client: Client,
    at: At,
    class: &'static str,
    format: Format,
    scope: Scope,
    parts: &'static [Part],
) -> File {
    File {
        client,
        at,
        class,
        format,
        scope,
        parts,
    }
}

const MCP_SERVERS: &[Part] = &[Servers(&["mcpServers"])];
const HOOKS: &[Part] = &[Hooks(&["hooks"])];

/// Every kind of file.
pub(crate) const FILES: [&[File]; 3] = [claude::FILES, agents::FILES, editors::FILES];

const fn skills(client: Client, at: At, class: &'static str) -> Folder {
    Folder { client, at, class }
}

/// Every folder of skills.
pub(crate) const SKILLS: &[Folder] = &[
    skills(ClaudeCode, Home(".claude/skills"), "~/.claude/skills"),
    skills(
        ClaudeCode,
        Plugin("skills", "**/skills"),
        "~/.claude/plugins/**/skills",
    ),
    skills(ClaudeCode, Project(".claude/skills"), "P/.claude/skills"),
    skills(Codex, Home(".codex/skills"), "~/.codex/skills"),
    skills(Codex, Home(".agents/skills"), "~/.agents/skills"),
    skills(Codex, Project(".agents/skills"), "P/.agents/skills"),
    skills(Codex, Machine(["etc/codex/skills"; 3]), "/etc/codex/skills"),
    skills(Cursor, Home(".cursor/skills"), "~/.cursor/skills"),
    skills(Vscode, Home(".copilot/skills"), "~/.copilot/skills"),
    skills(Vscode, Project(".github/skills"), "P/.github/skills"),
    skills(
        Windsurf,
        Home(".codeium/windsurf/skills"),
        "~/.codeium/windsurf/skills",
    ),
    skills(GeminiCli, Home(".gemini/skills"), "~/.gemini/skills"),
];

/// Conversations that clients keep: their number says that a client is used.
pub(crate) const SESSIONS: &[SessionFiles] = &[
    SessionFiles {
        client: ClaudeCode,
        at: Home(".claude/projects/*/*.jsonl"),
        class: "~/.claude/projects/*/*.jsonl",
    },
    SessionFiles {
        client: Codex,
        at: Home(".codex/sessions/*/*/*/*.jsonl"),
        class: "~/.codex/sessions/**",
    },
];
