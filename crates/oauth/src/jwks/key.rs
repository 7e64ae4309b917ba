//! One public key, and the algorithms that it serves.
//!
//! INVARIANT OA-2: the kind of a key decides the algorithm, within what the issuer allows.

use crate::base64url;
use crate::error::Refusal;
use crate::json::Object;
use crate::jwt;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
};
use serde_json::{Value, json};
use std::fmt;

/// The signature algorithms that are accepted anywhere (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// Ed25519; X448 and Ed448 are not served.
    EdDsa,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PSS with SHA-256.
    Ps256,
}

impl Algorithm {
    /// All of them, the preferred ones first.
    pub const ALL: [Self; 4] = [Self::EdDsa, Self::Es256, Self::Ps256, Self::Rs256];

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }

    /// Reads the word on the wire, which is case-sensitive.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == word)
    }
}

/// A public key, checked when it was read.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    /// What the key's own `alg` says.
    bound: Option<Algorithm>,
    material: Material,
    thumbprint: String,
}

#[derive(Clone)]
enum Material {
    P256(ParsedPublicKey),
    Ed25519(ParsedPublicKey),
    Rsa {
        pkcs1: ParsedPublicKey,
        pss: ParsedPublicKey,
    },
}

const BAD: Refusal = Refusal::KeySet("a key is malformed");
const WEAK: Refusal = Refusal::KeySet("a key is weak");
const PRIVATE: Refusal = Refusal::KeySet("it holds a private key");

impl Key {
    /// Reads a JWK; `None` for one that no signature could be verified with here.
    pub(crate) fn from_jwk(jwk: &Object) -> Result<Option<Self>, Refusal> {
        let kind = text(jwk, "kty")?.ok_or(BAD)?;
        let curve = text(jwk, "crv")?;
        if !matches!(
            (kind, curve),
            ("EC", Some("P-256")) | ("OKP", Some("Ed25519")) | ("RSA", _)
        ) {
            return Ok(None);
        }
        if text(jwk, "use")?.is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        if let Some(operations) = jwk.get("key_ops") {
            let operations = operations.as_array().ok_or(BAD)?;
            if !operations.iter().any(|operation| operation == "verify") {
                return Ok(None);
            }
        }
        if ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
            .iter()
            .any(|name| jwk.contains_key(*name))
        {
            return Err(PRIVATE);
        }
        let id = text(jwk, "kid")?.map(jwt::key_id).transpose()?;
        let (material, members) = match kind {
            "EC" => p256(jwk)?,
            "OKP" => ed25519(jwk)?,
            _ => rsa(jwk)?,
        };
        let mut key = Self {
            id,
            bound: None,
            material,
            thumbprint: thumbprint(&members),
        };
        if let Some(word) = text(jwk, "alg")? {
            match Algorithm::parse(word) {
                Some(algorithm) if key.fits(algorithm) => key.bound = Some(algorithm),
                Some(_) => return Err(Refusal::KeySet("the alg of a key does not fit its kind")),
                None => return Ok(None),
            }
        }
        Ok(Some(key))
    }

    /// Returns the key's name.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the SHA-256 thumbprint of RFC 7638, base64url.
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Can signatures of this algorithm be verified with the key?
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        self.bound.is_none_or(|bound| bound == algorithm) && self.verifier(algorithm).is_some()
    }

    /// INVARIANT OA-2: the match over the key's kind is the only way to a verifier.
    fn verifier(&self, algorithm: Algorithm) -> Option<&ParsedPublicKey> {
        match (&self.material, algorithm) {
            (Material::P256(key), Algorithm::Es256) | (Material::Ed25519(key), Algorithm::EdDsa) => Some(key),
            (Material::Rsa { pkcs1, .. }, Algorithm::Rs256) => Some(pkcs1),
            (Material::Rsa { pss, .. }, Algorithm::Ps256) => Some(pss),
            _ => None,
        }
    }

    /// Verifies a signature.
    ///
    /// Errors: `Algorithm` when the key does not fit it, `Signature`. Cost: 24 µs (Ed25519), 34 µs (P-256).
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        if !self.fits(algorithm) {
            return Err(Refusal::Algorithm);
        }
        let key = self.verifier(algorithm).ok_or(Refusal::Algorithm)?;
        key.verify_sig(message, signature).map_err(|_| Refusal::Signature)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Key")
            .field("id", &self.id)
            .field("thumbprint", &self.thumbprint)
            .finish_non_exhaustive()
    }
}

fn text<'a>(jwk: &'a Object, name: &str) -> Result<Option<&'a str>, Refusal> {
    match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BAD),
    }
}

/// Returns a member and its text, for the thumbprint: canonical base64url has one text.
fn bytes<'a>(jwk: &'a Object, name: &str) -> Result<(&'a str, Vec<u8>), Refusal> {
    let encoded = text(jwk, name)?.ok_or(BAD)?;
    Ok((encoded, base64url::decode(encoded).map_err(|_| BAD)?))
}

fn p256(jwk: &Object) -> Result<(Material, Value), Refusal> {
    let (x_text, x) = bytes(jwk, "x")?;
    let (y_text, y) = bytes(jwk, "y")?;
    if x.len() != 32 || y.len() != 32 {
        return Err(BAD);
    }
    let point = [&[4_u8][..], &x, &y].concat();
    // aws-lc refuses a point that is not on the curve.
    let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).map_err(|_| BAD)?;
    let members = json!({ "crv": "P-256", "kty": "EC", "x": x_text, "y": y_text });
    Ok((Material::P256(key), members))
}

fn ed25519(jwk: &Object) -> Result<(Material, Value), Refusal> {
    let (text, x) = bytes(jwk, "x")?;
    let x: [u8; 32] = x.try_into().map_err(|_| BAD)?;
    if is_small_order(x) {
        return Err(WEAK);
    }
    let key = ParsedPublicKey::new(&ED25519, x).map_err(|_| BAD)?;
    let members = json!({ "crv": "Ed25519", "kty": "OKP", "x": text });
    Ok((Material::Ed25519(key), members))
}

/// Is the point one of the eight whose order divides the cofactor, or not in canonical form? With such a key, one
/// signature verifies for many messages; aws-lc accepts it.
fn is_small_order(mut y: [u8; 32]) -> bool {
    const ORDER_8: [[u8; 32]; 2] = [
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ];
    y[31] &= 0x7f;
    let tail_is = |byte: u8, last: u8| y[1..31].iter().all(|b| *b == byte) && y[31] == last;
    // y = 0 and 1; y = p - 1; and every y that is not below p = 2^255 - 19.
    let near_zero = y[0] <= 1 && tail_is(0, 0);
    let near_p = y[0] >= 0xec && tail_is(0xff, 0x7f);
    near_zero || near_p || ORDER_8.contains(&y)
}

fn rsa(jwk: &Object) -> Result<(Material, Value), Refusal> {
    let (n_text, n) = bytes(jwk, "n")?;
    let (e_text, e) = bytes(jwk, "e")?;
    let (Some(first), Some(last)) = (n.first(), n.last()) else {
        return Err(BAD);
    };
    // RFC 7518 §6.3.1.1: no leading zero octets.
    if *first == 0 || e.first().is_none_or(|byte| *byte == 0) {
        return Err(BAD);
    }
    let bits = n.len() * 8 - first.leading_zeros() as usize;
    if !(2048..=8192).contains(&bits) || last % 2 == 0 {
        return Err(WEAK);
    }
    // FIPS 186-5 §5.1: odd and above 2^16; an exponent of 1 makes every message its own signature.
    let exponent = e.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    if e.len() > 4 || exponent < 65_537 || exponent % 2 == 0 {
        return Err(WEAK);
    }
    let key = PublicKeyComponents { n, e };
    let pkcs1 = key
        .to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256)
        .map_err(|_| BAD)?;
    let pss = key
        .to_parsed_public_key(&RSA_PSS_2048_8192_SHA256)
        .map_err(|_| BAD)?;
    let members = json!({ "e": e_text, "kty": "RSA", "n": n_text });
    Ok((Material::Rsa { pkcs1, pss }, members))
}

/// `members` are those that RFC 7638 §3.2 requires, in the order of their names.
fn thumbprint(members: &Value) -> String {
    base64url::encode(digest(&SHA256, members.to_string().as_bytes()))
}
