//! The e-mail address that an issuer vouches for, in a token that was verified before.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_oauth::{Algorithm, json};

/// Returns the address that a verified token says to be verified.
pub fn of_token(token: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    of_claims(&payload)
}

/// Returns the address that claims say to be verified.
pub fn of_claims(claims: &[u8]) -> Option<String> {
    provost_oauth::verified_email(&json::object(claims).ok()?)
}

/// Returns the name of the key that a token asks for. Not verified: it says which keys to look for.
pub fn key_of(token: &str) -> Option<String> {
    header(token)?.get("kid")?.as_str().map(str::to_owned)
}

/// Returns the algorithm that a token asks for. Not verified either.
pub fn algorithm_of(token: &str) -> Option<Algorithm> {
    Algorithm::parse(header(token)?.get("alg")?.as_str()?)
}

fn header(token: &str) -> Option<json::Object> {
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next()?).ok()?;
    json::object(&header).ok()
}
