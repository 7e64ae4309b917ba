//! Who calls, and what they may do (D3).
//!
//! Effective permission = what the role grants ∩ the account's scopes ∩ the token's scopes. "All of the role" leaves out
//! what the role grants only by name ([`Role::by_name`]). It is computed
//! from the store at every request and never kept in a token (D3.3). `write` implies `read` of the same
//! toolset; nothing implies a dangerous scope; there is no wildcard (D3.2).
//!
//! INVARIANT AU-1: a token acts in the one organization that its row names; the path must name the same.
//! INVARIANT AU-2: nobody mints more than they hold.

mod scopes;

pub use scopes::{Scope, ScopeSet, Scopes, Toolset, scope, scopes, toolsets};

use crate::Timestamp;
use crate::arrival::Arrival;
use crate::error::{Code, Error, Result};
use crate::id::TypedId;
use crate::manager::Manager;
use std::net::IpAddr;

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

provost_words::word! {
    /// What a principal is for. Ordered: member < viewer < operator < admin and viewer < auditor < admin (D3.1, ADR 0111).
    #[derive(Hash)]
    #[schemars(extend("x-open" = true))]
    pub enum Role {
        /// Everything.
        Admin = "admin",
        /// Reads all but identities and sessions; runs backtests and rollbacks.
        Operator = "operator",
        /// Reads everything but sessions; changes nothing.
        Auditor = "auditor",
        /// Reads inventory, policies, backtests and fleet.
        Viewer = "viewer",
        /// Does for itself what everybody of the organization may, and reads nothing of anybody else.
        Member = "member",
    }
}

impl Role {
    /// Says whether this role may do everything that `other` may.
    pub fn covers(self, other: Role) -> bool {
        match other {
            Role::Member => true,
            Role::Viewer => self != Role::Member,
            Role::Admin | Role::Operator | Role::Auditor => self == other || self == Role::Admin,
        }
    }

    /// Returns the scopes that the role can use, and only where somebody named them: no "all of the role" holds them, and
    /// no user does, who has no list of scopes.
    ///
    /// These are rights for which somebody is chosen and does not come into by a role (ADR 0046).
    pub fn by_name(self) -> ScopeSet {
        Scopes::by_name_to(self)
    }

    /// Returns what "all of the role" holds.
    pub fn all_scopes(self) -> ScopeSet {
        self.grants().without(self.by_name())
    }

    /// Returns the scopes that the role can use at all.
    pub fn grants(self) -> ScopeSet {
        Scopes::granted_to(self)
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

    /// Returns what its holder gives others where a second person has said yes: what the role gives, if the list holds all of that.
    ///
    /// Keeps TW-3.
    #[must_use]
    pub fn by_two(self) -> Self {
        Self {
            all_of_role: self.all_of_role || self.scopes.covers(self.role.all_scopes()),
            ..self
        }
    }

    /// Returns the permission to do nothing.
    pub fn none() -> Self {
        Self {
            role: Role::Member,
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
    /// The thumbprint of the key that the caller proved to hold, where the token asks for one.
    pub key: Option<String>,
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
    /// When it was issued, where that is known.
    pub issued_at: Option<Timestamp>,
    /// The end of its life.
    pub expires_at: Timestamp,
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
            key: None,
        }
    }

    /// Says whether this is the principal of that id in that organization.
    pub fn is(&self, organization: &OrganizationId, id: &str) -> bool {
        self.organization == *organization && self.id == id
    }
}

/// Where a request came from; goes into the audit entry. It gives nobody anything: it may narrow what a credential is good for.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Our own id of the request.
    pub request_id: String,
    /// The client's `X-Request-Id` or `traceparent`, if it was printable and short.
    pub client_request_id: Option<String>,
    /// The client's address.
    pub source_ip: IpAddr,
    /// Whether that may be a proxy's which nobody named (`http.trusted_proxies`). No part of what is written.
    pub is_of_unknown_proxy: bool,
    /// The client's `User-Agent`, cut at 256 characters.
    pub user_agent: Option<String>,
    /// The labels of the managing program, if it sent both. They are what it says of itself.
    pub manager: Option<Manager>,
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
            is_of_unknown_proxy: false,
            user_agent: None,
            manager: None,
            arrival: Arrival::default(),
        }
    }

    /// Returns the client's address where that is certain enough to narrow by it what a credential is good for; nothing where it may be
    /// a proxy's, or where nobody knows it.
    pub fn certain_address(&self) -> Option<IpAddr> {
        Some(self.source_ip).filter(|ip| !self.is_of_unknown_proxy && !ip.is_unspecified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scopes that the kernel's own tests know.
    pub(super) fn scopes() -> Scopes {
        let toolset = |name| Toolset {
            place: 0,
            name,
            says: "",
            title: "Things",
            holds: "things",
        };
        let names = [
            "audit",
            "events",
            "fleet",
            "managed_config",
            "policies",
            "service_accounts",
        ];
        let scopes = [
            scope("audit:export").says("Export").held_by(&[Role::Auditor]),
            scope("audit:read").readers(),
            scope("audit:write"),
            scope("events:read").readers(),
            scope("events:write"),
            scope("fleet:read").everybody(),
            scope("fleet:write"),
            scope("managed_config:pull")
                .says("Pull")
                .by_name(&[Role::Admin, Role::Operator, Role::Auditor]),
            scope("managed_config:read").readers(),
            scope("managed_config:rollback")
                .says("Roll back")
                .held_by(&[Role::Operator]),
            scope("managed_config:write"),
            scope("policies:inspect")
                .says("Inspect")
                .by_name(&[Role::Operator]),
            scope("policies:read").everybody(),
            scope("policies:write"),
            scope("service_accounts:read").held_by(&[Role::Auditor]),
            scope("service_accounts:rotate").says("Rotate"),
            scope("service_accounts:rotate_any").says("Rotate any"),
            scope("service_accounts:rotate_self")
                .says("Rotate oneself")
                .everybody(),
            scope("service_accounts:write"),
        ];
        Scopes::of(names.map(toolset).to_vec(), scopes.to_vec()).unwrap()
    }

    #[test]
    fn roles_stand_where_they_are_looked_for() {
        let mut places = Role::ALL.iter().enumerate();
        assert!(places.all(|(place, role)| *role as usize == place));
    }

    #[test]
    fn a_set_holds_what_it_was_made_of_and_a_name_twice_is_a_name() {
        let every = ScopeSet::all().to_list();
        assert!(every.is_sorted() && every.len() == 19);
        assert_eq!(ScopeSet::default().to_list(), [""; 0]);
        assert!(!ScopeSet::is_known("audit:everything"));
        for (place, name) in every.iter().copied().enumerate() {
            let other = every[(place + 1) % every.len()];
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
        let words = ["admin", "operator", "auditor", "viewer", "member"];
        assert_eq!(Role::ALL.map(Role::as_str), words);
        assert_eq!(words.map(Role::parse), Role::ALL.map(Some));
        assert_eq!(Role::parse("Admin"), None);
    }

    #[test]
    fn what_a_role_grants_by_name_is_held_by_nobody_who_was_not_named() {
        let by_name = Role::ALL.map(|role| role.by_name().to_list());
        let [pulls, inspects] = ["managed_config:pull", "policies:inspect"];
        assert_eq!(
            by_name,
            [vec![pulls], vec![pulls, inspects], vec![pulls], vec![], vec![]]
        );
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
            let names_nothing = [Role::Viewer, Role::Member].contains(&role);
            assert_eq!(may_mint(list, named).is_ok(), names_nothing);
            let lent = Permission::effective(role, None, Some(ScopeSet::all()));
            assert_eq!(may_mint(lent, named).is_ok(), names_nothing);
        }
    }

    #[test]
    fn a_role_grants_what_is_declared_of_it() {
        let own = "service_accounts:rotate_self";
        let reads = [
            "audit:read",
            "events:read",
            "fleet:read",
            "managed_config:read",
            "policies:read",
        ];
        let granted = |acts: &[&str]| ScopeSet::of(&[&reads[..], acts, &[own]].concat());
        assert_eq!(Role::Admin.grants(), ScopeSet::all());
        let operator = granted(&[
            "managed_config:pull",
            "managed_config:rollback",
            "policies:inspect",
        ]);
        assert_eq!(Role::Operator.grants(), operator);
        let auditor = granted(&["audit:export", "managed_config:pull", "service_accounts:read"]);
        assert_eq!(Role::Auditor.grants(), auditor);
        let viewer = ["fleet:read", "policies:read", own];
        assert_eq!(Role::Viewer.grants().to_list(), viewer);
        // Nothing that everybody else holds comes to members by itself.
        assert_eq!(Role::Member.grants().to_list(), [""; 0]);
        let looks = [&reads[..], &["service_accounts:read"]].concat();
        assert_eq!(ScopeSet::reads(), ScopeSet::of(&looks));
    }

    #[test]
    fn a_role_covers_itself_and_those_below_it() {
        for role in Role::ALL {
            for other in Role::ALL {
                let below: &[Role] = match role {
                    Role::Admin => &Role::ALL,
                    Role::Operator => &[Role::Operator, Role::Viewer, Role::Member],
                    Role::Auditor => &[Role::Auditor, Role::Viewer, Role::Member],
                    Role::Viewer => &[Role::Viewer, Role::Member],
                    Role::Member => &[Role::Member],
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
        let dangerous = ScopeSet::of(&[
            "service_accounts:rotate_any",
            "audit:export",
            "managed_config:pull",
        ]);
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
