//! Authenticated encryption of one record, and the secrets that the store keeps under a sealing key.
//!
//! Every record has a key of its own, derived with a random salt, so the nonce need not be unique across
//! records. It is not a constant either: a unit of work that runs again draws the same salt, and if it
//! then seals another text, one key with one nonce would betray both. The nonce is therefore a keyed hash
//! of the text; the same text seals to the same bytes, which betrays nothing new.

use super::derive::{expand, framed};
use super::key::Purpose;
use super::{Keys, hmac_sha256};
use crate::entropy::UnitRng;
use crate::error::{Error, Result};
use crate::secret::Secret;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

const SALT_LEN: usize = 16;
const INFO: &[u8] = b"provost/seal/v1";

impl Keys {
    /// Encrypts a secret for the store and returns the sealing key's id and the bytes to keep.
    ///
    /// `aad` says where the secret belongs (organization, kind, record, version); it must be the same when
    /// the secret is opened, so that a ciphertext moved to another row does not open.
    pub fn seal(&self, aad: &[&[u8]], plaintext: &[u8], rng: &mut UnitRng) -> Result<(String, Vec<u8>)> {
        let master = self.ring().current(Purpose::Sealing).clone();
        let mut salt = [0; SALT_LEN];
        rng.fill(&mut salt);
        let mut sealed = salt.to_vec();
        sealed.extend(seal(
            &record_key(master.bytes(), &salt, INFO, aad),
            aad,
            plaintext,
        )?);
        Ok((master.id.clone(), sealed))
    }

    /// Decrypts what [`Keys::seal`] returned; `None` when the key is not here or the bytes do not open.
    pub fn open_sealed(&self, key_id: &str, aad: &[&[u8]], sealed: &[u8]) -> Option<Secret<Vec<u8>>> {
        let (salt, sealed) = sealed.split_at_checked(SALT_LEN)?;
        let master = self.find(Purpose::Sealing, key_id)?;
        open(&record_key(master.bytes(), salt, INFO, aad), aad, sealed)
    }
}

/// A record's key: 32 bytes that encrypt and 32 bytes that make the nonce.
pub(super) type RecordKey = Zeroizing<[u8; 64]>;

/// Derives a record's key. The context is bound into it, beyond being authenticated with the text.
pub(super) fn record_key(master: &[u8], salt: &[u8], domain: &[u8], context: &[&[u8]]) -> RecordKey {
    let parts: Vec<&[u8]> = std::iter::once(domain).chain(context.iter().copied()).collect();
    expand::<64>(master, salt, &framed(&parts))
}

/// Returns nonce ‖ ciphertext ‖ tag.
pub(super) fn seal(key: &RecordKey, aad: &[&[u8]], plaintext: &[u8]) -> Result<Vec<u8>> {
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&hmac_sha256(&key[32..], &[plaintext])[..NONCE_LEN]);
    // Room for the tag from the start, so that growing leaves no copy of the plaintext behind.
    let mut text = Zeroizing::new(Vec::with_capacity(plaintext.len() + AES_256_GCM.tag_len()));
    text.extend_from_slice(plaintext);
    cipher(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(framed(aad).as_slice()),
            &mut *text,
        )
        .map_err(|_| Error::internal("encryption failed"))?;
    Ok([nonce.as_slice(), &text].concat())
}

/// Returns the plaintext, or `None` when the bytes are not what [`seal`] made with this key and context.
pub(super) fn open(key: &RecordKey, aad: &[&[u8]], sealed: &[u8]) -> Option<Secret<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = Zeroizing::new(sealed.to_vec());
    let aad = framed(aad);
    let plaintext = cipher(key)
        .ok()?
        .open_in_place(nonce, Aad::from(aad.as_slice()), &mut text)
        .ok()?;
    Some(Secret::new(plaintext.to_vec()))
}

fn cipher(key: &RecordKey) -> Result<LessSafeKey> {
    let unbound = UnboundKey::new(&AES_256_GCM, &key[..32]);
    Ok(LessSafeKey::new(
        unbound.map_err(|_| Error::internal("a cipher key was refused"))?,
    ))
}
