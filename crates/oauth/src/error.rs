//! Why something is refused ([`Refusal`]), and what a token endpoint answers ([`TokenError`]).
//!
//! No refusal holds text of the request: its sentence can be shown to whoever sent it, and logged.

mod token;

pub use token::{Code, TokenError};

use provost_outbound::WrongUrl;
use std::fmt;

/// A reason to refuse; each has one public sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Longer than any that is accepted.
    TooLong,
    /// Not three parts with dots between them.
    Shape,
    /// Not base64url, or not in its canonical form.
    Encoding,
    /// Not JSON, not an object, a repeated name, or nested too deeply.
    Json,
    /// The algorithm is unknown, symmetric, `none`, not allowed for the issuer, or does not fit the key.
    Algorithm,
    /// The type is missing or another one.
    Type,
    /// A header member that is refused wherever it stands.
    Header(&'static str),
    /// The name of the key is no text of visible characters, or is too long.
    KeyName,
    /// No key of the issuer fits.
    UnknownKey,
    /// The signature does not verify.
    Signature,
    /// A key set that is not usable, and why.
    KeySet(&'static str),
    /// A required claim or member is missing.
    Missing(&'static str),
    /// A claim or member has another form than it must have.
    Malformed(&'static str),
    /// A claim or member is well-formed, and not the one that is expected here.
    Mismatch(&'static str),
    /// A claim that limits what may be done in a way that is not understood here.
    Limit(&'static str),
    /// The issuer is another one.
    Issuer,
    /// The audience is another one.
    Audience,
    /// Not valid any more.
    Expired,
    /// Not valid yet, or from the future.
    NotYetValid,
    /// Valid for longer than is accepted.
    Lifetime,
    /// The issuer says that the token is not active.
    Inactive,
    /// A proof that was seen before.
    Replayed,
    /// No further proof can be remembered now.
    Busy,
    /// A challenge or verifier of RFC 7636 is missing, of another method, or wrong.
    Challenge,
    /// A URL that is not accepted, and why.
    Url(&'static str),
    /// A client's document that is not accepted, and why.
    Document(&'static str),
    /// A redirect target that is not accepted, and why.
    Redirect(&'static str),
}

impl From<WrongUrl> for Refusal {
    fn from(wrong: WrongUrl) -> Self {
        Self::Url(wrong.0)
    }
}

impl Refusal {
    /// Returns the claim or member that failed, for whoever looks after the issuer.
    pub fn claim(self) -> &'static str {
        match self {
            Self::Missing(name)
            | Self::Malformed(name)
            | Self::Mismatch(name)
            | Self::Limit(name)
            | Self::Header(name) => name,
            Self::Algorithm => "alg",
            Self::Type => "typ",
            Self::KeyName | Self::UnknownKey => "kid",
            Self::Issuer => "iss",
            Self::Audience => "aud",
            Self::Expired | Self::Lifetime => "exp",
            Self::NotYetValid => "nbf",
            Self::Inactive => "active",
            Self::Signature => "signature",
            _ => "form",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::TooLong => "the token is too long",
            Self::Shape => "the token is not a signed JSON web token",
            Self::Encoding => "the token is not canonical base64url",
            Self::Json => "the token holds no unambiguous JSON object",
            Self::Algorithm => "the token's algorithm is not accepted",
            Self::Type => "the token is of another type",
            Self::KeyName => "the token's key id is not accepted",
            Self::UnknownKey => "the token names no known key of its issuer",
            Self::Signature => "the token's signature does not verify",
            Self::Issuer => "the token is from another issuer",
            Self::Audience => "the token is for another audience",
            Self::Expired => "the token is expired",
            Self::NotYetValid => "the token is not valid yet",
            Self::Lifetime => "the token is valid for too long",
            Self::Inactive => "the token is not active",
            Self::Replayed => "the proof was used before",
            Self::Busy => "too many proofs at once: try again in a minute",
            Self::Challenge => "the code verifier does not fit the S256 challenge",
            Self::Header(name) => return write!(out, "the token's header must not hold {name}"),
            Self::KeySet(why) => return write!(out, "the key set is not accepted: {why}"),
            Self::Missing(name) => return write!(out, "{name} is missing"),
            Self::Malformed(name) => return write!(out, "{name} is malformed"),
            Self::Mismatch(name) => return write!(out, "{name} is not the expected one"),
            Self::Limit(name) => {
                return write!(
                    out,
                    "{name} limits the token in a way that is not understood here"
                );
            }
            Self::Url(why) => return write!(out, "the URL is not accepted: {why}"),
            Self::Document(why) => return write!(out, "the client's document is not accepted: {why}"),
            Self::Redirect(why) => return write!(out, "the redirect URI is not accepted: {why}"),
        };
        out.write_str(sentence)
    }
}

impl std::error::Error for Refusal {}
