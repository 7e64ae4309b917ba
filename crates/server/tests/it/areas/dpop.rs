//! Proofs of possession as a client makes them (RFC 9449 §4.2), with a key of its own.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

fn jwk(key: &Ed25519KeyPair) -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.public_key()) })
}

/// The thumbprint of a key (RFC 7638).
pub fn thumbprint(key: &Ed25519KeyPair) -> String {
    let x = URL_SAFE_NO_PAD.encode(key.public_key());
    let text = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// A proof for one request; `token` is empty where none goes along.
pub fn proof_of(method: &str, key: &Ed25519KeyPair, token: &str, now: i64, id: &str, url: &str) -> String {
    let header = json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": jwk(key) });
    let ath = digest(&SHA256, token.as_bytes());
    let claims = json!({
        "jti": id, "htm": method, "htu": url, "iat": now, "ath": URL_SAFE_NO_PAD.encode(ath),
    });
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}
