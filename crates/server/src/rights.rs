//! The tables whose rows decide what somebody may do.
//!
//! One list, which the proofs of rows, the note of a closed store, `store check` and `store restore` read: a table that one of them knew and
//! another did not would be a right that changes or comes back unnoticed. Every table of the store stands in one of the
//! two lists below, which a test compares with the schema, so that a new area has to say of which kind its tables are.
//!
//! INVARIANT RW-1: each table of the store either decides rights, and then the note of a closed store covers it, or
//! is listed with the reason why it does not.
//!
//! Absent on purpose: columns. All of them count, those of later migrations included, except for large content that the
//! row names by its digest, and, in proofs, for what only records what was seen.

use provost_kernel::proofs::Deciding;

const fn whole(table: &'static str) -> Deciding {
    except(table, &[])
}

/// A table with columns that record what was seen and decide nothing.
const fn except(table: &'static str, loose: &'static [&'static str]) -> Deciding {
    Deciding {
        table,
        without: &[],
        loose,
    }
}

/// Every table that decides what somebody may do, in alphabetical order.
pub const DECIDING: &[Deciding] = &[
    whole("automation_settings"),
    whole("directory_ended"),
    whole("directory_groups"),
    whole("directory_held_changes"),
    whole("directory_memberships"),
    whole("directory_state"),
    whole("directory_users"),
    whole("ended_words"),
    except("gateway_tokens", &["last_used_at", "last_used_ip"]),
    whole("identity_mappings"),
    whole("managed_config_profiles"),
    whole("managed_config_releases"),
    except("managed_config_targets", &["last_reported_at"]),
    whole("mcp_session_cuts"),
    whole("mcp_session_kinds"),
    whole("mcp_session_tombstones"),
    except("mcp_sessions", &["last_used_at", "last_used_ip"]),
    whole("oauth_assertions"),
    whole("oauth_clients"),
    whole("oauth_codes"),
    whole("oauth_exchanges"),
    whole("oauth_former_identities"),
    whole("oauth_identities"),
    whole("oauth_refresh_tokens"),
    whole("oauth_relinkings"),
    whole("oauth_renamed_users"),
    whole("organization_keys"),
    whole("organizations"),
    whole("policies"),
    whole("policy_revisions"),
    whole("policy_set_versions"),
    whole("resource_credential_assignments"),
    whole("resource_credential_secrets"),
    except("resource_credentials", &["last_used_at"]),
    whole("resource_gateways"),
    whole("resources"),
    except(
        "service_account_tokens",
        &["last_used_at", "last_used_ip", "expiry_warned_days"],
    ),
    whole("service_accounts"),
    whole("skill_installs"),
    whole("skill_items"),
    whole("skill_versions"),
];

/// Every other table, and why nobody's rights hang on its rows.
pub const OTHER: &[(&str, &str)] = &[
    (
        "audit_checkpoints",
        "signed, and measured against the lines beside the keys",
    ),
    ("audit_entries", "a chain of hashes whose head has a MAC"),
    ("audit_nodes", "follow from the entries"),
    ("backtest_checkpoints", "where a run goes on"),
    ("backtest_questions", "what a run was asked"),
    ("backtest_results", "what a run found"),
    ("backtests", "runs, which change nothing that lives"),
    ("chain_heads", "each has a MAC"),
    (
        "directory_import_names",
        "an import that is not finished shows nothing",
    ),
    ("directory_import_refusals", "sentences about a file"),
    ("directory_import_warnings", "sentences about a file"),
    (
        "directory_imports",
        "an import that is not finished shows nothing",
    ),
    ("event_epochs", "where the numbering of events began anew"),
    ("history_chunks", "what happened"),
    ("history_heads", "numbers of chunks"),
    ("history_imports", "which bodies arrived"),
    ("history_segments", "name files by their digests"),
    (
        "idempotency_keys",
        "answers that were given; a secret in one opens with its caller's key alone",
    ),
    (
        "installation",
        "facts about the store, the note of a closed one among them",
    ),
    ("jobs", "work that is due; what it does is judged when it is done"),
    ("key_checks", "compared with the keys at each start"),
    ("key_readers", "which server has read which key"),
    (
        "managed_config_contents",
        "named by the digests in signed releases",
    ),
    (
        "managed_config_pulls",
        "hours of which the audit log knows who fetched",
    ),
    ("mcp_session_actor_parts", "an index of texts"),
    ("mcp_session_actors", "names for lists"),
    ("mcp_session_clients", "names for lists"),
    ("mcp_session_parts", "an index of texts"),
    ("outbox", "events that were told"),
    ("resource_credential_checks", "what a check of a credential found"),
    (
        "right_proofs",
        "a MAC of each row that decides, and their sum stands with the heads",
    ),
    ("skill_contents", "named by the digests in signed manifests"),
    (
        "unresolved_events",
        "how many events named nobody, for whoever reads a policy",
    ),
];
