//! Which files are read of each client, and what in them: data. Ours.
//!
//! Rows rest on documents and on other scanners' lists where no program could be run; `cargo xtask clients inventory` says which were.

use crate::client::Client;
use crate::syntax::Format;
use At::{Home, Machine, Project, Settings};
use Client::{
    ClaudeCode, ClaudeDesktop, Codex, Continue, Cursor, GeminiCli, Goose, Opencode, Vscode, Windsurf, Zed,
};
use Format::{Json, Jsonc, Toml, Yaml};
use Part::{Environment, Extensions, Hooks, Projects, Servers, ServersOfProjects, Switch, Workspace};

/// Where a file is; `*` stands for one name, `**` for up to five folders.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// Below the home.
    Home(&'static str),
    /// Below the home's folder for settings of programs.
    Settings(&'static str),
    /// Below a project.
    Project(&'static str),
    /// Of the machine: on Linux, macOS and Windows.
    Machine([&'static str; 3]),
}

/// What is read in a file. A pointer is the names of members; `*` stands for each.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Servers(&'static [&'static str]),
    /// Servers in the record of a project, whose path is the first name that `*` stands for.
    ServersOfProjects(&'static [&'static str]),
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
    pub(crate) scope: &'static str,
    pub(crate) parts: &'static [Part],
}

/// A folder whose folders are skills.
pub(crate) struct Folder {
    pub(crate) client: Client,
    pub(crate) at: At,
    pub(crate) class: &'static str,
}

/// Files that are only counted.
pub(crate) struct Kept {
    pub(crate) client: Client,
    pub(crate) at: At,
    pub(crate) class: &'static str,
}

const fn file(
    client: Client,
    at: At,
    class: &'static str,
    format: Format,
    scope: &'static str,
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
const CLAUDE_SETTINGS: &[Part] = &[
    Hooks(&["hooks"]),
    Environment(&["env"]),
    Extensions(&["enabledPlugins"]),
    Switch(&["disableAllHooks"], "disableAllHooks", &[]),
    Switch(&["allowManagedHooksOnly"], "allowManagedHooksOnly", &[]),
    Switch(&["enableAllProjectMcpServers"], "enableAllProjectMcpServers", &[]),
    Switch(&["apiKeyHelper"], "apiKeyHelper", &[]),
    Switch(&["sandbox", "enabled"], "sandbox.enabled", &[]),
    Switch(&["permissions", "allow"], "permissions.allow", &[]),
    Switch(&["permissions", "deny"], "permissions.deny", &[]),
    Switch(
        &["permissions", "defaultMode"],
        "permissions.defaultMode",
        &["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk"],
    ),
];
const CODEX_CONFIG: &[Part] = &[
    Servers(&["mcp_servers"]),
    Projects(&["projects"]),
    Hooks(&["hooks"]),
    Switch(
        &["approval_policy"],
        "approval_policy",
        &["untrusted", "on-failure", "on-request", "never"],
    ),
    Switch(
        &["sandbox_mode"],
        "sandbox_mode",
        &["read-only", "workspace-write", "danger-full-access"],
    ),
    Switch(&["features"], "features", &[]),
    Switch(&["otel"], "otel", &[]),
    Switch(&["allow_managed_hooks_only"], "allow_managed_hooks_only", &[]),
];
const GEMINI_SETTINGS: &[Part] = &[
    Servers(&["mcpServers"]),
    Hooks(&["hooks"]),
    Switch(&["hooksConfig", "enabled"], "hooksConfig.enabled", &[]),
    Switch(&["mcp", "allowed"], "mcp.allowed", &[]),
    Switch(&["mcp", "excluded"], "mcp.excluded", &[]),
];
const VSCODE_SETTINGS: &[Part] = &[
    Servers(&["mcp", "servers"]),
    Servers(&["mcp.servers"]),
    Switch(&["chat.tools.autoApprove"], "chat.tools.autoApprove", &[]),
    Switch(
        &["chat.tools.global.autoApprove"],
        "chat.tools.global.autoApprove",
        &[],
    ),
    Switch(
        &["chat.mcp.access"],
        "chat.mcp.access",
        &["none", "registry", "all"],
    ),
    Switch(&["chat.mcp.discovery.enabled"], "chat.mcp.discovery.enabled", &[]),
];
const SERVERS: &[Part] = &[Servers(&["servers"]), Servers(&["mcpServers"])];
const HOOKS: &[Part] = &[Hooks(&["hooks"])];
const OPENCODE: &[Part] = &[
    Servers(&["mcp"]),
    Switch(&["permission"], "permission", &["allow", "ask", "deny"]),
];
const CONTINUE: &[Part] = &[
    Servers(&["mcpServers"]),
    Servers(&["experimental", "modelContextProtocolServers"]),
];
const CLAUDE_MACHINE: [&str; 3] = [
    "etc/claude-code/managed-settings.json",
    "Library/Application Support/ClaudeCode/managed-settings.json",
    "Program Files/ClaudeCode/managed-settings.json",
];
const CLAUDE_MACHINE_PARTS: [&str; 3] = [
    "etc/claude-code/managed-settings.d/*.json",
    "Library/Application Support/ClaudeCode/managed-settings.d/*.json",
    "Program Files/ClaudeCode/managed-settings.d/*.json",
];
const CLAUDE_MACHINE_MCP: [&str; 3] = [
    "etc/claude-code/managed-mcp.json",
    "Library/Application Support/ClaudeCode/managed-mcp.json",
    "Program Files/ClaudeCode/managed-mcp.json",
];
const CURSOR_MACHINE: [&str; 3] = [
    "etc/cursor/hooks.json",
    "Library/Application Support/Cursor/hooks.json",
    "ProgramData/Cursor/hooks.json",
];
const GEMINI_MACHINE: [&str; 3] = [
    "etc/gemini-cli/settings.json",
    "Library/Application Support/GeminiCli/settings.json",
    "ProgramData/gemini-cli/settings.json",
];
const CODEX_MACHINE: [&str; 3] = [
    "etc/codex/config.toml",
    "etc/codex/config.toml",
    "ProgramData/OpenAI/Codex/config.toml",
];
const CODEX_REQUIREMENTS: [&str; 3] = [
    "etc/codex/requirements.toml",
    "etc/codex/requirements.toml",
    "ProgramData/OpenAI/Codex/requirements.toml",
];
const CODEX_MANAGED: [&str; 3] = [
    "etc/codex/managed_config.toml",
    "etc/codex/managed_config.toml",
    "ProgramData/OpenAI/Codex/managed_config.toml",
];

/// Every kind of file. Those that name projects stand before those in projects.
pub(crate) const FILES: &[File] = &[
    file(
        ClaudeCode,
        Home(".claude.json"),
        "~/.claude.json",
        Json,
        "user",
        &[
            Servers(&["mcpServers"]),
            ServersOfProjects(&["projects", "*", "mcpServers"]),
            Projects(&["projects"]),
        ],
    ),
    file(
        ClaudeCode,
        Home(".claude/settings.json"),
        "~/.claude/settings.json",
        Json,
        "user",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Home(".claude/settings.local.json"),
        "~/.claude/settings.local.json",
        Json,
        "user",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Home(".claude/plugins/**/.mcp.json"),
        "~/.claude/plugins/**/.mcp.json",
        Json,
        "plugin",
        MCP_SERVERS,
    ),
    file(
        ClaudeCode,
        Home(".claude/plugins/**/plugin.json"),
        "~/.claude/plugins/**/plugin.json",
        Json,
        "plugin",
        MCP_SERVERS,
    ),
    file(
        ClaudeCode,
        Project(".mcp.json"),
        "P/.mcp.json",
        Json,
        "project",
        MCP_SERVERS,
    ),
    file(
        ClaudeCode,
        Project(".claude/settings.json"),
        "P/.claude/settings.json",
        Json,
        "project",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Project(".claude/settings.local.json"),
        "P/.claude/settings.local.json",
        Json,
        "project",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE),
        "managed-settings.json",
        Json,
        "managed",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE_PARTS),
        "managed-settings.d/*.json",
        Json,
        "managed",
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE_MCP),
        "managed-mcp.json",
        Json,
        "managed",
        MCP_SERVERS,
    ),
    file(
        ClaudeDesktop,
        Settings("Claude/claude_desktop_config.json"),
        "claude_desktop_config.json",
        Json,
        "user",
        MCP_SERVERS,
    ),
    file(
        Codex,
        Home(".codex/config.toml"),
        "~/.codex/config.toml",
        Toml,
        "user",
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Home(".codex/*.config.toml"),
        "~/.codex/*.config.toml",
        Toml,
        "user",
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Home(".codex/hooks.json"),
        "~/.codex/hooks.json",
        Json,
        "user",
        HOOKS,
    ),
    file(
        Codex,
        Project(".codex/config.toml"),
        "P/.codex/config.toml",
        Toml,
        "project",
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_MACHINE),
        "codex/config.toml",
        Toml,
        "managed",
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_REQUIREMENTS),
        "codex/requirements.toml",
        Toml,
        "managed",
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_MANAGED),
        "codex/managed_config.toml",
        Toml,
        "managed",
        CODEX_CONFIG,
    ),
    file(
        Cursor,
        Settings("Cursor/User/workspaceStorage/*/workspace.json"),
        "Cursor/workspace.json",
        Json,
        "user",
        &[Workspace(&["folder"])],
    ),
    file(
        Cursor,
        Home(".cursor/mcp.json"),
        "~/.cursor/mcp.json",
        Jsonc,
        "user",
        MCP_SERVERS,
    ),
    file(
        Cursor,
        Settings("Cursor/User/mcp.json"),
        "Cursor/User/mcp.json",
        Jsonc,
        "user",
        SERVERS,
    ),
    file(
        Cursor,
        Settings("Cursor/User/settings.json"),
        "Cursor/User/settings.json",
        Jsonc,
        "user",
        VSCODE_SETTINGS,
    ),
    file(
        Cursor,
        Home(".cursor/hooks.json"),
        "~/.cursor/hooks.json",
        Jsonc,
        "user",
        HOOKS,
    ),
    file(
        Cursor,
        Project(".cursor/mcp.json"),
        "P/.cursor/mcp.json",
        Jsonc,
        "project",
        MCP_SERVERS,
    ),
    file(
        Cursor,
        Project(".cursor/hooks.json"),
        "P/.cursor/hooks.json",
        Jsonc,
        "project",
        HOOKS,
    ),
    file(
        Cursor,
        Machine(CURSOR_MACHINE),
        "cursor/hooks.json",
        Jsonc,
        "managed",
        HOOKS,
    ),
    file(
        Vscode,
        Settings("Code/User/workspaceStorage/*/workspace.json"),
        "Code/workspace.json",
        Json,
        "user",
        &[Workspace(&["folder"])],
    ),
    file(
        Vscode,
        Settings("Code/User/mcp.json"),
        "Code/User/mcp.json",
        Jsonc,
        "user",
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code/User/profiles/*/mcp.json"),
        "Code/User/profiles/*/mcp.json",
        Jsonc,
        "user",
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code/User/settings.json"),
        "Code/User/settings.json",
        Jsonc,
        "user",
        VSCODE_SETTINGS,
    ),
    file(
        Vscode,
        Settings("Code - Insiders/User/mcp.json"),
        "Code - Insiders/User/mcp.json",
        Jsonc,
        "user",
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code - Insiders/User/settings.json"),
        "Code - Insiders/User/settings.json",
        Jsonc,
        "user",
        VSCODE_SETTINGS,
    ),
    file(
        Vscode,
        Home(".copilot/mcp-config.json"),
        "~/.copilot/mcp-config.json",
        Jsonc,
        "user",
        MCP_SERVERS,
    ),
    file(
        Vscode,
        Home(".copilot/hooks/*.json"),
        "~/.copilot/hooks/*.json",
        Jsonc,
        "user",
        HOOKS,
    ),
    file(
        Vscode,
        Project(".vscode/mcp.json"),
        "P/.vscode/mcp.json",
        Jsonc,
        "project",
        SERVERS,
    ),
    file(
        Vscode,
        Project("*.code-workspace"),
        "P/*.code-workspace",
        Jsonc,
        "project",
        &[
            Servers(&["settings", "mcp", "servers"]),
            Servers(&["settings", "mcp.servers"]),
            Servers(&["mcp", "servers"]),
        ],
    ),
    file(
        Vscode,
        Project(".devcontainer/devcontainer.json"),
        "P/.devcontainer/devcontainer.json",
        Jsonc,
        "project",
        &[Servers(&["customizations", "vscode", "mcp", "servers"])],
    ),
    file(
        Vscode,
        Project(".github/hooks/*.json"),
        "P/.github/hooks/*.json",
        Jsonc,
        "project",
        HOOKS,
    ),
    file(
        Windsurf,
        Settings("Windsurf/User/workspaceStorage/*/workspace.json"),
        "Windsurf/workspace.json",
        Json,
        "user",
        &[Workspace(&["folder"])],
    ),
    file(
        Windsurf,
        Home(".codeium/windsurf/mcp_config.json"),
        "~/.codeium/windsurf/mcp_config.json",
        Jsonc,
        "user",
        MCP_SERVERS,
    ),
    file(
        Windsurf,
        Project(".windsurf/mcp.json"),
        "P/.windsurf/mcp.json",
        Jsonc,
        "project",
        MCP_SERVERS,
    ),
    file(
        GeminiCli,
        Home(".gemini/settings.json"),
        "~/.gemini/settings.json",
        Jsonc,
        "user",
        GEMINI_SETTINGS,
    ),
    file(
        GeminiCli,
        Home(".gemini/trustedFolders.json"),
        "~/.gemini/trustedFolders.json",
        Jsonc,
        "user",
        &[Projects(&[])],
    ),
    file(
        GeminiCli,
        Home(".gemini/extensions/*/gemini-extension.json"),
        "~/.gemini/extensions/*/gemini-extension.json",
        Jsonc,
        "plugin",
        MCP_SERVERS,
    ),
    file(
        GeminiCli,
        Project(".gemini/settings.json"),
        "P/.gemini/settings.json",
        Jsonc,
        "project",
        GEMINI_SETTINGS,
    ),
    file(
        GeminiCli,
        Machine(GEMINI_MACHINE),
        "gemini-cli/settings.json",
        Jsonc,
        "managed",
        GEMINI_SETTINGS,
    ),
    file(
        Zed,
        Home(".config/zed/settings.json"),
        "~/.config/zed/settings.json",
        Jsonc,
        "user",
        &[Servers(&["context_servers"])],
    ),
    file(
        Zed,
        Project(".zed/settings.json"),
        "P/.zed/settings.json",
        Jsonc,
        "project",
        &[Servers(&["context_servers"])],
    ),
    file(
        Goose,
        Home(".config/goose/config.yaml"),
        "~/.config/goose/config.yaml",
        Yaml,
        "user",
        &[
            Servers(&["extensions"]),
            Switch(
                &["GOOSE_MODE"],
                "GOOSE_MODE",
                &["auto", "approve", "smart_approve", "chat"],
            ),
        ],
    ),
    file(
        Opencode,
        Home(".config/opencode/opencode.json"),
        "~/.config/opencode/opencode.json",
        Jsonc,
        "user",
        OPENCODE,
    ),
    file(
        Opencode,
        Home(".config/opencode/opencode.jsonc"),
        "~/.config/opencode/opencode.jsonc",
        Jsonc,
        "user",
        OPENCODE,
    ),
    file(
        Opencode,
        Project("opencode.json"),
        "P/opencode.json",
        Jsonc,
        "project",
        OPENCODE,
    ),
    file(
        Opencode,
        Project("opencode.jsonc"),
        "P/opencode.jsonc",
        Jsonc,
        "project",
        OPENCODE,
    ),
    file(
        Continue,
        Home(".continue/config.yaml"),
        "~/.continue/config.yaml",
        Yaml,
        "user",
        CONTINUE,
    ),
    file(
        Continue,
        Home(".continue/config.json"),
        "~/.continue/config.json",
        Jsonc,
        "user",
        CONTINUE,
    ),
    file(
        Continue,
        Home(".continue/mcpServers/*.yaml"),
        "~/.continue/mcpServers/*.yaml",
        Yaml,
        "user",
        CONTINUE,
    ),
    file(
        Continue,
        Project(".continue/mcpServers/*.yaml"),
        "P/.continue/mcpServers/*.yaml",
        Yaml,
        "project",
        CONTINUE,
    ),
];

const fn skills(client: Client, at: At, class: &'static str) -> Folder {
    Folder { client, at, class }
}

/// Every folder of skills.
pub(crate) const SKILLS: &[Folder] = &[
    skills(ClaudeCode, Home(".claude/skills"), "~/.claude/skills"),
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
pub(crate) const SESSIONS: &[Kept] = &[
    Kept {
        client: ClaudeCode,
        at: Home(".claude/projects/*/*.jsonl"),
        class: "~/.claude/projects/*/*.jsonl",
    },
    Kept {
        client: Codex,
        at: Home(".codex/sessions/*/*/*/*.jsonl"),
        class: "~/.codex/sessions/**",
    },
];
