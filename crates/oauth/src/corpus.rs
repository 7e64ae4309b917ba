//! Attacks on access tokens, each a variation of one valid token (R33), for this crate's tests and for those that
//! send the same tokens over HTTP. Behind the feature `testing`.
//!
//! Every attack must be refused with [`Workshop::issuer`], and every token of [`Workshop::valid`] accepted.

mod claims;
mod form;
mod header;
mod keys;
mod signature;

pub use keys::Workshop;

use crate::access_token::Issuer;
use crate::base64url;
use crate::jwks::{Algorithm, KeySet};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the valid token says; a server's test says what its server expects.
#[derive(Clone, Debug)]
pub struct Template {
    /// `iss`.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// `organization_id`.
    pub organization: String,
    /// `sub`.
    pub subject: String,
    /// `client_id`.
    pub client_id: String,
    /// `scope`.
    pub scope: String,
    /// `iat`; `exp` is an hour later.
    pub now: i64,
}

/// A token that must be refused.
#[derive(Clone, Debug)]
pub struct Attack {
    /// What is wrong, unique among the attacks.
    pub name: String,
    /// The token; a few hold characters that no HTTP header carries.
    pub token: String,
}

/// The algorithms of the workshop's issuer; `RS256` is not allowed, although a key would serve it.
pub const ALLOWED: [Algorithm; 3] = [Algorithm::EdDsa, Algorithm::Es256, Algorithm::Ps256];

impl Workshop {
    /// Returns the issuer that the valid tokens are from.
    pub fn issuer(&self) -> Issuer {
        let keys = KeySet::parse(self.key_set().to_string().as_bytes()).unwrap_or_default();
        Issuer {
            url: self.template().issuer.clone(),
            algorithms: ALLOWED.to_vec(),
            keys: Arc::new(keys),
        }
    }

    /// Returns the header of a valid token.
    pub fn header(algorithm: Algorithm) -> Value {
        let id = match algorithm {
            Algorithm::EdDsa => "ed",
            Algorithm::Es256 => "ec",
            Algorithm::Rs256 | Algorithm::Ps256 => "rsa",
        };
        json!({ "alg": algorithm.as_str(), "typ": "at+jwt", "kid": id })
    }

    /// Returns the claims of a valid token.
    pub fn claims(&self) -> Value {
        let of = self.template();
        json!({
            "iss": of.issuer, "sub": of.subject, "aud": of.audience, "client_id": of.client_id,
            "organization_id": of.organization, "scope": of.scope, "jti": "token-1", "sid": "session-1",
            "iat": of.now, "nbf": of.now, "exp": of.now + 3600,
        })
    }

    /// Returns a valid token of one of the allowed algorithms.
    pub fn valid(&self, algorithm: Algorithm) -> String {
        self.signed(&Self::header(algorithm), &self.claims())
    }

    /// Returns all attacks, the valid tokens apart.
    pub fn attacks(&self) -> Vec<Attack> {
        let mut attacks = Attacks {
            of: self,
            found: Vec::new(),
        };
        header::add(&mut attacks);
        claims::add(&mut attacks);
        signature::add(&mut attacks);
        form::add(&mut attacks);
        attacks.found
    }
}

/// Collects attacks.
struct Attacks<'a> {
    of: &'a Workshop,
    found: Vec<Attack>,
}

impl Attacks<'_> {
    fn add(&mut self, name: impl Into<String>, token: String) {
        self.found.push(Attack {
            name: name.into(),
            token,
        });
    }

    /// Adds the valid token with another header, signed as the header says.
    fn header(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut header = Workshop::header(Algorithm::EdDsa);
        change(&mut header);
        self.add(
            format!("header: {name}"),
            self.of.signed(&header, &self.of.claims()),
        );
    }

    /// Adds the valid token with one claim set to another value, rightly signed.
    fn claim(&mut self, name: &str, claim: &str, value: Value) {
        let mut claims = self.of.claims();
        claims[claim] = value;
        let token = self.of.signed(&Workshop::header(Algorithm::EdDsa), &claims);
        self.add(format!("{claim}: {name}"), token);
    }

    /// Adds a token of any two texts, rightly signed with the Ed25519 key.
    fn texts(&mut self, name: &str, header: &[u8], payload: &[u8]) {
        self.add(name, self.of.signed_bytes(header, payload));
    }
}

fn join(header: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> String {
    format!("{}.{}", base64url::encode(header), base64url::encode(payload))
}
