//! Proof key for code exchange (RFC 7636): S256 only, `plain` protects nothing.

use crate::base64url;
use crate::error::Refusal;
use aws_lc_rs::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

/// The only method.
pub const METHOD: &str = "S256";

/// Checks the challenge of an authorization request, where both parameters are required.
///
/// Errors: `Challenge`.
pub fn check_challenge(method: Option<&str>, challenge: &str) -> Result<(), Refusal> {
    if method != Some(METHOD) {
        return Err(Refusal::Challenge);
    }
    let digest = base64url::decode_exactly::<32>(challenge);
    digest.map(drop).map_err(|_| Refusal::Challenge)
}

/// Checks that a verifier is the one whose digest the challenge is, in constant time.
///
/// Errors: `Challenge`.
pub fn verify(challenge: &str, verifier: &str) -> Result<(), Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(allowed) {
        return Err(Refusal::Challenge);
    }
    let expected = base64url::encode(digest(&SHA256, verifier.as_bytes()));
    let same = expected.as_bytes().ct_eq(challenge.as_bytes());
    bool::from(same).then_some(()).ok_or(Refusal::Challenge)
}
