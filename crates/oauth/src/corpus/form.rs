//! Attacks on the form: other texts that a lenient decoder takes for the same token.

use super::{Attacks, Workshop};
use crate::jwks::Algorithm;

pub(super) fn add(attacks: &mut Attacks<'_>) {
    texts(attacks);
    spare_bits(attacks);
    json(attacks);
}

fn texts(attacks: &mut Attacks<'_>) {
    let valid = attacks.of.valid(Algorithm::EdDsa);
    let parts: Vec<&str> = valid.split('.').collect();
    let [header, payload, signature] = parts[..] else {
        return;
    };
    let mut add = |name: &str, token: String| attacks.add(format!("form: {name}"), token);
    add("nothing", String::new());
    add("a dot", ".".into());
    add("two dots", "..".into());
    add("three dots", "...".into());
    add("one part", header.into());
    add("two parts", format!("{header}.{payload}"));
    add("a dot after", format!("{valid}."));
    add("a dot before", format!(".{valid}"));
    add("four parts", format!("{valid}.{signature}"));
    add(
        "five parts",
        format!("{header}.{payload}.{signature}.{payload}.{signature}"),
    );
    add("five parts, empty ones", format!("{header}..{payload}.."));
    add("no header", format!(".{payload}.{signature}"));
    add("no payload", format!("{header}..{signature}"));
    add("two dots in a row", format!("{header}..{payload}.{signature}"));
    add("padded header", format!("{header}=.{payload}.{signature}"));
    add("padded payload", format!("{header}.{payload}=.{signature}"));
    add("padded signature", format!("{valid}=="));
    for (name, text) in [
        ("space", " "),
        ("tab", "\t"),
        ("line feed", "\n"),
        ("carriage return", "\r\n"),
        ("NUL", "\0"),
    ] {
        add(&format!("{name} before"), format!("{text}{valid}"));
        add(&format!("{name} after"), format!("{valid}{text}"));
        add(
            &format!("{name} at a dot"),
            format!("{header}.{text}{payload}.{signature}"),
        );
        let (left, right) = payload.split_at(payload.len() / 2);
        add(
            &format!("{name} in the middle"),
            format!("{header}.{left}{text}{right}.{signature}"),
        );
    }
    add("a character too many", format!("{header}.{payload}A.{signature}"));
    add(
        "one character instead of a signature",
        format!("{header}.{payload}.A"),
    );
    add(
        "the other alphabet",
        format!("{header}.{payload}.{}+/", &signature[..signature.len() - 2]),
    );
    add(
        "a full-width letter",
        format!("{header}.{payload}.\u{ff21}{}", &signature[1..]),
    );
    add("escaped dots", valid.replace('.', "%2E"));
    add("other dots", valid.replace('.', "\u{3002}"));
    add("in capitals", valid.to_uppercase());
    add("in small letters", valid.to_lowercase());
    add("with its scheme", format!("Bearer {valid}"));
    add("in quotes", format!("\"{valid}\""));
    add("twice", format!("{valid},{valid}"));
    add(
        "as flattened JSON",
        format!(r#"{{"protected":"{header}","payload":"{payload}","signature":"{signature}"}}"#),
    );
    let mut claims = attacks.of.claims();
    claims["filler"] = "x".repeat(8 * 1024).into();
    let long = attacks.of.signed(&Workshop::header(Algorithm::EdDsa), &claims);
    attacks.add("form: longer than 8 KiB", long);
}

/// Makes another text of JSON.
type Spoil = fn(&str) -> Vec<u8>;

/// A last character whose unused bits are set decodes to the same bytes; a token would have several texts.
fn spare_bits(attacks: &mut Attacks<'_>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let next = |part: &str| {
        let (rest, last) = part.split_at(part.len() - 1);
        let value = ALPHABET.iter().position(|byte| *byte == last.as_bytes()[0])?;
        Some(format!("{rest}{}", char::from(*ALPHABET.get(value + 1)?)))
    };
    let valid = attacks.of.valid(Algorithm::EdDsa);
    if let Some((signed, signature)) = valid.rsplit_once('.')
        && let Some(signature) = next(signature)
    {
        attacks.add(
            "form: spare bits of the signature",
            format!("{signed}.{signature}"),
        );
    }
    // Header and payload are signed as text: their other texts are signed here, so that only the form is wrong.
    for (at, name) in ["header", "payload"].into_iter().enumerate() {
        let mut json = [
            Workshop::header(Algorithm::EdDsa).to_string(),
            attacks.of.claims().to_string(),
        ];
        // A length that leaves spare bits.
        while json[at].len().is_multiple_of(3) {
            json[at].push(' ');
        }
        let mut texts = json.map(crate::base64url::encode);
        if let Some(other) = next(&texts[at]) {
            texts[at] = other;
        }
        let signed = texts.join(".");
        let signature = crate::base64url::encode(attacks.of.ed.sign(signed.as_bytes()));
        attacks.add(
            format!("form: spare bits of the {name}"),
            format!("{signed}.{signature}"),
        );
    }
}

fn json(attacks: &mut Attacks<'_>) {
    let header = Workshop::header(Algorithm::EdDsa).to_string();
    let claims = attacks.of.claims().to_string();
    let spoiled: [(&str, Spoil); 12] = [
        ("a value more", |json| format!("{json}{{}}").into_bytes()),
        ("a NUL after", |json| format!("{json}\0").into_bytes()),
        ("a byte order mark", |json| format!("\u{feff}{json}").into_bytes()),
        ("a comment", |json| format!("/**/{json}").into_bytes()),
        ("a comma at the end", |json| json.replace('}', ",}").into_bytes()),
        ("no end", |json| json.replace('}', "").into_bytes()),
        ("single quotes", |json| json.replace('"', "'").into_bytes()),
        ("UTF-16", |json| {
            json.encode_utf16().flat_map(u16::to_be_bytes).collect()
        }),
        ("bytes that are no UTF-8", |json| {
            [json.replace('}', ",\"x\":\"").as_bytes(), b"\xff\"}"].concat()
        }),
        ("half a surrogate pair", |json| {
            json.replace('}', ",\"x\":\"\\ud800\"}").into_bytes()
        }),
        ("an unescaped line feed", |json| {
            json.replace('}', ",\"x\":\"\n\"}").into_bytes()
        }),
        ("in a list", |json| format!("[{json}]").into_bytes()),
    ];
    for (name, spoil) in spoiled {
        attacks.texts(
            &format!("header JSON: {name}"),
            &spoil(&header),
            claims.as_bytes(),
        );
        attacks.texts(
            &format!("claims JSON: {name}"),
            header.as_bytes(),
            &spoil(&claims),
        );
    }
}
