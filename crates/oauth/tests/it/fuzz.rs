//! What a fuzzer asks of tokens, key sets and URLs: a function of any bytes that panics where a promise is broken.
//!
//! The first byte of the input says what the rest is: a token; a header, a line feed and a payload that are rightly
//! signed; a key set; a URL; a client's document; an issuer's answer.
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpus; the test here replays it.

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_oauth::access_token::{self, Issuer};
use provost_oauth::sign::Signer;
use provost_oauth::subject_token::{self, SubjectTokenType};
use provost_oauth::{
    Algorithm, Claims, KeySet, assertion, client_document, dpop, id_jag, introspection, json, redirect,
};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

const NOW: i64 = 1_800_000_000;
const SEED: [u8; 32] = [7; 32];
const RESOURCE: &str = "https://provost.example/mcp";
const URL: &str = "https://client.example/id.json";

static KEY: LazyLock<Ed25519KeyPair> = LazyLock::new(|| Ed25519KeyPair::from_seed_unchecked(&SEED).unwrap());
static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::from_ed25519_seed(&SEED, "key-1").unwrap());
static ISSUER: LazyLock<Issuer> = LazyLock::new(|| {
    let keys = KeySet::parse(SIGNER.public_key_set_json().as_bytes()).unwrap();
    Issuer {
        url: "https://issuer.example".into(),
        algorithms: vec![Algorithm::EdDsa],
        keys: Arc::new(keys),
    }
});

/// Whatever is accepted is what it must be, and nothing makes the checks panic.
pub fn oauth_tokens(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind {
        b'0' => {
            if let Ok(token) = str::from_utf8(rest) {
                any_token(token);
            }
        }
        b'1' => signed(rest),
        b'2' => key_set(rest),
        b'3' => {
            if let Ok(url) = str::from_utf8(rest) {
                address(url);
            }
        }
        b'4' => document(rest),
        b'5' => {
            if let Ok(claims) = introspection::answer(rest, "opaque", &ISSUER.url, &[RESOURCE], NOW) {
                acceptable(&claims);
            }
        }
        _ => {}
    }
}

/// A token of which the fuzzer knows no key: only what it was given can be accepted.
fn any_token(token: &str) {
    let accepted = access_token::verify(token, &ISSUER, &[RESOURCE], NOW);
    if let Ok(claims) = accepted {
        acceptable(&claims);
        assert_eq!(access_token::peek(token).unwrap().issuer, claims.issuer);
    }
    let _ = access_token::peek(token);
    let _ = id_jag::verify(token, &ISSUER, "https://provost.example", URL, &[RESOURCE], NOW);
    let _ = assertion::verify(token, URL, &ISSUER.keys, &["https://provost.example"], NOW);
    for kind in [SubjectTokenType::IdToken, SubjectTokenType::AccessToken] {
        let _ = subject_token::verify(token, kind, &ISSUER, &[URL], NOW);
    }
    if let Ok(proof) = dpop::verify(token, "POST", URL, None, NOW) {
        assert!(proof.thumbprint.len() == 43 && (proof.issued_at - NOW).abs() <= 60);
    }
}

/// A rightly signed token: what is refused is refused for what it says.
fn signed(content: &[u8]) {
    let Some(end) = content.iter().position(|byte| *byte == b'\n') else {
        return;
    };
    let (header, payload) = (&content[..end], &content[end + 1..]);
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(KEY.sign(signed.as_bytes())));
    any_token(&token);
    let Ok(claims) = access_token::verify(&token, &ISSUER, &[RESOURCE], NOW) else {
        return;
    };
    // A second, lenient reader says the same.
    let header: Value = serde_json::from_slice(header).unwrap();
    let payload: Value = serde_json::from_slice(payload).unwrap();
    assert!(header["alg"] == "EdDSA" && header.get("crit").is_none() && header.get("jwk").is_none());
    assert!(
        header["typ"]
            .as_str()
            .unwrap()
            .to_ascii_lowercase()
            .ends_with("at+jwt")
    );
    assert_eq!(payload["sub"], claims.subject.as_str());
    assert_eq!(payload["organization_id"], claims.organization.as_str());
    assert_eq!(payload["exp"].as_i64(), Some(claims.expires_at));
    acceptable(&claims);
    let again = access_token::verify(&SIGNER.access_token(&claims), &ISSUER, &[RESOURCE], NOW);
    assert_eq!(again, Ok(claims), "what was accepted can be said again");
}

/// A host has no case; everything else of the name has.
fn is_resource(audience: &str) -> bool {
    let parts = |url: &str| -> Option<(String, String)> {
        let (scheme, rest) = url.split_once("://")?;
        let (host, path) = rest.split_once('/')?;
        Some((format!("{scheme}://{host}").to_ascii_lowercase(), path.to_owned()))
    };
    parts(audience).is_some_and(|audience| Some(audience) == parts(RESOURCE))
}

fn acceptable(claims: &Claims) {
    assert_eq!(claims.issuer, ISSUER.url);
    assert!(claims.audiences.iter().any(|audience| is_resource(audience)) && claims.audiences.len() <= 16);
    assert!(claims.expires_at > NOW - 60 && claims.expires_at - claims.issued_at <= 86_400);
    assert!(claims.issued_at <= NOW + 60 && claims.not_before.is_none_or(|instant| instant <= NOW + 60));
    assert!(
        claims
            .scopes
            .iter()
            .all(|scope| !scope.is_empty() && !scope.contains([' ', '"', '\\']))
    );
    for text in [
        &claims.subject,
        &claims.client_id,
        &claims.organization,
        &claims.id,
    ] {
        assert!(!text.is_empty() && text.chars().count() <= 512 && !text.contains(char::is_control));
    }
}

fn key_set(bytes: &[u8]) {
    let Ok(keys) = KeySet::parse(bytes) else {
        return;
    };
    assert!(keys.len() <= 64 && json::object(bytes).is_ok());
    for algorithm in Algorithm::ALL {
        if let Ok(key) = keys.find(None, algorithm) {
            assert!(key.fits(algorithm) && key.thumbprint().len() == 43);
            assert!(key.verify(algorithm, b"message", &[0; 64]).is_err());
        }
    }
}

/// What is taken for a client's URL means the same to another parser.
fn address(url: &str) {
    if client_document::check_url(url).is_ok() {
        let other: http::Uri = url.parse().unwrap();
        assert_eq!(other.scheme_str(), Some("https"));
        assert!(!other.authority().unwrap().as_str().contains('@'));
        assert!(url[8..].starts_with(other.authority().unwrap().as_str()) && !url.contains(['#', '\\', '?']));
        assert_eq!(
            url[8..].strip_prefix(other.authority().unwrap().as_str()),
            Some(other.path())
        );
    }
    if redirect::check(url).is_ok() {
        assert!(redirect::matches(url, url) && !url.to_ascii_lowercase().starts_with("javascript:"));
    }
    assert!(!redirect::matches(url, "https://attacker.example/") || url == "https://attacker.example/");
}

fn document(bytes: &[u8]) {
    if let Ok(document) = client_document::parse(bytes, URL) {
        assert!(document.client_id == URL && bytes.len() <= 5 * 1024);
        assert!(
            document
                .redirect_uris
                .iter()
                .all(|uri| redirect::check(uri).is_ok())
        );
    }
}

#[test]
fn the_corpus_of_tokens_keeps_its_promises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/oauth_tokens");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() >= 12, "{} inputs", names.len());
    for name in names {
        println!("{}", name.display());
        oauth_tokens(&std::fs::read(name).unwrap());
    }
}

/// The corpus is worth replaying only if its first inputs are accepted.
#[test]
fn the_corpus_has_inputs_that_are_accepted() {
    let read = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/oauth_tokens/");
        std::fs::read(format!("{folder}{name}")).unwrap().split_off(1)
    };
    let token = String::from_utf8(read("a_valid_token")).unwrap();
    assert!(access_token::verify(&token, &ISSUER, &[RESOURCE], NOW).is_ok());
    assert!(KeySet::parse(&read("a_key_set")).is_ok_and(|keys| keys.len() == 3));
    assert!(client_document::parse(&read("a_client_document"), URL).is_ok());
    assert!(introspection::answer(&read("an_answer"), "t", &ISSUER.url, &[RESOURCE], NOW).is_ok());
    assert!(client_document::check_url(str::from_utf8(&read("a_url")).unwrap()).is_ok());
}

#[cfg(test)]
mod random {
    use super::*;
    use proptest::prelude::*;

    fn valid() -> (Vec<u8>, Vec<u8>) {
        let header = br#"{"alg":"EdDSA","typ":"at+jwt","kid":"key-1"}"#.to_vec();
        let payload = format!(
            r#"{{"iss":"https://issuer.example","sub":"u","aud":["{RESOURCE}","x"],"client_id":"c","organization_id":"o","jti":"j","scope":"a b","iat":{NOW},"nbf":{NOW},"exp":{}}}"#,
            NOW + 600
        );
        (header, payload.into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Signed tokens with a few bytes of header and payload changed: mostly JSON, often nearly right.
        #[test]
        fn near_misses_are_judged_alike_by_a_second_reader(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            in_header: bool,
        ) {
            let (mut header, mut payload) = valid();
            let target = if in_header { &mut header } else { &mut payload };
            for (at, byte) in edits {
                let at = at.index(target.len());
                target[at] = byte;
            }
            oauth_tokens(&[b"1", &header[..], b"\n", &payload].concat());
        }

        #[test]
        fn any_text_is_refused(token in "[ -~]{0,300}") {
            oauth_tokens(format!("0{token}").as_bytes());
            prop_assert!(access_token::verify(&token, &ISSUER, &[RESOURCE], NOW).is_err());
        }

        #[test]
        fn urls_have_one_reading(url in "https?://[a-z0-9.:@\\[\\]%-]{1,20}[/?#a-z%2e.]{0,12}") {
            oauth_tokens(format!("3{url}").as_bytes());
        }

        /// What the signer says is what the verifier hears, whatever it is.
        #[test]
        fn any_acceptable_claims_round_trip(
            subject in "\\PC{1,64}", id in "[!-~]{1,64}", session in prop::option::of("\\PC{1,20}"),
            actor in prop::option::of("\\PC{1,20}"), scopes in prop::collection::hash_set("[a-z:_]{1,12}", 0..20),
            others in prop::collection::vec("[a-z]{1,9}", 0..15), early in 0..60_i64, life in 61..86_400_i64,
        ) {
            let claims = Claims {
                issuer: ISSUER.url.clone(), subject, client_id: "c".into(), organization: "o".into(),
                scopes: scopes.into_iter().collect(),
                audiences: std::iter::once(RESOURCE.to_owned()).chain(others).collect(),
                issued_at: NOW - early, not_before: None, expires_at: NOW - early + life, id, session,
                confirmation: None, actor,
            };
            let heard = access_token::verify(&SIGNER.access_token(&claims), &ISSUER, &[RESOURCE], NOW);
            prop_assert_eq!(heard, Ok(claims));
        }
    }
}
