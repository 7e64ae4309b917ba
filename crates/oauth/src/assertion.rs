//! `private_key_jwt`: a client proves itself with a token that it signed (RFC 7523 §3, `OpenID` Connect Core §9).

use crate::claims::LEEWAY_SECS;
use crate::error::Refusal;
use crate::jwks::{Algorithm, KeySet};
use crate::jwt::{Kind, UnverifiedToken};
use provost_outbound::is_same_url;

/// The value of `client_assertion_type`.
pub const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// LIMIT: seconds for which an assertion may still be valid.
pub const MAX_LIFETIME_SECS: i64 = 5 * 60;

/// An accepted assertion. The caller sees to it that each `id` of a client serves once
/// ([`crate::dpop::Replays::admit_until`] with [`ClientAssertion::accepted_until`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAssertion {
    /// `jti`.
    pub id: String,
    /// `organization_id`, where the client says it: the one organization in which it acts.
    pub organization: Option<String>,
    /// `exp`; the assertion is accepted until a minute later.
    pub expires_at: i64,
}

impl ClientAssertion {
    /// Returns the last second in which the assertion is accepted.
    pub fn accepted_until(&self) -> i64 {
        self.expires_at.saturating_add(LEEWAY_SECS - 1)
    }
}

/// Verifies a client's assertion with the client's registered keys; `audiences` are the names of this authorization
/// server: its issuer URL, and its token endpoint for older clients.
///
/// Errors: those of the form and the signature, `Mismatch` (`iss`, `sub`), `Audience`, `Limit`, `Malformed`, `Expired`,
/// `NotYetValid`, `Lifetime`.
pub fn verify(
    assertion: &str,
    client_id: &str,
    keys: &KeySet,
    audiences: &[&str],
    now: i64,
) -> Result<ClientAssertion, Refusal> {
    let assertion = UnverifiedToken::read(assertion, Kind::ClientAssertion)?;
    let payload = assertion.verify_with(keys, &Algorithm::ALL)?;
    for name in ["iss", "sub"] {
        if payload.required(name)? != client_id {
            return Err(Refusal::Mismatch(name));
        }
    }
    // All of them: an assertion that another server may use too could be carried from there to here.
    if !payload
        .audiences()?
        .iter()
        .all(|audience| audiences.iter().any(|ours| is_same_url(ours, audience)))
    {
        return Err(Refusal::Audience);
    }
    let id = payload.required("jti")?;
    let expires_at = payload.required_instant("exp")?;
    if now.saturating_sub(LEEWAY_SECS) >= expires_at {
        return Err(Refusal::Expired);
    }
    if expires_at > now.saturating_add(MAX_LIFETIME_SECS + LEEWAY_SECS) {
        return Err(Refusal::Lifetime);
    }
    for name in ["iat", "nbf"] {
        if payload
            .instant(name)?
            .is_some_and(|instant| instant > now.saturating_add(LEEWAY_SECS))
        {
            return Err(Refusal::NotYetValid);
        }
    }
    payload.must_lack("may_act")?;
    // A client that binds what it says to a key means that only the holder of that key may send it.
    if payload.limits()?.is_some() {
        return Err(Refusal::Limit("cnf"));
    }
    Ok(ClientAssertion {
        id,
        organization: payload.text("organization_id")?,
        expires_at,
    })
}
