//! The words and rules of service accounts, without storage.

use provost_kernel::auth::{Permission, Role, SCOPES, ScopeSet};
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
/// How long a deleted account's rows are kept. Units: seconds (D5.7).
pub const KEPT_AFTER_DELETION_SECS: i64 = 30 * 86_400;

/// Whether an account's tokens work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Status {
    /// They do.
    Active,
    /// They do not, but keep their state.
    Disabled,
}

impl Status {
    /// Returns the word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Disabled => "disabled",
        }
    }

    /// Returns the status of a stored word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Disabled]
            .into_iter()
            .find(|s| s.as_str() == text)
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
        schemars::json_schema!({ "type": "string", "enum": SCOPES.to_vec() })
    }
}

/// A set of scopes as a client writes it. LIMIT: 1 to 64 (D1.10).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<ScopeName>")]
#[schemars(inline, extend("minItems" = 1, "maxItems" = 64))]
pub struct ScopeList(Vec<ScopeName>);

impl TryFrom<Vec<ScopeName>> for ScopeList {
    type Error = &'static str;
    fn try_from(names: Vec<ScopeName>) -> std::result::Result<Self, Self::Error> {
        if (1..=64).contains(&names.len()) {
            Ok(Self(names))
        } else {
            Err("must hold 1 to 64 scopes")
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
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
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

    /// Says whether the account can repair any other: an enabled admin that may write accounts.
    pub fn governs(&self) -> bool {
        self.status == Status::Active
            && self.role == Role::Admin
            && self.scopes.is_none_or(|s| s.has("service_accounts:write"))
    }
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
    /// Its scopes; `None` is all of the account.
    pub scopes: Option<ScopeSet>,
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

    /// Returns the life it was given. Units: seconds.
    pub fn lifetime_secs(&self) -> i64 {
        (self.expires_at.as_ms() - self.created_at.as_ms()) / 1000
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
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Timestamp>,
    tokens: Vec<TokenView>,
}

/// Returns what a reader sees of an account: current token first, then the newest; ended ones for 90 days, at
/// most 20 (D5.2).
pub fn view(account: ServiceAccount, mut tokens: Vec<Token>, now: Timestamp) -> AccountView {
    let shown = |scopes: Option<ScopeSet>| scopes.unwrap_or_else(|| account.role.grants()).to_list();
    let scopes = shown(account.scopes);
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
        scopes: token.scopes.map_or_else(|| scopes.clone(), ScopeSet::to_list),
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
    let tokens = tokens.into_iter().map(token_view).collect();
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
        disabled_at: account.disabled_at,
        last_used_at,
        tokens,
    }
}

/// The answer of operations that change one account.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneAccount {
    /// The account after the change.
    pub service_account: AccountView,
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
    fn a_token_ends_exactly_at_its_expiry() {
        let token = token(0, 1000);
        assert!(token.is_current(Timestamp::from_ms(999)));
        assert!(!token.is_usable(Timestamp::from_ms(1000)));
    }
}
