//! Files of editors.

use super::At::{Home, Machine, Project, Settings};
use super::Part::{Servers, Switch, Workspace};
use super::{File, HOOKS, MCP_SERVERS, Part, file};
use crate::client::Client::{Cursor, Vscode, Windsurf};
use crate::report::Scope;
use crate::syntax::Format::{Json, Jsonc};

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
const CURSOR_MACHINE: [&str; 3] = [
    "etc/cursor/hooks.json",
    "Library/Application Support/Cursor/hooks.json",
    "ProgramData/Cursor/hooks.json",
];

/// Every kind of file of editors.
pub(super) const FILES: &[File] = &[
    file(
        Cursor,
        Settings("Cursor/User/workspaceStorage/*/workspace.json"),
        "Cursor/workspace.json",
        Json,
        Scope::User,
        &[Workspace(&["folder"])],
    ),
    file(
        Cursor,
        Home(".cursor/mcp.json"),
        "~/.cursor/mcp.json",
        Jsonc,
        Scope::User,
        MCP_SERVERS,
    ),
    file(
        Cursor,
        Settings("Cursor/User/mcp.json"),
        "Cursor/User/mcp.json",
        Jsonc,
        Scope::User,
        SERVERS,
    ),
    file(
        Cursor,
        Settings("Cursor/User/settings.json"),
        "Cursor/User/settings.json",
        Jsonc,
        Scope::User,
        VSCODE_SETTINGS,
    ),
    file(
        Cursor,
        Home(".cursor/hooks.json"),
        "~/.cursor/hooks.json",
        Jsonc,
        Scope::User,
        HOOKS,
    ),
    file(
        Cursor,
        Project(".cursor/mcp.json"),
        "P/.cursor/mcp.json",
        Jsonc,
        Scope::Project,
        MCP_SERVERS,
    ),
    file(
        Cursor,
        Project(".cursor/hooks.json"),
        "P/.cursor/hooks.json",
        Jsonc,
        Scope::Project,
        HOOKS,
    ),
    file(
        Cursor,
        Machine(CURSOR_MACHINE),
        "cursor/hooks.json",
        Jsonc,
        Scope::Managed,
        HOOKS,
    ),
    file(
        Vscode,
        Settings("Code/User/workspaceStorage/*/workspace.json"),
        "Code/workspace.json",
        Json,
        Scope::User,
        &[Workspace(&["folder"])],
    ),
    file(
        Vscode,
        Settings("Code/User/mcp.json"),
        "Code/User/mcp.json",
        Jsonc,
        Scope::User,
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code/User/profiles/*/mcp.json"),
        "Code/User/profiles/*/mcp.json",
        Jsonc,
        Scope::User,
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code/User/settings.json"),
        "Code/User/settings.json",
        Jsonc,
        Scope::User,
        VSCODE_SETTINGS,
    ),
    file(
        Vscode,
        Settings("Code - Insiders/User/mcp.json"),
        "Code - Insiders/User/mcp.json",
        Jsonc,
        Scope::User,
        SERVERS,
    ),
    file(
        Vscode,
        Settings("Code - Insiders/User/settings.json"),
        "Code - Insiders/User/settings.json",
        Jsonc,
        Scope::User,
        VSCODE_SETTINGS,
    ),
    file(
        Vscode,
        Home(".copilot/mcp-config.json"),
        "~/.copilot/mcp-config.json",
        Jsonc,
        Scope::User,
        MCP_SERVERS,
    ),
    file(
        Vscode,
        Home(".copilot/hooks/*.json"),
        "~/.copilot/hooks/*.json",
        Jsonc,
        Scope::User,
        HOOKS,
    ),
    file(
        Vscode,
        Project(".vscode/mcp.json"),
        "P/.vscode/mcp.json",
        Jsonc,
        Scope::Project,
        SERVERS,
    ),
    file(
        Vscode,
        Project("*.code-workspace"),
        "P/*.code-workspace",
        Jsonc,
        Scope::Project,
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
        Scope::Project,
        &[Servers(&["customizations", "vscode", "mcp", "servers"])],
    ),
    file(
        Vscode,
        Project(".github/hooks/*.json"),
        "P/.github/hooks/*.json",
        Jsonc,
        Scope::Project,
        HOOKS,
    ),
    file(
        Windsurf,
        Settings("Windsurf/User/workspaceStorage/*/workspace.json"),
        "Windsurf/workspace.json",
        Json,
        Scope::User,
        &[Workspace(&["folder"])],
    ),
    file(
        Windsurf,
        Home(".codeium/windsurf/mcp_config.json"),
        "~/.codeium/windsurf/mcp_config.json",
        Jsonc,
        Scope::User,
        MCP_SERVERS,
    ),
    file(
        Windsurf,
        Project(".windsurf/mcp.json"),
        "P/.windsurf/mcp.json",
        Jsonc,
        Scope::Project,
        MCP_SERVERS,
    ),
];
