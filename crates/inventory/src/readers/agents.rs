//! Files of command lines, and of programs that are no editors alone.

use super::At::{Home, Machine, Project};
use super::Part::{Hooks, Projects, ServerOfLine, Servers, ServersOfAgent, Switch};
use super::{File, HOOKS, MCP_SERVERS, Part, file};
use crate::client::Client::{Codex, Continue, GeminiCli, Goose, Opencode, Zed};
use crate::report::Scope;
use crate::syntax::Format::{Head, Json, Jsonc, Toml, Yaml};

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
    // By its source: it lies over an entry of this name.
    ServerOfLine(&["mcp", "serverCommand"], "mcp"),
    // By its source: what a subagent has instead of its own, which lies over entries of the same names.
    Servers(&["agents", "overrides", "*", "mcpServers"]),
    Hooks(&["hooks"]),
    Switch(&["hooksConfig", "enabled"], "hooksConfig.enabled", &[]),
    Switch(&["mcp", "allowed"], "mcp.allowed", &[]),
    Switch(&["mcp", "excluded"], "mcp.excluded", &[]),
];
/// By its source: what the heads of subagents bring along, which lies over entries of the same names for all of a conversation.
const GEMINI_HEAD: &[Part] = &[ServersOfAgent("mcp_servers")];
const OPENCODE: &[Part] = &[
    Servers(&["mcp"]),
    Switch(&["permission"], "permission", &["allow", "ask", "deny"]),
];
const CONTINUE: &[Part] = &[
    Servers(&["mcpServers"]),
    Servers(&["experimental", "modelContextProtocolServers"]),
];
const GEMINI_MACHINE: [&str; 3] = [
    "etc/gemini-cli/settings.json",
    "Library/Application Support/GeminiCli/settings.json",
    "ProgramData/gemini-cli/settings.json",
];
/// By its source: what counts before everything else that somebody wrote.
const GEMINI_DEFAULTS: [&str; 3] = [
    "etc/gemini-cli/system-defaults.json",
    "Library/Application Support/GeminiCli/system-defaults.json",
    "ProgramData/gemini-cli/system-defaults.json",
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

/// Every kind of file of the others. Those that name projects stand before those in projects.
pub(super) const FILES: &[File] = &[
    file(
        Codex,
        Home(".codex/config.toml"),
        "~/.codex/config.toml",
        Toml,
        Scope::User,
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Home(".codex/*.config.toml"),
        "~/.codex/*.config.toml",
        Toml,
        Scope::User,
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Home(".codex/hooks.json"),
        "~/.codex/hooks.json",
        Json,
        Scope::User,
        HOOKS,
    ),
    file(
        Codex,
        Project(".codex/config.toml"),
        "P/.codex/config.toml",
        Toml,
        Scope::Project,
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_MACHINE),
        "codex/config.toml",
        Toml,
        Scope::Managed,
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_REQUIREMENTS),
        "codex/requirements.toml",
        Toml,
        Scope::Managed,
        CODEX_CONFIG,
    ),
    file(
        Codex,
        Machine(CODEX_MANAGED),
        "codex/managed_config.toml",
        Toml,
        Scope::Managed,
        CODEX_CONFIG,
    ),
    file(
        GeminiCli,
        Home(".gemini/settings.json"),
        "~/.gemini/settings.json",
        Jsonc,
        Scope::User,
        GEMINI_SETTINGS,
    ),
    file(
        GeminiCli,
        Home(".gemini/trustedFolders.json"),
        "~/.gemini/trustedFolders.json",
        Jsonc,
        Scope::User,
        &[Projects(&[])],
    ),
    file(
        GeminiCli,
        Home(".gemini/extensions/*/gemini-extension.json"),
        "~/.gemini/extensions/*/gemini-extension.json",
        Jsonc,
        Scope::Plugin,
        MCP_SERVERS,
    ),
    file(
        GeminiCli,
        Home(".gemini/agents/*.md"),
        "~/.gemini/agents/*.md",
        Head,
        Scope::User,
        GEMINI_HEAD,
    ),
    file(
        GeminiCli,
        Home(".gemini/extensions/*/agents/*.md"),
        "~/.gemini/extensions/*/agents/*.md",
        Head,
        Scope::Plugin,
        GEMINI_HEAD,
    ),
    file(
        GeminiCli,
        Project(".gemini/settings.json"),
        "P/.gemini/settings.json",
        Jsonc,
        Scope::Project,
        GEMINI_SETTINGS,
    ),
    file(
        GeminiCli,
        Project(".gemini/agents/*.md"),
        "P/.gemini/agents/*.md",
        Head,
        Scope::Project,
        GEMINI_HEAD,
    ),
    file(
        GeminiCli,
        Machine(GEMINI_MACHINE),
        "gemini-cli/settings.json",
        Jsonc,
        Scope::Managed,
        GEMINI_SETTINGS,
    ),
    file(
        GeminiCli,
        Machine(GEMINI_DEFAULTS),
        "gemini-cli/system-defaults.json",
        Jsonc,
        Scope::Managed,
        GEMINI_SETTINGS,
    ),
    file(
        Zed,
        Home(".config/zed/settings.json"),
        "~/.config/zed/settings.json",
        Jsonc,
        Scope::User,
        &[Servers(&["context_servers"])],
    ),
    file(
        Zed,
        Project(".zed/settings.json"),
        "P/.zed/settings.json",
        Jsonc,
        Scope::Project,
        &[Servers(&["context_servers"])],
    ),
    file(
        Goose,
        Home(".config/goose/config.yaml"),
        "~/.config/goose/config.yaml",
        Yaml,
        Scope::User,
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
        Scope::User,
        OPENCODE,
    ),
    file(
        Opencode,
        Home(".config/opencode/opencode.jsonc"),
        "~/.config/opencode/opencode.jsonc",
        Jsonc,
        Scope::User,
        OPENCODE,
    ),
    file(
        Opencode,
        Project("opencode.json"),
        "P/opencode.json",
        Jsonc,
        Scope::Project,
        OPENCODE,
    ),
    file(
        Opencode,
        Project("opencode.jsonc"),
        "P/opencode.jsonc",
        Jsonc,
        Scope::Project,
        OPENCODE,
    ),
    file(
        Continue,
        Home(".continue/config.yaml"),
        "~/.continue/config.yaml",
        Yaml,
        Scope::User,
        CONTINUE,
    ),
    file(
        Continue,
        Home(".continue/config.json"),
        "~/.continue/config.json",
        Jsonc,
        Scope::User,
        CONTINUE,
    ),
    file(
        Continue,
        Home(".continue/mcpServers/*.yaml"),
        "~/.continue/mcpServers/*.yaml",
        Yaml,
        Scope::User,
        CONTINUE,
    ),
    file(
        Continue,
        Project(".continue/mcpServers/*.yaml"),
        "P/.continue/mcpServers/*.yaml",
        Yaml,
        Scope::Project,
        CONTINUE,
    ),
];
