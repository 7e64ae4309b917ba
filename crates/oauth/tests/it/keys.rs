//! Key sets: what is skipped, what refuses the whole set, and the examples of the RFCs.

use crate::attacks::WORKSHOP;
use provost_oauth::jwks::{Algorithm, KeySet};
use provost_oauth::{Refusal, json};
use serde_json::{Value, json};

const RSA_N: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const EC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const EC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

fn parse(keys: &Value) -> Result<KeySet, Refusal> {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes())
}

fn ed() -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "x": ED_X })
}

fn ec() -> Value {
    json!({ "kty": "EC", "crv": "P-256", "x": EC_X, "y": EC_Y })
}

fn rsa() -> Value {
    json!({ "kty": "RSA", "n": RSA_N, "e": "AQAB" })
}

fn with(mut key: Value, name: &str, value: impl Into<Value>) -> Value {
    key[name] = value.into();
    key
}

#[test]
fn the_examples_of_the_rfcs_verify_and_have_their_thumbprints() {
    let keys = parse(&json!([ed(), ec(), rsa()])).unwrap();
    let key = |algorithm| keys.find(None, algorithm).unwrap();
    // RFC 8037 §A.3 and RFC 7638 §3.1.
    assert_eq!(
        key(Algorithm::EdDsa).thumbprint(),
        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    );
    assert_eq!(
        key(Algorithm::Rs256).thumbprint(),
        "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    );
    // RFC 8037 §A.4.
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    assert_eq!(
        key(Algorithm::EdDsa).verify(Algorithm::EdDsa, message, &decode(signature)),
        Ok(())
    );
    // RFC 7515 §A.3.
    let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let message = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    assert_eq!(
        key(Algorithm::Es256).verify(Algorithm::Es256, message, &decode(signature)),
        Ok(())
    );
    assert_eq!(
        key(Algorithm::Es256).verify(Algorithm::EdDsa, message, &decode(signature)),
        Err(Refusal::Algorithm)
    );
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

fn encode(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn keys_of_other_kinds_and_for_other_uses_are_skipped() {
    for skipped in [
        json!({ "kty": "oct", "k": "c2VjcmV0" }),
        json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" }),
        json!({ "kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA" }),
        json!({ "kty": "EC" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": ED_X }),
        json!({ "kty": "OKP", "crv": "Ed448", "x": "AA" }),
        json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AA" }),
        with(ed(), "use", "enc"),
        with(rsa(), "alg", "RS512"),
        with(rsa(), "alg", "RSA-OAEP"),
        with(rsa(), "key_ops", json!(["encrypt"])),
    ] {
        assert_eq!(
            parse(&json!([skipped])).map(|keys| keys.len()),
            Ok(0),
            "{skipped}"
        );
        assert_eq!(
            parse(&json!([skipped, ed()])).map(|keys| keys.len()),
            Ok(1),
            "{skipped}"
        );
    }
    let kept = json!([
        with(with(ed(), "use", "sig"), "key_ops", json!(["verify"])),
        with(ec(), "x5c", json!(["MIIB"]))
    ]);
    assert_eq!(parse(&kept).map(|keys| keys.len()), Ok(2));
}

#[test]
fn a_weak_or_wrong_key_refuses_the_set() {
    let modulus = decode(RSA_N);
    let shorter = encode(&modulus[..128]);
    let bits_2047 = encode(&[&[modulus[0] >> 1], &modulus[1..]].concat());
    let mut even = modulus.clone();
    *even.last_mut().unwrap() &= 0xfe;
    let long = encode(&[&vec![0xff; 1025 - 256][..], &modulus].concat());
    let zero = encode(&[&[0], &modulus[..]].concat());
    for (name, key) in [
        ("1024 bits", with(rsa(), "n", shorter)),
        ("2047 bits", with(rsa(), "n", bits_2047)),
        ("8200 bits", with(rsa(), "n", long)),
        ("even", with(rsa(), "n", encode(&even))),
        ("a leading zero", with(rsa(), "n", zero)),
        ("no modulus", with(rsa(), "n", "")),
        ("e = 1", with(rsa(), "e", "AQ")),
        ("e = 3", with(rsa(), "e", "Aw")),
        ("e = 0", with(rsa(), "e", "AA")),
        ("e even", with(rsa(), "e", encode(&[1, 0, 2]))),
        ("e with a leading zero", with(rsa(), "e", encode(&[0, 1, 0, 1]))),
        (
            "e of 64 bits",
            with(rsa(), "e", encode(&[1, 0, 0, 0, 0, 0, 0, 1])),
        ),
        ("no e", json!({ "kty": "RSA", "n": RSA_N })),
        ("e a number", with(rsa(), "e", 65537)),
        ("n not base64url", with(rsa(), "n", "+/")),
        ("n with padding", with(rsa(), "n", format!("{RSA_N}="))),
        ("not on the curve", with(ec(), "y", EC_X)),
        ("x short", with(ec(), "x", encode(&decode(EC_X)[1..]))),
        (
            "x long",
            with(ec(), "x", encode(&[&[0], &decode(EC_X)[..]].concat())),
        ),
        (
            "x zero and y zero",
            with(with(ec(), "x", encode(&[0; 32])), "y", encode(&[0; 32])),
        ),
        (
            "x spare bits",
            with(ec(), "x", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEV"),
        ),
        ("no y", json!({ "kty": "EC", "crv": "P-256", "x": EC_X })),
        ("Ed25519 short", with(ed(), "x", encode(&[1; 31]))),
        ("Ed25519 long", with(ed(), "x", encode(&[1; 33]))),
        (
            "a private Ed25519 key",
            with(ed(), "d", "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"),
        ),
        (
            "a private EC key",
            with(ec(), "d", "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"),
        ),
        ("a private RSA key", with(rsa(), "p", "AQAB")),
        ("alg of another kind", with(rsa(), "alg", "ES256")),
        ("kty a number", with(ed(), "kty", 1)),
        ("kid empty", with(ed(), "kid", "")),
        ("kid a number", with(ed(), "kid", 1)),
        ("kid with a space", with(ed(), "kid", "a b")),
        ("use a list", with(ed(), "use", json!(["sig"]))),
        ("key_ops a text", with(ed(), "key_ops", "verify")),
        ("a text", json!("key")),
        ("no kty", json!({ "x": ED_X })),
    ] {
        assert!(parse(&json!([ed(), key])).is_err(), "{name}: {key}");
    }
}

/// The points whose order divides eight, and those encodings that are not below the prime.
#[test]
fn a_point_of_small_order_refuses_the_set() {
    let hex = |text: &str| {
        (0..32)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
            .collect::<Vec<_>>()
    };
    let tail = "f".repeat(60);
    let mut points = vec![
        hex(&"0".repeat(64)),
        hex(&format!("01{}", "0".repeat(62))),
        hex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
        hex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    ];
    points.extend((0xec..=0xff).map(|first| hex(&format!("{first:02x}{tail}7f"))));
    for mut point in points {
        for sign in [0, 0x80] {
            point[31] = (point[31] & 0x7f) | sign;
            let key = with(ed(), "x", encode(&point));
            assert_eq!(
                parse(&json!([key])).map(drop),
                Err(Refusal::KeySet("a key is weak")),
                "{key}"
            );
        }
    }
}

/// The same 64 bytes, cut one byte later: the point would be the same.
#[test]
fn coordinates_have_their_length() {
    let bytes = [decode(EC_X), decode(EC_Y)].concat();
    let (x, y) = bytes.split_at(33);
    let key = with(with(ec(), "x", encode(x)), "y", encode(y));
    assert_eq!(
        parse(&json!([key])).map(drop),
        Err(Refusal::KeySet("a key is malformed"))
    );
}

#[test]
fn a_set_is_bounded_and_unambiguous() {
    let named = |name: &str| with(ed(), "kid", name);
    assert!(parse(&json!([named("a"), named("a")])).is_err());
    assert!(
        parse(&json!([named("a"), with(ec(), "kid", "a")])).is_err(),
        "of two kinds"
    );
    assert!(
        parse(&json!([named("a"), with(named("a"), "use", "enc")])).is_ok(),
        "one of them is skipped"
    );
    let many = |count: usize| {
        let keys: Vec<Value> = (0..count).map(|n| named(&n.to_string())).collect();
        parse(&json!(keys))
    };
    assert_eq!(many(64).map(|keys| keys.len()), Ok(64));
    assert!(many(65).is_err());
    for text in [
        "",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":null}"#,
        r#"{"keys":[]} {}"#,
        r#"{"keys":[],"keys":[]}"#,
    ] {
        assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(KeySet::parse(br#"{"keys":[]}"#).unwrap().is_empty());
    let padded = |bytes: usize| format!(r#"{{"keys":[]}}{}"#, " ".repeat(bytes - 11));
    assert!(KeySet::parse(padded(65_536).as_bytes()).is_ok());
    assert!(KeySet::parse(padded(65_537).as_bytes()).is_err());
}

/// Proves OA-2.
#[test]
fn a_key_is_found_by_its_name_and_serves_its_algorithm_alone() {
    let keys = KeySet::parse(WORKSHOP.key_set().to_string().as_bytes()).unwrap();
    assert!(keys.find(Some("ed"), Algorithm::EdDsa).is_ok() && keys.find(None, Algorithm::Ps256).is_ok());
    assert_eq!(
        keys.find(Some("ed"), Algorithm::Es256).unwrap_err(),
        Refusal::Algorithm
    );
    assert_eq!(
        keys.find(Some("other"), Algorithm::Es256).unwrap_err(),
        Refusal::UnknownKey
    );
    let bound = parse(&json!([with(with(rsa(), "kid", "r"), "alg", "PS256")])).unwrap();
    assert!(bound.find(Some("r"), Algorithm::Ps256).is_ok());
    assert_eq!(
        bound.find(Some("r"), Algorithm::Rs256).unwrap_err(),
        Refusal::Algorithm
    );
    let two = parse(&json!([with(ed(), "kid", "a"), with(ed(), "kid", "b")])).unwrap();
    assert_eq!(
        two.find(None, Algorithm::EdDsa).unwrap_err(),
        Refusal::UnknownKey,
        "ambiguous"
    );
}

/// Proves OA-3.
#[test]
fn json_has_one_reading() {
    let deep = |levels: usize| {
        format!(
            "{}{}{}",
            r#"{"a":"#.repeat(levels - 1),
            "{}",
            "}".repeat(levels - 1)
        )
    };
    assert!(json::object(deep(16).as_bytes()).is_ok());
    assert_eq!(json::object(deep(17).as_bytes()), Err(Refusal::Json));
    assert_eq!(json::object(br#"{"a":1,"\u0061":1}"#), Err(Refusal::Json));
    assert_eq!(json::object(br#"{"a":[{"b":1,"b":1}]}"#), Err(Refusal::Json));
    let read = json::object(br#"{"a":[1,-2,1.5,"\u00e9",true,false,null,{}],"":0}"#).unwrap();
    assert_eq!(
        Value::Object(read),
        json!({ "a": [1, -2, 1.5, "\u{e9}", true, false, null, {}], "": 0 })
    );
}
