//! What a token endpoint is shown: codes' verifiers, clients' assertions, identity assertions, subject tokens.

use crate::attacks::{NOW, RESOURCE, WORKSHOP};
use base64::Engine;
use provost_oauth::subject_token::SubjectTokenType;
use provost_oauth::{KeySet, Refusal, assertion, id_jag, pkce, subject_token};
use serde_json::{Value, json};

const OWN: &str = "https://provost.example";
const CLIENT: &str = "https://client.example/id.json";

type Change = fn(&mut Value, &mut Value);

fn remove(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name);
}

/// RFC 7636 §B.
#[test]
fn a_verifier_fits_its_challenge_and_no_other() {
    let (verifier, challenge) = (
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    );
    assert_eq!(pkce::check_challenge(Some("S256"), challenge), Ok(()));
    assert_eq!(pkce::verify(challenge, verifier), Ok(()));
    for method in [None, Some("plain"), Some("s256"), Some("")] {
        assert_eq!(pkce::check_challenge(method, challenge), Err(Refusal::Challenge));
    }
    for wrong in [
        "",
        &challenge[1..],
        &format!("{challenge}="),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cN",
    ] {
        assert_eq!(
            pkce::check_challenge(Some("S256"), wrong),
            Err(Refusal::Challenge),
            "{wrong}"
        );
        assert_eq!(pkce::verify(wrong, verifier), Err(Refusal::Challenge), "{wrong}");
    }
    for wrong in [
        challenge,
        &verifier[1..],
        &verifier.to_lowercase(),
        &"a".repeat(42),
        &"a".repeat(129),
        "",
        &"\u{e9}".repeat(43),
    ] {
        assert_eq!(pkce::verify(challenge, wrong), Err(Refusal::Challenge), "{wrong}");
    }
    for (length, expected) in [
        (42, Err(Refusal::Challenge)),
        (43, Ok(())),
        (128, Ok(())),
        (129, Err(Refusal::Challenge)),
    ] {
        let verifier = "a".repeat(length);
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
        let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest);
        assert_eq!(pkce::verify(&challenge, &verifier), expected, "{length}");
    }
}

fn client(change: Change) -> Result<(), Refusal> {
    let mut header = json!({ "alg": "ES256", "kid": "ec" });
    let mut claims =
        json!({ "iss": CLIENT, "sub": CLIENT, "aud": OWN, "jti": "a-1", "iat": NOW, "exp": NOW + 300 });
    change(&mut header, &mut claims);
    let keys = KeySet::parse(WORKSHOP.key_set().to_string().as_bytes()).unwrap();
    let token = WORKSHOP.signed(&header, &claims);
    assertion::verify(
        &token,
        CLIENT,
        &keys,
        &[OWN, "https://provost.example/oauth/token"],
        NOW,
    )
    .map(drop)
}

#[test]
fn a_client_proves_itself_to_this_server_for_five_minutes() {
    for accepted in [
        (|_, _| {}) as Change,
        |header, _| header["typ"] = "JWT".into(),
        |header, _| header["typ"] = "client-authentication+jwt".into(),
        |_, claims| claims["aud"] = json!(["https://provost.example/oauth/token"]),
        |_, claims| claims["exp"] = (NOW + 360).into(),
        |_, claims| claims["exp"] = (NOW - 59).into(),
        |_, claims| remove(claims, "iat"),
        |header, _| remove(header, "kid"),
    ] {
        assert_eq!(client(accepted), Ok(()));
    }
    for (name, change) in [
        ("iss", (|_, claims| claims["iss"] = "another".into()) as Change),
        ("sub", |_, claims| claims["sub"] = "another".into()),
        ("no iss", |_, claims| remove(claims, "iss")),
        ("no sub", |_, claims| remove(claims, "sub")),
        ("no jti", |_, claims| remove(claims, "jti")),
        ("no exp", |_, claims| remove(claims, "exp")),
        ("no aud", |_, claims| remove(claims, "aud")),
        ("aud", |_, claims| claims["aud"] = "https://other.example".into()),
        ("aud of two servers", |_, claims| {
            claims["aud"] = json!([OWN, "https://other.example"]);
        }),
        ("expired", |_, claims| claims["exp"] = (NOW - 60).into()),
        ("far", |_, claims| claims["exp"] = (NOW + 361).into()),
        ("iat ahead", |_, claims| claims["iat"] = (NOW + 61).into()),
        ("nbf ahead", |_, claims| claims["nbf"] = (NOW + 61).into()),
        ("access token", |header, _| header["typ"] = "at+jwt".into()),
        ("proof", |header, _| header["typ"] = "dpop+jwt".into()),
        ("another key", |header, _| header["kid"] = "ed".into()),
        ("unknown key", |header, _| header["kid"] = "none".into()),
    ] {
        assert!(client(change).is_err(), "{name}");
    }
}

fn jag(change: Change) -> Result<id_jag::IdJag, Refusal> {
    let mut header = json!({ "alg": "EdDSA", "kid": "ed", "typ": "oauth-id-jag+jwt" });
    let mut claims = json!({
        "iss": "https://issuer.example", "sub": "user-1", "aud": OWN, "client_id": CLIENT, "resource": RESOURCE,
        "scope": "mcp:read", "jti": "j-1", "iat": NOW, "exp": NOW + 300, "email": "a@example.com", "email_verified": true,
    });
    change(&mut header, &mut claims);
    let token = WORKSHOP.signed(&header, &claims);
    id_jag::verify(
        &token,
        &WORKSHOP.issuer(),
        OWN,
        CLIENT,
        &[RESOURCE, "https://provost.example/api"],
        NOW,
    )
}

#[test]
fn an_identity_assertion_is_for_one_server_one_client_and_known_resources() {
    let accepted = jag(|_, _| {}).unwrap();
    assert_eq!(
        (accepted.subject.as_str(), accepted.verified_email.as_deref()),
        ("user-1", Some("a@example.com"))
    );
    assert_eq!(
        (accepted.scopes, accepted.resources),
        (vec!["mcp:read".to_owned()], vec![RESOURCE.to_owned()])
    );
    let both =
        jag(|_, claims| claims["resource"] = json!([RESOURCE, "https://provost.example/api"])).unwrap();
    assert_eq!(both.resources.len(), 2);
    assert_eq!(
        jag(|_, claims| remove(claims, "scope")).unwrap().scopes,
        Vec::<String>::new()
    );
    assert!(jag(|_, claims| claims["aud"] = json!([OWN])).is_ok());
}

#[test]
fn an_identity_assertion_for_anything_else_is_refused() {
    for (name, change, refusal) in [
        (
            "typ",
            (|header, _| header["typ"] = "JWT".into()) as Change,
            Refusal::Type,
        ),
        ("no typ", |header, _| remove(header, "typ"), Refusal::Type),
        (
            "at+jwt",
            |header, _| header["typ"] = "at+jwt".into(),
            Refusal::Type,
        ),
        (
            "iss",
            |_, claims| claims["iss"] = "https://other.example".into(),
            Refusal::Issuer,
        ),
        (
            "aud",
            |_, claims| claims["aud"] = "https://other.example".into(),
            Refusal::Audience,
        ),
        (
            "aud with a slash",
            |_, claims| claims["aud"] = "https://provost.example/".into(),
            Refusal::Audience,
        ),
        (
            "two",
            |_, claims| claims["aud"] = json!([OWN, "https://o.example"]),
            Refusal::Audience,
        ),
        (
            "client",
            |_, claims| claims["client_id"] = "other".into(),
            Refusal::Mismatch("client_id"),
        ),
        (
            "no client",
            |_, claims| remove(claims, "client_id"),
            Refusal::Missing("client_id"),
        ),
        (
            "resource",
            |_, claims| claims["resource"] = "https://o.example".into(),
            Refusal::Mismatch("resource"),
        ),
        (
            "one of two",
            |_, claims| claims["resource"] = json!([RESOURCE, "x"]),
            Refusal::Mismatch("resource"),
        ),
        (
            "no resource",
            |_, claims| remove(claims, "resource"),
            Refusal::Missing("resource"),
        ),
        (
            "an empty list",
            |_, claims| claims["resource"] = json!([]),
            Refusal::Malformed("resource"),
        ),
        (
            "no jti",
            |_, claims| remove(claims, "jti"),
            Refusal::Missing("jti"),
        ),
        (
            "no sub",
            |_, claims| remove(claims, "sub"),
            Refusal::Missing("sub"),
        ),
        (
            "expired",
            |_, claims| claims["exp"] = (NOW - 60).into(),
            Refusal::Expired,
        ),
        (
            "far",
            |_, claims| claims["exp"] = (NOW + 3601).into(),
            Refusal::Lifetime,
        ),
        (
            "scope",
            |_, claims| claims["scope"] = json!(["mcp:read"]),
            Refusal::Malformed("scope"),
        ),
        (
            "RS256",
            |header, _| *header = json!({ "alg": "RS256", "kid": "rsa", "typ": "oauth-id-jag+jwt" }),
            Refusal::Algorithm,
        ),
    ] {
        assert_eq!(jag(change), Err(refusal), "{name}");
    }
}

#[test]
fn an_address_counts_where_the_issuer_says_that_it_is_verified() {
    let address = Some("a@example.com".to_owned());
    let said: [(Change, Option<String>); 9] = [
        (|_, claims| claims["email_verified"] = "true".into(), address),
        (|_, claims| claims["email_verified"] = "True".into(), None),
        (|_, claims| claims["email_verified"] = "1".into(), None),
        (|_, claims| claims["email_verified"] = 1.into(), None),
        (|_, claims| claims["email_verified"] = false.into(), None),
        (|_, claims| remove(claims, "email_verified"), None),
        (|_, claims| remove(claims, "email"), None),
        (|_, claims| claims["email"] = 7.into(), None),
        (|_, claims| claims["email"] = "a\u{7}".into(), None),
    ];
    for (change, expected) in said {
        assert_eq!(jag(change).unwrap().verified_email, expected);
        let subject = exchanged(SubjectTokenType::IdToken, |_, claims| {
            claims["email"] = "a@example.com".into();
            claims["email_verified"] = true.into();
        });
        assert_eq!(subject.unwrap().verified_email.as_deref(), Some("a@example.com"));
    }
}

fn exchanged(kind: SubjectTokenType, change: Change) -> Result<subject_token::Subject, Refusal> {
    let mut header = json!({ "alg": "EdDSA", "kid": "ed", "typ": "JWT" });
    let mut claims = json!({ "iss": "https://issuer.example", "sub": "user-1", "aud": CLIENT, "iat": NOW, "exp": NOW + 300 });
    if kind == SubjectTokenType::AccessToken {
        header["typ"] = "at+jwt".into();
        claims["client_id"] = "client-1".into();
        claims["jti"] = "t-1".into();
        claims["scope"] = "a b".into();
    }
    change(&mut header, &mut claims);
    subject_token::verify(
        &WORKSHOP.signed(&header, &claims),
        kind,
        &WORKSHOP.issuer(),
        &[CLIENT],
        NOW,
    )
}

/// Proves OA-4.
#[test]
fn a_subject_token_is_what_its_type_says_and_for_us() {
    use SubjectTokenType::{AccessToken, IdToken};
    assert_eq!(exchanged(IdToken, |_, _| {}).unwrap().subject, "user-1");
    assert_eq!(exchanged(AccessToken, |_, _| {}).unwrap().scopes, ["a", "b"]);
    assert!(exchanged(IdToken, |header, _| remove(header, "typ")).is_ok());
    assert!(exchanged(IdToken, |_, claims| claims["azp"] = CLIENT.into()).is_ok());
    for (kind, change, refusal) in [
        (
            IdToken,
            (|header, _| header["typ"] = "at+jwt".into()) as Change,
            Refusal::Type,
        ),
        (
            AccessToken,
            |header, _| header["typ"] = "JWT".into(),
            Refusal::Type,
        ),
        (AccessToken, |header, _| remove(header, "typ"), Refusal::Type),
        (
            AccessToken,
            |_, claims| remove(claims, "client_id"),
            Refusal::Missing("client_id"),
        ),
        (
            AccessToken,
            |_, claims| remove(claims, "jti"),
            Refusal::Missing("jti"),
        ),
        (
            IdToken,
            |_, claims| claims["aud"] = "other".into(),
            Refusal::Audience,
        ),
        (
            IdToken,
            |_, claims| claims["azp"] = "other".into(),
            Refusal::Audience,
        ),
        (
            IdToken,
            |_, claims| claims["aud"] = json!([CLIENT, "other"]),
            Refusal::Audience,
        ),
        (
            IdToken,
            |_, claims| claims["iss"] = "other".into(),
            Refusal::Issuer,
        ),
        (
            IdToken,
            |_, claims| remove(claims, "sub"),
            Refusal::Missing("sub"),
        ),
        (
            IdToken,
            |_, claims| remove(claims, "iat"),
            Refusal::Missing("iat"),
        ),
        (
            IdToken,
            |_, claims| claims["exp"] = (NOW - 60).into(),
            Refusal::Expired,
        ),
    ] {
        assert_eq!(exchanged(kind, change), Err(refusal));
    }
    assert_eq!(SubjectTokenType::parse(AccessToken.as_str()), Some(AccessToken));
    assert_eq!(
        SubjectTokenType::parse("urn:ietf:params:oauth:token-type:jwt"),
        None
    );
}
