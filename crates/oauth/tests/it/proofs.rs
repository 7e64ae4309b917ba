//! Proofs of possession: one request, one token, one minute, once.

use crate::attacks::{NOW, WORKSHOP};
use provost_oauth::Refusal;
use provost_oauth::dpop::{Proof, ReplayCache, verify};
use serde_json::{Value, json};

const URL: &str = "https://provost.example/oauth/token";

fn proof(change: impl FnOnce(&mut Value, &mut Value)) -> String {
    let jwk = WORKSHOP.key_set()["keys"][0].clone();
    let mut header = json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": jwk });
    let mut claims = json!({ "jti": "proof-1", "htm": "POST", "htu": URL, "iat": NOW });
    change(&mut header, &mut claims);
    WORKSHOP.signed(&header, &claims)
}

fn outcome(change: impl FnOnce(&mut Value, &mut Value)) -> Result<Proof, Refusal> {
    verify(&proof(change), "POST", URL, None, NOW)
}

/// RFC 9449 §4.2, §5 and §6.1.
#[test]
fn the_example_of_the_rfc_is_accepted() {
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    let accepted = verify(
        proof,
        "POST",
        "https://server.example.com/token",
        None,
        1_562_262_616,
    )
    .unwrap();
    assert_eq!(accepted.thumbprint, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
    assert_eq!(
        (accepted.id.as_str(), accepted.issued_at),
        ("-BwC3ESc6acc2lTc", 1_562_262_616)
    );
}

#[test]
fn a_proof_is_for_one_method_and_one_url() {
    assert!(outcome(|_, _| {}).is_ok());
    for method in ["post", "GET", "POST ", ""] {
        assert!(
            outcome(|_, claims| claims["htm"] = method.into()).is_err(),
            "{method}"
        );
    }
    for url in [
        "https://provost.example/oauth/tokens",
        "https://provost.example/oauth/",
        "https://provost.example/oauth/token/",
        "https://provost.example/OAuth/token",
        "https://provost.example.attacker.example/oauth/token",
        "https://attacker.example/oauth/token",
        "http://provost.example/oauth/token",
        "https://provost.example:8443/oauth/token",
        "https://x@provost.example/oauth/token",
        "/oauth/token",
        "provost.example/oauth/token",
        "",
    ] {
        assert!(outcome(|_, claims| claims["htu"] = url.into()).is_err(), "{url}");
    }
    for url in [
        "https://PROVOST.example/oauth/token",
        "https://provost.example:443/oauth/token",
        "https://provost.example/oauth/token?a=b",
        "https://provost.example/oauth/token#c",
    ] {
        assert!(outcome(|_, claims| claims["htu"] = url.into()).is_ok(), "{url}");
    }
    let url = format!("{URL}?query=is+ignored");
    assert!(verify(&proof(|_, _| {}), "POST", &url, None, NOW).is_ok());
}

#[test]
fn a_proof_lives_for_a_minute() {
    for (iat, expected) in [
        (NOW - 61, Some(Refusal::Expired)),
        (NOW - 60, None),
        (NOW + 60, None),
        (NOW + 61, Some(Refusal::NotYetValid)),
    ] {
        assert_eq!(
            outcome(|_, claims| claims["iat"] = iat.into()).err(),
            expected,
            "{}",
            iat - NOW
        );
    }
    for value in [json!("1"), Value::Null, json!(1.5), json!(-1)] {
        assert_eq!(
            outcome(|_, claims| claims["iat"] = value),
            Err(Refusal::Malformed("iat"))
        );
    }
}

#[test]
fn a_proof_names_its_token() {
    // RFC 9449 §7.1.
    let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
    let made = proof(|_, claims| claims["ath"] = "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo".into());
    assert!(verify(&made, "POST", URL, Some(token), NOW).is_ok());
    assert_eq!(
        verify(&made, "POST", URL, Some("another"), NOW),
        Err(Refusal::Mismatch("ath"))
    );
    assert_eq!(
        verify(&proof(|_, _| {}), "POST", URL, Some(token), NOW),
        Err(Refusal::Missing("ath"))
    );
    let short = proof(|_, claims| claims["ath"] = "fUHy".into());
    assert_eq!(
        verify(&short, "POST", URL, Some(token), NOW),
        Err(Refusal::Mismatch("ath"))
    );
}

#[test]
fn a_proof_brings_a_public_key_that_signed_it() {
    let jwk = || WORKSHOP.key_set()["keys"][0].clone();
    for (name, change) in [
        (
            "none",
            (|header, _| drop(header.as_object_mut().unwrap().remove("jwk"))) as fn(&mut Value, &mut Value),
        ),
        ("null", |header, _| header["jwk"] = Value::Null),
        ("a text", |header, _| header["jwk"] = "key".into()),
        ("another's", |header, _| {
            header["jwk"]["x"] = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".into();
        }),
        ("of another kind", |header, _| {
            header["jwk"] = WORKSHOP.key_set()["keys"][1].clone();
        }),
        ("of small order", |header, _| {
            header["jwk"]["x"] = "A".repeat(43).into();
        }),
        ("private", |header, _| {
            header["jwk"]["d"] = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".into();
        }),
        ("symmetric", |header, _| {
            header["jwk"] = json!({ "kty": "oct", "k": "AA" });
        }),
        ("for encryption", |header, _| header["jwk"]["use"] = "enc".into()),
        ("for another algorithm", |header, _| {
            header["jwk"]["alg"] = "ES256".into();
        }),
        ("alg none", |header, _| header["alg"] = "none".into()),
        ("alg HS256", |header, _| header["alg"] = "HS256".into()),
        ("typ JWT", |header, _| header["typ"] = "JWT".into()),
        ("typ at+jwt", |header, _| header["typ"] = "at+jwt".into()),
        ("crit", |header, _| header["crit"] = json!(["jwk"])),
        ("jku", |header, _| {
            header["jku"] = "https://attacker.example".into();
        }),
        ("no jti", |_, claims| {
            drop(claims.as_object_mut().unwrap().remove("jti"));
        }),
        ("an empty jti", |_, claims| claims["jti"] = "".into()),
        ("no htm", |_, claims| {
            drop(claims.as_object_mut().unwrap().remove("htm"));
        }),
        ("no htu", |_, claims| {
            drop(claims.as_object_mut().unwrap().remove("htu"));
        }),
        ("no iat", |_, claims| {
            drop(claims.as_object_mut().unwrap().remove("iat"));
        }),
    ] {
        assert!(outcome(change).is_err(), "{name}");
    }
    assert!(outcome(|header, _| header["jwk"] = jwk()).is_ok());
}

#[test]
fn every_flip_of_a_bit_of_a_proof_is_refused() {
    let token = proof(|_, _| {}).into_bytes();
    for at in 0..token.len() * 8 {
        let mut flipped = token.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        let text = String::from_utf8(flipped);
        assert!(
            text.is_err() || verify(&text.unwrap(), "POST", URL, None, NOW).is_err(),
            "bit {at}"
        );
    }
}

fn seen(id: &str, issued_at: i64) -> Proof {
    Proof {
        thumbprint: "t".repeat(43),
        id: id.into(),
        issued_at,
    }
}

#[test]
fn a_proof_is_accepted_once_for_as_long_as_it_could_be_accepted() {
    let replays = ReplayCache::new(10);
    assert_eq!(replays.admit(&seen("a", NOW), NOW), Ok(()));
    for later in [0, 1, 59, 60] {
        assert_eq!(
            replays.admit(&seen("a", NOW), NOW + later),
            Err(Refusal::Replayed),
            "{later}"
        );
    }
    assert_eq!(
        replays.admit(&seen("a", NOW), NOW + 61),
        Err(Refusal::Expired),
        "forgotten, and not accepted either"
    );
    assert_eq!(
        replays.admit(&seen("a", NOW), NOW),
        Err(Refusal::Expired),
        "nor with a clock set back"
    );
    assert_eq!(
        replays.admit(
            &Proof {
                thumbprint: "u".repeat(43),
                ..seen("a", NOW + 61)
            },
            NOW + 61
        ),
        Ok(())
    );
    assert_eq!(
        replays.admit(&seen("a", NOW + 61), NOW + 61),
        Ok(()),
        "the same id at another key or time"
    );
}

/// Proves OA-7.
#[test]
fn a_full_memory_refuses_and_forgets_nothing_early() {
    let replays = ReplayCache::new(3);
    for id in ["a", "b", "c"] {
        assert_eq!(replays.admit(&seen(id, NOW), NOW), Ok(()));
    }
    assert_eq!(replays.admit(&seen("d", NOW + 30), NOW + 60), Err(Refusal::Busy));
    assert_eq!(replays.admit(&seen("a", NOW), NOW + 60), Err(Refusal::Replayed));
    assert_eq!(
        replays.admit(&seen("d", NOW + 30), NOW + 61),
        Ok(()),
        "room again when the others cannot be accepted"
    );
}

#[test]
fn no_group_has_more_than_is_free_and_each_that_has_little_finds_room() {
    let replays = ReplayCache::new(100);
    let fill = |group: &str| {
        let admitted = |n: &i64| replays.admit_of(group, &seen(&format!("{group} {n}"), NOW), NOW) == Ok(());
        (0..100).filter(admitted).count()
    };
    assert_eq!(fill("a"), 50);
    assert_eq!(fill("b"), 25);
    assert_eq!(fill("c"), 13);
    assert_eq!(replays.admit_of("d", &seen("d", NOW), NOW), Ok(()));
    assert_eq!(
        replays.admit_of("a", &seen("a 0", NOW), NOW),
        Err(Refusal::Replayed)
    );
    let later = NOW + 61;
    assert_eq!(
        replays.admit_of("a", &seen("a 0", later), later),
        Ok(()),
        "room again when the others cannot be accepted"
    );
}

/// Proves OA-7.
#[test]
fn of_many_threads_with_one_proof_one_is_admitted() {
    let replays = ReplayCache::new(1000);
    let admitted = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..100 {
                    if replays.admit(&seen(&n.to_string(), NOW), NOW).is_ok() {
                        admitted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 100);
}

#[test]
fn a_memory_keeps_owners_apart_and_serves_assertions() {
    let replays = ReplayCache::new(10);
    assert_eq!(replays.admit_until("ab", "c", NOW + 300, NOW), Ok(()));
    assert_eq!(replays.admit_until("a", "bc", NOW + 300, NOW), Ok(()));
    assert_eq!(
        replays.admit_until("ab", "c", NOW + 300, NOW + 300),
        Err(Refusal::Replayed)
    );
    assert_eq!(
        replays.admit_until("ab", "c", NOW + 300, NOW + 301),
        Err(Refusal::Expired)
    );
}
