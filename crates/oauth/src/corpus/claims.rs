//! Attacks on the claims, rightly signed: a verifier that stops at the signature accepts them all.

use super::{Attacks, Workshop};
use crate::claims::{MAX_CLIENT_ID, MAX_TEXT};
use crate::jwks::Algorithm;
use serde_json::{Value, json};

pub(super) fn add(attacks: &mut Attacks<'_>) {
    missing_and_misshapen(attacks);
    issuer_and_audience(attacks);
    instants(attacks);
    numbers(attacks);
    bindings(attacks);
    repeated(attacks);
    nested(attacks);
}

fn missing_and_misshapen(attacks: &mut Attacks<'_>) {
    for claim in ["iss", "sub", "aud", "client_id", "organization_id", "jti"] {
        // A client's id may be a URL.
        let longest = if claim == "client_id" {
            MAX_CLIENT_ID
        } else {
            MAX_TEXT
        };
        let long = "x".repeat(longest + 1);
        for (name, value) in [
            ("null", Value::Null),
            ("empty", json!("")),
            ("a number", json!(1)),
            ("true", json!(true)),
            ("an object", json!({})),
            ("oversized", json!(long)),
            ("with a line feed", json!("a\nb")),
        ] {
            attacks.claim(name, claim, value);
        }
    }
    for claim in ["iss", "sub", "client_id", "organization_id", "jti"] {
        let value = attacks.of.claims()[claim].clone();
        attacks.claim("in a list", claim, json!([value]));
    }
    for claim in [
        "iss",
        "sub",
        "aud",
        "client_id",
        "organization_id",
        "jti",
        "iat",
        "exp",
    ] {
        let mut claims = attacks.of.claims();
        claims.as_object_mut().map(|claims| claims.remove(claim));
        let token = attacks.of.signed(&Workshop::header(Algorithm::EdDsa), &claims);
        attacks.add(format!("{claim}: missing"), token);
    }
    for (name, value) in [
        ("a list", json!(["policies:read"])),
        ("null", Value::Null),
        ("two spaces", json!("a  b")),
        ("a space before", json!(" a")),
        ("a quote", json!("a\"b")),
        ("a tab", json!("a\tb")),
        ("not ASCII", json!("\u{e4}")),
        (
            "129 words",
            json!((0..129).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")),
        ),
    ] {
        attacks.claim(name, "scope", value);
    }
    attacks.claim("a number", "sid", json!(1));
    attacks.claim("empty", "sid", json!(""));
}

fn issuer_and_audience(attacks: &mut Attacks<'_>) {
    for claim in ["iss", "aud"] {
        let right = attacks.of.claims()[claim].as_str().unwrap_or_default().to_owned();
        for (name, value) in [
            ("another", "https://attacker.example".to_owned()),
            ("with a slash more", format!("{right}/")),
            ("with a dot more", format!("{right}.attacker.example")),
            ("with a space more", format!("{right} ")),
            ("one character less", right[..right.len() - 1].to_owned()),
            ("in capitals", right.to_uppercase()),
            ("with a user name", right.replace("://", "://x@")),
            ("with a query", format!("{right}?")),
        ] {
            attacks.claim(name, claim, json!(value));
        }
    }
    let right = attacks.of.claims()["aud"].clone();
    let many: Vec<Value> = (0..17).map(|_| right.clone()).collect();
    for (name, value) in [
        ("no audience", json!([])),
        ("others only", json!(["https://a.example", "https://b.example"])),
        ("a number among them", json!([right, 1])),
        ("null among them", json!([right, null])),
        ("an empty one among them", json!([right, ""])),
        ("a list in a list", json!([[right]])),
        ("as a member", json!({ "aud": right })),
        ("seventeen", json!(many)),
        (
            "joined with a space",
            json!(format!(
                "{} https://b.example",
                right.as_str().unwrap_or_default()
            )),
        ),
    ] {
        attacks.claim(name, "aud", value);
    }
}

fn instants(attacks: &mut Attacks<'_>) {
    let now = attacks.of.template().now;
    for (name, claim, value) in [
        ("at iat", "exp", now),
        ("before iat", "exp", now - 1),
        ("a second more than a day", "exp", now + 86_401),
        ("a century", "exp", now + 3_155_760_000),
        ("the largest", "exp", i64::MAX),
        ("zero", "exp", 0),
        ("negative", "exp", -1),
        ("in the future", "iat", now + 61),
        ("negative", "iat", -1),
        ("the least", "iat", i64::MIN),
        ("long ago", "iat", 0),
        ("in the future", "nbf", now + 61),
        ("the largest", "nbf", i64::MAX),
        ("negative", "nbf", -1),
    ] {
        attacks.claim(name, claim, json!(value));
    }
    // Once valid: issued before they end, and not for too long.
    for (name, end) in [("an hour ago", now - 3600), ("the leeway ago", now - 60)] {
        let mut claims = attacks.of.claims();
        claims["iat"] = json!(end - 3600);
        claims["nbf"] = json!(end - 3600);
        claims["exp"] = json!(end);
        let token = attacks.of.signed(&Workshop::header(Algorithm::EdDsa), &claims);
        attacks.add(format!("exp: {name}"), token);
    }
    for claim in ["exp", "iat", "nbf"] {
        let right = attacks.of.claims()[claim].as_i64().unwrap_or_default();
        for (name, value) in [
            ("a text", json!(right.to_string())),
            ("null", Value::Null),
            ("true", json!(true)),
            ("in a list", json!([right])),
            ("an object", json!({ "value": right })),
        ] {
            attacks.claim(name, claim, value);
        }
    }
}

/// Numbers as no JSON library writes them.
fn numbers(attacks: &mut Attacks<'_>) {
    let header = Workshop::header(Algorithm::EdDsa).to_string();
    let claims = attacks.of.claims();
    let right = claims["exp"].to_string();
    let from = format!("\"exp\":{right}");
    for (name, number) in [
        ("with a fraction", format!("{right}.5")),
        ("with a fraction of nothing", format!("{right}.0")),
        ("with an exponent", "1.8e9".to_owned()),
        ("beyond a double", "1e400".to_owned()),
        ("large for a double", "1e300".to_owned()),
        ("beyond 64 bits", "18446744073709551616".to_owned()),
        ("beyond 63 bits", "18446744073709551615".to_owned()),
        ("with 400 digits", "9".repeat(400)),
        ("with a leading zero", format!("0{right}")),
        ("with a plus", format!("+{right}")),
        ("hexadecimal", "0x7fffffff".to_owned()),
        ("infinite", "Infinity".to_owned()),
        ("not a number", "NaN".to_owned()),
        ("minus zero", "-0".to_owned()),
    ] {
        let text = claims.to_string().replace(&from, &format!("\"exp\":{number}"));
        attacks.texts(&format!("exp: {name}"), header.as_bytes(), text.as_bytes());
    }
}

fn bindings(attacks: &mut Attacks<'_>) {
    let digest = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";
    for (name, value) in [
        ("null", Value::Null),
        ("empty", json!({})),
        ("a text", json!(digest)),
        ("of an unknown kind", json!({ "osc": digest })),
        ("a key by name", json!({ "kid": "ed" })),
        ("a whole key", json!({ "jwk": { "kty": "OKP" } })),
        ("two kinds", json!({ "jkt": digest, "x5t#S256": digest })),
        ("too short", json!({ "jkt": &digest[1..] })),
        ("not canonical", json!({ "jkt": digest.replace("A4I", "A4J") })),
        ("a number", json!({ "jkt": 1 })),
    ] {
        attacks.claim(name, "cnf", value);
    }
    for (name, value) in [
        ("null", Value::Null),
        ("a text", json!("agent")),
        ("nobody", json!({})),
        ("a number", json!({ "sub": 1 })),
        ("empty", json!({ "sub": "" })),
        ("a list", json!([{ "sub": "agent" }])),
    ] {
        attacks.claim(name, "act", value);
    }
}

/// Names that stand twice: two parsers could take one each.
fn repeated(attacks: &mut Attacks<'_>) {
    let header = Workshop::header(Algorithm::EdDsa).to_string();
    let claims = attacks.of.claims().to_string();
    let inside = |text: &str, first: &str, last: &str| {
        let members = text.trim_start_matches('{').trim_end_matches('}');
        format!("{{{first}{members}{last}}}")
    };
    for (name, member) in [
        ("alg", r#""alg":"none""#),
        ("alg, the same", r#""alg":"EdDSA""#),
        ("typ", r#""typ":"JWT""#),
        ("kid", r#""kid":"rsa""#),
        ("alg in escapes", r#""\u0061lg":"none""#),
        ("kid in escapes", r#""k\u0069d":"rsa""#),
    ] {
        let before = inside(&header, &format!("{member},"), "");
        let after = inside(&header, "", &format!(",{member}"));
        attacks.texts(
            &format!("header: {name} twice, wrong first"),
            before.as_bytes(),
            claims.as_bytes(),
        );
        attacks.texts(
            &format!("header: {name} twice, wrong last"),
            after.as_bytes(),
            claims.as_bytes(),
        );
    }
    for (name, member) in [
        ("iss", r#""iss":"https://attacker.example""#),
        ("sub", r#""sub":"admin""#),
        ("aud", r#""aud":"https://attacker.example""#),
        ("exp", r#""exp":1"#),
        ("organization_id", r#""organization_id":"org_other""#),
        ("scope", r#""scope":"everything""#),
        ("iss in escapes", r#""\u0069ss":"https://attacker.example""#),
        ("sub in escapes", r#""s\u0075b":"admin""#),
        ("sub in capital escapes", r#""s\u0075\u0062":"admin""#),
    ] {
        let before = inside(&claims, &format!("{member},"), "");
        let after = inside(&claims, "", &format!(",{member}"));
        attacks.texts(
            &format!("claims: {name} twice, wrong first"),
            header.as_bytes(),
            before.as_bytes(),
        );
        attacks.texts(
            &format!("claims: {name} twice, wrong last"),
            header.as_bytes(),
            after.as_bytes(),
        );
    }
    let deep = inside(&claims, "", r#","act":{"sub":"a","sub":"b"}"#);
    attacks.texts("claims: twice in a member", header.as_bytes(), deep.as_bytes());
    let ignored = inside(&claims, "", r#","other":[{"a":1,"\u0061":2}]"#);
    attacks.texts(
        "claims: twice where nobody reads",
        header.as_bytes(),
        ignored.as_bytes(),
    );
}

fn nested(attacks: &mut Attacks<'_>) {
    let header = Workshop::header(Algorithm::EdDsa).to_string();
    let claims = attacks.of.claims().to_string();
    let open = claims.trim_end_matches('}');
    for depth in [16, 127, 128, 1500] {
        let lists = format!("{open},\"deep\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        attacks.texts(
            &format!("claims: {depth} lists in each other"),
            header.as_bytes(),
            lists.as_bytes(),
        );
    }
    let objects = format!("{open},\"deep\":{}1{}}}", "{\"a\":".repeat(17), "}".repeat(17));
    attacks.texts(
        "claims: 17 objects in each other",
        header.as_bytes(),
        objects.as_bytes(),
    );
    let inner = attacks.of.valid(Algorithm::EdDsa);
    let wrapped = Value::String(inner.clone()).to_string();
    attacks.texts("claims: a token as a text", header.as_bytes(), wrapped.as_bytes());
    attacks.texts("claims: a token as such", header.as_bytes(), inner.as_bytes());
    let listed = format!("[{claims}]");
    attacks.texts("claims: in a list", header.as_bytes(), listed.as_bytes());
    attacks.texts("claims: null", header.as_bytes(), b"null");
    attacks.texts("claims: an empty object", header.as_bytes(), b"{}");
}
