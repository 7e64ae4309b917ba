//! Access tokens of RFC 9068, as a resource server accepts them (D2.6).
//!
//! [`peek`] tells which issuer to ask; what it returns is not verified. [`verify`] decides.

use crate::claims::{Claims, is_for};
use crate::error::Refusal;
use crate::jwks::{Algorithm, KeySet};
use crate::jwt::{Kind, UnverifiedToken};
use std::sync::Arc;

/// LIMIT: seconds from `iat` to `exp` (D2.6).
pub const MAX_LIFETIME_SECS: i64 = 24 * 60 * 60;

/// An issuer that is pinned in the configuration.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// Its identifier, exactly as `iss` says it.
    pub url: String,
    /// What it may sign with.
    pub algorithms: Vec<Algorithm>,
    /// Its public keys.
    pub keys: Arc<KeySet>,
}

/// What an unverified token says about who verifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPreview {
    /// `iss`.
    pub issuer: String,
    /// `kid`: a reason to fetch keys anew when the issuer's keys lack it.
    pub kid: Option<String>,
    /// `alg`.
    pub algorithm: Algorithm,
}

/// Returns which issuer an access token claims to be from.
///
/// Errors: those of the form (`Shape`, `Encoding`, `Json`, `Algorithm`, `Type`, `Header`, …), `Missing`, `Malformed`.
pub fn peek(token: &str) -> Result<TokenPreview, Refusal> {
    let token = UnverifiedToken::read(token, Kind::AccessToken)?;
    let issuer = token.unverified_payload()?.required("iss")?;
    Ok(TokenPreview {
        issuer,
        kid: token.key_id,
        algorithm: token.algorithm,
    })
}

/// Verifies an access token: signature, issuer, one of `audiences`, period, and that all required claims are there.
///
/// The caller compares `organization`, and checks a `confirmation`. Cost: one signature check.
pub fn verify(token: &str, issuer: &Issuer, audiences: &[&str], now: i64) -> Result<Claims, Refusal> {
    let token = UnverifiedToken::read(token, Kind::AccessToken)?;
    let payload = token.verify_with(&issuer.keys, &issuer.algorithms)?;
    if payload.required("iss")? != issuer.url {
        return Err(Refusal::Issuer);
    }
    let named = payload.audiences()?;
    if !is_for(&named, audiences) {
        return Err(Refusal::Audience);
    }
    let period = payload.period(now, MAX_LIFETIME_SECS)?;
    Ok(Claims {
        issuer: issuer.url.clone(),
        subject: payload.required("sub")?,
        client_id: payload
            .client_id("client_id")?
            .ok_or(Refusal::Missing("client_id"))?,
        organization: payload.required("organization_id")?,
        scopes: payload.scopes()?,
        audiences: named,
        issued_at: period.issued_at,
        not_before: period.not_before,
        expires_at: period.expires_at,
        id: payload.required("jti")?,
        session: payload.text("sid")?,
        confirmation: payload.limits()?,
        actor: payload.actor()?,
    })
}
