//! The form of a signed token (RFC 7515 compact), before and after its signature is verified.
//!
//! ```text
//! text ── Unverified::read ──► header checked, parts decoded ── verify(key) ──► Payload
//! ```
//!
//! Header members that are understood: `alg`, `typ`, `kid`, and `jwk` in a proof of possession. Refused wherever they
//! stand: what would choose a key (`jku`, `jwk`, `x5u`, `x5c`), change the bytes (`b64`, `zip`, `enc`, `cty`) or must
//! be understood (`crit`). Others are ignored, as RFC 7515 §4 demands; nothing reads them.
//!
//! INVARIANT OA-1: no claim is believed before its signature verifies with a key that the caller gave.
//! INVARIANT OA-4: a token serves one purpose.

use crate::base64url;
use crate::claims::Payload;
use crate::error::Refusal;
use crate::json::{self, Object};
use crate::jwks::{Algorithm, Key, KeySet};
use serde_json::Value;

/// LIMIT: bytes of a token (D2.1).
pub const MAX_BYTES: usize = 8 * 1024;
/// LIMIT: characters of a key's name.
pub const MAX_KEY_ID: usize = 256;

const REFUSED: [&str; 9] = ["crit", "b64", "zip", "enc", "cty", "jku", "x5u", "x5c", "jwk"];

/// What a token is for: its `typ` says so (RFC 8725 §3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An access token of RFC 9068: `at+jwt`.
    AccessToken,
    /// An identity assertion of an enterprise's issuer: `oauth-id-jag+jwt`.
    IdJag,
    /// A proof of possession of RFC 9449: `dpop+jwt`.
    Dpop,
    /// A client's proof of RFC 7523: `client-authentication+jwt`, `JWT` or nothing.
    ClientAssertion,
    /// An identity token of `OpenID` Connect: `JWT` or nothing.
    IdToken,
}

impl Kind {
    /// Returns the accepted types, and whether none at all is accepted too.
    fn types(self) -> (&'static [&'static str], bool) {
        match self {
            Self::AccessToken => (&["at+jwt"], false),
            Self::IdJag => (&["oauth-id-jag+jwt"], false),
            Self::Dpop => (&["dpop+jwt"], false),
            Self::ClientAssertion => (&["client-authentication+jwt", "JWT"], true),
            Self::IdToken => (&["JWT"], true),
        }
    }

    /// INVARIANT OA-4: a type is required where another purpose has the same claims. RFC 7515 §4.1.9: types are media
    /// types, so without regard to case, and `application/` may be left out.
    fn accepts(self, typ: Option<&str>) -> bool {
        let (types, none) = self.types();
        let Some(typ) = typ else {
            return none;
        };
        let prefix = typ
            .get(..12)
            .filter(|prefix| prefix.eq_ignore_ascii_case("application/"));
        let short = prefix.map_or(typ, |prefix| &typ[prefix.len()..]);
        types.iter().any(|known| known.eq_ignore_ascii_case(short))
    }
}

/// A token whose header was checked and whose signature was not.
pub(crate) struct UnverifiedToken<'a> {
    pub(crate) algorithm: Algorithm,
    pub(crate) key_id: Option<String>,
    /// The key inside of a proof of possession.
    pub(crate) embedded: Option<Key>,
    /// What the signature is over: header, dot, payload, as sent.
    signed: &'a [u8],
    payload: Vec<u8>,
    signature: Vec<u8>,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads a token of one kind.
    ///
    /// Errors: `TooLong`, `Shape`, `Encoding`, `Json`, `Algorithm`, `Type`, `Header`, `KeyName`.
    pub(crate) fn read(token: &'a str, kind: Kind) -> Result<Self, Refusal> {
        if token.len() > MAX_BYTES {
            return Err(Refusal::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::Shape);
        };
        if header.is_empty() || payload.is_empty() || signature.is_empty() {
            return Err(Refusal::Shape);
        }
        let signed = &token.as_bytes()[..header.len() + 1 + payload.len()];
        let header = json::object(&base64url::decode(header)?)?;
        let algorithm = word(&header, "alg")?.and_then(Algorithm::parse);
        let algorithm = algorithm.ok_or(Refusal::Algorithm)?;
        let embeds = kind == Kind::Dpop;
        if let Some(name) = REFUSED
            .iter()
            .find(|name| header.contains_key(**name) && !(embeds && **name == "jwk"))
        {
            return Err(Refusal::Header(name));
        }
        if !kind.accepts(word(&header, "typ")?) {
            return Err(Refusal::Type);
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(key_id(id)?),
            Some(_) => return Err(Refusal::KeyName),
        };
        let embedded = match header.get("jwk") {
            None => None,
            Some(Value::Object(jwk)) => Key::from_jwk(jwk)?,
            Some(_) => return Err(Refusal::Malformed("jwk")),
        };
        let payload = base64url::decode(payload)?;
        let signature = base64url::decode(signature)?;
        Ok(Self {
            algorithm,
            key_id,
            embedded,
            signed,
            payload,
            signature,
        })
    }

    /// Reads the claims without believing them, to choose whose keys to verify with.
    pub(crate) fn unverified_payload(&self) -> Result<Payload, Refusal> {
        Payload::parse(&self.payload)
    }

    /// Verifies with the key of an issuer that the token names.
    ///
    /// Errors: `Algorithm`, `UnknownKey`, `Signature`, `Json`.
    pub(crate) fn verify_with(&self, keys: &KeySet, allowed: &[Algorithm]) -> Result<Payload, Refusal> {
        // INVARIANT OA-2: first what the issuer allows, then what the key is.
        if !allowed.contains(&self.algorithm) {
            return Err(Refusal::Algorithm);
        }
        self.verify(keys.find(self.key_id.as_deref(), self.algorithm)?)
    }

    /// INVARIANT OA-1: the only way from a token to claims that are believed.
    pub(crate) fn verify(&self, key: &Key) -> Result<Payload, Refusal> {
        key.verify(self.algorithm, self.signed, &self.signature)?;
        Payload::parse(&self.payload)
    }
}

fn word<'a>(header: &'a Object, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    match header.get(name) {
        None => Ok(None),
        Some(Value::String(word)) => Ok(Some(word)),
        Some(_) if name == "alg" => Err(Refusal::Algorithm),
        Some(_) => Err(Refusal::Type),
    }
}

/// Checks the name of a key: it is compared with names, and never becomes a path, a query or a line of a log.
pub(crate) fn key_id(id: &str) -> Result<String, Refusal> {
    let visible = !id.is_empty() && id.len() <= MAX_KEY_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
    visible.then(|| id.to_owned()).ok_or(Refusal::KeyName)
}
