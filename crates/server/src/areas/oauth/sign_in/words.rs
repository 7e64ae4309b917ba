//! Scopes in the words of people who do not know them.

use provost_kernel::auth::{SCOPES, ScopeSet};

/// What an application could do in one part of the product.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The part.
    pub title: &'static str,
    /// Its acts.
    pub acts: Vec<Act>,
}

/// One act.
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    /// As a sentence without its end.
    pub words: String,
    /// Whether it is one that nothing else includes (D3.2).
    pub is_far_reaching: bool,
}

/// Toolset, title, and what is read and changed there.
const PARTS: [(&str, &str, &str); 21] = [
    ("audit", "Audit log", "the audit log"),
    (
        "automation_settings",
        "Settings",
        "the settings of the organization",
    ),
    ("capabilities", "Capabilities", "what callers can do"),
    ("compliance", "Compliance", "compliance records"),
    ("directory", "Directory", "users and groups"),
    ("events", "Events", "events"),
    ("findings", "Findings", "findings"),
    ("fleet", "Fleet", "machines and their state"),
    ("governance", "Governance", "rules of governance"),
    ("inventory", "Inventory", "the inventory"),
    ("investigations", "Investigations", "investigations"),
    ("llm_gateway", "LLM gateway", "the LLM gateway"),
    (
        "managed_config",
        "Managed configuration",
        "configuration profiles and their releases",
    ),
    ("mcp", "MCP sessions and clients", "sessions and clients of MCP"),
    ("mcp_approvals", "MCP approvals", "approvals of MCP servers"),
    ("operations", "Operations", "operations"),
    ("policies", "Policies", "policies"),
    ("registry", "Skill registry", "skills"),
    (
        "resource_credentials",
        "Credentials",
        "records of credentials, not the secrets in them",
    ),
    ("resources", "Resources", "resources"),
    ("service_accounts", "Service accounts", "service accounts"),
];

/// Scopes that are neither `read` nor `write`.
const ACTS: [(&str, &str); 15] = [
    ("audit:export", "Export the whole audit log"),
    (
        "llm_gateway:resolve",
        "Find out who people and groups are by their names",
    ),
    (
        "managed_config:pull",
        "Fetch configuration with its secret values, as machines do",
    ),
    (
        "managed_config:rollback",
        "Put machines back to an earlier configuration",
    ),
    ("mcp:revoke", "End sessions of other people and programs"),
    ("policies:backtest", "Run policies against recorded history"),
    ("policies:decide", "Have requests decided, and recorded as yours"),
    (
        "policies:history",
        "Read what was decided and recorded, about everybody",
    ),
    (
        "policies:import_history",
        "Add events of the past to the recorded history",
    ),
    (
        "policies:inspect",
        "Run policies that read recorded content, and see what they find in it",
    ),
    ("registry:install", "Install and remove skills in your name"),
    (
        "resources:connect",
        "Connect to resources with the credentials that you may use",
    ),
    (
        "service_accounts:rotate",
        "Replace tokens of service accounts and receive the new ones",
    ),
    (
        "service_accounts:rotate_any",
        "Replace tokens of any service account, also of those that may do more than you",
    ),
    (
        "service_accounts:rotate_self",
        "Replace the token of the account that is used",
    ),
];

/// Returns what a set of scopes allows, part by part.
pub fn groups(scopes: ScopeSet) -> Vec<Group> {
    let scopes = scopes.closed();
    let group = |(toolset, title, what): &(&'static str, &'static str, &'static str)| {
        let mut acts = Vec::new();
        if scopes.has(&format!("{toolset}:write")) {
            acts.push(plain(format!("Read and change {what}")));
        } else if scopes.has(&format!("{toolset}:read")) {
            acts.push(plain(format!("Read {what}")));
        }
        let further = ACTS
            .iter()
            .filter(|(scope, _)| scope.split(':').next() == Some(toolset) && scopes.has(scope));
        acts.extend(further.map(|(_, words)| Act {
            words: (*words).to_owned(),
            is_far_reaching: true,
        }));
        (!acts.is_empty()).then_some(Group { title, acts })
    };
    PARTS.iter().filter_map(group).collect()
}

fn plain(words: String) -> Act {
    Act {
        words,
        is_far_reaching: false,
    }
}

/// Returns the scopes that only read: what a client gets that does not say what it wants.
pub fn reading() -> ScopeSet {
    let names: Vec<&str> = SCOPES
        .into_iter()
        .filter(|name| name.ends_with(":read"))
        .collect();
    ScopeSet::of(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_has_words() {
        for scope in SCOPES {
            let (toolset, verb) = scope.split_once(':').unwrap();
            let found = groups(ScopeSet::of(&[scope]));
            assert_eq!(found.len(), 1, "{scope}");
            let expected = PARTS.iter().find(|part| part.0 == toolset).unwrap().1;
            assert_eq!((found[0].title, found[0].acts.len()), (expected, 1), "{scope}");
            assert_eq!(
                found[0].acts[0].is_far_reaching,
                !["read", "write"].contains(&verb),
                "{scope}"
            );
        }
        assert_eq!(groups(ScopeSet::all()).len(), PARTS.len());
        assert_eq!(groups(ScopeSet::default()), []);
    }

    #[test]
    fn what_writes_is_said_to_read_too() {
        let found = groups(ScopeSet::of(&["policies:write", "policies:backtest"]));
        let words: Vec<_> = found[0].acts.iter().map(|act| act.words.as_str()).collect();
        assert_eq!(
            words,
            [
                "Read and change policies",
                "Run policies against recorded history"
            ]
        );
    }
}
