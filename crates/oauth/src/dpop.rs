//! Proof that the sender of a token holds its key (RFC 9449).
//!
//! [`verify`] checks one proof against one request; [`ReplayCache`] sees to it that a proof serves once. A server's nonce
//! is not asked for: proofs live for a minute.

mod replay_cache;

pub use replay_cache::ReplayCache;

use crate::base64url;
use crate::claims::{LEEWAY_SECS, Payload};
use crate::error::Refusal;
use crate::jwks::Algorithm;
use crate::jwt::{Kind, UnverifiedToken};
use aws_lc_rs::digest::{SHA256, digest};
use provost_outbound::Address;
use subtle::ConstantTimeEq;

/// Seconds around `iat` in which a proof is accepted.
pub const WINDOW_SECS: i64 = LEEWAY_SECS;

/// An accepted proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The key's thumbprint of RFC 7638: what `cnf.jkt` of a bound token must be.
    pub thumbprint: String,
    /// `jti`.
    pub id: String,
    /// `iat`.
    pub issued_at: i64,
}

/// Verifies a proof for a request; `url` is what the client called, whose query is ignored. With `access_token`, the
/// proof must be made for it.
///
/// Errors: those of the form, `Missing`, `Malformed`, `Mismatch` (`htm`, `htu`, `ath`), `Expired`, `NotYetValid`.
pub fn verify(
    proof: &str,
    method: &str,
    url: &str,
    access_token: Option<&str>,
    now: i64,
) -> Result<Proof, Refusal> {
    let (proof, payload) = signed(proof, method, url)?;
    let issued_at = proof.issued_at;
    if now.saturating_sub(WINDOW_SECS) > issued_at {
        return Err(Refusal::Expired);
    }
    if issued_at > now.saturating_add(WINDOW_SECS) {
        return Err(Refusal::NotYetValid);
    }
    if let Some(token) = access_token {
        let expected = digest(&SHA256, token.as_bytes());
        let claimed = payload.required("ath")?;
        let claimed = base64url::decode(&claimed).map_err(|_| Refusal::Malformed("ath"))?;
        if !bool::from(claimed.as_slice().ct_eq(expected.as_ref())) {
            return Err(Refusal::Mismatch("ath"));
        }
    }
    Ok(proof)
}

/// Returns what a proof of this request says, whatever the time: it may be old, and somebody else may have read it. It admits nobody.
///
/// Errors: as of [`verify`], those of time excepted.
pub fn read(proof: &str, method: &str, url: &str) -> Result<Proof, Refusal> {
    signed(proof, method, url).map(|(proof, _)| proof)
}

fn signed(proof: &str, method: &str, url: &str) -> Result<(Proof, Payload), Refusal> {
    let proof = UnverifiedToken::read(proof, Kind::Dpop)?;
    // OA-1: here the key is what is proven, so that it comes with the proof.
    let key = proof.embedded.as_ref().ok_or(Refusal::Missing("jwk"))?;
    let payload = proof.verify(key)?;
    let id = payload.required("jti")?;
    if payload.required("htm")? != method {
        return Err(Refusal::Mismatch("htm"));
    }
    let claimed = target(&payload.long_text("htu")?.ok_or(Refusal::Missing("htu"))?);
    if claimed.is_none() || claimed != target(url) {
        return Err(Refusal::Mismatch("htu"));
    }
    let proof = Proof {
        thumbprint: key.thumbprint().to_owned(),
        id,
        issued_at: payload.required_instant("iat")?,
    };
    Ok((proof, payload))
}

/// Says whether a proof is of a key on an elliptic curve: such keys are small, and proofs of them cost little to check.
pub fn is_elliptic(proof: &str) -> bool {
    UnverifiedToken::read(proof, Kind::Dpop)
        .is_ok_and(|proof| matches!(proof.algorithm, Algorithm::EdDsa | Algorithm::Es256))
}

/// Returns scheme, host, port and path in one form (RFC 9449 §4.3: without query and fragment; RFC 3986 §6.2.2: case
/// of the host; §6.2.3: default port, empty path).
fn target(url: &str) -> Option<(bool, String, u16, String)> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let address = Address::parse(&url[..end]).ok()?;
    let path = if address.path.is_empty() {
        "/"
    } else {
        address.path
    };
    Some((
        address.is_https,
        address.host.to_ascii_lowercase(),
        address.port(),
        path.to_owned(),
    ))
}
