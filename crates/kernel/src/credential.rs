//! From a presented token to an actor (D2).
//!
//! The kernel recognizes tokens and judges their state; what kinds there are and where their rows lie, the areas declare
//! ([`TokenScheme`], [`Sessions`]). What a delegated token says is checked by [`Verifier`], which may ask
//! others; whether its session still stands is read like everything else. Validity is read in the request's own
//! snapshot and never cached (D2.9).
//!
//! INVARIANT CR-1: a token is accepted iff its MAC matches (or its signature was verified), `now < expiresAt`, it is
//! not revoked and its account or session stands, all in one snapshot.
//! INVARIANT CR-2: a delegated token can do what its session can and what its own scopes say, never more.
//! INVARIANT CR-5: a token that is bound to a key is accepted only with a proof of that key which was made for this request and
//! this token, and a proof serves once.
//! INVARIANT CR-3: a delegated token acts by a session of its own organization, client and principal, and by no
//! other.

mod binding;
mod scheme;

pub use binding::{Binding, KeyProof};
pub use scheme::{Admission, Reach, Scheme, Schemes, Sessions, TokenScheme};

use crate::auth::{Actor, OrganizationId, Origin, Permission, Role, ScopeSet, TokenRef};
use crate::error::{Code, Error, Result};
use crate::keys::Keys;
use crate::time::Timestamp;
use crate::token;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use std::any::Any;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// LIMIT: bytes of a presented token (D2.1).
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// How long a token that rotated itself may fetch the lost answer. Units: seconds (D5.5).
pub const SELF_REPLAY_SECS: i64 = 600;

/// What a store knows about one token and its account.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from a row"
)]
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
    /// The principal's role; without one it may do nothing at all (D2.6).
    pub role: Option<Role>,
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
    /// Whether the token is the principal's own, and not that of one item or of a session.
    pub is_own: bool,
    /// The token's MAC.
    pub mac: Vec<u8>,
    /// The key that made the MAC.
    pub pepper_id: String,
    /// When the token was issued, where the store says it.
    pub issued_at: Option<Timestamp>,
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
    /// The one item that the token is bound to (D10.6).
    pub item: Option<String>,
    /// The client of a session.
    pub client: Option<String>,
    /// What its sender has to prove beside it.
    pub binding: Binding,
}

/// A client of the MCP endpoint, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpClient {
    /// The client's name for itself, whole: 1 to 2 048 bytes of visible characters.
    pub id: String,
    /// How people call it.
    pub display: Option<String>,
}

/// A delegated access token of which everything was checked that can be checked without a store.
#[derive(Clone)]
pub struct VerifiedToken {
    /// The organization in which it acts.
    pub organization: OrganizationId,
    /// Finds the session.
    pub grant: String,
    /// The client that the token names. Its session must be this client's.
    pub client: Option<String>,
    /// The principal that the token names, where it names one of ours. Its session must be this principal's.
    pub principal: Option<String>,
    /// What the token itself allows.
    pub scopes: ScopeSet,
    /// Whether other tokens of the same session may say more than those before them: the session lists what all of them
    /// had.
    pub grows: bool,
    /// The end of its life, the leeway for clocks included.
    pub expires_at: Timestamp,
    /// What the session is made of, if this token may make it: a matter of the area behind [`Sessions::open`].
    pub opening: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified")
            .field("organization", &self.organization)
            .finish_non_exhaustive()
    }
}

/// What a token is checked against.
#[derive(Clone, Copy, Debug)]
pub struct TokenCheck<'a> {
    /// The surface that was called.
    pub entry_point: &'a EntryPoint,
    /// The method of the HTTP request.
    pub method: &'a Method,
    /// The raw path of the HTTP request, without its query.
    pub path: &'a str,
    /// All headers, for proofs of possession.
    pub headers: &'a HeaderMap,
    /// Where it comes from: what is asked of others for a network is bounded.
    pub origin: &'a Origin,
}

/// By which door a request came.
#[derive(Clone, Debug, Default)]
pub enum EntryPoint {
    /// As an HTTP operation.
    #[default]
    Http,
    /// Through the MCP endpoint.
    Mcp(McpClient),
}

impl EntryPoint {
    /// Returns the path of the resource that a token must name as its audience (D2.6).
    pub const fn audience(&self) -> &'static str {
        match self {
            EntryPoint::Http => "/api/headless/v1",
            EntryPoint::Mcp(_) => "/mcp",
        }
    }
}

/// Checks delegated tokens. One of the kernel's extras, as `Arc<dyn Verifier>`.
pub trait Verifier: Send + Sync + 'static {
    /// Checks a token; may ask its issuer.
    ///
    /// Errors: `Unauthenticated` for whatever is wrong with it, `Unavailable` when its issuer cannot be asked.
    fn verify<'a>(
        &'a self,
        token: &'a str,
        ask: TokenCheck<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<VerifiedToken>> + Send + 'a>>;

    /// Checks the proof that the sender of one of our own tokens holds a key, and that it was made for this request and this
    /// token. That the proof serves once is seen to later ([`KeyProof::spend`]).
    ///
    /// Errors: `Unauthenticated` without a proof, or with one that is not accepted.
    fn prove(&self, _token: &str, _ask: TokenCheck<'_>) -> Result<Arc<dyn KeyProof>> {
        Err(invalid_token())
    }
}

/// Finds the row of a caller again, and bounds it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub scheme: Scheme,
    pub lookup: String,
    verified: Option<Arc<VerifiedToken>>,
    proof: Option<Arc<dyn KeyProof>>,
}

impl Caller {
    /// Takes from a session what its token does not say (CR-2), and compares the key of a token that is bound to one.
    ///
    /// Errors: `Unauthenticated` for a session of another organization, client or principal, and for another key.
    pub fn bound(&self, mut credential: Credential) -> Result<Credential> {
        let key = self.proof.as_deref().map(KeyProof::thumbprint);
        credential.binding = credential.binding.met_by(key).ok_or_else(invalid_token)?;
        let Some(verified) = &self.verified else {
            return Ok(credential);
        };
        let is_named = |named: &Option<String>, own: Option<&str>| {
            named.as_deref().is_none_or(|named| own == Some(named))
        };
        // INVARIANT CR-3: organization, client and principal of token and session are compared at every request.
        if credential.organization != verified.organization
            || !is_named(&verified.client, credential.client.as_deref())
            || !is_named(&verified.principal, Some(&credential.principal_id))
        {
            return Err(invalid_token());
        }
        let own = verified.scopes.closed();
        let granted = credential
            .token_scopes
            .map_or(own, |granted| granted.closed().and(own));
        credential.token_scopes = Some(granted);
        credential.expires_at = credential.expires_at.min(verified.expires_at);
        Ok(credential)
    }
}

/// One use of a token or of a session.
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

impl Use {
    /// Returns the use of a token by a request.
    pub(crate) fn of(credential: &Credential, origin: &Origin, at: Timestamp) -> Self {
        Self {
            organization: credential.organization.clone(),
            token_id: credential.token_id.clone(),
            at,
            source_ip: origin.source_ip,
        }
    }
}

/// A token as it was presented: well formed and its checksum right, or verified; its row is not looked up yet.
pub struct BearerToken {
    pub(crate) caller: Caller,
    /// The token itself, where its row holds a MAC of it.
    token: Option<crate::Secret<String>>,
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Presented({:?})", self.caller.scheme)
    }
}

impl BearerToken {
    /// Recognizes the token of a request (D2.1): ours by its text, a delegated one by `verifier`.
    ///
    /// Errors: `Unauthenticated` for no header, two, another scheme, a malformed value or a wrong checksum; those of
    /// the verifier.
    pub(crate) async fn recognize(
        schemes: &Schemes,
        verifier: Option<&dyn Verifier>,
        ask: TokenCheck<'_>,
    ) -> Result<Self> {
        let (scheme, token) = bearer(ask.headers)?;
        if let Some(parsed) = token::parse(token).filter(|_| scheme == AuthScheme::Bearer) {
            let scheme = schemes.of(&parsed).ok_or_else(invalid_token)?;
            let proof = if scheme.is_bound() {
                Some(verifier.ok_or_else(invalid_token)?.prove(token, ask)?)
            } else {
                None
            };
            let caller = Caller {
                scheme,
                lookup: parsed.lookup_id.to_owned(),
                verified: None,
                proof,
            };
            return Ok(Self {
                caller,
                token: Some(crate::Secret::new(token.to_owned())),
            });
        }
        let authenticate = verifier.filter(|_| !token.starts_with(token::LEAD));
        let checked = authenticate.ok_or_else(invalid_token)?.verify(token, ask).await?;
        Ok(Self {
            caller: Caller {
                scheme: schemes.sessions()?.1,
                lookup: checked.grant.clone(),
                verified: Some(Arc::new(checked)),
                proof: None,
            },
            token: None,
        })
    }

    /// Returns the scheme that the token is of.
    pub fn scheme(&self) -> Scheme {
        self.caller.scheme
    }

    /// Says whether the session has yet to list what this token may do. Only one that stands is asked to.
    pub(crate) fn outgrows(&self, credential: &Credential) -> bool {
        self.verified().is_some_and(|verified| {
            let listed = credential.token_scopes.unwrap_or_else(ScopeSet::all);
            verified.grows && verified.opening.is_some() && !listed.closed().covers(verified.scopes)
        })
    }

    /// Returns what was verified of a delegated token.
    pub(crate) fn verified(&self) -> Option<&Arc<VerifiedToken>> {
        self.caller.verified.as_ref()
    }

    /// Spends the proof of a token of an organization that is bound to a key, once for the request.
    ///
    /// Errors: `Unauthenticated` for a proof that served before.
    pub(crate) fn spend_proof(&self, organization: &OrganizationId) -> Result<()> {
        let proof = self.caller.proof.as_ref();
        proof.map_or(Ok(()), |proof| proof.spend(organization))
    }

    /// Says whether this is the token behind a row. Constant time in the token's bytes.
    ///
    /// Errors: `Unavailable` when the row names a key that is not here.
    pub fn matches(&self, credential: &Credential, keys: &Keys) -> Result<bool> {
        let Some(token) = &self.token else {
            return Ok(self.caller.verified.is_some());
        };
        let mac = keys.token_mac(&credential.pepper_id, token.expose())?;
        Ok(mac.as_slice().ct_eq(&credential.mac).into())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AuthScheme {
    Bearer,
    /// Of a token that is bound to a key (RFC 9449).
    Dpop,
}

/// Reads the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<(AuthScheme, &str)> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .ok_or_else(|| unauthenticated("this needs a bearer token"))?;
    if values.next().is_some() {
        return Err(invalid_token());
    }
    let bytes = value.as_bytes();
    let schemes = [
        (AuthScheme::Bearer, &b"bearer "[..]),
        (AuthScheme::Dpop, b"dpop "),
    ];
    let found = schemes.into_iter().find_map(|(scheme, lead)| {
        let (head, token) = bytes.split_at_checked(lead.len())?;
        head.eq_ignore_ascii_case(lead).then_some((scheme, token))
    });
    found
        .filter(|(_, token)| !token.is_empty() && token.len() <= MAX_TOKEN_BYTES)
        .and_then(|(scheme, token)| Some((scheme, std::str::from_utf8(token).ok()?)))
        .ok_or_else(invalid_token)
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
    pub fn authenticate(&self, now: Timestamp) -> Result<Actor> {
        let refuse = |code, message: &'static str| Err(Error::new(code, message).with("presented", true));
        let mut replay_only = false;
        // Revoked is revoked, also when the clock was set back since.
        if let Some(revoked_at) = self.revoked_at {
            replay_only = self.self_rotated && now < revoked_at.plus_secs(SELF_REPLAY_SECS);
            if !replay_only {
                let refused = refuse(Code::TokenRevoked, "the token was revoked");
                // Who did it is for readers of the audit log: whoever stole the token learns nobody's name (ADR 0108).
                return refused.map_err(|error| error.with("revokedAt", revoked_at.to_rfc3339()));
            }
        }
        if now >= self.expires_at {
            let refused = refuse(Code::TokenExpired, "the token has expired");
            return refused.map_err(|error| error.with("expiredAt", self.expires_at.to_rfc3339()));
        }
        if !self.enabled {
            return refuse(Code::Unauthenticated, "the account of this token is disabled");
        }
        Ok(Actor {
            organization: self.organization.clone(),
            kind: self.kind,
            id: self.principal_id.clone(),
            display: self.display.clone(),
            permission: match self.role {
                Some(role) => Permission::effective(role, self.account_scopes, self.token_scopes),
                None => Permission::none(),
            },
            has_role: self.role.is_some(),
            token: Some(TokenRef {
                id: self.token_id.clone(),
                prefix: self.prefix.clone(),
                is_own: self.is_own,
                issued_at: self.issued_at,
                expires_at: self.expires_at,
            }),
            replay_only,
            item: self.item.clone(),
            key: self.binding.key().map(str::to_owned),
        })
    }
}

/// Returns the 401 of a service account's token whose sessions were revoked (D7.11).
pub fn cut_at_mcp() -> Error {
    let message =
        "the sessions of this token were revoked; an administrator rotates the account to connect it again";
    Error::new(Code::TokenRevoked, message).with("presented", true)
}

/// What a credential is good for at an instant, without the names that anybody may change.
pub(crate) type AuthState = std::result::Result<(String, Permission, bool, bool, Option<String>), Code>;

impl Credential {
    /// Returns what the credential is good for, to compare two readings of it.
    pub(crate) fn auth_state(&self, now: Timestamp) -> AuthState {
        let actor = self.authenticate(now).map_err(|error| error.code())?;
        Ok((
            actor.id,
            actor.permission,
            actor.has_role,
            actor.replay_only,
            actor.item,
        ))
    }
}

/// Returns the 401 of a token that may only repeat its own rotation and asked for something else.
pub fn only_replays() -> Error {
    Error::new(Code::TokenRevoked, "the token was revoked").with("presented", true)
}

#[cfg(test)]
pub(crate) mod tests;
