//! Claude Code: `managed-settings.json` binds every user of the machine; the defaults are the starting values
//! of a user's own `settings.json`.
//!
//! The schema says what no type tells, and what the program takes without a word although it has no effect; what it was seen
//! to do with each type stands in the folder `probed`.

use super::weakening::Rule::{self, Allows, Forbids, Free, Guards, Limits, Off, On, Ranked};
use super::{compiled, only_enforced, refused};
use crate::managed_config::content::{Class, Content, Fault};
use jsonschema::Validator;
use std::sync::LazyLock;

/// The enforced file and the defaults file.
pub const FILES: [&str; 2] = ["managed-settings.json", "settings.json"];

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("claude_code.schema.json")));

/// Members that the program reads from managed settings alone.
const MANAGED_ONLY: &[&str] = &[
    "allowManagedHooksOnly",
    "allowManagedMcpServersOnly",
    "allowManagedPermissionRulesOnly",
    "allowedMarketplaces",
    "blockedMarketplaces",
    "disableSideloadFlags",
    "managedMcpServers",
    "policyHelper",
    "strictKnownMarketplaces",
    "strictPluginOnlyCustomization",
];

/// Returns what the program would not take.
pub fn faults(content: &Content) -> Vec<Fault> {
    let mut faults = refused(&SCHEMA, content, Class::Enforced);
    faults.extend(refused(&SCHEMA, content, Class::Defaults));
    faults.extend(only_enforced(content, MANAGED_ONLY));
    faults
}

/// What the members mean for enforcement.
pub const RULES: &[(&str, Rule)] = &[
    ("/permissions/allow", Allows),
    ("/permissions/deny", Forbids),
    ("/permissions/ask", Forbids),
    ("/permissions/additionalDirectories", Allows),
    ("/permissions/blockReadsExemptPaths", Allows),
    (
        "/permissions/defaultMode",
        Ranked(&[
            "plan",
            "default",
            "dontAsk",
            "acceptEdits",
            "auto",
            "bypassPermissions",
        ]),
    ),
    ("/permissions/disableBypassPermissionsMode", Guards("disable")),
    ("/permissions/disableAutoMode", Guards("disable")),
    ("/permissions/denyInsteadOfPrompting", On),
    ("/permissions/blockReadsOutsideWorkingDirectories", On),
    ("/permissions/blockWritesOutsideWorkingDirectories", On),
    ("/disableAutoMode", Guards("disable")),
    ("/allowManagedHooksOnly", On),
    ("/allowManagedMcpServersOnly", On),
    ("/allowManagedPermissionRulesOnly", On),
    ("/strictPluginOnlyCustomization", On),
    ("/disableAllHooks", Off),
    ("/disableSideloadFlags", On),
    ("/disableCommandPluginSources", On),
    ("/disableSkillShellExecution", On),
    ("/disableRemoteControl", On),
    ("/disableClaudeAiConnectors", On),
    ("/enforceAvailableModels", On),
    ("/forceRemoteSettingsRefresh", On),
    ("/enableAllProjectMcpServers", Off),
    ("/allowAllClaudeAiMcps", Off),
    ("/allowClaudeInChromeWithManagedMcp", Off),
    ("/skipDangerousModePermissionPrompt", Off),
    ("/skipAutoPermissionPrompt", Off),
    ("/skipWebFetchPreflight", Off),
    ("/enabledMcpjsonServers", Allows),
    ("/disabledMcpjsonServers", Forbids),
    ("/allowedMcpServers", Limits),
    ("/deniedMcpServers", Forbids),
    ("/availableModels", Limits),
    ("/deniedModels", Forbids),
    ("/allowedProviders", Limits),
    ("/allowedHttpHookUrls", Limits),
    ("/httpHookAllowedEnvVars", Limits),
    ("/strictKnownMarketplaces", Limits),
    ("/allowedMarketplaces", Limits),
    ("/allowedChannelPlugins", Limits),
    ("/blockedMarketplaces", Forbids),
    ("/hooks/*", Forbids),
    ("/sandbox/enabled", On),
    ("/sandbox/failIfUnavailable", On),
    ("/sandbox/autoAllowBashIfSandboxed", Off),
    ("/sandbox/allowUnsandboxedCommands", Off),
    ("/sandbox/enableWeakerNestedSandbox", Off),
    ("/sandbox/enableWeakerNetworkIsolation", Off),
    ("/sandbox/allowNestedUserNamespaces", Off),
    ("/sandbox/allowAppleEvents", Off),
    ("/sandbox/excludedCommands", Allows),
    ("/sandbox/network/allowManagedDomainsOnly", On),
    ("/sandbox/network/strictAllowlist", On),
    ("/sandbox/network/allowAllUnixSockets", Off),
    ("/sandbox/network/allowLocalBinding", Off),
    ("/sandbox/network/allowedDomains", Allows),
    ("/sandbox/network/deniedDomains", Forbids),
    ("/sandbox/network/allowUnixSockets", Allows),
    ("/sandbox/network/allowMachLookup", Allows),
    ("/sandbox/filesystem/disabled", Off),
    ("/sandbox/filesystem/allowManagedReadPathsOnly", On),
    ("/sandbox/filesystem/allowWrite", Allows),
    ("/sandbox/filesystem/allowRead", Allows),
    ("/sandbox/filesystem/denyWrite", Forbids),
    ("/sandbox/filesystem/denyRead", Forbids),
    ("/sandbox/credentials/files", Forbids),
    ("/sandbox/credentials/envVars", Forbids),
    ("/sandbox/credentials/allowPlaintextInject", Off),
    ("/sandbox/ignoreViolations/*", Allows),
    ("/$schema", Free),
    ("/companyAnnouncements", Free),
    ("/outputStyle", Free),
    ("/theme", Free),
];
