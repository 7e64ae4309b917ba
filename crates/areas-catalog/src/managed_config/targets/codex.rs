//! Codex: `requirements.toml` binds every user of the machine, the machine's `config.toml` holds values that a
//! user's own configuration overrides.
//!
//! Not `managed_config.toml`: the program takes its sandbox and approval members for requirements.
//!
//! The program does not start with a requirement that it cannot read; which those are was asked of it (the folder `probed`).

use super::weakening::Rule::{self, Forbids, Free, Limits, LimitsTo, Off, On, Pinned, Verdicts};
use super::{compiled, refused, toml_text};
use crate::managed_config::content::{Class, Content, Fault};
use jsonschema::Validator;
use std::sync::LazyLock;

/// The enforced file and the defaults file.
pub const FILES: [&str; 2] = ["requirements.toml", "config.toml"];

static REQUIREMENTS: LazyLock<Validator> =
    LazyLock::new(|| compiled(include_str!("codex_requirements.schema.json")));
static DEFAULTS: LazyLock<Validator> = LazyLock::new(|| compiled(include_str!("codex_defaults.schema.json")));

/// Returns what the program would not take.
pub fn faults(content: &Content) -> Vec<Fault> {
    let mut faults = refused(&REQUIREMENTS, content, Class::Enforced);
    faults.extend(refused(&DEFAULTS, content, Class::Defaults));
    for class in [Class::Enforced, Class::Defaults] {
        faults.extend(toml_text::faults(
            &content.of(class),
            &format!("/{}", class.as_str()),
        ));
    }
    faults
}

/// What the members mean for enforcement.
pub const RULES: &[(&str, Rule)] = &[
    ("/allowed_approval_policies", Limits),
    ("/allowed_approvals_reviewers", Limits),
    ("/allowed_sandbox_modes", Limits),
    ("/allowed_web_search_modes", Limits),
    ("/allowed_login_methods", Limits),
    ("/allowed_chatgpt_workspaces", Limits),
    ("/allowed_permission_profiles", LimitsTo),
    ("/allow_managed_hooks_only", On),
    ("/allow_browser_and_computer_use", Off),
    ("/allow_appshots", Off),
    ("/allow_remote_control", Off),
    ("/default_permissions", Pinned),
    ("/enforce_residency", Pinned),
    ("/guardian_policy_config", Pinned),
    ("/guardian_extra_policy", Pinned),
    ("/features/*", Pinned),
    ("/mcp_servers", LimitsTo),
    ("/rules/prefix_rules", Forbids),
    ("/hooks/*", Forbids),
    ("/permissions/filesystem/deny_read", Forbids),
    ("/experimental_network/enabled", On),
    ("/experimental_network/managed_allowed_domains_only", On),
    ("/experimental_network/allow_local_binding", Off),
    ("/experimental_network/allow_upstream_proxy", Off),
    ("/experimental_network/dangerously_allow_non_loopback_proxy", Off),
    ("/experimental_network/dangerously_allow_all_unix_sockets", Off),
    ("/experimental_network/domains", Verdicts("allow")),
    ("/experimental_network/unix_sockets", Verdicts("allow")),
    ("/experimental_network/allowed_domains", Rule::Allows),
    ("/experimental_network/denied_domains", Forbids),
    ("/additional_developer_instructions", Free),
];
