//! From a presented token to an actor (D2).
//!
//! The kernel recognizes tokens and judges their state; where the rows lie is an area's matter, behind the
//! ports [`Credentials`] and [`Sessions`]. What a delegated token says is checked by [`Verifier`], which may ask
//! others; whether its session still stands is read like everything else. Validity is read in the request's own
//! snapshot and never cached (D2.9).
//!
//! INVARIANT CR-1: a token is accepted iff its MAC matches (or its signature was verified), `now < expiresAt`, it is
//! not revoked and its account or session stands, all in one snapshot.
//! INVARIANT CR-2: a delegated token can do what its session can and what its own scopes say, never more.
//! INVARIANT CR-3: a delegated token acts by a session of its own organization, client and principal, and by no
//! other.

use crate::auth::{Actor, OrganizationId, Origin, Permission, Role, ScopeSet, TokenRef};
use crate::cx::Cx;
use crate::db::{Row, Statement, Tx};
use crate::error::{Code, Error, Result};
use crate::keys::Keys;
use crate::time::Timestamp;
use crate::token::{self, TokenKind};
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
    /// The client of a session.
    pub client: Option<String>,
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

    /// Where sessions lie; without them no delegated token is accepted and nobody can come by MCP.
    fn sessions(&self) -> Option<&dyn Sessions> {
        None
    }
}

/// Where sessions lie (D7).
pub trait Sessions: Send + Sync {
    /// Returns the statement that finds a session and the state of its principal by its grant (`?1`).
    fn lookup(&self) -> &'static Statement;

    /// Reads a row of that statement. The token's id is the session's.
    fn read(&self, row: &Row<'_>) -> Result<Credential>;

    /// Makes the session of a token that another issuer gave out and that is seen for the first time (D7.1).
    ///
    /// Errors: `Unauthenticated` when the organization knows no such principal.
    fn open(&self, cx: &mut Cx<'_>, verified: &Verified) -> Result<()>;

    /// Says whether a service account's token may come by MCP from a client (D7.11).
    fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission>;

    /// Makes the session of a service account's token and a client.
    fn join(&self, cx: &mut Cx<'_>, credential: &Credential, client: &McpClient) -> Result<()>;

    /// Notes a use that is 60 seconds newer than the stored one (D7.3).
    fn touch(&self, cx: &mut Cx<'_>, used: &Use) -> Result<()>;
}

/// What the sessions say of a service account's token at the MCP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A session of this token was cut.
    Refused,
    /// The session is there.
    Known {
        /// The session.
        session_id: String,
        /// Its last use, as stored.
        last_used_at: Timestamp,
    },
    /// There is none yet.
    New,
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
pub struct Verified {
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

impl std::fmt::Debug for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified")
            .field("organization", &self.organization)
            .finish_non_exhaustive()
    }
}

/// What a token is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The surface that was called.
    pub surface: &'a Surface,
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
pub enum Surface {
    /// As an HTTP operation.
    #[default]
    Http,
    /// Through the MCP endpoint.
    Mcp(McpClient),
}

impl Surface {
    /// Returns the path of the resource that a token must name as its audience (D2.6).
    pub const fn audience(&self) -> &'static str {
        match self {
            Surface::Http => "/api/headless/v1",
            Surface::Mcp(_) => "/mcp",
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
        ask: Ask<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Verified>> + Send + 'a>>;
}

/// What kind of row a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A service account's token.
    ServiceAccount,
    /// A gateway token.
    Gateway,
    /// A session, by a delegated token.
    Session,
}

/// Finds the row of a caller again, and bounds it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub kind: Kind,
    pub lookup: String,
    verified: Option<Arc<Verified>>,
}

impl Caller {
    /// Returns the statement that finds the row.
    pub fn statement(kind: Kind, credentials: &dyn Credentials) -> Result<&'static Statement> {
        match kind {
            Kind::ServiceAccount | Kind::Gateway => Ok(credentials.lookup()),
            Kind::Session => Ok(sessions(credentials)?.lookup()),
        }
    }

    /// Reads the row.
    pub fn read(kind: Kind, credentials: &dyn Credentials, row: &Row<'_>) -> Result<Credential> {
        match kind {
            Kind::ServiceAccount | Kind::Gateway => credentials.read(row),
            Kind::Session => sessions(credentials)?.read(row),
        }
    }

    /// Takes from a session what its token does not say (CR-2).
    ///
    /// Errors: `Unauthenticated` for a session of another organization, client or principal.
    pub fn bound(&self, mut credential: Credential) -> Result<Credential> {
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

pub(crate) fn sessions(credentials: &dyn Credentials) -> Result<&dyn Sessions> {
    credentials.sessions().ok_or_else(invalid_token)
}

/// One use of a token or of a session.
#[derive(Clone, Debug)]
pub struct Use {
    /// Whether a token or a session was used.
    pub kind: Kind,
    /// The token's organization.
    pub organization: OrganizationId,
    /// The token.
    pub token_id: String,
    /// When.
    pub at: Timestamp,
    /// From where.
    pub source_ip: IpAddr,
}

/// A token as it was presented: well formed and its checksum right, or verified; its row is not looked up yet.
pub struct Presented {
    pub(crate) caller: Caller,
    /// The token itself, where its row holds a MAC of it.
    token: Option<crate::Secret<String>>,
}

impl std::fmt::Debug for Presented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Presented({:?})", self.caller.kind)
    }
}

impl Presented {
    /// Recognizes the token of a request (D2.1): ours by its text, a delegated one by `verifier`.
    ///
    /// Errors: `Unauthenticated` for no header, two, another scheme, a malformed value or a wrong checksum; those of
    /// the verifier.
    pub(crate) async fn recognize(verifier: Option<&dyn Verifier>, ask: Ask<'_>) -> Result<Self> {
        let (scheme, token) = bearer(ask.headers)?;
        if let Some(parsed) = token::parse(token).filter(|_| scheme == Scheme::Bearer) {
            let kind = match parsed.kind {
                TokenKind::ServiceAccount => Kind::ServiceAccount,
                TokenKind::Gateway => Kind::Gateway,
                TokenKind::Refresh => return Err(invalid_token()),
            };
            let caller = Caller {
                kind,
                lookup: parsed.lookup_id.to_owned(),
                verified: None,
            };
            return Ok(Self {
                caller,
                token: Some(crate::Secret::new(token.to_owned())),
            });
        }
        let judge = verifier.filter(|_| !token.starts_with("prov_"));
        let checked = judge.ok_or_else(invalid_token)?.verify(token, ask).await?;
        Ok(Self {
            caller: Caller {
                kind: Kind::Session,
                lookup: checked.grant.clone(),
                verified: Some(Arc::new(checked)),
            },
            token: None,
        })
    }

    /// Returns what kind of row the token stands for.
    pub fn kind(&self) -> Kind {
        self.caller.kind
    }

    /// Says whether the session has yet to list what this token may do. Only one that stands is asked to.
    pub(crate) fn outgrows(&self, credential: &Credential) -> bool {
        self.verified().is_some_and(|verified| {
            let listed = credential.token_scopes.unwrap_or_else(ScopeSet::all);
            verified.grows && verified.opening.is_some() && !listed.closed().covers(verified.scopes)
        })
    }

    /// Returns what was verified of a delegated token.
    pub(crate) fn verified(&self) -> Option<&Arc<Verified>> {
        self.caller.verified.as_ref()
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
enum Scheme {
    Bearer,
    /// Of a token that is bound to a key (RFC 9449).
    Dpop,
}

/// Reads the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<(Scheme, &str)> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .ok_or_else(|| unauthenticated("this needs a bearer token"))?;
    if values.next().is_some() {
        return Err(invalid_token());
    }
    let bytes = value.as_bytes();
    let schemes = [(Scheme::Bearer, &b"bearer "[..]), (Scheme::Dpop, b"dpop ")];
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
            permission: match self.role {
                Some(role) => Permission::effective(role, self.account_scopes, self.token_scopes),
                None => Permission::none(),
            },
            has_role: self.role.is_some(),
            token: Some(TokenRef {
                id: self.token_id.clone(),
                prefix: self.prefix.clone(),
            }),
            replay_only,
            item: self.item.clone(),
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
pub(crate) type Standing = std::result::Result<(String, Permission, bool, bool, Option<String>), Code>;

impl Credential {
    /// Returns what the credential is good for, to compare two readings of it.
    pub(crate) fn standing(&self, now: Timestamp) -> Standing {
        let actor = self.judge(now).map_err(|error| error.code())?;
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
mod tests {
    use super::*;

    fn credential() -> Credential {
        Credential {
            organization: OrganizationId::parse("acme").unwrap(),
            kind: "service_account",
            principal_id: "sa_1".into(),
            display: "bot".into(),
            role: Some(Role::Admin),
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
            client: None,
        }
    }

    #[test]
    fn debug_shows_whose_it_is_and_nothing_that_opens_a_door() {
        let verified = Verified {
            organization: OrganizationId::parse("acme").unwrap(),
            grant: "grant-of-somebody".into(),
            client: None,
            principal: None,
            scopes: ScopeSet::all(),
            grows: false,
            expires_at: Timestamp::from_ms(1),
            opening: None,
        };
        let said = format!("{verified:?}");
        assert!(
            said.contains("acme") && !said.contains("grant-of-somebody"),
            "{said}"
        );
        let presented = Presented {
            caller: Caller {
                kind: Kind::ServiceAccount,
                lookup: "public-part".into(),
                verified: None,
            },
            token: Some(crate::Secret::new("prov_sat_the_secret".to_owned())),
        };
        let said = format!("{presented:?}");
        assert!(
            said.contains("ServiceAccount") && !said.contains("the_secret"),
            "{said}"
        );
    }

    /// Proves CR-1.
    #[test]
    fn expiry_is_exclusive_to_the_millisecond() {
        assert!(credential().judge(Timestamp::from_ms(9_999)).is_ok());
        let error = credential().judge(Timestamp::from_ms(10_000)).unwrap_err();
        assert_eq!(error.code(), Code::TokenExpired);
    }

    /// Proves CR-1.
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
    fn one_header_of_a_known_scheme_carries_the_token() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, http::HeaderValue::from_bytes(value).unwrap());
            }
            let found = bearer(&headers).map(|(scheme, token)| (scheme == Scheme::Dpop, token.to_owned()));
            found.map_err(|error| error.member("presented").is_some())
        };
        assert_eq!(read(&[b"Bearer t"]), Ok((false, "t".into())));
        assert_eq!(read(&[b"bEARER t"]), Ok((false, "t".into())));
        assert_eq!(read(&[b"DPoP t"]), Ok((true, "t".into())));
        assert_eq!(read(&[]), Err(false), "nothing was presented");
        for wrong in [
            &b"Bearer"[..],
            b"Bearer ",
            b"DPoP ",
            b"Basic t",
            b"t",
            b"Bearer \xff",
        ] {
            assert_eq!(read(&[wrong]), Err(true), "{wrong:?}");
        }
        assert_eq!(read(&[b"Bearer t", b"Bearer t"]), Err(true), "two");
        let longest = [&b"Bearer "[..], &[b't'; MAX_TOKEN_BYTES]].concat();
        assert!(read(&[&longest]).is_ok());
        assert_eq!(read(&[&[&longest[..], b"t"].concat()]), Err(true));
    }

    /// Says yes to everything that it is asked about.
    struct Trusting;

    impl Verifier for Trusting {
        fn verify<'a>(
            &'a self,
            token: &'a str,
            _ask: Ask<'a>,
        ) -> Pin<Box<dyn Future<Output = Result<Verified>> + Send + 'a>> {
            Box::pin(async move {
                Ok(Verified {
                    organization: OrganizationId::parse("acme").unwrap(),
                    grant: token.to_owned(),
                    client: None,
                    principal: None,
                    scopes: ScopeSet::default(),
                    grows: false,
                    expires_at: Timestamp::EPOCH,
                    opening: None,
                })
            })
        }
    }

    #[tokio::test]
    async fn tokens_of_ours_are_never_shown_to_the_verifier() {
        let recognize = async |value: &str, verifier: Option<&dyn Verifier>| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, http::HeaderValue::from_str(value).unwrap());
            let ask = Ask {
                surface: &Surface::Http,
                method: &Method::GET,
                path: "/",
                headers: &headers,
                origin: &Origin::internal(Timestamp::EPOCH, &mut crate::entropy::UnitRng::new([2; 32])),
            };
            let found = Presented::recognize(verifier, ask).await.ok()?;
            Some((
                found.kind(),
                found.caller.lookup.clone(),
                found.verified().is_some(),
            ))
        };
        let made = |kind| {
            let minted = token::mint(kind, &mut crate::entropy::UnitRng::new([1; 32]));
            (minted.token.expose().clone(), minted.lookup_id)
        };
        let trusting = Some(&Trusting as &dyn Verifier);
        for (ours, kind) in [
            (TokenKind::ServiceAccount, Kind::ServiceAccount),
            (TokenKind::Gateway, Kind::Gateway),
        ] {
            let (text, lookup) = made(ours);
            let found = recognize(&format!("Bearer {text}"), trusting).await;
            assert_eq!(found, Some((kind, lookup, false)));
            assert_eq!(recognize(&format!("DPoP {text}"), trusting).await, None);
        }
        let (refresh, _) = made(TokenKind::Refresh);
        assert_eq!(recognize(&format!("Bearer {refresh}"), trusting).await, None);
        assert_eq!(recognize("Bearer prov_typo", trusting).await, None);
        let theirs = Some((Kind::Session, "theirs".to_owned(), true));
        assert_eq!(recognize("Bearer theirs", trusting).await, theirs);
        assert_eq!(recognize("DPoP theirs", trusting).await, theirs);
        assert_eq!(recognize("Bearer theirs", None).await, None);
    }

    #[test]
    fn who_has_no_role_is_known_and_may_do_nothing() {
        let without = Credential {
            role: None,
            ..credential()
        };
        let actor = without.judge(Timestamp::EPOCH).unwrap();
        assert!(!actor.has_role && credential().judge(Timestamp::EPOCH).unwrap().has_role);
        assert_eq!(actor.permission, Permission::none());
    }

    /// Proves CR-1.
    #[test]
    fn a_disabled_account_is_a_stranger() {
        let mut disabled = credential();
        disabled.enabled = false;
        assert_eq!(
            disabled.judge(Timestamp::EPOCH).unwrap_err().code(),
            Code::Unauthenticated
        );
    }

    /// Its 256 bits are what keeps a token from being guessed: none of them may be left out.
    /// Proves CR-1.
    #[test]
    fn a_mac_that_differs_in_one_bit_or_in_its_length_is_another_tokens() {
        let dir = std::env::temp_dir().join(format!("provost-credential-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let entropy = crate::entropy::SeededEntropy::new(1);
        let keys = Keys::create(&dir, Timestamp::EPOCH, &entropy).unwrap();
        let presented = Presented {
            caller: Caller {
                kind: Kind::ServiceAccount,
                lookup: "x".into(),
                verified: None,
            },
            token: Some(crate::Secret::new("prov_sat_x".to_owned())),
        };
        let (pepper, mac) = keys.token_mac_current("prov_sat_x");
        let pepper = pepper.as_str();
        let stored = |mac: &[u8], pepper: &str| Credential {
            mac: mac.to_vec(),
            pepper_id: pepper.to_owned(),
            ..credential()
        };
        assert!(presented.matches(&stored(&mac, pepper), &keys).unwrap());
        for bit in 0..256 {
            let mut other = mac;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !presented.matches(&stored(&other, pepper), &keys).unwrap(),
                "bit {bit}"
            );
        }
        for length in [0, 1, 8, 16, 31] {
            assert!(
                !presented.matches(&stored(&mac[..length], pepper), &keys).unwrap(),
                "{length} bytes"
            );
        }
        // An unknown pepper is our own row's word: nobody is turned away for it.
        let error = presented.matches(&stored(&mac, "pepper-2"), &keys).unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Proves CR-2, CR-3.
    #[test]
    fn a_delegated_token_can_do_what_it_and_its_session_both_say_until_the_first_of_them_ends() {
        let caller = |scopes: &[&str], ms| Caller {
            kind: Kind::Session,
            lookup: "x".into(),
            verified: Some(Arc::new(Verified {
                organization: OrganizationId::parse("acme").unwrap(),
                grant: "x".into(),
                client: Some("client".into()),
                principal: Some("sa_1".into()),
                scopes: ScopeSet::of(scopes),
                grows: false,
                expires_at: Timestamp::from_ms(ms),
                opening: None,
            })),
        };
        let session = |scopes: Option<&[&str]>| Credential {
            token_scopes: scopes.map(ScopeSet::of),
            client: Some("client".into()),
            ..credential()
        };
        let bound = caller(&["audit:read", "events:write"], 5_000)
            .bound(session(Some(&["events:read", "audit:export"])))
            .unwrap();
        assert_eq!(bound.token_scopes, Some(ScopeSet::of(&["events:read"])));
        assert_eq!(bound.expires_at, Timestamp::from_ms(5_000));
        let bound = caller(&["audit:read"], 50_000).bound(session(None)).unwrap();
        assert_eq!(bound.token_scopes, Some(ScopeSet::of(&["audit:read"])));
        assert_eq!(bound.expires_at, Timestamp::from_ms(10_000));
        // Each alone: another organization, another client, no client, another principal.
        for foreign in [
            Credential {
                organization: OrganizationId::parse("umbrella").unwrap(),
                ..session(None)
            },
            Credential {
                client: Some("client-2".into()),
                ..session(None)
            },
            Credential {
                client: None,
                ..session(None)
            },
            Credential {
                principal_id: "sa_2".into(),
                ..session(None)
            },
        ] {
            let refused = caller(&["audit:read"], 5_000).bound(foreign).unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
        }
    }
}
