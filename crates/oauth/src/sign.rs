//! Signing access tokens with the installation's Ed25519 key.

use crate::base64url;
use crate::claims::{Claims, Confirmation};
use crate::error::Refusal;
use crate::json::Object;
use crate::jwt;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::fmt;

/// What a new access token says: all that it will say when it is verified.
pub type NewAccessToken = Claims;

/// A private key; aws-lc erases it when it is dropped.
pub struct Signer {
    key: Ed25519KeyPair,
    id: String,
}

impl Signer {
    /// Makes the key of a seed.
    ///
    /// Errors: `KeyName` when `kid` is not 1 to 256 visible characters of ASCII.
    pub fn from_ed25519_seed(seed: &[u8; 32], kid: &str) -> Result<Self, Refusal> {
        let id = jwt::key_id(kid)?;
        let key = Ed25519KeyPair::from_seed_unchecked(seed);
        let key = key.map_err(|_| Refusal::KeySet("the seed makes no key"))?;
        Ok(Self { key, id })
    }

    /// Returns the key's name.
    pub fn kid(&self) -> &str {
        &self.id
    }

    /// Returns the public key as a JWK; several signers make one set while a key is replaced.
    pub fn public_key(&self) -> Value {
        let x = base64url::encode(self.key.public_key());
        json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.id, "x": x })
    }

    /// Returns the JWK Set that verifies what this key signs.
    pub fn public_key_set_json(&self) -> String {
        json!({ "keys": [self.public_key()] }).to_string()
    }

    /// Signs an access token; that its claims are acceptable is the caller's affair.
    pub fn access_token(&self, claims: &NewAccessToken) -> String {
        let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": self.id });
        let header = base64url::encode(header.to_string());
        let payload = base64url::encode(Value::Object(payload(claims)).to_string());
        let signed = format!("{header}.{payload}");
        let signature = base64url::encode(self.key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signer({}, …)", self.id)
    }
}

fn payload(claims: &Claims) -> Object {
    let mut payload = Object::new();
    let mut say = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    say("iss", json!(claims.issuer));
    say("sub", json!(claims.subject));
    say("client_id", json!(claims.client_id));
    say("organization_id", json!(claims.organization));
    say("scope", json!(claims.scopes.join(" ")));
    match &claims.audiences[..] {
        [one] => say("aud", json!(one)),
        all => say("aud", json!(all)),
    };
    say("iat", json!(claims.issued_at));
    if let Some(instant) = claims.not_before {
        say("nbf", json!(instant));
    }
    say("exp", json!(claims.expires_at));
    say("jti", json!(claims.id));
    if let Some(session) = &claims.session {
        say("sid", json!(session));
    }
    match &claims.confirmation {
        None => {}
        Some(Confirmation::Jkt(digest)) => {
            say("cnf", json!({ "jkt": digest }));
        }
        Some(Confirmation::CertificateSha256(digest)) => {
            say("cnf", json!({ "x5t#S256": digest }));
        }
    }
    if let Some(actor) = &claims.actor {
        say("act", json!({ "sub": actor }));
    }
    payload
}
