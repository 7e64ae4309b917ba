//! Signed documents: the Dead Simple Signing Envelope (DSSE 1.0.2) with Ed25519.
//!
//! What is signed is the payload together with its type, so that a signature over one kind of document never
//! stands for another.
//!
//! INVARIANT DS-1: a signed document is believed only if a trusted key signed exactly these bytes as this kind of
//! document.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: bytes of an envelope's payload in base64; manifests are far smaller, and policy bundles may fill it.
const PAYLOAD_LIMIT: usize = 4 << 20;

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedKind {
    /// A release of a managed configuration.
    Release,
    /// A version of a skill.
    Skill,
    /// The public keys of an installation, signed by each of them: who trusts one learns the others.
    Keys,
    /// What a device judges by.
    PolicyBundle,
}

impl SignedKind {
    /// Returns the media type that stands in the envelope.
    pub const fn payload_type(self) -> &'static str {
        match self {
            SignedKind::Release => "application/vnd.provost.release+json",
            SignedKind::Skill => "application/vnd.provost.skill+json",
            SignedKind::Keys => "application/vnd.provost.keys+json",
            SignedKind::PolicyBundle => "application/vnd.provost.policy-bundle+json",
        }
    }
}

/// A payload and its signatures, in the names of the DSSE specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The media type of the payload.
    pub payload_type: String,
    /// The payload in base64.
    pub payload: String,
    /// One or more signatures.
    pub signatures: Vec<Signature>,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The id of the key; a hint that nothing relies on.
    pub keyid: String,
    /// The Ed25519 signature in base64.
    pub sig: String,
}

/// A public key that somebody trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// The key's id.
    pub id: String,
    /// Its 32 bytes.
    pub key: [u8; 32],
}

/// Why an envelope proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationError {
    /// It is not an envelope of this kind of document.
    Malformed,
    /// No trusted key signed it.
    Untrusted,
}

impl std::fmt::Display for VerificationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            VerificationError::Malformed => "the signed document is malformed",
            VerificationError::Untrusted => "no trusted key signed the document",
        })
    }
}

impl std::error::Error for VerificationError {}

/// Returns the payload of an envelope that one of these keys signed as a document of this kind.
pub fn verify(
    envelope: &Envelope,
    kind: SignedKind,
    trusted: &[PublicKey],
) -> Result<Vec<u8>, VerificationError> {
    if envelope.payload_type != kind.payload_type() || envelope.payload.len() > PAYLOAD_LIMIT {
        return Err(VerificationError::Malformed);
    }
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| VerificationError::Malformed);
    let payload = decode(&envelope.payload)?;
    let message = signed_bytes(kind, &payload);
    for signature in envelope.signatures.iter().take(16) {
        let sig = decode(&signature.sig)?;
        let signed_by = |key: &PublicKey| {
            UnparsedPublicKey::new(&ED25519, key.key)
                .verify(&message, &sig)
                .is_ok()
        };
        if trusted.iter().any(signed_by) {
            return Ok(payload);
        }
    }
    Err(VerificationError::Untrusted)
}

/// Returns the bytes that a signature is over: DSSE's pre-authentication encoding, type and payload each behind its length.
pub fn signed_bytes(kind: SignedKind, payload: &[u8]) -> Vec<u8> {
    let media_type = kind.payload_type();
    let head = format!("DSSEv1 {} {media_type} {} ", media_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        let encoded = signed_bytes(SignedKind::Release, b"hello");
        assert_eq!(encoded, b"DSSEv1 36 application/vnd.provost.release+json 5 hello");
    }
}
