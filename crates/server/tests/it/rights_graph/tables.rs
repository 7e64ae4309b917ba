//! What the rows of each table that decides rights are to this net.
//!
//! Keeps GR-4.

use crate::areas_beside;
use crate::support::App;

/// A table.
pub struct Table {
    pub name: &'static str,
    /// The columns that name a row of an organization.
    pub key: &'static [&'static str],
    pub rows: Rows,
}

/// What its rows are.
pub enum Rows {
    /// Doors to somebody's rights, or what opens and shuts them: `doors.rs` reads them.
    Doors,
    /// Something else that decides; whoever calls an operation with one of these scopes may change it.
    Things {
        scopes: &'static [&'static str],
        /// Why that is no growth of rights.
        why: &'static str,
    },
}

const fn doors(name: &'static str, key: &'static [&'static str]) -> Table {
    let rows = Rows::Doors;
    Table { name, key, rows }
}

pub const fn things(
    name: &'static str,
    key: &'static [&'static str],
    scopes: &'static [&'static str],
    why: &'static str,
) -> Table {
    let rows = Rows::Things { scopes, why };
    Table { name, key, rows }
}

/// Returns the tables that decide rights of a program: those of the product, and those of areas beside it.
pub fn of_program(app: &App) -> Vec<&'static Table> {
    TABLES
        .iter()
        .chain(areas_beside::tables(app.kernel.areas()))
        .collect()
}

/// Returns the table of a name.
pub fn of_name(name: &str) -> &'static Table {
    let mut all = TABLES
        .iter()
        .chain(areas_beside::tables(areas_beside::every_area()));
    all.find(|table| table.name == name)
        .unwrap_or_else(|| panic!("{name} is no table of the graph"))
}

/// Those who change what an area beside the product has.
pub const OPERATIONS: &[&str] = &["operations:write"];
const DIRECTORY: &[&str] = &["directory:write"];
const POLICIES: &[&str] = &["policies:write"];
/// Those who look after machines, those who end their own, those by which they enrol, and machines themselves: kinds of principals without a role.
const FLEET: &[&str] = &["fleet:write", "fleet:enrol_self", "enrolment_token", "device"];
const RELEASES: &[&str] = &["managed_config:write", "managed_config:rollback"];
const SKILLS: &[&str] = &["registry:write"];
/// Those who can end sessions: by name, with their user or account, or with their client.
const ENDINGS: &[&str] = &[
    "mcp:revoke",
    "mcp:write",
    "directory:write",
    "service_accounts:write",
    "workload_trusts:write",
];

/// Every table of `ALL.rights()`, in its order.
pub const TABLES: &[Table] = &[
    things(
        "approval_delegations",
        &["id"],
        &["mcp_approvals:decide", "mcp_approvals:write"],
        "who votes in somebody's name may decide themselves; a delegation gives nobody a right (AP-19)",
    ),
    things(
        "approval_routes",
        &[],
        &["mcp_approvals:write"],
        "a route says of those who may decide which do; it gives nobody a right (AP-13)",
    ),
    things(
        "approvals",
        &["id"],
        &[
            "mcp_approvals:decide",
            "mcp_approvals:request",
            "mcp_approvals:write",
            "policies:decide",
        ],
        "an approval lets one call of somebody else pass a policy, or a server stand approved; it gives nobody a role or a scope",
    ),
    things(
        "automation_settings",
        &[],
        &["automation_settings:write"],
        "settings bound everybody alike; the one role that they give is member, and whoever gives it could give it to a user (SE-6)",
    ),
    things(
        "device_bypasses",
        &["id"],
        &[
            "fleet:bypass",
            "fleet:write",
            "fleet:enrol_self",
            "directory:write",
            "service_accounts:write",
            "device",
        ],
        "a bypass lets calls pass on one machine for a day at most; it gives nobody a role or a scope (FL-13)",
    ),
    doors("device_gateway_identities", &["device_id"]),
    things(
        "device_profiles",
        &["device_id", "profile_id"],
        &["managed_config:write", "fleet:write", "fleet:enrol_self"],
        "what machines are configured with is what the scope is for; values in the clear go only where it was said by a holder of \
         managed_config:pull (DC-2)",
    ),
    things(
        "device_skills",
        &["device_id", "item_id"],
        &["registry:write", "fleet:write", "fleet:enrol_self"],
        "which skills there are is what the scope is for, and everybody may install each of them",
    ),
    things(
        "device_tokens",
        &["id"],
        FLEET,
        "a device has no role: its token, beside a proof of its key, opens what it says of itself",
    ),
    // A device has no role; whom gateways take it for is behind it.
    doors("devices", &["id"]),
    things(
        "directory_ended",
        &["kind", "id"],
        DIRECTORY,
        "it gives a record that comes back its id, and nothing that it could do (DI-11)",
    ),
    things(
        "directory_groups",
        &["id"],
        DIRECTORY,
        "a group is a name until somebody is a member of it, which is an edge of its own",
    ),
    things(
        "directory_held_changes",
        &["id"],
        DIRECTORY,
        "a change that waits gives nothing until somebody applies it who holds what it gives (DI-10)",
    ),
    doors("directory_memberships", &["group_id", "user_id"]),
    things(
        "directory_state",
        &[],
        DIRECTORY,
        "it says which versions are seen; each that is seen is compared by itself",
    ),
    doors("directory_users", &["id"]),
    things(
        "ended_words",
        &["kind", "record_id", "match_key"],
        &["directory:write", "service_accounts:write", "resources:write"],
        "words of deleted records keep guards, and open nothing",
    ),
    things(
        "enrolment_tokens",
        &["id"],
        &["fleet:enrol", "fleet:enrol_self", "enrolment_token"],
        "it makes devices, which have no role; it counts its uses itself",
    ),
    doors("gateway_tokens", &["id"]),
    doors("identity_mappings", &["id"]),
    things(
        "managed_config_profiles",
        &["id"],
        RELEASES,
        "what machines are configured with is what these scopes are for",
    ),
    things(
        "managed_config_releases",
        &["id"],
        RELEASES,
        "what machines are configured with is what these scopes are for",
    ),
    things(
        "managed_config_targets",
        &["profile_id", "target_id"],
        &[
            "managed_config:pull",
            "managed_config:write",
            "fleet:write",
            "fleet:enrol_self",
            "device",
        ],
        "a report says what a machine holds and whose it is; it changes nothing that a machine gets",
    ),
    things(
        "mcp_session_cuts",
        &["subject", "cut_seq"],
        ENDINGS,
        "a cut ends sessions; that one is taken back would be an edge",
    ),
    things(
        "mcp_session_kinds",
        &["kind"],
        &[],
        "a list of the pairs of actor and scopes that sessions have",
    ),
    things(
        "mcp_session_tombstones",
        &["grant_key"],
        ENDINGS,
        "a grant that ended; that one is forgotten would be an edge",
    ),
    doors("mcp_sessions", &["id"]),
    things(
        "oauth_assertions",
        &["digest"],
        &[],
        "what served once; the token endpoint alone writes it",
    ),
    doors("oauth_clients", &["id"]),
    doors("oauth_codes", &["digest"]),
    things(
        "oauth_exchanges",
        &["digest"],
        &[],
        "how often a token was exchanged; the token endpoint alone writes it",
    ),
    doors("oauth_former_identities", &["issuer", "user_id"]),
    doors("oauth_identities", &["issuer", "subject"]),
    doors("oauth_refresh_tokens", &["lookup_id"]),
    doors("oauth_relinkings", &["issuer", "user_id"]),
    doors("oauth_renamed_users", &["user_id"]),
    things(
        "organization_keys",
        &["version"],
        &["resource_credentials:write"],
        "the key under which the first secret of an organization is wrapped",
    ),
    things("organizations", &[], &[], "no operation changes an organization"),
    things(
        "policies",
        &["id"],
        POLICIES,
        "what policies guard and whom they except is what this scope is for",
    ),
    things(
        "policy_revisions",
        &["policy_id", "revision"],
        POLICIES,
        "what policies guard and whom they except is what this scope is for",
    ),
    things(
        "policy_set_versions",
        &["sequence"],
        POLICIES,
        "which policies are in force",
    ),
    doors(
        "resource_credential_assignments",
        &["credential_id", "subject_kind", "subject_id"],
    ),
    things(
        "resource_credential_secrets",
        &["credential_id"],
        &["resource_credentials:write", "resources:write"],
        "a secret that somebody sent; whom it serves is an edge of its own",
    ),
    doors("resource_credentials", &["id"]),
    doors("resource_gateways", &["id"]),
    doors("resources", &["id"]),
    doors("service_account_tokens", &["id"]),
    doors("service_accounts", &["id"]),
    things(
        "skill_installs",
        &["id"],
        &["registry:install", "registry:write"],
        "where the caller installed a skill",
    ),
    things(
        "skill_items",
        &["id"],
        SKILLS,
        "which skills there are is what this scope is for",
    ),
    things(
        "skill_versions",
        &["item_id", "version"],
        SKILLS,
        "which skills there are is what this scope is for",
    ),
    things(
        "skill_words",
        &["item_id", "match_key"],
        SKILLS,
        "what skills are called is what this scope is for",
    ),
    doors("workload_trusts", &["id"]),
];
