//! The words and rules of service accounts, without storage.
//!
//! INVARIANT SA-7: a token can do what its account can, or the narrower list that somebody asked for, and shows what
//! it can do; a rotation widens nothing that was narrowed.
//! INVARIANT SA-10: whoever takes hold of an account (by a token, a client, a name, an owner, its enabling) could
//! hand out all that it can do, and all that it could before somebody narrowed it who does not hold that.
//! INVARIANT SA-11: nobody writes a scope into an account's list that they could not hand out, also where its role
//! does not grant it yet.

use provost_kernel::auth::{Permission, Role, ScopeSet, may_mint};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(ServiceAccountId, "sa", "Names a service account.");
id!(TokenId, "sat", "Names a service account's token.");

/// The shortest life of a token. Units: seconds (D2.4).
pub const MIN_LIFETIME_SECS: i64 = 3600;
/// The life of a token when nothing else is said. Units: seconds (D2.4: 90 days).
pub const DEFAULT_LIFETIME_SECS: i64 = 90 * 86_400;
/// How long ended tokens are listed. Units: seconds (D5.2).
pub const LISTED_SECS: i64 = 90 * 86_400;
/// LIMIT: ended tokens listed for one account (D5.2).
pub const MAX_LISTED: usize = 20;
/// The scope with which an admin repairs every other account.
const GOVERNING: &str = "service_accounts:write";
/// How long a deleted account's rows are kept. Units: seconds (D5.7).
pub const KEPT_AFTER_DELETION_SECS: i64 = 30 * 86_400;

provost_kernel::word! {
    /// Whether an account's tokens work.
    pub enum Status {
        /// They do.
        Active = "active",
        /// They do not, but keep their state.
        Disabled = "disabled",
    }
}

/// The name of a scope that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeName(String);

impl<'de> Deserialize<'de> for ScopeName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        if ScopeSet::is_known(&text) {
            return Ok(Self(text.into_owned()));
        }
        Err(serde::de::Error::custom(
            "is not a scope; the capabilities operation lists them",
        ))
    }
}

impl JsonSchema for ScopeName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ScopeName".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ScopeSet::all().to_list() })
    }
}

/// A set of scopes as a client writes it. LIMIT: 1 to 128: as many as a set holds, so that each list of scopes can be named.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<ScopeName>")]
#[schemars(inline, extend("minItems" = 1, "maxItems" = 128))]
pub struct ScopeList(Vec<ScopeName>);

impl TryFrom<Vec<ScopeName>> for ScopeList {
    type Error = &'static str;
    fn try_from(names: Vec<ScopeName>) -> std::result::Result<Self, Self::Error> {
        if (1..=128).contains(&names.len()) {
            Ok(Self(names))
        } else {
            Err("must hold 1 to 128 scopes")
        }
    }
}

impl ScopeList {
    /// Returns the set.
    pub fn set(&self) -> ScopeSet {
        ScopeSet::of(&self.0.iter().map(|n| n.0.as_str()).collect::<Vec<_>>())
    }
}

/// A service account as it is stored.
#[derive(Clone, Debug)]
pub struct ServiceAccount {
    /// Its id.
    pub id: ServiceAccountId,
    /// Its organization, for the view.
    pub organization_id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its role.
    pub role: Role,
    /// Its scopes; `None` is all of its role.
    pub scopes: Option<ScopeSet>,
    /// Whether it is enabled.
    pub status: Status,
    /// Who answers for it.
    pub owner_console_user_id: Option<String>,
    /// That person is suspended or gone (D5.10).
    pub is_orphaned: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Why it is disabled, where nobody disabled it: `restored`.
    pub disabled_reason: Option<String>,
    /// What it could do before somebody took it away who does not hold it.
    pub former: Option<Rights>,
}

/// A role and scopes; without scopes all of the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The role.
    pub role: Role,
    /// The scopes; `None` is all of the role.
    pub scopes: Option<ScopeSet>,
}

impl Rights {
    /// Returns what they allow.
    pub fn permission(self) -> Permission {
        Permission::effective(self.role, self.scopes, None)
    }

    /// Returns rights that allow what either does.
    fn or(self, other: Self) -> Self {
        let role = if self.role.covers(other.role) {
            self.role
        } else if other.role.covers(self.role) {
            other.role
        } else {
            Role::Admin
        };
        let scopes = self.permission().scopes.or(other.permission().scopes);
        let is_all = |rights: Self| rights.scopes.is_none() && rights.role == role;
        Self {
            role,
            scopes: (!is_all(self) && !is_all(other)).then_some(scopes),
        }
    }
}

impl ServiceAccount {
    /// Returns the instant of a change: never before the last one (D1.2).
    pub fn changed_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at.plus_ms(1))
    }

    /// Returns what a token of these scopes can do for this account.
    pub fn permission(&self, token_scopes: Option<ScopeSet>) -> Permission {
        Permission::effective(self.role, self.scopes, token_scopes)
    }

    /// Returns its own role and scopes.
    pub fn rights(&self) -> Rights {
        Rights {
            role: self.role,
            scopes: self.scopes,
        }
    }

    /// Refuses whoever could not hand out all that the account may do, and could do before somebody took it away who does
    /// not hold it: with a token, a client, a name or an owner of their choice they would have what is given back later.
    ///
    /// INVARIANT SA-10: whoever takes hold of an account could hand out all that it can do and could do.
    ///
    /// Errors: `EscalationForbidden`.
    pub fn may_be_held_by(&self, caller: Permission) -> Result<()> {
        may_be_held(self.rights(), self.former, caller)
    }

    /// Notes what the account could do when somebody changes its rights. Who holds all of it decides anew; of others it
    /// stays remembered.
    pub fn remember(&mut self, before: &Self, caller: Permission) {
        let known = before
            .former
            .map_or(before.rights(), |former| former.or(before.rights()));
        self.former = may_mint(caller, known.permission()).err().map(|_| known);
    }

    /// Says whether the account can repair any other: an enabled admin that may write accounts.
    pub fn governs(&self) -> bool {
        self.status == Status::Active
            && self.role == Role::Admin
            && self.scopes.is_none_or(|s| s.has(GOVERNING))
    }

    /// Says what a change of rights makes begin to act of scopes that were there already, and what of the list the role
    /// never grants.
    pub fn warnings_after(&self, before: &Self) -> Vec<Warning> {
        let had = before.permission(None).scopes;
        let acting = self.permission(None).scopes;
        let was_listed = |name: &&str| before.scopes.is_some_and(|scopes| scopes.has(name));
        let armed: Vec<&str> = acting
            .names()
            .filter(|name| !had.has(name))
            .filter(was_listed)
            .collect();
        let mut warnings = self.warnings();
        if !armed.is_empty() {
            let message = format!(
                "the role {} grants {}, which the account had been given before and could not use until now",
                self.role.as_str(),
                armed.join(", ")
            );
            warnings.push(Warning {
                code: "scopes_begin_to_act",
                message,
            });
        }
        warnings
    }

    /// Says what of the account's own list its role never grants.
    pub fn warnings(&self) -> Vec<Warning> {
        let idle: Vec<&str> = self
            .scopes
            .map(|scopes| {
                scopes
                    .names()
                    .filter(|name| !self.role.grants().has(name))
                    .collect()
            })
            .unwrap_or_default();
        if idle.is_empty() {
            return Vec::new();
        }
        let role = self.role.as_str();
        let (names, act) = (idle.join(", "), if idle.len() == 1 { "does" } else { "do" });
        vec![Warning {
            code: "scopes_beyond_role",
            message: format!(
                "the role {role} does not grant {names}, so that {act} nothing for this account"
            ),
        }]
    }
}

/// See [`ServiceAccount::may_be_held_by`], of rights that another area read.
///
/// Errors: `EscalationForbidden`.
pub fn may_be_held(rights: Rights, former: Option<Rights>, caller: Permission) -> Result<()> {
    may_mint(caller, rights.permission())?;
    let Some(former) = former else { return Ok(()) };
    may_mint(caller, former.permission()).map_err(|_| {
        Error::new(
            Code::EscalationForbidden,
            "the account could do more before somebody narrowed it who does not hold that; whoever does decides about it",
        )
    })
}

/// Refuses a list of scopes that the caller could not hand out, also where the role grants them nothing now: another role
/// would.
///
/// INVARIANT SA-11: nobody writes a scope into an account's list that they could not hand out.
///
/// Errors: `EscalationForbidden`.
pub fn may_list(caller: Permission, list: Option<ScopeSet>, known: Option<ScopeSet>) -> Result<()> {
    let new = list.map(|list| {
        let known = known.unwrap_or_default();
        let names: Vec<&str> = list.names().filter(|name| !known.has(name)).collect();
        ScopeSet::of(&names)
    });
    let Some(new) = new else { return Ok(()) };
    if caller.gives().covers(new.closed()) {
        return Ok(());
    }
    let lacking: Vec<&str> = new.names().filter(|name| !caller.gives().has(name)).collect();
    let message = format!(
        "you cannot give {}, also to an account whose role does not grant it yet",
        lacking.join(", ")
    );
    Err(Error::new(Code::EscalationForbidden, message))
}

/// Says whether something that could be done before cannot be done after: a scope that is held by name alone is lost with its
/// name, though "all of the role" could give it to others.
pub fn is_narrower(after: Permission, before: Permission) -> bool {
    may_mint(after, before).is_err() || !after.scopes.covers(before.scopes)
}

/// A token's row without its MAC.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// Its name.
    pub name: String,
    /// Its public prefix.
    pub token_prefix: String,
    /// The narrower list that somebody asked for; `None` is what its account has (ADR 0043).
    pub scopes: Option<ScopeSet>,
    /// The longest life that it may give its successor by itself: the one that it was given by somebody who may
    /// rotate any account. `None` in a row of before this was kept. Units: seconds.
    pub lifetime_ceiling_secs: Option<i64>,
    /// When it was minted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The end of its life, exclusive.
    pub expires_at: Timestamp,
    /// Its last use, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Why it was revoked.
    pub revoke_reason: Option<String>,
    /// The token that took its place.
    pub superseded_by_id: Option<String>,
}

impl Token {
    /// Says whether the token works, its account being enabled (D5.3).
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// Says whether it is the one that a rotation supersedes.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.superseded_by_id.is_none() && self.is_usable(now)
    }

    /// Says whether somebody can repair the organization with it, if its account can.
    pub fn governs(&self, now: Timestamp) -> bool {
        self.is_usable(now) && self.scopes.is_none_or(|s| s.has(GOVERNING))
    }

    /// Returns the life it was given. Units: seconds.
    pub fn lifetime_secs(&self) -> i64 {
        (self.expires_at.as_ms() - self.created_at.as_ms()) / 1000
    }

    /// Returns the longest life that it may give its successor by itself. Units: seconds.
    pub fn ceiling_secs(&self) -> i64 {
        let given = self.lifetime_ceiling_secs.unwrap_or_else(|| self.lifetime_secs());
        given.max(MIN_LIFETIME_SECS)
    }

    fn is_listed(&self, now: Timestamp) -> bool {
        let ended = self
            .revoked_at
            .map_or(self.expires_at, |at| at.min(self.expires_at));
        now < ended.plus_secs(LISTED_SECS)
    }
}

/// Returns the life of a new token (D2.4): as asked, else as the superseded one's, else 90 days; capped.
///
/// Errors: `InvalidRequest` when what was asked for is beyond the organization's maximum.
pub fn lifetime_secs(asked: Option<i64>, superseded: Option<&Token>, max_secs: i64) -> Result<i64> {
    if let Some(asked) = asked {
        if asked > max_secs {
            return Err(Error::invalid(
                "/expiresInSeconds",
                format!("this organization allows {max_secs} at most"),
            ));
        }
        return Ok(asked);
    }
    let wanted = superseded.map_or(DEFAULT_LIFETIME_SECS, Token::lifetime_secs);
    Ok(wanted.clamp(MIN_LIFETIME_SECS, max_secs))
}

/// Refuses an act of an account on itself that it may not do (D5.7).
pub fn not_oneself(actor_id: &str, account: &ServiceAccount, act: &str) -> Result<()> {
    if actor_id == account.id.as_str() {
        let message = format!("an account cannot {act} itself; another admin can");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(())
}

/// Token metadata (specification §2.3): never the value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServiceAccountToken")]
pub struct TokenView {
    id: TokenId,
    name: String,
    token_prefix: String,
    /// What it can do: its account's scopes, or the narrower list that was asked for, as far as the role grants them.
    scopes: Vec<&'static str>,
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoke_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by_id: Option<String>,
}

/// A service account with its token metadata (specification §2.2).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServiceAccount")]
pub struct AccountView {
    id: ServiceAccountId,
    organization_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    permission_role: Role,
    scopes: Vec<&'static str>,
    /// The account holds every scope of its role, those of later areas included.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    all_of_role: bool,
    status: Status,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_console_user_id: Option<String>,
    /// Nobody answers for the account any more: its owner is suspended or no longer in the directory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    orphaned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<Timestamp>,
    /// `restored`: a restore of the store holds the account back until it is released or enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Timestamp>,
    tokens: Vec<TokenView>,
}

/// Returns what a reader sees of an account: current token first, then the newest; ended ones for 90 days, at
/// most 20 (D5.2).
pub fn view(account: ServiceAccount, mut tokens: Vec<Token>, now: Timestamp) -> AccountView {
    let scopes = account
        .scopes
        .unwrap_or_else(|| account.role.all_scopes())
        .to_list();
    tokens.sort_by(|a, b| {
        let key = |t: &Token| (t.is_current(now), t.created_at, t.id.as_str().to_owned());
        key(b).cmp(&key(a))
    });
    let last_used_at = tokens.iter().filter_map(|t| t.last_used_at).max();
    let mut ended = 0;
    tokens.retain(|token| {
        let usable = token.is_usable(now);
        ended += usize::from(!usable);
        usable || (token.is_listed(now) && ended <= MAX_LISTED)
    });
    let token_view = |token: Token| TokenView {
        scopes: account.permission(token.scopes).scopes.to_list(),
        id: token.id,
        name: token.name,
        token_prefix: token.token_prefix,
        created_at: token.created_at,
        updated_at: token.updated_at,
        expires_at: token.expires_at,
        last_used_at: token.last_used_at,
        revoked_at: token.revoked_at,
        revoke_reason: token.revoke_reason,
        superseded_by_id: token.superseded_by_id,
    };
    let tokens: Vec<TokenView> = tokens.into_iter().map(token_view).collect();
    AccountView {
        id: account.id,
        organization_id: account.organization_id,
        name: account.name,
        description: account.description,
        permission_role: account.role,
        all_of_role: account.scopes.is_none(),
        scopes,
        status: account.status,
        created_at: account.created_at,
        updated_at: account.updated_at,
        owner_console_user_id: account.owner_console_user_id,
        orphaned: account.is_orphaned,
        disabled_at: account.disabled_at,
        disabled_reason: account.disabled_reason,
        last_used_at,
        tokens,
    }
}

/// Something of a change that its author should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ServiceAccountWarning")]
pub struct Warning {
    /// `scopes_beyond_role`, `scopes_begin_to_act`. Open.
    code: &'static str,
    message: String,
}

/// The answer of operations that change one account.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneAccount {
    /// The account after the change.
    pub service_account: AccountView,
    /// What does not act as it was written; absent when everything does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<Warning>,
}

/// The path of operations on one account.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AccountPath {
    /// The account.
    pub service_account_id: ServiceAccountId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(created: i64, expires: i64) -> Token {
        Token {
            id: TokenId::from_text("sat_x"),
            name: "default".into(),
            token_prefix: "prov_sat_x".into(),
            scopes: None,
            lifetime_ceiling_secs: None,
            created_at: Timestamp::from_ms(created),
            updated_at: Timestamp::from_ms(created),
            expires_at: Timestamp::from_ms(expires),
            last_used_at: None,
            revoked_at: None,
            revoke_reason: None,
            superseded_by_id: None,
        }
    }

    #[test]
    fn rotation_keeps_the_lifetime() {
        let week = token(0, 7 * 86_400_000);
        assert_eq!(lifetime_secs(None, Some(&week), 31_536_000).unwrap(), 7 * 86_400);
        assert_eq!(lifetime_secs(None, Some(&week), 86_400).unwrap(), 86_400);
        assert_eq!(
            lifetime_secs(None, None, 31_536_000).unwrap(),
            DEFAULT_LIFETIME_SECS
        );
        assert!(lifetime_secs(Some(90_000), None, 86_400).is_err());
    }

    #[test]
    fn what_a_token_may_give_itself_is_what_it_was_given() {
        let mut week = token(0, 7 * 86_400_000);
        assert_eq!(week.ceiling_secs(), 7 * 86_400, "a row of before");
        week.lifetime_ceiling_secs = Some(30 * 86_400);
        assert_eq!(week.ceiling_secs(), 30 * 86_400, "it gave itself less");
        assert_eq!(token(0, 1_000).ceiling_secs(), MIN_LIFETIME_SECS, "in grace");
    }

    #[test]
    fn only_what_a_role_never_grants_is_warned_of() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let account = |role, scopes: Option<&[&str]>| ServiceAccount {
            id: ServiceAccountId::from_text("sa_x"),
            organization_id: "acme".into(),
            name: "bot".into(),
            description: None,
            role,
            scopes: scopes.map(ScopeSet::of),
            status: Status::Active,
            owner_console_user_id: None,
            is_orphaned: false,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
            disabled_at: None,
            disabled_reason: None,
            former: None,
        };
        assert_eq!(account(Role::Viewer, None).warnings(), []);
        assert_eq!(account(Role::Viewer, Some(&["fleet:read"])).warnings(), []);
        let beyond = account(Role::Viewer, Some(&["fleet:read", "fleet:write", "audit:read"])).warnings();
        assert_eq!(beyond.len(), 1);
        assert!(
            beyond[0].message.contains("audit:read, fleet:write"),
            "{beyond:?}"
        );
        assert!(!beyond[0].message.contains("fleet:read"), "{beyond:?}");
    }

    #[test]
    fn a_token_ends_exactly_at_its_expiry() {
        let token = token(0, 1000);
        assert!(token.is_current(Timestamp::from_ms(999)));
        assert!(!token.is_usable(Timestamp::from_ms(1000)));
    }
}
