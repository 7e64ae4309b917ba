//! Identity assertion authorization grants (ID-JAG): an enterprise's issuer says which user a client acts for.
//!
//! Source: `draft-ietf-oauth-identity-assertion-authz-grant`, §§ 3 and 4.4, as MCP's enterprise-managed authorization
//! uses it. The client presents it as a JWT bearer grant, and proves itself besides.
//!
//! Absent on purpose: single use. The draft lets a client present an unexpired grant again instead of a refresh
//! token; the id is returned so that a caller can be stricter.

use crate::access_token::Issuer;
use crate::claims::Confirmation;
use crate::error::Refusal;
use crate::jwt::{Kind, UnverifiedToken};
use provost_outbound::is_same_url;
use serde_json::Value;

/// The grant profile that metadata advertises.
pub const GRANT_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// The grant type with which it is presented.
pub const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// LIMIT: seconds from `iat` to `exp`; issuers use minutes.
pub const MAX_LIFETIME_SECS: i64 = 60 * 60;

/// An accepted grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdJag {
    /// `iss`: the enterprise's issuer.
    pub issuer: String,
    /// `sub`: the user at that issuer.
    pub subject: String,
    /// `client_id`: the client here, which is the one that presents the grant.
    pub client_id: String,
    /// `resource`: what the access token is to be for; each one is a resource of this server.
    pub resources: Vec<String>,
    /// `scope`: the most that may be granted; none when the issuer names none.
    pub scopes: Vec<String>,
    /// `organization_id`, where the issuer says it.
    pub organization: Option<String>,
    /// `jti`.
    pub id: String,
    /// `iat`.
    pub issued_at: i64,
    /// `exp`.
    pub expires_at: i64,
    /// `email`, where `email_verified` vouches for it.
    pub verified_email: Option<String>,
    /// `cnf`: the key that the client must prove to hold.
    pub confirmation: Option<Confirmation>,
}

/// Verifies a grant of a pinned issuer: `own_issuer` is this authorization server, `client_id` the client that proved
/// itself, `resources` what this server issues tokens for.
///
/// Errors: those of the form and the signature, `Issuer`, `Audience`, `Mismatch` (`client_id`, `resource`),
/// `Missing`, `Limit`, `Expired`, `NotYetValid`, `Lifetime`.
pub fn verify(
    assertion: &str,
    issuer: &Issuer,
    own_issuer: &str,
    client_id: &str,
    resources: &[&str],
    now: i64,
) -> Result<IdJag, Refusal> {
    let assertion = UnverifiedToken::read(assertion, Kind::IdJag)?;
    let payload = assertion.verify_with(&issuer.keys, &issuer.algorithms)?;
    if payload.required("iss")? != issuer.url {
        return Err(Refusal::Issuer);
    }
    // One audience: a grant for several servers could be carried from one to the other.
    if !matches!(payload.audiences()?.as_slice(), [only] if is_same_url(only, own_issuer)) {
        return Err(Refusal::Audience);
    }
    if payload.required("client_id")? != client_id {
        return Err(Refusal::Mismatch("client_id"));
    }
    let named = match payload.get("resource") {
        None => return Err(Refusal::Missing("resource")),
        Some(Value::Array(_)) => payload.texts("resource")?.unwrap_or_default(),
        Some(_) => vec![payload.required("resource")?],
    };
    let is_ours = |resource: &String| resources.iter().any(|ours| is_same_url(ours, resource));
    if !named.iter().all(is_ours) {
        return Err(Refusal::Mismatch("resource"));
    }
    // Who may act with it, and for whom within a tenant, is not understood here (OA-5).
    for name in ["may_act", "aud_tenant"] {
        payload.must_lack(name)?;
    }
    let period = payload.period(now, MAX_LIFETIME_SECS)?;
    Ok(IdJag {
        issuer: issuer.url.clone(),
        subject: payload.required("sub")?,
        client_id: client_id.to_owned(),
        resources: named,
        scopes: payload.scopes()?,
        organization: payload.text("organization_id")?,
        id: payload.required("jti")?,
        issued_at: period.issued_at,
        expires_at: period.expires_at,
        verified_email: payload.verified_email(),
        confirmation: payload.limits()?,
    })
}

/// Returns which issuer a grant claims to be from, to choose whose keys to verify with.
pub fn peek_issuer(assertion: &str) -> Result<String, Refusal> {
    UnverifiedToken::read(assertion, Kind::IdJag)?
        .unverified_payload()?
        .required("iss")
}
