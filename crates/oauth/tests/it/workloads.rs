//! Tokens of workloads: what a token endpoint accepts of them, and where their issuer's keys are.

use crate::attacks::{NOW, WORKSHOP};
use provost_oauth::workload_token::{Expected, TYPES, discovery_url, keys_url, peek, verify};
use provost_oauth::{Confirmation, Refusal};
use serde_json::{Value, json};

const OWN: &str = "https://provost.example";
const EXPECTED: Expected<'_> = Expected {
    audience: OWN,
    is_own_name: true,
    max_age_secs: 600,
};

fn token(change: impl FnOnce(&mut Value)) -> String {
    let issuer = &WORKSHOP.template().issuer;
    let mut claims = json!({
        "iss": issuer, "sub": "repo:acme/app:ref:refs/heads/main", "aud": OWN, "jti": "one", "iat": NOW, "nbf": NOW - 600,
        "exp": NOW + 300, "repository_id": "74",
    });
    change(&mut claims);
    WORKSHOP.signed(&json!({ "alg": "EdDSA", "typ": "JWT", "kid": "ed" }), &claims)
}

fn answer(change: impl FnOnce(&mut Value)) -> Result<(), Refusal> {
    verify(&token(change), &WORKSHOP.issuer(), EXPECTED, NOW).map(drop)
}

#[test]
fn a_workloads_token_has_one_audience_a_time_and_no_limits_that_nobody_obeys() {
    let text = token(|_| {});
    let verified = verify(&text, &WORKSHOP.issuer(), EXPECTED, NOW).unwrap();
    assert_eq!(verified.subject, "repo:acme/app:ref:refs/heads/main");
    assert_eq!(
        (verified.id.as_deref(), verified.issued_at, verified.expires_at),
        (Some("one"), NOW, NOW + 300)
    );
    assert_eq!(
        (verified.text("repository_id"), verified.text("iat")),
        (Some("74"), None)
    );
    assert_eq!(peek(&text).unwrap().issuer, WORKSHOP.template().issuer);
    for (name, value, expected) in [
        ("aud", json!([OWN]), None),
        ("aud", json!("https://PROVOST.example:443"), None),
        (
            "aud",
            json!([OWN, "https://other.example"]),
            Some(Refusal::Audience),
        ),
        ("aud", json!([OWN, OWN]), Some(Refusal::Audience)),
        ("aud", json!([]), Some(Refusal::Malformed("aud"))),
        ("aud", json!("https://provost.example/"), Some(Refusal::Audience)),
        ("iss", json!("https://other.example"), Some(Refusal::Issuer)),
        ("sub", json!(""), Some(Refusal::Malformed("sub"))),
        // It ends when it begins.
        ("exp", json!(NOW), Some(Refusal::Lifetime)),
        ("exp", json!(NOW + 1), None),
        ("nbf", json!(NOW + 60), None),
        ("nbf", json!(NOW + 61), Some(Refusal::NotYetValid)),
        ("iat", json!(NOW + 61), Some(Refusal::NotYetValid)),
        ("iat", json!(NOW - 660), None),
        ("iat", json!(NOW - 661), Some(Refusal::Mismatch("iat"))),
        ("exp", json!(NOW + 86_401), Some(Refusal::Lifetime)),
        ("may_act", json!({}), Some(Refusal::Limit("may_act"))),
        (
            "authorization_details",
            json!([]),
            Some(Refusal::Limit("authorization_details")),
        ),
        ("cnf", json!({ "x": "y" }), Some(Refusal::Malformed("cnf"))),
    ] {
        let told = answer(|claims| claims[name] = value.clone());
        assert_eq!(told.err(), expected, "{name}: {value}");
    }
    let over = answer(|claims| {
        claims["iat"] = json!(NOW - 10);
        claims["exp"] = json!(NOW);
    });
    assert_eq!(over.err(), Some(Refusal::Expired));
    for name in ["iss", "sub", "aud", "iat", "exp"] {
        let told = answer(|claims| drop(claims.as_object_mut().unwrap().remove(name)));
        assert_eq!(told, Err(Refusal::Missing(name)));
    }
    let jkt = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
    let bound = token(|claims| claims["cnf"] = json!({ "jkt": jkt }));
    let bound = verify(&bound, &WORKSHOP.issuer(), EXPECTED, NOW).unwrap();
    assert_eq!(bound.confirmation, Some(Confirmation::Jkt(jkt.into())));
    // A name that somebody wrote is compared as it stands.
    let written = Expected {
        is_own_name: false,
        ..EXPECTED
    };
    let other = token(|claims| claims["aud"] = "https://PROVOST.example".into());
    assert_eq!(
        verify(&other, &WORKSHOP.issuer(), written, NOW),
        Err(Refusal::Audience)
    );
    assert!(
        TYPES
            .iter()
            .all(|urn| urn.starts_with("urn:ietf:params:oauth:token-type:"))
    );
}

#[test]
fn keys_are_where_the_issuers_own_document_says() {
    let issuer = "https://issuer.example/path";
    let url = "https://issuer.example/path/.well-known/openid-configuration";
    assert_eq!(discovery_url(issuer), url);
    assert_eq!(discovery_url("https://issuer.example/path/"), url);
    let document = |issuer: &str, keys: &str| json!({ "issuer": issuer, "jwks_uri": keys }).to_string();
    let found = |document: &str| keys_url(document.as_bytes(), issuer);
    let keys = "https://keys.example/jwks";
    assert_eq!(found(&document(issuer, keys)).as_deref(), Ok(keys));
    for other in [
        "https://other.example",
        "https://issuer.example/path/",
        "https://issuer.example",
    ] {
        assert_eq!(found(&document(other, keys)), Err(Refusal::Issuer));
    }
    assert!(matches!(
        found(&document(issuer, "http://keys.example/jwks")),
        Err(Refusal::Url(_))
    ));
    assert_eq!(
        found(&json!({ "issuer": issuer }).to_string()),
        Err(Refusal::Missing("jwks_uri"))
    );
    let twice = format!("{{\"issuer\":\"{issuer}\",\"issuer\":\"{issuer}\",\"jwks_uri\":\"{keys}\"}}");
    assert_eq!(found(&twice), Err(Refusal::Json));
}
