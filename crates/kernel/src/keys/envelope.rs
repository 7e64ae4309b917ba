//! Envelope encryption of what the store keeps for an organization (D11.8).
//!
//! ```text
//! text ← data key, one for each text ← organization key, by version ← sealing key, a file
//! ```
//!
//! The store holds the text under its data key, the data key under the organization's key, and the
//! organization's key under a sealing key. Re-wrapping touches the 60 bytes of a data key and never the text.
//! Without the rows of its organization keys, every text of an organization is unreadable for ever.
//!
//! Each layer is bound to its place by the authenticated context, so that no ciphertext opens in another row.
//!
//! Keeps RC-2.

use super::Keys;
use super::key::Purpose;
use super::sealing::{RecordKey, open, record_key, seal};
use crate::entropy::UnitRng;
use crate::error::{Error, Result};
use crate::secret::Secret;
use zeroize::Zeroizing;

const TEXT: &[u8] = b"provost/envelope/text/v1";
const DATA_KEY: &[u8] = b"provost/envelope/data-key/v1";
const ORGANIZATION_KEY: &[u8] = b"organization-key";
const SALT_LEN: usize = 16;

/// One version of an organization's key.
pub struct OrganizationKey {
    version: i64,
    bytes: Secret<[u8; 32]>,
}

/// A text as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The data key under the organization's key.
    pub wrapped_key: Vec<u8>,
    /// The text under the data key.
    pub ciphertext: Vec<u8>,
}

impl Keys {
    /// Makes an organization's key and returns the current sealing key's id and the bytes to keep.
    pub fn make_organization_key(
        &self,
        organization: &str,
        version: i64,
        rng: &mut UnitRng,
    ) -> Result<(String, Vec<u8>)> {
        let fresh = draw(rng);
        self.seal(
            &place(organization, &version.to_be_bytes()),
            fresh.as_slice(),
            rng,
        )
    }

    /// Opens an organization's key; `None` when the sealing key is not here or the bytes do not open.
    pub fn open_organization_key(
        &self,
        organization: &str,
        version: i64,
        sealing_key_id: &str,
        sealed: &[u8],
    ) -> Option<OrganizationKey> {
        let aad = version.to_be_bytes();
        let opened = self.open_sealed(sealing_key_id, &place(organization, &aad), sealed)?;
        let bytes = <[u8; 32]>::try_from(opened.expose().as_slice()).ok()?;
        Some(OrganizationKey {
            version,
            bytes: Secret::new(bytes),
        })
    }

    /// Says whether a newer sealing key than this one makes what is new; `None` when this one is not here at all.
    pub fn is_sealing_key_superseded(&self, id: &str) -> Option<bool> {
        let known = self.find(Purpose::Sealing, id)?;
        Some(known.number < self.ring().current(Purpose::Sealing).number)
    }
}

impl OrganizationKey {
    /// Returns the version, which the store keeps beside what was wrapped.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Encrypts a text under a new data key. `aad` says where it belongs.
    pub fn seal(&self, aad: &[&[u8]], text: &[u8], rng: &mut UnitRng) -> Result<Envelope> {
        let data_key = draw(rng);
        Ok(Envelope {
            wrapped_key: self.wrap(aad, &data_key, rng)?,
            ciphertext: seal(&text_key(&data_key, aad), aad, text)?,
        })
    }

    /// Decrypts; `None` when key, place or bytes are not those of [`OrganizationKey::seal`].
    pub fn open(&self, aad: &[&[u8]], envelope: &Envelope) -> Option<Secret<Vec<u8>>> {
        let data_key = self.unwrap(aad, &envelope.wrapped_key)?;
        open(&text_key(&data_key, aad), aad, &envelope.ciphertext)
    }

    /// Returns a data key that this key wraps, wrapped by another version; the text stays as it is.
    ///
    /// Errors: `Internal` when the data key does not open.
    pub fn rewrap(
        &self,
        to: &OrganizationKey,
        aad: &[&[u8]],
        wrapped_key: &[u8],
        rng: &mut UnitRng,
    ) -> Result<Vec<u8>> {
        let data_key = self.unwrap(aad, wrapped_key);
        let data_key = data_key.ok_or_else(|| Error::internal("a data key does not open"))?;
        to.wrap(aad, &data_key, rng)
    }

    fn wrap(&self, aad: &[&[u8]], data_key: &Zeroizing<[u8; 32]>, rng: &mut UnitRng) -> Result<Vec<u8>> {
        let mut wrapped = vec![0; SALT_LEN];
        rng.fill(&mut wrapped);
        let key = self.wrapping_key(&wrapped, aad);
        wrapped.extend(seal(&key, aad, data_key.as_slice())?);
        Ok(wrapped)
    }

    fn unwrap(&self, aad: &[&[u8]], wrapped: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        let (salt, sealed) = wrapped.split_at_checked(SALT_LEN)?;
        let opened = open(&self.wrapping_key(salt, aad), aad, sealed)?;
        <[u8; 32]>::try_from(opened.expose().as_slice())
            .ok()
            .map(Zeroizing::new)
    }

    fn wrapping_key(&self, salt: &[u8], aad: &[&[u8]]) -> RecordKey {
        let version = self.version.to_be_bytes();
        let context: Vec<&[u8]> = aad.iter().copied().chain([version.as_slice()]).collect();
        record_key(self.bytes.expose(), salt, DATA_KEY, &context)
    }
}

fn text_key(data_key: &Zeroizing<[u8; 32]>, aad: &[&[u8]]) -> RecordKey {
    record_key(data_key.as_slice(), &[], TEXT, aad)
}

fn place<'a>(organization: &'a str, version: &'a [u8; 8]) -> [&'a [u8]; 3] {
    [organization.as_bytes(), ORGANIZATION_KEY, version]
}

fn draw(rng: &mut UnitRng) -> Zeroizing<[u8; 32]> {
    let mut fresh = Zeroizing::new([0; 32]);
    rng.fill(fresh.as_mut_slice());
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;
    use crate::keys::tests::{NOW, Scratch};

    const AAD: &[&[u8]] = &[b"acme", b"res_1", b"cred_1", b"\0\0\0\0\0\0\0\x01"];

    fn organization_key(keys: &Keys, version: i64, rng: &mut UnitRng) -> OrganizationKey {
        let (id, sealed) = keys.make_organization_key("acme", version, rng).unwrap();
        keys.open_organization_key("acme", version, &id, &sealed).unwrap()
    }

    /// Proves RC-2.
    #[test]
    fn a_text_opens_in_its_own_place_and_nowhere_else() {
        let scratch = Scratch::new();
        let keys = scratch.create(1);
        let mut rng = UnitRng::new([3; 32]);
        let (one, two) = (
            organization_key(&keys, 1, &mut rng),
            organization_key(&keys, 2, &mut rng),
        );
        let sealed = one.seal(AAD, b"hunter2", &mut rng).unwrap();
        assert_eq!(one.open(AAD, &sealed).unwrap().expose(), b"hunter2");
        assert!(two.open(AAD, &sealed).is_none());
        for other in [
            &[b"umbrella".as_slice(), b"res_1", b"cred_1", b"\0\0\0\0\0\0\0\x01"],
            &[b"acme".as_slice(), b"res_2", b"cred_1", b"\0\0\0\0\0\0\0\x01"],
            &[b"acme".as_slice(), b"res_1", b"cred_2", b"\0\0\0\0\0\0\0\x01"],
            &[b"acme".as_slice(), b"res_1", b"cred_1", b"\0\0\0\0\0\0\0\x02"],
        ] {
            assert!(one.open(other, &sealed).is_none());
        }
        for at in 0..sealed.wrapped_key.len() {
            let mut changed = sealed.clone();
            changed.wrapped_key[at] ^= 1;
            assert!(one.open(AAD, &changed).is_none(), "byte {at} of the key");
        }
        for at in 0..sealed.ciphertext.len() {
            let mut changed = sealed.clone();
            changed.ciphertext[at] ^= 1;
            assert!(one.open(AAD, &changed).is_none(), "byte {at} of the text");
        }
    }

    #[test]
    fn an_organization_key_opens_for_its_organization_and_version() {
        let scratch = Scratch::new();
        let keys = scratch.create(1);
        let mut rng = UnitRng::new([4; 32]);
        let (id, sealed) = keys.make_organization_key("acme", 1, &mut rng).unwrap();
        assert!(keys.open_organization_key("acme", 1, &id, &sealed).is_some());
        assert!(keys.open_organization_key("umbrella", 1, &id, &sealed).is_none());
        assert!(keys.open_organization_key("acme", 2, &id, &sealed).is_none());
        assert!(
            keys.open_organization_key("acme", 1, "sealing-9", &sealed)
                .is_none()
        );
    }

    #[test]
    fn a_rewrapped_key_opens_the_same_text_under_the_new_version_alone() {
        let scratch = Scratch::new();
        drop(scratch.create(1));
        Keys::rotate(&scratch.keys(), "sealing", NOW, &SystemEntropy).unwrap();
        let keys = Keys::open(&scratch.keys()).unwrap();
        assert_eq!(keys.is_sealing_key_superseded("sealing-1"), Some(true));
        assert_eq!(keys.is_sealing_key_superseded("sealing-2"), Some(false));
        assert_eq!(keys.is_sealing_key_superseded("sealing-3"), None);
        let mut rng = UnitRng::new([5; 32]);
        let (one, two) = (
            organization_key(&keys, 1, &mut rng),
            organization_key(&keys, 2, &mut rng),
        );
        let old = one.seal(AAD, b"hunter2", &mut rng).unwrap();
        let moved = Envelope {
            wrapped_key: one.rewrap(&two, AAD, &old.wrapped_key, &mut rng).unwrap(),
            ciphertext: old.ciphertext.clone(),
        };
        assert_eq!(two.open(AAD, &moved).unwrap().expose(), b"hunter2");
        assert!(one.open(AAD, &moved).is_none());
        assert!(two.rewrap(&one, AAD, &old.wrapped_key, &mut rng).is_err());
    }

    #[test]
    fn a_unit_that_runs_again_seals_the_same_bytes() {
        let scratch = Scratch::new();
        let keys = scratch.create(1);
        let key = organization_key(&keys, 1, &mut UnitRng::new([6; 32]));
        let run = |text: &[u8]| key.seal(AAD, text, &mut UnitRng::new([7; 32])).unwrap();
        assert_eq!(run(b"one"), run(b"one"));
        // Another text under the same drawn key gets another nonce (ADR 0009).
        assert_ne!(run(b"one").ciphertext[..12], run(b"two").ciphertext[..12]);
    }
}
