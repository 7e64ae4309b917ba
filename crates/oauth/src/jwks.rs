//! Public keys of an issuer or a client (RFC 7517): parsed once, checked once.
//!
//! Known are P-256, Ed25519 and RSA. Keys of another kind, for another use or another algorithm are skipped; a key of
//! a known kind that is weak, wrong or private refuses the whole set, for its issuer is in trouble.

mod key;

pub use key::{Algorithm, Key};

use crate::error::Refusal;
use crate::json;
use provost_outbound::Limits;
use serde_json::Value;
use std::time::Duration;

/// LIMIT: bytes of a key set; real ones have 2 to 10 KiB.
pub const MAX_BYTES: usize = 64 * 1024;

/// LIMIT: a key set, in 5 s.
pub const FETCH: Limits = Limits {
    max_bytes: MAX_BYTES,
    timeout: Duration::from_secs(5),
};
/// LIMIT: keys of a set, the skipped ones included.
pub const MAX_KEYS: usize = 64;

/// Public keys, each with at most one name.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<Key>);

impl KeySet {
    /// Parses a JWK Set.
    ///
    /// Errors: `TooLong`, `Json`, `Encoding`, `KeyName`, `KeySet`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > MAX_BYTES {
            return Err(Refusal::KeySet("it is larger than 64 KiB"));
        }
        Self::from_object(&json::object(bytes)?)
    }

    /// Reads a JWK Set that stands inside of another document.
    pub(crate) fn from_object(set: &json::Object) -> Result<Self, Refusal> {
        let Some(Value::Array(members)) = set.get("keys") else {
            return Err(Refusal::KeySet("it has no list of keys"));
        };
        if members.len() > MAX_KEYS {
            return Err(Refusal::KeySet("it has more than 64 keys"));
        }
        let mut keys: Vec<Key> = Vec::new();
        for member in members {
            let jwk = member.as_object().ok_or(Refusal::KeySet("a key is no object"))?;
            let Some(key) = Key::from_jwk(jwk)? else {
                continue;
            };
            if key.id().is_some() && keys.iter().any(|known| known.id() == key.id()) {
                return Err(Refusal::KeySet("two keys have the same kid"));
            }
            keys.push(key);
        }
        Ok(Self(keys))
    }

    /// Finds the key that a token names; without a name, the only key that fits the algorithm.
    ///
    /// Errors: `UnknownKey`; `Algorithm` when the named key is of another kind.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<&Key, Refusal> {
        if let Some(id) = id {
            let named = self.0.iter().find(|key| key.id() == Some(id));
            let key = named.ok_or(Refusal::UnknownKey)?;
            return key.fits(algorithm).then_some(key).ok_or(Refusal::Algorithm);
        }
        let mut fitting = self.0.iter().filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            _ => Err(Refusal::UnknownKey),
        }
    }

    /// Returns how many keys can be used.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there no key that can be used?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
