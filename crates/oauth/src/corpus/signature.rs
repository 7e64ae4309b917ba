//! Attacks on the signature: forms that a lenient verifier takes for the right one.

use super::{Attacks, Workshop, join};
use crate::base64url;
use crate::jwks::Algorithm;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA384};

/// The order of P-256's group.
const ORDER_P256: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
    0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];
/// The order of Ed25519's group, the least byte first.
const ORDER_ED25519: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

pub(super) fn add(attacks: &mut Attacks<'_>) {
    for algorithm in super::ALLOWED {
        any_algorithm(attacks, algorithm);
    }
    ecdsa(attacks);
    eddsa(attacks);
    rsa(attacks);
}

fn any_algorithm(attacks: &mut Attacks<'_>, algorithm: Algorithm) {
    let valid = attacks.of.valid(algorithm);
    let (signed, signature) = valid.rsplit_once('.').unwrap_or_default();
    let signature = base64url::decode(signature).unwrap_or_default();
    let word = algorithm.as_str();
    let mut other_claims = attacks.of.claims();
    other_claims["sub"] = "admin".into();
    let other = join(Workshop::header(algorithm).to_string(), other_claims.to_string());
    let mut add = |name: &str, signed: &str, signature: &[u8]| {
        attacks.add(
            format!("{word}: {name}"),
            format!("{signed}.{}", base64url::encode(signature)),
        );
    };
    add("no signature", signed, &[]);
    add("the signature of other claims", &other, &signature);
    add(
        "a byte less at the end",
        signed,
        &signature[..signature.len() - 1],
    );
    add("a byte less at the beginning", signed, &signature[1..]);
    add("a byte more at the end", signed, &[&signature[..], &[0]].concat());
    add(
        "a byte more at the beginning",
        signed,
        &[&[0], &signature[..]].concat(),
    );
    add("twice", signed, &[&signature[..], &signature[..]].concat());
    add("half", signed, &signature[..signature.len() / 2]);
    add("all zero", signed, &vec![0; signature.len()]);
    add("all one", signed, &vec![0xff; signature.len()]);
    let reversed: Vec<u8> = signature.iter().rev().copied().collect();
    add("in reverse", signed, &reversed);
}

fn ecdsa(attacks: &mut Attacks<'_>) {
    let of = attacks.of;
    let signed = join(
        Workshop::header(Algorithm::Es256).to_string(),
        of.claims().to_string(),
    );
    let valid = of.with_ec(&of.ec, &signed);
    let (r, s) = valid.split_at(valid.len() / 2);
    let (zero, mut one) = ([0; 32], [0; 32]);
    one[31] = 1;
    for (name, signature) in [
        ("in DER", of.with_ec(&of.ec_der, &signed)),
        ("of a stranger", of.with_ec(&of.strange_ec, &signed)),
        ("of P-384", of.with_ec(&of.p384, &signed)),
        ("r zero", [&zero, s].concat()),
        ("s zero", [r, &zero].concat()),
        ("r and s swapped", [s, r].concat()),
        ("r the order", [&ORDER_P256, s].concat()),
        ("s the order", [r, &ORDER_P256].concat()),
        ("r and s the order", [ORDER_P256, ORDER_P256].concat()),
        ("r and s one", [one, one].concat()),
        ("of Ed25519", of.ed.sign(signed.as_bytes()).as_ref().to_vec()),
    ] {
        attacks.add(
            format!("ES256: {name}"),
            format!("{signed}.{}", base64url::encode(signature)),
        );
    }
}

fn eddsa(attacks: &mut Attacks<'_>) {
    let of = attacks.of;
    let signed = join(
        Workshop::header(Algorithm::EdDsa).to_string(),
        of.claims().to_string(),
    );
    let valid = of.ed.sign(signed.as_bytes()).as_ref().to_vec();
    let (r, s) = valid.split_at(valid.len() / 2);
    let mut carry = 0;
    let mut larger = Vec::new();
    for (digit, order) in s.iter().zip(ORDER_ED25519) {
        let sum = u16::from(*digit) + u16::from(order) + carry;
        larger.push(sum.to_le_bytes()[0]);
        carry = sum >> 8;
    }
    let mut identity = [0; 64];
    identity[0] = 1;
    for (name, signature) in [
        ("s beyond the order", [r, &larger].concat()),
        ("the identity", identity.to_vec()),
        (
            "of a stranger",
            of.strange_ed.sign(signed.as_bytes()).as_ref().to_vec(),
        ),
        ("of P-256", of.with_ec(&of.ec, &signed)),
        ("r alone", r.to_vec()),
    ] {
        attacks.add(
            format!("EdDSA: {name}"),
            format!("{signed}.{}", base64url::encode(signature)),
        );
    }
}

fn rsa(attacks: &mut Attacks<'_>) {
    let of = attacks.of;
    let signed = join(
        Workshop::header(Algorithm::Ps256).to_string(),
        of.claims().to_string(),
    );
    for (name, signature) in [
        (
            "with the padding of RS256",
            of.with_rsa(&RSA_PKCS1_SHA256, &signed),
        ),
        ("with the digest of PS384", of.with_rsa(&RSA_PSS_SHA384, &signed)),
        ("one", [&[0; 255][..], &[1]].concat()),
    ] {
        attacks.add(
            format!("PS256: {name}"),
            format!("{signed}.{}", base64url::encode(signature)),
        );
    }
}
