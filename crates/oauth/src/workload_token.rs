//! Tokens that say which workload runs: a job of GitHub or GitLab, a pod of Kubernetes. They are exchanged for a session of a
//! service account (RFC 8693 §2.1).
//!
//! What they have in common with an identity token is that nobody else is to accept them: one audience, the name of this
//! server. Which claims name the workload is the business of whoever trusts its issuer; here they are verified, and returned
//! as they stand.

use crate::access_token::{Issuer, MAX_LIFETIME_SECS, TokenPreview};
use crate::claims::{Confirmation, Payload};
use crate::error::Refusal;
use crate::json::Object;
use crate::jwt::{Kind, UnverifiedToken};
use provost_outbound::{Address, is_same_url};

/// What `subject_token_type` may say of such a token: that it is a JWT, or that it is an identity token.
pub const TYPES: [&str; 2] = [
    "urn:ietf:params:oauth:token-type:jwt",
    "urn:ietf:params:oauth:token-type:id_token",
];

/// Returns where an issuer says where its keys are (OpenID Connect Discovery §4.1).
pub fn discovery_url(issuer: &str) -> String {
    format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    )
}

/// Returns where the keys of an issuer are, as its own document says it.
///
/// Errors: `Json`; `Issuer` for the document of another one; `Missing`; `Url` for keys that are asked for less safely than the
/// document was.
pub fn keys_url(document: &[u8], issuer: &str) -> Result<String, Refusal> {
    let members = Payload::parse(document)?;
    if members.required("issuer")? != issuer {
        return Err(Refusal::Issuer);
    }
    let url = members.required("jwks_uri")?;
    if Address::parse(issuer)?.is_https && !Address::parse(&url)?.is_https {
        return Err(Refusal::Url("it must begin with https://"));
    }
    Ok(url)
}

/// What a token has to be.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The one audience.
    pub audience: &'a str,
    /// Whether the audience is a name of this server, of which the spelling of the host does not matter.
    pub is_own_name: bool,
    /// How long ago it may have been issued. Units: seconds.
    pub max_age_secs: i64,
}

/// A token that was verified.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadToken {
    /// `sub`.
    pub subject: String,
    /// `jti`, which clusters before Kubernetes 1.32 need not send.
    pub id: Option<String>,
    /// `iat`. Units: seconds since the Unix epoch, UTC.
    pub issued_at: i64,
    /// `exp`. Units: seconds since the Unix epoch, UTC.
    pub expires_at: i64,
    /// `cnf`: the key that whoever brings the token must prove to hold.
    pub confirmation: Option<Confirmation>,
    /// All claims, those above included.
    pub claims: Object,
}

impl WorkloadToken {
    /// Returns a claim that is a text.
    pub fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }
}

/// Returns which issuer a token claims to be from, and by which key; nothing of it is verified.
///
/// Errors: those of the form, `Missing`, `Malformed`.
pub fn peek(token: &str) -> Result<TokenPreview, Refusal> {
    let token = UnverifiedToken::read(token, Kind::IdToken)?;
    let issuer = token.unverified_payload()?.required("iss")?;
    Ok(TokenPreview {
        issuer,
        kid: token.key_id,
        algorithm: token.algorithm,
    })
}

/// Verifies a token: signature, issuer, the one audience, period and age.
///
/// Errors: those of the form and the signature, `Issuer`, `Audience`, `Missing`, `Malformed`, `Limit`, `Expired`,
/// `NotYetValid`, `Lifetime`, `Mismatch("iat")` for one that was issued too long ago.
pub fn verify(
    token: &str,
    issuer: &Issuer,
    expected: Expected<'_>,
    now: i64,
) -> Result<WorkloadToken, Refusal> {
    let token = UnverifiedToken::read(token, Kind::IdToken)?;
    let payload = token.verify_with(&issuer.keys, &issuer.algorithms)?;
    if payload.required("iss")? != issuer.url {
        return Err(Refusal::Issuer);
    }
    // One audience: a token for several servers could be carried from one of them to this one.
    let is_ours = |name: &str| {
        name == expected.audience || expected.is_own_name && is_same_url(name, expected.audience)
    };
    if !matches!(payload.audiences()?.as_slice(), [only] if is_ours(only)) {
        return Err(Refusal::Audience);
    }
    // RFC 8693 §4.4: it names who may bring the token.
    payload.must_lack("may_act")?;
    let period = payload.period(now, MAX_LIFETIME_SECS)?;
    // The leeway is for clocks that run behind. What is exchanged for a token ends with it, so that one that is over gives
    // nothing.
    if period.expires_at <= now {
        return Err(Refusal::Expired);
    }
    let oldest = now.saturating_sub(expected.max_age_secs.saturating_add(crate::claims::LEEWAY_SECS));
    if period.issued_at < oldest {
        return Err(Refusal::Mismatch("iat"));
    }
    Ok(WorkloadToken {
        subject: payload.required("sub")?,
        id: payload.text("jti")?,
        issued_at: period.issued_at,
        expires_at: period.expires_at,
        confirmation: payload.limits()?,
        claims: payload.into_members(),
    })
}
