//! Signatures of documents under the keys of the installation.

use super::Keys;
use crate::dsse::{Envelope, Signature, SignedKind, signed_bytes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

impl Keys {
    /// Signs a document with the current signing key; a list of keys with every one of them.
    pub fn sign(&self, kind: SignedKind, payload: &[u8]) -> Envelope {
        let message = signed_bytes(kind, payload);
        let signatures = self.sign_message(&message, kind == SignedKind::Keys);
        let signatures = signatures.into_iter().map(|(keyid, sig)| Signature {
            keyid,
            sig: STANDARD.encode(sig),
        });
        Envelope {
            payload_type: kind.payload_type().into(),
            payload: STANDARD.encode(payload),
            signatures: signatures.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::dsse::{PublicKey, VerificationError, verify};
    use crate::entropy::SeededEntropy;

    fn with_keys(name: &str, test: impl FnOnce(&Keys, &std::path::Path)) {
        let dir = std::env::temp_dir().join(format!("provost-dsse-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let keys = Keys::create(&dir, Timestamp::EPOCH, &SeededEntropy::new(1)).unwrap();
        test(&keys, &dir);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Proves DS-1.
    #[test]
    fn a_document_proves_itself_by_its_bytes_its_kind_and_its_key() {
        with_keys("one", |keys, _| {
            let trusted = keys.signing_public_keys();
            let envelope = keys.sign(SignedKind::Release, b"{\"version\":1}");
            assert_eq!(
                verify(&envelope, SignedKind::Release, &trusted).unwrap(),
                b"{\"version\":1}"
            );
            assert_eq!(
                verify(&envelope, SignedKind::Skill, &trusted),
                Err(VerificationError::Malformed)
            );
            let renamed = Envelope {
                payload_type: SignedKind::Skill.payload_type().into(),
                ..envelope.clone()
            };
            assert_eq!(
                verify(&renamed, SignedKind::Skill, &trusted),
                Err(VerificationError::Untrusted)
            );
            let edited = Envelope {
                payload: STANDARD.encode(b"{\"version\":2}"),
                ..envelope.clone()
            };
            assert_eq!(
                verify(&edited, SignedKind::Release, &trusted),
                Err(VerificationError::Untrusted)
            );
            let other = [PublicKey {
                id: trusted[0].id.clone(),
                key: [7; 32],
            }];
            assert_eq!(
                verify(&envelope, SignedKind::Release, &other),
                Err(VerificationError::Untrusted)
            );
            assert_eq!(
                verify(&envelope, SignedKind::Release, &[]),
                Err(VerificationError::Untrusted)
            );
        });
    }

    #[test]
    fn a_list_of_keys_is_signed_by_the_old_and_the_new_one() {
        with_keys("rotated", |keys, dir| {
            let old = keys.signing_public_keys();
            Keys::rotate(dir, "signing", Timestamp::EPOCH, &SeededEntropy::new(2)).unwrap();
            let keys = Keys::open(dir).unwrap();
            assert_eq!(keys.signing_public_keys().len(), 2);
            let list = keys.sign(SignedKind::Keys, b"{}");
            assert!(verify(&list, SignedKind::Keys, &old).is_ok());
            let release = keys.sign(SignedKind::Release, b"{}");
            assert_eq!(
                verify(&release, SignedKind::Release, &old),
                Err(VerificationError::Untrusted)
            );
        });
    }
}
