//! Who calls, and what they may do (D3).
//!
//! Effective permission = what the role grants ∩ the account's scopes ∩ the token's scopes. "All of the role" leaves out
//! what the role grants only by name ([`Role::by_name`]). It is computed
//! from the store at every request and never kept in a token (D3.3). `write` implies `read` of the same
//! toolset; nothing implies a dangerous scope; there is no wildcard (D3.2).
//!
//! INVARIANT AU-1: a token acts in the one organization that its row names; the path must name the same.
//! INVARIANT AU-2: nobody mints more than they hold.

use crate::arrival::Arrival;
use crate::error::{Code, Error, Result};
use crate::id::TypedId;
use std::net::IpAddr;
use std::sync::LazyLock;

crate::id!(
    RequestIdText,
    "req",
    "Names one request in answers, logs and audit entries."
);

/// The key of an organization: chosen by its owner, part of every path (D1.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct OrganizationId(String);

impl OrganizationId {
    /// The chain that belongs to the installation and to no organization. No organization can have this key.
    pub const INSTALLATION: &'static str = "_installation";

    /// Returns the key if `text` is one: `[a-z0-9][a-z0-9._-]{0,62}`.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let tail_ok = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(b);
        let head_ok = bytes
            .first()
            .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (head_ok && bytes.len() <= 63 && bytes.iter().all(tail_ok)).then(|| Self(text.to_owned()))
    }

    /// Returns the key of the installation's own chain.
    pub fn installation() -> Self {
        Self(Self::INSTALLATION.to_owned())
    }

    /// Returns the key that a row holds.
    pub fn from_store(text: String) -> Self {
        Self(text)
    }

    /// Returns the key made from a name: lower case, other characters become `-`.
    pub fn slug(name: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in name.to_lowercase().chars() {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                slug.push(c);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(63);
        Self::parse(slug.trim_end_matches('-'))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for OrganizationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a principal is for. Ordered: viewer < operator < admin and viewer < auditor < admin (D3.1).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, extend("x-open" = true))]
pub enum Role {
    /// Everything.
    Admin,
    /// Reads all but identities and sessions; runs backtests and rollbacks.
    Operator,
    /// Reads everything but sessions; changes nothing.
    Auditor,
    /// Reads inventory, policies, backtests and fleet.
    Viewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Admin, Role::Operator, Role::Auditor, Role::Viewer];

    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Auditor => "auditor",
            Role::Viewer => "viewer",
        }
    }

    /// Returns the role of a word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }

    /// Says whether this role may do everything that `other` may.
    pub fn covers(self, other: Role) -> bool {
        self == other || self == Role::Admin || other == Role::Viewer
    }

    /// Returns the scopes that the role can use, and only where somebody named them: no "all of the role" holds them, and
    /// no user does, who has no list of scopes.
    ///
    /// Whoever pulls gets values in the clear, and whoever inspects asks recorded content one question after the other:
    /// admins may anyhow, everybody else is chosen for it (ADR 0046).
    pub fn by_name(self) -> ScopeSet {
        static BY_NAME: LazyLock<[ScopeSet; 4]> = LazyLock::new(|| {
            Role::ALL.map(|role| {
                let inspects = (role == Role::Operator).then_some("policies:inspect");
                let pulls = (role != Role::Viewer).then_some("managed_config:pull");
                let names: Vec<_> = inspects.into_iter().chain(pulls).collect();
                ScopeSet::of(&names)
            })
        });
        BY_NAME[self as usize]
    }

    /// Returns what "all of the role" holds.
    pub fn all_scopes(self) -> ScopeSet {
        self.grants().without(self.by_name())
    }

    /// Returns the scopes that the role can use at all.
    pub fn grants(self) -> ScopeSet {
        // Made once: this runs at every request.
        static GRANTS: LazyLock<[ScopeSet; 4]> = LazyLock::new(|| Role::ALL.map(Role::compute_grants));
        GRANTS[self as usize]
    }

    fn compute_grants(self) -> ScopeSet {
        const SELF_SERVICE: [&str; 2] = ["registry:install", "service_accounts:rotate_self"];
        let reads = |except: &[&str]| {
            let wanted = |s: &&str| s.ends_with(":read") && !except.contains(s);
            SCOPES.iter().copied().filter(wanted).collect::<Vec<_>>()
        };
        let names = match self {
            Role::Admin => return ScopeSet::all(),
            Role::Operator => [
                reads(&["service_accounts:read", "mcp:read"]),
                vec![
                    "managed_config:rollback",
                    "policies:backtest",
                    "policies:decide",
                    "policies:history",
                    "llm_gateway:resolve",
                    "resources:connect",
                ],
                self.by_name().to_list(),
                SELF_SERVICE.to_vec(),
            ]
            .concat(),
            Role::Auditor => [
                reads(&["mcp:read"]),
                vec!["audit:export", "policies:history"],
                self.by_name().to_list(),
                SELF_SERVICE.to_vec(),
            ]
            .concat(),
            Role::Viewer => [
                vec!["inventory:read", "policies:read", "fleet:read"],
                SELF_SERVICE.to_vec(),
            ]
            .concat(),
        };
        ScopeSet::of(&names)
    }
}

/// The areas of the specification, in its words; also OpenAPI tags and MCP toolsets (D3.2).
pub const TOOLSETS: [&str; 21] = [
    "mcp_approvals",
    "audit",
    "capabilities",
    "compliance",
    "findings",
    "fleet",
    "governance",
    "inventory",
    "investigations",
    "managed_config",
    "mcp",
    "registry",
    "operations",
    "policies",
    "service_accounts",
    "automation_settings",
    "llm_gateway",
    "resources",
    "resource_credentials",
    "directory",
    "events",
];

/// Every scope that exists, in alphabetical order: a name is found by bisection, and a set lists itself sorted.
/// A scope's place is its bit; bits are not stored anywhere.
pub const SCOPES: [&str; 57] = [
    "audit:export",
    "audit:read",
    "audit:write",
    "automation_settings:read",
    "automation_settings:write",
    "capabilities:read",
    "capabilities:write",
    "compliance:read",
    "compliance:write",
    "directory:read",
    "directory:write",
    "events:read",
    "events:write",
    "findings:read",
    "findings:write",
    "fleet:read",
    "fleet:write",
    "governance:read",
    "governance:write",
    "inventory:read",
    "inventory:write",
    "investigations:read",
    "investigations:write",
    "llm_gateway:read",
    "llm_gateway:resolve",
    "llm_gateway:write",
    "managed_config:pull",
    "managed_config:read",
    "managed_config:rollback",
    "managed_config:write",
    "mcp:read",
    "mcp:revoke",
    "mcp:write",
    "mcp_approvals:read",
    "mcp_approvals:write",
    "operations:read",
    "operations:write",
    "policies:backtest",
    "policies:decide",
    "policies:history",
    "policies:import_history",
    "policies:inspect",
    "policies:read",
    "policies:write",
    "registry:install",
    "registry:read",
    "registry:write",
    "resource_credentials:read",
    "resource_credentials:write",
    "resources:connect",
    "resources:read",
    "resources:write",
    "service_accounts:read",
    "service_accounts:rotate",
    "service_accounts:rotate_any",
    "service_accounts:rotate_self",
    "service_accounts:write",
];

/// A set of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScopeSet(u64);

impl ScopeSet {
    /// Returns every scope.
    pub fn all() -> Self {
        Self((1 << SCOPES.len()) - 1)
    }

    /// Returns the set of these names; unknown names are left out.
    pub fn of(names: &[&str]) -> Self {
        names
            .iter()
            .filter_map(|n| Self::bit(n))
            .fold(Self(0), |set, bit| Self(set.0 | bit))
    }

    /// Returns the set behind a stored, space-separated list. Names that no longer exist grant nothing.
    pub fn from_store(text: &str) -> Self {
        text.split(' ')
            .filter_map(Self::bit)
            .fold(Self(0), |set, bit| Self(set.0 | bit))
    }

    fn bit(name: &str) -> Option<u64> {
        SCOPES.binary_search(&name).ok().map(|place| 1 << place)
    }

    /// Says whether a name is a scope.
    pub fn is_known(name: &str) -> bool {
        Self::bit(name).is_some()
    }

    /// Adds `x:read` for every `x:write`.
    #[must_use]
    pub fn closed(self) -> Self {
        // The read scope that each scope implies, by place. Made once: this runs at every request.
        static IMPLIED: LazyLock<[u64; SCOPES.len()]> = LazyLock::new(|| {
            SCOPES.map(|name| {
                let toolset = name.strip_suffix(":write");
                toolset
                    .and_then(|t| ScopeSet::bit(&format!("{t}:read")))
                    .unwrap_or(0)
            })
        });
        self.places()
            .fold(self, |set, place| Self(set.0 | IMPLIED[place]))
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (0..SCOPES.len()).filter(move |place| self.0 & (1 << place) != 0)
    }

    /// Returns what both sets hold.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns what either set holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set without what another holds.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Says whether the set holds a scope.
    pub fn has(self, name: &str) -> bool {
        Self::bit(name).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Says whether the set holds everything that `other` holds.
    pub const fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the names in alphabetical order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.places().map(|place| SCOPES[place])
    }

    /// Returns the names as a sorted list.
    pub fn to_list(self) -> Vec<&'static str> {
        self.names().collect()
    }
}

/// What some principal can do, whoever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The role.
    pub role: Role,
    /// The effective scopes.
    pub scopes: ScopeSet,
    /// Whether the permission grows with the role: scopes of later areas are included.
    pub all_of_role: bool,
}

impl Permission {
    /// Computes the effective permission (D3.3). `None` stands for "all of the role".
    pub fn effective(role: Role, account: Option<ScopeSet>, token: Option<ScopeSet>) -> Self {
        let account_scopes = account.map_or_else(|| role.all_scopes(), ScopeSet::closed);
        let token_scopes = token.map_or_else(ScopeSet::all, ScopeSet::closed);
        Self {
            role,
            scopes: role.grants().and(account_scopes).and(token_scopes),
            all_of_role: account.is_none() && token.is_none(),
        }
    }

    /// Returns the scopes that its holder may give to others: those that they have, and with all of a role those that the
    /// role grants by name alone.
    pub fn gives(self) -> ScopeSet {
        if self.all_of_role {
            self.scopes.or(self.role.by_name())
        } else {
            self.scopes
        }
    }

    /// Returns the permission to do nothing.
    pub fn none() -> Self {
        Self {
            role: Role::Viewer,
            scopes: ScopeSet::default(),
            all_of_role: false,
        }
    }
}

/// Refuses a caller who would hand out more than they hold (decision I, D3.3).
///
/// Errors: `EscalationForbidden`.
pub fn may_mint(caller: Permission, minted: Permission) -> Result<()> {
    let covered = caller.role.covers(minted.role)
        && caller.gives().covers(minted.scopes)
        && (caller.all_of_role || !minted.all_of_role);
    if covered {
        return Ok(());
    }
    Err(Error::new(
        Code::EscalationForbidden,
        "the result could do more than the caller may; ask somebody who holds all of its role and scopes",
    ))
}

/// Who made a request, as its organization's store says now.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The organization that the credential belongs to.
    pub organization: OrganizationId,
    /// `service_account`, `system`, …
    pub kind: &'static str,
    /// The principal's id.
    pub id: String,
    /// The principal's name, for the audit log.
    pub display: String,
    /// What the principal may do by this credential.
    pub permission: Permission,
    /// Whether the principal has a role; without one every operation is refused (D2.6).
    pub has_role: bool,
    /// The credential's id and its public prefix.
    pub token: Option<TokenRef>,
    /// The credential is dead for everything but the replay of its own rotation (D5.5).
    pub replay_only: bool,
    /// The item that a gateway token is bound to; whoever calls with one may do nothing else (D10.6).
    pub item: Option<String>,
}

/// Names a credential without any of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRef {
    /// The token's id.
    pub id: String,
    /// The public prefix, for example `prov_sat_…`.
    pub prefix: String,
    /// Whether it is the principal's own, and not that of one item or of a session.
    pub is_own: bool,
}

impl Actor {
    /// Says whether the caller is this principal by a token of its own, and not by a session that another issuer, a client
    /// or a person began for it: what such a session does to the principal would outlive the session.
    pub fn is_itself(&self, id: &str) -> bool {
        self.id == id && self.token.as_ref().is_some_and(|token| token.is_own)
    }

    /// Returns the actor of the program's own work in an organization.
    pub fn system(organization: OrganizationId) -> Self {
        Self {
            organization,
            kind: "system",
            id: "system".into(),
            display: "Provost".into(),
            permission: Permission {
                role: Role::Admin,
                scopes: ScopeSet::all(),
                all_of_role: true,
            },
            has_role: true,
            token: None,
            replay_only: false,
            item: None,
        }
    }

    /// Says whether this is the principal of that id in that organization.
    pub fn is(&self, organization: &OrganizationId, id: &str) -> bool {
        self.organization == *organization && self.id == id
    }
}

/// Where a request came from; goes into the audit entry, decides nothing.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Our own id of the request.
    pub request_id: String,
    /// The client's `X-Request-Id` or `traceparent`, if it was printable and short.
    pub client_request_id: Option<String>,
    /// The client's address.
    pub source_ip: IpAddr,
    /// The client's `User-Agent`, cut at 256 characters.
    pub user_agent: Option<String>,
    /// What hears whether the caller was recognized. No part of what is written.
    pub arrival: Arrival,
}

impl Origin {
    /// Returns the origin of the program's own work.
    pub fn internal(now: crate::Timestamp, rng: &mut crate::entropy::UnitRng) -> Self {
        Self {
            request_id: RequestIdText::mint(now, rng).as_str().to_owned(),
            client_request_id: None,
            source_ip: IpAddr::from([127, 0, 0, 1]),
            user_agent: None,
            arrival: Arrival::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_roles_stand_where_they_are_looked_for() {
        assert!(SCOPES.is_sorted());
        assert!(
            Role::ALL
                .iter()
                .enumerate()
                .all(|(place, role)| *role as usize == place)
        );
    }

    #[test]
    fn every_toolset_can_be_read_and_written() {
        for toolset in TOOLSETS {
            assert!(ScopeSet::is_known(&format!("{toolset}:read")), "{toolset}");
            assert!(ScopeSet::is_known(&format!("{toolset}:write")), "{toolset}");
        }
        assert!(
            SCOPES
                .iter()
                .all(|s| TOOLSETS.contains(&s.split(':').next().unwrap()))
        );
    }

    #[test]
    fn a_set_holds_what_it_was_made_of_and_a_name_twice_is_a_name() {
        assert_eq!(ScopeSet::all().to_list(), SCOPES);
        assert_eq!(ScopeSet::default().to_list(), [""; 0]);
        assert!(!ScopeSet::is_known("audit:everything"));
        for (place, name) in SCOPES.into_iter().enumerate() {
            let other = SCOPES[(place + 1) % SCOPES.len()];
            let alone = ScopeSet::of(&[name, "no:scope", name]);
            assert_eq!(alone.to_list(), [name]);
            assert_eq!(alone, ScopeSet::from_store(&format!("{name} no:scope {name}")));
            assert!(alone.has(name) && !alone.has(other) && !alone.has("no:scope"));
            let both = ScopeSet::of(&[name, other]);
            assert_eq!(both, ScopeSet::from_store(&format!("{other} {name}")));
            assert!(both.covers(alone) && both.covers(both) && !alone.covers(both));
            assert!(!alone.covers(ScopeSet::of(&[other])), "{name}");
            assert_eq!(both.and(alone), alone);
            assert_eq!(alone.and(ScopeSet::of(&[other])), ScopeSet::default());
        }
    }

    #[test]
    fn roles_are_read_as_they_are_written() {
        let words = ["admin", "operator", "auditor", "viewer"];
        assert_eq!(Role::ALL.map(Role::as_str), words);
        assert_eq!(words.map(Role::parse), Role::ALL.map(Some));
        assert_eq!(Role::parse("Admin"), None);
    }

    #[test]
    fn what_a_role_grants_by_name_is_held_by_nobody_who_was_not_named() {
        let by_name = Role::ALL.map(|role| role.by_name().to_list());
        let [pulls, inspects] = ["managed_config:pull", "policies:inspect"];
        assert_eq!(by_name, [vec![pulls], vec![pulls, inspects], vec![pulls], vec![]]);
        for role in Role::ALL {
            let all = Permission::effective(role, None, None);
            assert!(role.grants().covers(role.by_name()));
            assert_eq!(all.scopes, role.all_scopes());
            assert_eq!(all.gives(), role.grants());
            // A token that names it changes nothing about an account that does not.
            let token = Permission::effective(role, None, Some(role.by_name()));
            assert_eq!(token.scopes, ScopeSet::default());
            let named = Permission::effective(role, Some(role.by_name()), None);
            assert_eq!(named.scopes, role.by_name());
            // Who has all of a role gives it; who has a list gives what is on it.
            assert!(may_mint(all, named).is_ok());
            let list = Permission::effective(role, Some(all.scopes), None);
            assert_eq!(may_mint(list, named).is_ok(), role == Role::Viewer);
            let lent = Permission::effective(role, None, Some(ScopeSet::all()));
            assert_eq!(may_mint(lent, named).is_ok(), role == Role::Viewer);
        }
    }

    #[test]
    fn a_role_grants_what_is_written_of_it() {
        let reads_and = |role: Role, acts: &[&str], unread: &[&str]| {
            let own = ["registry:install", "service_accounts:rotate_self"];
            let by_name = role.by_name();
            let is_granted = |name: &&str| {
                let is_read = by_name.has(name) || name.ends_with(":read") && !unread.contains(name);
                is_read || acts.contains(name) || own.contains(name)
            };
            let granted: Vec<&str> = SCOPES.into_iter().filter(is_granted).collect();
            assert_eq!(role.grants().to_list(), granted, "{role:?}");
        };
        assert_eq!(Role::Admin.grants(), ScopeSet::all());
        let acts_of_operators = [
            "llm_gateway:resolve",
            "managed_config:rollback",
            "policies:backtest",
            "policies:decide",
            "policies:history",
            "resources:connect",
        ];
        reads_and(
            Role::Operator,
            &acts_of_operators,
            &["service_accounts:read", "mcp:read"],
        );
        reads_and(
            Role::Auditor,
            &["audit:export", "policies:history"],
            &["mcp:read"],
        );
        assert_eq!(
            Role::Viewer.grants().to_list(),
            [
                "fleet:read",
                "inventory:read",
                "policies:read",
                "registry:install",
                "service_accounts:rotate_self"
            ]
        );
    }

    #[test]
    fn a_role_covers_itself_and_those_below_it() {
        for role in Role::ALL {
            for other in Role::ALL {
                let below: &[Role] = match role {
                    Role::Admin => &Role::ALL,
                    Role::Operator => &[Role::Operator, Role::Viewer],
                    Role::Auditor => &[Role::Auditor, Role::Viewer],
                    Role::Viewer => &[Role::Viewer],
                };
                assert_eq!(role.covers(other), below.contains(&other), "{role:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_permission_grows_with_its_role_only_where_nothing_bounds_it() {
        let bound = Some(ScopeSet::of(&["audit:read", "events:write"]));
        for (account, token, grows) in [
            (None, None, true),
            (bound, None, false),
            (None, bound, false),
            (bound, bound, false),
        ] {
            let permission = Permission::effective(Role::Admin, account, token);
            assert_eq!(permission.all_of_role, grows, "{account:?} {token:?}");
            let held = ["audit:read", "events:read", "events:write"];
            if grows {
                assert_eq!(permission.scopes, Role::Admin.all_scopes());
            } else {
                assert_eq!(permission.scopes.to_list(), held, "write implies read");
            }
        }
        let (one, other) = (ScopeSet::of(&["audit:read"]), ScopeSet::of(&["audit:write"]));
        let both = Permission::effective(Role::Admin, Some(one), Some(other));
        assert_eq!(both.scopes.to_list(), ["audit:read"]);
        assert_eq!(Permission::none().scopes, ScopeSet::default());
        assert!(!Permission::none().all_of_role);
    }

    /// Role, scopes and growth are three conditions: each alone refuses.
    #[test]
    fn minting_needs_the_role_and_the_scopes_and_the_growth() {
        let permission = |role, names: &[&str], all_of_role| Permission {
            role,
            scopes: ScopeSet::of(names),
            all_of_role,
        };
        let caller = permission(Role::Operator, &["audit:read", "events:read"], true);
        let may = |minted| may_mint(caller, minted).is_ok();
        assert!(may(permission(Role::Operator, &["audit:read"], true)));
        assert!(may(permission(
            Role::Viewer,
            &["events:read", "audit:read"],
            false
        )));
        assert!(
            !may(permission(Role::Auditor, &["audit:read"], false)),
            "the role"
        );
        assert!(
            !may(permission(Role::Operator, &["fleet:read"], false)),
            "a scope"
        );
        let narrow = Permission {
            all_of_role: false,
            ..caller
        };
        assert!(may_mint(narrow, narrow).is_ok());
        assert!(may_mint(narrow, caller).is_err(), "the growth");
    }

    #[test]
    fn write_implies_read_of_its_own_toolset_and_nothing_dangerous() {
        let closed = ScopeSet::of(&["service_accounts:write"]).closed();
        assert_eq!(
            closed.to_list(),
            ["service_accounts:read", "service_accounts:write"]
        );
        assert_eq!(closed.closed(), closed, "what is implied may stand there as well");
        let dangerous = ScopeSet::of(&["service_accounts:rotate_any", "audit:export", "mcp:revoke"]);
        assert_eq!(dangerous.closed(), dangerous);
    }

    #[test]
    fn a_role_bounds_what_scopes_can_do() {
        let permission = Permission::effective(Role::Viewer, None, None);
        assert!(!permission.scopes.has("service_accounts:rotate"));
        assert!(permission.scopes.has("service_accounts:rotate_self"));
        let narrow = Permission::effective(Role::Admin, Some(ScopeSet::of(&["audit:read"])), None);
        assert_eq!(narrow.scopes.to_list(), ["audit:read"]);
    }

    /// Proves AU-2, SA-3.
    #[test]
    fn minting_more_than_one_holds_is_refused() {
        let admin = Permission::effective(Role::Admin, None, None);
        let narrow = Permission::effective(
            Role::Admin,
            Some(ScopeSet::of(&["service_accounts:rotate"])),
            None,
        );
        let auditor = Permission::effective(Role::Auditor, None, None);
        let operator = Permission::effective(Role::Operator, None, None);
        assert!(may_mint(admin, narrow).is_ok());
        assert_eq!(
            may_mint(narrow, admin).unwrap_err().code(),
            Code::EscalationForbidden
        );
        assert!(may_mint(operator, auditor).is_err());
        assert!(may_mint(auditor, operator).is_err());
        let every_scope_by_name = Permission::effective(Role::Admin, Some(ScopeSet::all()), None);
        assert!(
            may_mint(every_scope_by_name, admin).is_err(),
            "later areas' scopes are not held"
        );
    }

    #[test]
    fn a_principal_is_known_by_its_organization_and_its_id() {
        let acme = OrganizationId::parse("acme").unwrap();
        let actor = Actor::system(acme.clone());
        assert!(actor.is(&acme, "system"));
        assert!(!actor.is(&acme, "sac_1"));
        assert!(!actor.is(&OrganizationId::installation(), "system"));
    }

    #[test]
    fn organization_keys_are_slugs() {
        assert_eq!(
            OrganizationId::slug("Acme Logistics, Inc.").unwrap().as_str(),
            "acme-logistics-inc"
        );
        assert_eq!(OrganizationId::slug("…"), None);
        assert_eq!(OrganizationId::slug(" (Acme)").unwrap().as_str(), "acme");
        assert_eq!(OrganizationId::slug("1 Über-Co").unwrap().to_string(), "1-ber-co");
        for good in ["a", "7", "a.b_c-d9", &"a".repeat(63)] {
            assert_eq!(OrganizationId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "A", "_installation", "a b", &"a".repeat(64)] {
            assert_eq!(OrganizationId::parse(bad), None, "{bad}");
        }
    }
}
