//! Asking an issuer about an opaque token (RFC 7662), and reading its answer as strictly as a token.

use crate::access_token::MAX_LIFETIME_SECS;
use crate::base64url;
use crate::claims::{Claims, Payload, is_for};
use crate::error::Refusal;
use aws_lc_rs::digest::{SHA256, digest};
use provost_outbound::Limits;
use std::fmt::{self, Write};
use std::time::Duration;
use zeroize::Zeroizing;

/// LIMIT: bytes of an answer.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// LIMIT: an answer about a token, in 5 s.
pub const FETCH: Limits = Limits {
    max_bytes: MAX_ANSWER_BYTES,
    timeout: Duration::from_secs(5),
};
/// LIMIT: bytes of an opaque token (D2.1).
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// The body of a request, `application/x-www-form-urlencoded`; it holds the token, is not printed, and is erased.
pub struct Form(Zeroizing<String>);

impl AsRef<[u8]> for Form {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Form(…)")
    }
}

/// Returns the body of the request about a token.
///
/// Errors: `TooLong`, `Shape` when the text can be no bearer token (RFC 6750 §2.1).
pub fn request(token: &str) -> Result<Form, Refusal> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Refusal::TooLong);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(allowed) {
        return Err(Refusal::Shape);
    }
    // Room for every byte escaped: a text that grows would leave copies behind.
    let mut form = Zeroizing::new(String::with_capacity(3 * token.len() + 64));
    form.push_str("token=");
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            form.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(form, "%{byte:02X}");
        }
    }
    form.push_str("&token_type_hint=access_token");
    Ok(Form(form))
}

/// Reads the answer about `token`: the same claims and the same rules as for a signed one. `iss` may be missing, for
/// the answer comes from the issuer itself; without `jti` the token's digest is its id.
///
/// Errors: `Inactive`, and those of [`crate::access_token::verify`] without the signature's.
pub fn answer(
    body: &[u8],
    token: &str,
    issuer: &str,
    audiences: &[&str],
    now: i64,
) -> Result<Claims, Refusal> {
    if body.len() > MAX_ANSWER_BYTES {
        return Err(Refusal::TooLong);
    }
    let payload = Payload::parse(body)?;
    if !payload.flag("active")?.ok_or(Refusal::Missing("active"))? {
        return Err(Refusal::Inactive);
    }
    if payload.text("iss")?.is_some_and(|named| named != issuer) {
        return Err(Refusal::Issuer);
    }
    let kind = payload.text("token_type")?;
    if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer") && !kind.eq_ignore_ascii_case("dpop")) {
        return Err(Refusal::Type);
    }
    let named = payload.audiences()?;
    if !is_for(&named, audiences) {
        return Err(Refusal::Audience);
    }
    let period = payload.period(now, MAX_LIFETIME_SECS)?;
    let id = match payload.text("jti")? {
        Some(id) => id,
        None => format!("sha256:{}", base64url::encode(digest(&SHA256, token.as_bytes()))),
    };
    Ok(Claims {
        issuer: issuer.to_owned(),
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
        id,
        session: payload.text("sid")?,
        confirmation: payload.limits()?,
        actor: payload.actor()?,
    })
}
