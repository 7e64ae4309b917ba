//! Tokens of a pinned external issuer that are exchanged for one of ours (RFC 8693 §2.1).

use crate::access_token::{Issuer, MAX_LIFETIME_SECS};
use crate::claims::Confirmation;
use crate::error::Refusal;
use crate::jwt::{Kind, UnverifiedToken};
use provost_outbound::is_same_url;

/// The grant type of an exchange.
pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// What `subject_token_type` says a subject token is. A plain `…:jwt` is not served: its purpose could be any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectTokenType {
    /// `urn:ietf:params:oauth:token-type:id_token`.
    IdToken,
    /// `urn:ietf:params:oauth:token-type:access_token`, in the form of RFC 9068.
    AccessToken,
}

impl SubjectTokenType {
    /// Reads the value of `subject_token_type`.
    pub fn parse(urn: &str) -> Option<Self> {
        [Self::IdToken, Self::AccessToken]
            .into_iter()
            .find(|known| known.as_str() == urn)
    }

    /// Returns the value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IdToken => "urn:ietf:params:oauth:token-type:id_token",
            Self::AccessToken => "urn:ietf:params:oauth:token-type:access_token",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::IdToken => Kind::IdToken,
            Self::AccessToken => Kind::AccessToken,
        }
    }
}

/// Whom a subject token is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
    /// `client_id` or `azp`: the client that the token was issued to.
    pub client_id: Option<String>,
    /// `aud`.
    pub audiences: Vec<String>,
    /// `scope`, of an access token.
    pub scopes: Vec<String>,
    /// `organization_id`, where the issuer says it.
    pub organization: Option<String>,
    /// `jti`, which an identity token need not have.
    pub id: Option<String>,
    /// `sid`.
    pub session: Option<String>,
    /// `iat`.
    pub issued_at: i64,
    /// `exp`: what is exchanged for it should not live longer.
    pub expires_at: i64,
    /// `email`, where `email_verified` vouches for it.
    pub verified_email: Option<String>,
    /// `cnf`: the key that whoever exchanges the token must prove to hold.
    pub confirmation: Option<Confirmation>,
}

/// Returns which issuer a subject token claims to be from.
pub fn peek_issuer(token: &str, kind: SubjectTokenType) -> Result<String, Refusal> {
    UnverifiedToken::read(token, kind.kind())?
        .unverified_payload()?
        .required("iss")
}

/// Verifies a subject token: signature, issuer, one of `audiences` (the client's or this server's name at the
/// issuer), period.
///
/// Errors: those of the form and the signature, `Issuer`, `Audience`, `Missing`, `Malformed`, `Limit`, `Expired`,
/// `NotYetValid`, `Lifetime`.
pub fn verify(
    token: &str,
    kind: SubjectTokenType,
    issuer: &Issuer,
    audiences: &[&str],
    now: i64,
) -> Result<Subject, Refusal> {
    let token = UnverifiedToken::read(token, kind.kind())?;
    let payload = token.verify_with(&issuer.keys, &issuer.algorithms)?;
    if payload.required("iss")? != issuer.url {
        return Err(Refusal::Issuer);
    }
    let named = payload.audiences()?;
    let is_ours = |name: &String| audiences.iter().any(|ours| is_same_url(ours, name));
    if !named.iter().any(is_ours) {
        return Err(Refusal::Audience);
    }
    let is_access = kind == SubjectTokenType::AccessToken;
    let client_id = payload.client_id(if is_access { "client_id" } else { "azp" })?;
    if is_access && client_id.is_none() {
        return Err(Refusal::Missing("client_id"));
    }
    // OpenID Connect Core §3.1.3.7: an identity token for several says for whom it was made, and that is us.
    if !is_access && (named.len() > 1 || client_id.is_some()) && !client_id.as_ref().is_some_and(is_ours) {
        return Err(Refusal::Audience);
    }
    let id = payload.text("jti")?;
    if is_access && id.is_none() {
        return Err(Refusal::Missing("jti"));
    }
    // RFC 8693 §4.4: it names who may bring the token.
    payload.must_lack("may_act")?;
    let period = payload.period(now, MAX_LIFETIME_SECS)?;
    Ok(Subject {
        issuer: issuer.url.clone(),
        subject: payload.required("sub")?,
        client_id,
        audiences: named,
        scopes: if is_access { payload.scopes()? } else { Vec::new() },
        organization: payload.text("organization_id")?,
        id,
        session: payload.text("sid")?,
        issued_at: period.issued_at,
        expires_at: period.expires_at,
        verified_email: payload.verified_email(),
        confirmation: payload.limits()?,
    })
}
