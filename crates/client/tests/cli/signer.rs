//! The signing key of a server that a test plays.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// One key.
pub struct Signer {
    id: &'static str,
    pair: Ed25519KeyPair,
}

impl Signer {
    pub fn new(id: &'static str, seed: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a seed");
        Self { id, pair }
    }

    /// The public half in base64.
    pub fn public(&self) -> String {
        STANDARD.encode(self.pair.public_key().as_ref())
    }

    /// Signs a document of this media type, after the specification of DSSE.
    pub fn sign(&self, media_type: &str, payload: &[u8]) -> Value {
        let head = format!("DSSEv1 {} {media_type} {} ", media_type.len(), payload.len());
        let sig = self.pair.sign(&[head.as_bytes(), payload].concat());
        json!({
            "payloadType": media_type, "payload": STANDARD.encode(payload),
            "signatures": [{ "keyid": self.id, "sig": STANDARD.encode(sig.as_ref()) }],
        })
    }
}

/// The answer of `/.well-known/provost-keys.json`, where the list is signed by these keys.
pub fn keys_document(listed: &[&Signer], signed_by: &Signer) -> Value {
    let keys: Vec<Value> = listed
        .iter()
        .map(|key| json!({ "id": key.id, "use": "signing", "alg": "Ed25519", "key": key.public() }))
        .collect();
    let list = json!({ "keys": keys }).to_string();
    let signed = signed_by.sign("application/vnd.provost.keys+json", list.as_bytes());
    json!({ "keys": keys, "signed": signed })
}
