//! The corpus of attacks: every one is refused, and so is every text near a valid token (R33).

use provost_oauth::access_token::{Issuer, verify};
use provost_oauth::corpus::{ALLOWED, Template, Workshop};
use provost_oauth::{Algorithm, Refusal};
use std::collections::HashSet;
use std::sync::LazyLock;

pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const RESOURCE: &str = "https://provost.example/mcp";

pub(crate) static WORKSHOP: LazyLock<Workshop> = LazyLock::new(|| {
    let template = Template {
        issuer: "https://issuer.example".into(),
        audience: RESOURCE.into(),
        organization: "org_1".into(),
        subject: "user-1".into(),
        client_id: "client-1".into(),
        scope: "policies:read mcp:read".into(),
        now: NOW,
    };
    Workshop::new(template).unwrap()
});

static ISSUER: LazyLock<Issuer> = LazyLock::new(|| WORKSHOP.issuer());

fn outcome(token: &str) -> Result<(), Refusal> {
    verify(token, &ISSUER, &["https://provost.example/api", RESOURCE], NOW).map(drop)
}

#[test]
fn the_valid_token_of_each_allowed_algorithm_is_accepted() {
    assert_eq!(ISSUER.keys.len(), 3);
    for algorithm in ALLOWED {
        assert_eq!(outcome(&WORKSHOP.valid(algorithm)), Ok(()), "{algorithm:?}");
    }
}

/// Proves OA-1, OA-2, OA-5.
#[test]
fn every_attack_is_refused() {
    let attacks = WORKSHOP.attacks();
    let names: HashSet<_> = attacks.iter().map(|attack| &attack.name).collect();
    assert_eq!(names.len(), attacks.len(), "a name stands twice");
    assert!(attacks.len() >= 400, "{} attacks", attacks.len());
    let accepted: Vec<_> = attacks
        .iter()
        .filter(|attack| outcome(&attack.token).is_ok())
        .collect();
    assert!(accepted.is_empty(), "{accepted:#?}");
}

/// An attack that fails for another reason than its own shows nothing: with a wrong signature, all would be refused.
/// Proves OA-3.
#[test]
fn attacks_on_claims_and_header_are_refused_for_what_they_are() {
    for attack in WORKSHOP.attacks() {
        let refusal = outcome(&attack.token).unwrap_err();
        let (group, _) = attack.name.split_once(": ").unwrap_or((&attack.name, ""));
        let is_claim = [
            "iss",
            "sub",
            "aud",
            "exp",
            "iat",
            "nbf",
            "jti",
            "cnf",
            "act",
            "sid",
            "scope",
            "client_id",
        ];
        if is_claim.contains(&group) || group == "organization_id" || group.starts_with("claims") {
            let wrong = matches!(
                refusal,
                Refusal::Signature | Refusal::UnknownKey | Refusal::Encoding
            );
            assert!(!wrong, "{}: {refusal:?}", attack.name);
        }
        if attack.name.starts_with("header: jku") || attack.name.starts_with("header: jwk") {
            assert!(
                matches!(refusal, Refusal::Header("jku" | "jwk")),
                "{}: {refusal:?}",
                attack.name
            );
        }
        if attack.name.contains("twice, wrong") {
            assert_eq!(refusal, Refusal::Json, "{}", attack.name);
        }
        if attack.name.starts_with("form: spare bits") {
            assert_eq!(refusal, Refusal::Encoding, "{}", attack.name);
        }
        if attack.name.starts_with("alg ") || attack.name.starts_with("HS") {
            assert!(
                matches!(refusal, Refusal::Algorithm | Refusal::Shape),
                "{}: {refusal:?}",
                attack.name
            );
        }
    }
}

/// Proves OA-1.
#[test]
fn every_flip_of_a_single_bit_is_refused() {
    for algorithm in ALLOWED {
        let token = WORKSHOP.valid(algorithm).into_bytes();
        for at in 0..token.len() * 8 {
            let mut flipped = token.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            // What is not UTF-8 cannot be asked about.
            if let Ok(text) = String::from_utf8(flipped) {
                assert!(outcome(&text).is_err(), "{algorithm:?}, bit {at}: {text}");
            }
        }
    }
}

#[test]
fn every_part_of_a_token_and_every_character_less_is_refused() {
    let token = WORKSHOP.valid(Algorithm::EdDsa);
    for at in 0..token.len() {
        let without = format!("{}{}", &token[..at], &token[at + 1..]);
        // Dropping one of two equal neighbours at a part's end cannot help either: the text differs.
        assert!(
            outcome(&token[..at]).is_err()
                && outcome(&token[at + 1..]).is_err()
                && outcome(&without).is_err()
        );
    }
}

/// Proves OA-4.
#[test]
fn the_type_is_a_media_type() {
    for word in ["at+jwt", "AT+JWT", "application/at+jwt", "Application/At+Jwt"] {
        let mut header = Workshop::header(Algorithm::EdDsa);
        header["typ"] = word.into();
        assert_eq!(
            outcome(&WORKSHOP.signed(&header, &WORKSHOP.claims())),
            Ok(()),
            "{word}"
        );
    }
}

/// Proves OA-5.
#[test]
fn what_is_not_understood_and_narrows_nothing_is_ignored() {
    let mut header = Workshop::header(Algorithm::EdDsa);
    header["x5t"] = "abc".into();
    header["nonce"] = "abc".into();
    let mut claims = WORKSHOP.claims();
    claims["groups"] = serde_json::json!([{ "name": ["a", 1, null, true, -1.5] }]);
    assert_eq!(outcome(&WORKSHOP.signed(&header, &claims)), Ok(()));
}

#[test]
fn a_token_without_a_key_name_is_verified_with_the_only_key_that_fits() {
    let mut header = Workshop::header(Algorithm::EdDsa);
    header.as_object_mut().unwrap().remove("kid");
    assert_eq!(outcome(&WORKSHOP.signed(&header, &WORKSHOP.claims())), Ok(()));
}

#[test]
fn the_edges_of_the_period_are_where_they_are_said_to_be() {
    let token = |change: fn(&mut serde_json::Value)| {
        let mut claims = WORKSHOP.claims();
        change(&mut claims);
        WORKSHOP.signed(&Workshop::header(Algorithm::EdDsa), &claims)
    };
    for change in [
        (|claims| claims["exp"] = (NOW + 86_400).into()) as fn(&mut serde_json::Value),
        |claims| claims["iat"] = (NOW + 60).into(),
        |claims| claims["nbf"] = (NOW + 60).into(),
        |claims| {
            claims["iat"] = (NOW - 3600).into();
            claims["exp"] = (NOW - 59).into();
        },
    ] {
        assert_eq!(outcome(&token(change)), Ok(()));
    }
}

#[test]
fn no_refusal_repeats_what_was_sent() {
    for attack in WORKSHOP.attacks() {
        let sentence = outcome(&attack.token).unwrap_err().to_string();
        for part in attack.token.split('.').filter(|part| part.len() > 8) {
            assert!(!sentence.contains(part), "{}: {sentence}", attack.name);
        }
    }
}
