//! The keys of the corpus, and how they sign.

use super::{Template, join};
use crate::base64url;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// An issuer with private keys of three kinds, and a stranger with keys of his own.
pub struct Workshop {
    template: Template,
    random: SystemRandom,
    pub(super) ed: Ed25519KeyPair,
    pub(super) ec: EcdsaKeyPair,
    /// The same key, with signatures in DER.
    pub(super) ec_der: EcdsaKeyPair,
    pub(super) rsa: RsaKeyPair,
    pub(super) strange_ed: Ed25519KeyPair,
    pub(super) strange_ec: EcdsaKeyPair,
    pub(super) p384: EcdsaKeyPair,
}

impl Workshop {
    /// Makes new keys; `None` when the library cannot.
    pub fn new(template: Template) -> Option<Self> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
        Some(Self {
            ed: Ed25519KeyPair::generate().ok()?,
            ec: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref()).ok()?,
            ec_der: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref()).ok()?,
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).ok()?,
            strange_ed: Ed25519KeyPair::generate().ok()?,
            strange_ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok()?,
            p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).ok()?,
            template,
            random,
        })
    }

    /// Returns what the valid token says.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns the issuer's public keys: `ed`, `ec` and `rsa`.
    pub fn key_set(&self) -> Value {
        // RFC 8017 §A.1.1: two integers; those of 2048 bits and of 65537 stand at fixed places.
        let public = self.rsa.public_key().as_ref();
        let (n, e) = (
            public.get(9..265).unwrap_or_default(),
            public.get(267..).unwrap_or_default(),
        );
        let rsa = json!({
            "kty": "RSA", "kid": "rsa", "n": base64url::encode(n), "e": base64url::encode(e),
        });
        json!({ "keys": [ed_jwk(&self.ed, "ed"), ec_jwk(&self.ec, "ec"), rsa] })
    }

    /// Signs with the key that the header's algorithm is for, and with Ed25519 where there is none.
    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        let signed = join(header.to_string(), claims.to_string());
        let signature = match header["alg"].as_str() {
            Some("ES256") => self.with_ec(&self.ec, &signed),
            Some("RS256") => self.with_rsa(&RSA_PKCS1_SHA256, &signed),
            Some("PS256") => self.with_rsa(&RSA_PSS_SHA256, &signed),
            _ => self.ed.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", base64url::encode(signature))
    }

    /// Signs any bytes as header and payload, with Ed25519.
    pub fn signed_bytes(&self, header: &[u8], payload: &[u8]) -> String {
        let signed = join(header, payload);
        let signature = self.ed.sign(signed.as_bytes());
        format!("{signed}.{}", base64url::encode(signature))
    }

    pub(super) fn with_ec(&self, key: &EcdsaKeyPair, signed: &str) -> Vec<u8> {
        let signature = key.sign(&self.random, signed.as_bytes());
        signature
            .map(|signature| signature.as_ref().to_vec())
            .unwrap_or_default()
    }

    pub(super) fn with_rsa(&self, padding: &'static dyn RsaEncoding, signed: &str) -> Vec<u8> {
        let mut signature = vec![0; self.rsa.public_modulus_len()];
        let done = self
            .rsa
            .sign(padding, &self.random, signed.as_bytes(), &mut signature);
        done.map(|()| signature).unwrap_or_default()
    }

    /// Returns what a careless verifier could take for a shared secret: public keys in their usual forms.
    pub(super) fn public_secrets(&self) -> Vec<(&'static str, Vec<u8>)> {
        let rsa = self
            .rsa
            .public_key()
            .as_der()
            .map(|der| der.as_ref().to_vec())
            .unwrap_or_default();
        let ec = self
            .ec
            .public_key()
            .as_der()
            .map(|der| der.as_ref().to_vec())
            .unwrap_or_default();
        vec![
            ("RSA as PEM", pem(&rsa)),
            ("RSA as DER", rsa),
            ("P-256 as PEM", pem(&ec)),
            ("P-256 as a point", self.ec.public_key().as_ref().to_vec()),
            ("P-256 as DER", ec),
            ("Ed25519 as bytes", self.ed.public_key().as_ref().to_vec()),
            ("Ed25519 as JWK", ed_jwk(&self.ed, "ed").to_string().into_bytes()),
            ("the key set", self.key_set().to_string().into_bytes()),
            ("nothing", Vec::new()),
        ]
    }
}

pub(super) fn mac(algorithm: hmac::Algorithm, secret: &[u8], signed: &str) -> Vec<u8> {
    let key = hmac::Key::new(algorithm, secret);
    hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
}

pub(super) fn ed_jwk(key: &Ed25519KeyPair, id: &str) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64url::encode(key.public_key()) })
}

fn ec_jwk(key: &EcdsaKeyPair, id: &str) -> Value {
    let point = key.public_key().as_ref();
    let (x, y) = point.get(1..).unwrap_or_default().split_at(32);
    json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": base64url::encode(x), "y": base64url::encode(y) })
}

fn pem(der: &[u8]) -> Vec<u8> {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN PUBLIC KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str("-----END PUBLIC KEY-----\n");
    pem.into_bytes()
}
