//! Files of Claude Code and Claude Desktop.

use super::At::{Home, Machine, Plugin, Project, Settings, Upwards};
use super::Part::{
    Bundle, Environment, Extensions, Hooks, Manifest, Plugins, Projects, Servers, ServersOfAgent,
    ServersOfPlugin, ServersOfProjects, Switch,
};
use super::{File, HOOKS, MCP_SERVERS, Part, file};
use crate::client::Client::{ClaudeCode, ClaudeDesktop};
use crate::report::Scope;
use crate::syntax::Format::{Head, Json};

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
/// What the heads of subagents, skills and commands bring along.
const HEAD: &[Part] = &[ServersOfAgent("mcpServers"), Hooks(&["hooks"])];
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
const CLAUDE_MACHINE_AGENTS: [&str; 3] = [
    "etc/claude-code/.claude/agents/**/*.md",
    "Library/Application Support/ClaudeCode/.claude/agents/**/*.md",
    "Program Files/ClaudeCode/.claude/agents/**/*.md",
];
const CLAUDE_MACHINE_MCP: [&str; 3] = [
    "etc/claude-code/managed-mcp.json",
    "Library/Application Support/ClaudeCode/managed-mcp.json",
    "Program Files/ClaudeCode/managed-mcp.json",
];

/// Every kind of file of Claude. Those that name projects stand before those in projects.
pub(super) const FILES: &[File] = &[
    file(
        ClaudeCode,
        Home(".claude.json"),
        "~/.claude.json",
        Json,
        Scope::User,
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
        Scope::User,
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Home(".claude/settings.local.json"),
        "~/.claude/settings.local.json",
        Json,
        Scope::User,
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Home(".claude/agents/**/*.md"),
        "~/.claude/agents/**/*.md",
        Head,
        Scope::User,
        HEAD,
    ),
    file(
        ClaudeCode,
        Home(".claude/commands/**/*.md"),
        "~/.claude/commands/**/*.md",
        Head,
        Scope::User,
        HEAD,
    ),
    file(
        ClaudeCode,
        Home(".claude/skills/*/SKILL.md"),
        "~/.claude/skills/*/SKILL.md",
        Head,
        Scope::User,
        HEAD,
    ),
    // Before what stands in plugins: a marketplace lies beside them with everything that it has on offer.
    file(
        ClaudeCode,
        Home(".claude/plugins/installed_plugins.json"),
        "~/.claude/plugins/installed_plugins.json",
        Json,
        Scope::Plugin,
        &[Plugins],
    ),
    file(
        ClaudeCode,
        Plugin(".mcp.json", "**/.mcp.json"),
        "~/.claude/plugins/**/.mcp.json",
        Json,
        Scope::Plugin,
        &[ServersOfPlugin],
    ),
    file(
        ClaudeCode,
        Plugin(".claude-plugin/plugin.json", "**/plugin.json"),
        "~/.claude/plugins/**/plugin.json",
        Json,
        Scope::Plugin,
        &[Manifest],
    ),
    file(
        ClaudeCode,
        Plugin("hooks/hooks.json", "**/hooks/hooks.json"),
        "~/.claude/plugins/**/hooks/hooks.json",
        Json,
        Scope::Plugin,
        HOOKS,
    ),
    file(
        ClaudeCode,
        Plugin("agents/**/*.md", "**/agents/**/*.md"),
        "~/.claude/plugins/**/agents/**/*.md",
        Head,
        Scope::Plugin,
        HEAD,
    ),
    // Seen with 2.1.197 and 2.1.329: read from the folder in which it is started up to the root, past the repository's and the home.
    file(
        ClaudeCode,
        Upwards(".mcp.json"),
        "P/.mcp.json",
        Json,
        Scope::Project,
        MCP_SERVERS,
    ),
    file(
        ClaudeCode,
        Project(".claude/settings.json"),
        "P/.claude/settings.json",
        Json,
        Scope::Project,
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Project(".claude/settings.local.json"),
        "P/.claude/settings.local.json",
        Json,
        Scope::Project,
        CLAUDE_SETTINGS,
    ),
    // Documented to be found from the folder in which it is started upwards.
    file(
        ClaudeCode,
        Upwards(".claude/agents/**/*.md"),
        "P/.claude/agents/**/*.md",
        Head,
        Scope::Project,
        HEAD,
    ),
    file(
        ClaudeCode,
        Project(".claude/commands/**/*.md"),
        "P/.claude/commands/**/*.md",
        Head,
        Scope::Project,
        HEAD,
    ),
    file(
        ClaudeCode,
        Project(".claude/skills/*/SKILL.md"),
        "P/.claude/skills/*/SKILL.md",
        Head,
        Scope::Project,
        HEAD,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE_AGENTS),
        "claude-code/agents/**/*.md",
        Head,
        Scope::Managed,
        HEAD,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE),
        "managed-settings.json",
        Json,
        Scope::Managed,
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE_PARTS),
        "managed-settings.d/*.json",
        Json,
        Scope::Managed,
        CLAUDE_SETTINGS,
    ),
    file(
        ClaudeCode,
        Machine(CLAUDE_MACHINE_MCP),
        "managed-mcp.json",
        Json,
        Scope::Managed,
        MCP_SERVERS,
    ),
    file(
        ClaudeDesktop,
        Settings("Claude/claude_desktop_config.json"),
        "claude_desktop_config.json",
        Json,
        Scope::User,
        MCP_SERVERS,
    ),
    // By the manifest's specification 0.3, and by what others read of these folders; no Claude Desktop was run.
    file(
        ClaudeDesktop,
        Settings("Claude/Claude Extensions/*/manifest.json"),
        "Claude Extensions/*/manifest.json",
        Json,
        Scope::Plugin,
        &[Bundle],
    ),
    // What a person filled in: credentials among it.
    file(
        ClaudeDesktop,
        Settings("Claude/Claude Extensions Settings/*.json"),
        "Claude Extensions Settings/*.json",
        Json,
        Scope::User,
        &[],
    ),
];
