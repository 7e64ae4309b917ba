//! Attacks on the header: algorithm, type, key, and members that change what is read.

use super::keys::{ed_jwk, mac};
use super::{Attacks, Workshop, join};
use crate::base64url;
use crate::jwks::Algorithm;
use aws_lc_rs::hmac::{HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use serde_json::{Value, json};

pub(super) fn add(attacks: &mut Attacks<'_>) {
    unsigned(attacks);
    shared_secrets(attacks);
    algorithms(attacks);
    types(attacks);
    members(attacks);
    key_ids(attacks);
}

fn unsigned(attacks: &mut Attacks<'_>) {
    let valid = attacks.of.valid(Algorithm::EdDsa);
    let signature = valid.rsplit('.').next().unwrap_or_default().to_owned();
    for word in ["none", "None", "NONE", "nOnE", "none ", ""] {
        let mut header = Workshop::header(Algorithm::EdDsa);
        header["alg"] = json!(word);
        let unsigned = join(header.to_string(), attacks.of.claims().to_string());
        attacks.add(format!("alg {word:?}, no signature"), format!("{unsigned}."));
        attacks.add(
            format!("alg {word:?}, a signature"),
            format!("{unsigned}.{signature}"),
        );
    }
    let bare = join(r#"{"alg":"none"}"#, attacks.of.claims().to_string());
    attacks.add("alg none, two parts", bare);
}

fn shared_secrets(attacks: &mut Attacks<'_>) {
    let lengths = [
        ("HS256", HMAC_SHA256),
        ("HS384", HMAC_SHA384),
        ("HS512", HMAC_SHA512),
        ("hs256", HMAC_SHA256),
    ];
    for (form, secret) in attacks.of.public_secrets() {
        for (word, algorithm) in lengths {
            for id in ["ed", "ec", "rsa"] {
                let header = json!({ "alg": word, "typ": "at+jwt", "kid": id }).to_string();
                let signed = join(header, attacks.of.claims().to_string());
                let tag = base64url::encode(mac(algorithm, &secret, &signed));
                attacks.add(
                    format!("{word} under {form}, kid {id}"),
                    format!("{signed}.{tag}"),
                );
            }
        }
    }
}

fn algorithms(attacks: &mut Attacks<'_>) {
    for word in [
        "RS384", "RS512", "PS384", "ES384", "ES512", "ES256K", "eddsa", "EDDSA", "Ed448", "RSA-OAEP", "dir",
    ] {
        attacks.header(&format!("alg {word}"), |header| header["alg"] = json!(word));
    }
    attacks.header("alg missing", |header| {
        header.as_object_mut().map(|members| members.remove("alg"));
    });
    for (name, value) in [
        ("null", Value::Null),
        ("a list", json!(["EdDSA"])),
        ("an object", json!({ "EdDSA": true })),
        ("a number", json!(1)),
        ("with a NUL", json!("EdDSA\0")),
    ] {
        attacks.header(&format!("alg {name}"), |header| header["alg"] = value);
    }
    // Keys of one kind under the algorithm of another; signed by the key that the algorithm is for.
    for algorithm in Algorithm::ALL {
        for id in ["ed", "ec", "rsa"] {
            let mut header = Workshop::header(algorithm);
            if header["kid"] != id {
                header["kid"] = json!(id);
                let token = attacks.of.signed(&header, &attacks.of.claims());
                attacks.add(format!("{} under the key {id}", algorithm.as_str()), token);
            }
        }
    }
    attacks.add(
        "an algorithm that the issuer does not allow",
        attacks.of.valid(Algorithm::Rs256),
    );
}

fn types(attacks: &mut Attacks<'_>) {
    for word in [
        "",
        "JWT",
        "jwt",
        "id_token",
        "dpop+jwt",
        "oauth-id-jag+jwt",
        "logout+jwt",
        "secevent+jwt",
        "at+jwt ",
        " at+jwt",
        "at+jwt;x=1",
        "at",
        "at+jw",
        "at+jwts",
        "text/at+jwt",
        "application/jwt",
        "application/application/at+jwt",
        "client-authentication+jwt",
        "token-introspection+jwt",
        "at+jwt\0",
        "application/",
    ] {
        attacks.header(&format!("typ {word:?}"), |header| header["typ"] = json!(word));
    }
    attacks.header("typ missing", |header| {
        header.as_object_mut().map(|members| members.remove("typ"));
    });
    attacks.header("typ null", |header| header["typ"] = Value::Null);
    attacks.header("typ a list", |header| header["typ"] = json!(["at+jwt"]));
}

fn members(attacks: &mut Attacks<'_>) {
    let strange = attacks.of;
    let jwk = ed_jwk(&strange.strange_ed, "ed");
    for (name, member, value) in [
        ("crit of a claim", "crit", json!(["exp"])),
        ("crit of nothing", "crit", json!([])),
        (
            "crit of what is unknown",
            "crit",
            json!(["http://example/unknown"]),
        ),
        ("crit null", "crit", Value::Null),
        ("b64 false", "b64", json!(false)),
        ("b64 true", "b64", json!(true)),
        ("zip", "zip", json!("DEF")),
        ("enc", "enc", json!("A256GCM")),
        ("cty", "cty", json!("JWT")),
        ("jku", "jku", json!("https://attacker.example/keys")),
        ("jku null", "jku", Value::Null),
        ("x5u", "x5u", json!("https://attacker.example/chain.pem")),
        ("x5c", "x5c", json!(["MIIB"])),
        ("jwk of the issuer", "jwk", ed_jwk(&strange.ed, "ed")),
        ("jwk null", "jwk", Value::Null),
    ] {
        attacks.header(name, |header| header[member] = value);
    }
    attacks.header("crit and b64", |header| {
        header["crit"] = json!(["b64"]);
        header["b64"] = json!(false);
    });
    // Signed by the stranger, whose key the header brings along.
    for (name, with_kid) in [("with a known kid", true), ("without a kid", false)] {
        let mut header = json!({ "alg": "EdDSA", "typ": "at+jwt", "jwk": jwk });
        if with_kid {
            header["kid"] = json!("ed");
        }
        let signed = join(header.to_string(), strange.claims().to_string());
        let signature = base64url::encode(strange.strange_ed.sign(signed.as_bytes()));
        attacks.add(
            format!("header: jwk of a stranger, {name}"),
            format!("{signed}.{signature}"),
        );
    }
}

fn key_ids(attacks: &mut Attacks<'_>) {
    let long = "k".repeat(257);
    for id in [
        "",
        "unknown",
        "ED",
        "ed ",
        " ed",
        "ed\n",
        "ed\0",
        "../../../../dev/null",
        "/dev/null",
        "file:///etc/passwd",
        "' OR 1=1 --",
        "x' UNION SELECT 'secret",
        "$(id)",
        "`id`",
        "|id",
        "https://attacker.example/key",
        "schl\u{fc}ssel",
        "\u{ff45}\u{ff44}",
        "ed\u{200b}",
        "%65%64",
        "0",
        "*",
        &long,
    ] {
        let name = if id.len() > 200 {
            "oversized".to_owned()
        } else {
            format!("{id:?}")
        };
        attacks.header(&format!("kid {name}"), |header| header["kid"] = json!(id));
    }
    for (name, value) in [
        ("null", Value::Null),
        ("a list", json!(["ed"])),
        ("a number", json!(0)),
        ("an object", json!({ "ed": 1 })),
    ] {
        attacks.header(&format!("kid {name}"), |header| header["kid"] = value);
    }
}
