//! From a presented token to an actor (decisions.md section 2).
//!
//! The kernel recognizes tokens and judges their state; where the rows lie is an area's matter, behind the
//! port [`Credentials`]. Validity is read in the request's own snapshot and never cached (D2.9).
//!
//! INVARIANT CR-1: a token is accepted iff its MAC matches, `now < expiresAt`, it is not revoked and its
//! account is enabled, all in one snapshot.

use crate::auth::{Actor, OrganizationId, Permission, Role, ScopeSet, TokenRef};
use crate::cx::Cx;
use crate::db::{Row, Statement, Tx};
use crate::error::{Code, Error, Result};
use crate::keys::Keys;
use crate::time::Timestamp;
use crate::token::{self, TokenKind};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// How long a token that rotated itself may fetch the lost answer. Units: seconds (D5.5).
pub const SELF_REPLAY_SECS: i64 = 600;

/// What a store knows about one token and its account.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The organization of the token.
    pub organization: OrganizationId,
    /// The principal's kind, for example `service_account`.
    pub kind: &'static str,
    /// The principal's id.
    pub principal_id: String,
    /// The principal's name.
    pub display: String,
    /// The principal's role.
    pub role: Role,
    /// The account's scopes; `None` is all of its role.
    pub account_scopes: Option<ScopeSet>,
    /// The token's scopes; `None` is all of the account.
    pub token_scopes: Option<ScopeSet>,
    /// Whether the account is enabled.
    pub enabled: bool,
    /// The token's id.
    pub token_id: String,
    /// The token's public prefix.
    pub prefix: String,
    /// The token's MAC.
    pub mac: Vec<u8>,
    /// The key that made the MAC.
    pub pepper_id: String,
    /// The end of the token's life.
    pub expires_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// It was revoked by its own rotation, and the successor has not been used yet.
    pub self_rotated: bool,
    /// The answer that issued it can still be replayed.
    pub replay_pending: bool,
    /// Its last use, as stored.
    pub last_used_at: Option<Timestamp>,
    /// The item that a gateway token is bound to (D10.6).
    pub item: Option<String>,
}

/// Where tokens and accounts lie. The area of service accounts provides it.
pub trait Credentials: Send + Sync + 'static {
    /// Returns the statement that finds a token by its public lookup id (`?1`).
    fn lookup(&self) -> &'static Statement;

    /// Reads a row of that statement.
    fn read(&self, row: &Row<'_>) -> Result<Credential>;

    /// Finds a gateway token by its public lookup id, and its principal's state in the same snapshot.
    fn gateway(&self, _tx: &mut Tx<'_>, _lookup_id: &str) -> Result<Option<Credential>> {
        Ok(None)
    }

    /// Notes that a token was used for the first time: its replay ends (D4.8).
    fn first_use(&self, cx: &mut Cx<'_>, token_id: &str) -> Result<()>;

    /// Notes a use that is 60 seconds newer than the stored one (D2.5).
    fn touch(&self, cx: &mut Cx<'_>, used: &Use) -> Result<()>;

    /// Reacts to a dead token that was presented again (D2.10).
    fn reused(&self, cx: &mut Cx<'_>, token_id: &str) -> Result<()>;
}

/// One use of a token.
#[derive(Clone, Debug)]
pub struct Use {
    /// The token's organization.
    pub organization: OrganizationId,
    /// The token.
    pub token_id: String,
    /// When.
    pub at: Timestamp,
    /// From where.
    pub source_ip: IpAddr,
}

/// A token as it was presented: well formed, its checksum right, not looked up yet.
pub struct Presented {
    /// The public lookup id.
    pub lookup_id: String,
    /// What the token is for.
    pub kind: TokenKind,
    token: crate::Secret<String>,
}

impl Presented {
    /// Reads the one `Authorization` header (D2.1).
    ///
    /// Errors: `Unauthenticated` for none, two, another scheme, a malformed value or a wrong checksum.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values
            .next()
            .ok_or_else(|| unauthenticated("this needs a bearer token"))?;
        if values.next().is_some() {
            return Err(invalid_token());
        }
        let bytes = value.as_bytes();
        let is_bearer = bytes.len() > 7 && bytes[..7].eq_ignore_ascii_case(b"bearer ");
        let token = if is_bearer {
            std::str::from_utf8(&bytes[7..]).ok()
        } else {
            None
        };
        let token = token.ok_or_else(invalid_token)?;
        let parsed = token::parse(token).ok_or_else(invalid_token)?;
        Ok(Self {
            lookup_id: parsed.lookup_id.to_owned(),
            kind: parsed.kind,
            token: crate::Secret::new(token.to_owned()),
        })
    }

    /// Says whether this is the token behind a row. Constant time in the token's bytes.
    pub fn matches(&self, credential: &Credential, keys: &Keys) -> bool {
        keys.token_mac(&credential.pepper_id, self.token.expose())
            .is_some_and(|mac| mac.as_slice().ct_eq(&credential.mac).into())
    }
}

/// Returns the 401 that says nothing about what was presented.
pub fn invalid_token() -> Error {
    unauthenticated("the token is not valid").with("presented", true)
}

fn unauthenticated(message: &'static str) -> Error {
    Error::new(Code::Unauthenticated, message)
}

impl Credential {
    /// Judges the credential at an instant. Its MAC was checked before.
    ///
    /// Errors: `TokenRevoked`, `TokenExpired`, `Unauthenticated` for a disabled account.
    pub fn judge(&self, now: Timestamp) -> Result<Actor> {
        let refuse = |code, message: &'static str| Err(Error::new(code, message).with("presented", true));
        let mut replay_only = false;
        // Revoked is revoked, also when the clock was set back since.
        if let Some(revoked_at) = self.revoked_at {
            replay_only = self.self_rotated && now < revoked_at.plus_secs(SELF_REPLAY_SECS);
            if !replay_only {
                return refuse(Code::TokenRevoked, "the token was revoked");
            }
        }
        if now >= self.expires_at {
            return refuse(Code::TokenExpired, "the token has expired");
        }
        if !self.enabled {
            return refuse(Code::Unauthenticated, "the account of this token is disabled");
        }
        Ok(Actor {
            organization: self.organization.clone(),
            kind: self.kind,
            id: self.principal_id.clone(),
            display: self.display.clone(),
            permission: Permission::effective(self.role, self.account_scopes, self.token_scopes),
            token: Some(TokenRef {
                id: self.token_id.clone(),
                prefix: self.prefix.clone(),
            }),
            replay_only,
            item: self.item.clone(),
        })
    }
}

/// Returns the 401 of a token that may only repeat its own rotation and asked for something else.
pub fn only_replays() -> Error {
    Error::new(Code::TokenRevoked, "the token was revoked").with("presented", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential() -> Credential {
        Credential {
            organization: OrganizationId::parse("acme").unwrap(),
            kind: "service_account",
            principal_id: "sa_1".into(),
            display: "bot".into(),
            role: Role::Admin,
            account_scopes: None,
            token_scopes: None,
            enabled: true,
            token_id: "sat_1".into(),
            prefix: "prov_sat_x".into(),
            mac: vec![],
            pepper_id: "pepper-1".into(),
            expires_at: Timestamp::from_ms(10_000),
            revoked_at: None,
            self_rotated: false,
            replay_pending: false,
            last_used_at: None,
            item: None,
        }
    }

    #[test]
    fn expiry_is_exclusive_to_the_millisecond() {
        assert!(credential().judge(Timestamp::from_ms(9_999)).is_ok());
        let error = credential().judge(Timestamp::from_ms(10_000)).unwrap_err();
        assert_eq!(error.code(), Code::TokenExpired);
    }

    #[test]
    fn a_revoked_token_serves_only_the_replay_of_its_own_rotation() {
        let mut revoked = credential();
        revoked.expires_at = Timestamp::from_ms(10_000_000);
        revoked.revoked_at = Some(Timestamp::from_ms(1_000));
        assert_eq!(
            revoked.judge(Timestamp::from_ms(1_000)).unwrap_err().code(),
            Code::TokenRevoked
        );
        revoked.self_rotated = true;
        assert!(revoked.judge(Timestamp::from_ms(600_999)).unwrap().replay_only);
        assert!(revoked.judge(Timestamp::from_ms(601_000)).is_err());
        revoked.self_rotated = false;
        assert!(revoked.judge(Timestamp::from_ms(999)).is_err());
    }

    #[test]
    fn a_disabled_account_is_a_stranger() {
        let mut disabled = credential();
        disabled.enabled = false;
        assert_eq!(
            disabled.judge(Timestamp::EPOCH).unwrap_err().code(),
            Code::Unauthenticated
        );
    }
}
