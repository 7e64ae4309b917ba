//! What is signed is verified, and says the same.

use provost_oauth::access_token::{Issuer, peek, verify};
use provost_oauth::sign::Signer;
use provost_oauth::{Algorithm, Claims, Confirmation, KeySet, Refusal};
use std::sync::Arc;

const NOW: i64 = 1_800_000_000;
const RESOURCE: &str = "https://provost.example/mcp";

pub(crate) fn claims() -> Claims {
    Claims {
        issuer: "https://issuer.example".into(),
        subject: "user-1".into(),
        client_id: "https://client.example/id.json".into(),
        organization: "org_1".into(),
        scopes: vec!["policies:read".into(), "mcp:read".into()],
        audiences: vec![RESOURCE.into()],
        issued_at: NOW,
        not_before: Some(NOW),
        expires_at: NOW + 3600,
        id: "token-1".into(),
        session: Some("session-1".into()),
        confirmation: Some(Confirmation::Jkt(
            "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I".into(),
        )),
        actor: Some("agent-1".into()),
    }
}

fn issuer(signer: &Signer) -> Issuer {
    let keys = KeySet::parse(signer.public_key_set_json().as_bytes()).unwrap();
    Issuer {
        url: "https://issuer.example".into(),
        algorithms: vec![Algorithm::EdDsa],
        keys: Arc::new(keys),
    }
}

#[test]
fn what_is_signed_is_verified_and_says_the_same() {
    let signer = Signer::from_ed25519_seed(&[7; 32], "key-1").unwrap();
    let token = signer.access_token(&claims());
    assert_eq!(verify(&token, &issuer(&signer), &[RESOURCE], NOW), Ok(claims()));
    let peeked = peek(&token).unwrap();
    assert_eq!(
        (peeked.issuer.as_str(), peeked.kid.as_deref()),
        ("https://issuer.example", Some("key-1"))
    );
}

#[test]
fn a_token_of_another_key_with_the_same_name_is_refused() {
    let signer = Signer::from_ed25519_seed(&[7; 32], "key-1").unwrap();
    let other = Signer::from_ed25519_seed(&[8; 32], "key-1").unwrap();
    let token = other.access_token(&claims());
    assert_eq!(
        verify(&token, &issuer(&signer), &[RESOURCE], NOW),
        Err(Refusal::Signature)
    );
}
