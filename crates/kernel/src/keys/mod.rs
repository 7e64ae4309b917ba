//! Key material: what the store must never hold.
//!
//! Long-lived keys are small JSON files in one folder that only its owner can read (D12.8): `pepper` for
//! token hashes (D2.3), `sealing` for secrets kept in the store, `audit` and `request` for the keyed
//! hashes of D12.5 and D4.4, `checkpoint` for signatures. Beside them lie the day keys of the replay cells
//! (D4.8), `checkpoints.jsonl` and `ends.jsonl`. The key with the highest number that does not wait is the current one of its
//! purpose; the older ones stay, because what was made with them must still be checked.
//!
//! Absent on purpose: a cache of day keys (a destroyed key must be gone from every process at once) and a
//! way to read the raw bytes of a long-lived key other than [`Keys::export_plain`].
//!
//! Keeps ST-1.

mod checkpoints;
mod days;
mod derive;
mod documents;
mod ends;
mod envelope;
mod folder;
mod key;
mod later;
mod ring;
mod sealing;
mod transfer;

use crate::entropy::Entropy;
use crate::error::{Code, Error, Result};
use crate::time::{Clock, SystemClock, Timestamp};
use aws_lc_rs::hmac;
pub use checkpoints::AccessTokenSeeds;
pub(crate) use checkpoints::key_hash;
pub use envelope::{Envelope, OrganizationKey};
use key::{Key, Purpose};
pub use later::{News, missing};
use ring::Ring;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The constant whose keyed hash the store keeps, to notice that a key is not the one it was.
const CHECK: &[u8] = b"provost/key-check/v1";

/// The keys of one installation, as read when it was opened and since. Clones share them.
#[derive(Clone)]
pub struct Keys {
    dir: PathBuf,
    shared: Arc<SharedKeys>,
    clock: Arc<dyn Clock>,
}

struct SharedKeys {
    ring: RwLock<Arc<Ring>>,
    /// When the folder was last read for what nobody knew. Whoever changes the ring holds it.
    looked_at: Mutex<Option<Duration>>,
}

/// What may be shown of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// What the key is for.
    pub purpose: &'static str,
    /// The key's id, for example `pepper-1`.
    pub id: String,
    /// When the key was made.
    pub created: Timestamp,
    /// Whether new things are made with it.
    pub current: bool,
    /// Whether it waits to be activated.
    pub pending: bool,
}

/// What a keyed hash is about. Each has its own sub-key, so that none can stand for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MacPurpose {
    /// The stored form of an idempotency key (D4.4).
    IdempotencyKey,
    /// The fingerprint of a request (D4.4).
    Fingerprint,
    /// The head of an audit chain (D12.5).
    ChainHead,
    /// A sensitive string in an audit entry (D12.4).
    AuditValue,
    /// What makes the hash of an audit entry of the program's own one that nobody can try out.
    AuditSalt,
    /// The position in a list that is read with a cursor.
    Cursor,
    /// What a store was when it was closed.
    ClosedStore,
    /// A row that decides what somebody may do.
    RightProof,
    /// What a proof adds to the sum of all; nobody who reads the store sees it.
    RightShare,
    /// What hides the sum of all in the head of a chain.
    RightMask,
    /// The file of a backup.
    Backup,
    /// Which store a store is.
    StoreIdentity,
    /// What an area declares of its own, by the HKDF info of its sub-key of the key for requests. Changing it invalidates
    /// what was handed out.
    Own(&'static str),
}

impl MacPurpose {
    /// Every purpose of a keyed hash but those of areas.
    pub const ALL: &'static [MacPurpose] = &[
        Self::IdempotencyKey,
        Self::Fingerprint,
        Self::ChainHead,
        Self::AuditValue,
        Self::AuditSalt,
        Self::Cursor,
        Self::ClosedStore,
        Self::RightProof,
        Self::RightShare,
        Self::RightMask,
        Self::Backup,
        Self::StoreIdentity,
    ];

    /// Returns the master key's purpose and the HKDF info. Changing an info invalidates what is stored.
    const fn source(self) -> (Purpose, &'static [u8]) {
        match self {
            Self::IdempotencyKey => (Purpose::Request, b"provost/mac/idempotency-key/v1"),
            Self::Fingerprint => (Purpose::Request, b"provost/mac/fingerprint/v1"),
            Self::Cursor => (Purpose::Request, b"provost/mac/cursor/v1"),
            Self::ChainHead => (Purpose::Audit, b"provost/mac/chain-head/v1"),
            Self::AuditSalt => (Purpose::Audit, b"provost/mac/audit-salt/v1"),
            Self::AuditValue => (Purpose::Audit, b"provost/mac/audit-value/v1"),
            Self::ClosedStore => (Purpose::Audit, b"provost/mac/closed-store/v1"),
            Self::RightProof => (Purpose::Audit, b"provost/mac/right-proof/v1"),
            Self::RightShare => (Purpose::Audit, b"provost/mac/right-share/v1"),
            Self::RightMask => (Purpose::Audit, b"provost/mac/right-mask/v1"),
            Self::Backup => (Purpose::Audit, b"provost/mac/backup/v1"),
            Self::StoreIdentity => (Purpose::Audit, b"provost/mac/store-identity/v1"),
            Self::Own(info) => (Purpose::Request, info.as_bytes()),
        }
    }
}

impl Keys {
    /// Makes the first key of every purpose in `dir`, which is created when it is missing.
    ///
    /// Errors: `Internal` with a public sentence when any key is there already.
    pub fn create(dir: &Path, now: Timestamp, entropy: &dyn Entropy) -> Result<Self> {
        folder::make(dir)?;
        if !folder::key_names(dir)?.is_empty() {
            return Err(setup(
                "the keys folder already holds keys; they are never overwritten",
            ));
        }
        for purpose in Purpose::ALL {
            folder::add(dir, &Key::new(*purpose, 1, now, entropy.seed()))?;
        }
        Self::open(dir)
    }

    /// Makes the first key of every purpose that has none and opens the folder; says whether it made any.
    ///
    /// For a store that knows no key yet: what a crash or another process left half made is completed, and
    /// nothing that is there is replaced. Of two processes that share the folder, one waits for the other.
    pub fn complete(dir: &Path, now: Timestamp, entropy: &dyn Entropy) -> Result<(Self, bool)> {
        folder::make(dir)?;
        // The folder itself is what is locked: it holds nothing but keys. The lock ends with `_lock`.
        let _lock = folder::lock(dir)?;
        let names = folder::key_names(dir)?;
        let mut made = false;
        for purpose in Purpose::ALL {
            made |= add_first(dir, &names, *purpose, now, entropy)?;
        }
        Ok((Self::open(dir)?, made))
    }

    /// Makes the first key of a purpose that came with a later version, for a store that knows none of it.
    ///
    /// `known` are the labels that the store knows. A key that it knows and that is gone is not made anew.
    pub fn add_later_purposes(
        dir: &Path,
        known: &[String],
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Result<()> {
        let is_known = |purpose: &Purpose| {
            let lead = format!("{}/", purpose.as_str());
            known.iter().any(|label| label.starts_with(&lead))
        };
        if Purpose::LATER.iter().all(is_known) {
            return Ok(());
        }
        let _lock = folder::lock(dir)?;
        let names = folder::key_names(dir)?;
        for purpose in Purpose::LATER.iter().filter(|purpose| !is_known(purpose)) {
            add_first(dir, &names, *purpose, now, entropy)?;
        }
        Ok(())
    }

    /// Reads the keys in `dir`.
    ///
    /// Errors: `Internal` with a public sentence when the folder or a key is missing, malformed or
    /// readable by others.
    pub fn open(dir: &Path) -> Result<Self> {
        folder::check(dir)?;
        let (names, pending) = folder::key_names_and_marks(dir)?;
        let keys = names.iter().map(|name| folder::read(dir, name));
        Self::assemble(dir, keys.collect::<Result<Vec<_>>>()?, &pending)
    }

    /// Puts keys in order and checks that there is one of every purpose.
    fn assemble(dir: &Path, keys: Vec<Key>, pending: &BTreeSet<String>) -> Result<Self> {
        let ring = Ring::new(keys, pending);
        if let Some(purpose) = ring.lacks() {
            return Err(setup(format!(
                "there is no {} key among the keys; import the keys of this installation, or start a new \
                 installation with an empty keys folder",
                purpose.as_str()
            )));
        }
        Ok(Self {
            dir: dir.to_owned(),
            shared: Arc::new(SharedKeys {
                ring: RwLock::new(Arc::new(ring)),
                looked_at: Mutex::default(),
            }),
            clock: Arc::new(SystemClock::new()),
        })
    }

    /// Returns the same keys, which look into the folder again by another clock.
    #[must_use]
    pub fn timed_by(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns whether `dir` holds any long-lived key.
    pub fn exists(dir: &Path) -> bool {
        folder::key_names(dir).is_ok_and(|names| !names.is_empty())
    }

    /// Returns what may be shown of every key.
    pub fn ids(&self) -> Vec<KeyInfo> {
        let ring = self.ring();
        let info = |key: &Arc<Key>| KeyInfo {
            purpose: key.purpose.as_str(),
            id: key.id.clone(),
            created: key.created,
            current: ring.current(key.purpose).id == key.id,
            pending: ring.waits(key),
        };
        ring.keys().iter().map(info).collect()
    }

    /// Returns `<purpose>/<id>` and a keyed hash of a constant for every key.
    pub fn check_values(&self) -> Vec<(String, [u8; 32])> {
        let ring = self.ring();
        let keys = ring.keys().iter();
        keys.map(|key| (key.label(), check_value(key))).collect()
    }

    /// Returns the check values of the keys that do not wait. The store keeps them before anything is made with them (KY-2).
    pub fn check_values_in_use(&self) -> Vec<(String, [u8; 32])> {
        let ring = self.ring();
        let keys = ring.keys().iter().filter(|key| !ring.waits(key));
        keys.map(|key| (key.label(), check_value(key))).collect()
    }

    /// Checks that every key the store knows is here and is the same key.
    pub fn verify(&self, known: &[(String, Vec<u8>)]) -> Result<()> {
        let ring = self.ring();
        for (label, expected) in known {
            let Some(key) = ring.keys().iter().find(|key| key.label() == *label) else {
                return Err(setup(format!(
                    "the key {label} that this store was written with is missing from the keys folder; \
                     import the keys of this installation"
                )));
            };
            if !bool::from(check_value(key).as_slice().ct_eq(expected)) {
                return Err(setup(format!(
                    "the key {label} in the keys folder is not the one that this store was written with; \
                     import the keys of this installation"
                )));
            }
        }
        Ok(())
    }

    /// Returns the current pepper's id and the stored form of a token under it (D2.3).
    pub fn token_mac_current(&self, token: &str) -> (String, [u8; 32]) {
        let ring = self.ring();
        let pepper = ring.current(Purpose::Pepper);
        let mac = hmac_sha256(pepper.bytes(), &[token.as_bytes()]);
        (pepper.id.clone(), mac)
    }

    /// Returns the stored form of a token under the pepper that its row names.
    ///
    /// Errors: `Unavailable` when that pepper is neither here nor in the folder: the row is ours, so the key is what is missing,
    /// and the token is not judged.
    pub fn token_mac(&self, pepper_id: &str, token: &str) -> Result<[u8; 32]> {
        let pepper = self.find(Purpose::Pepper, pepper_id);
        let pepper = pepper.ok_or_else(|| missing(pepper_id))?;
        Ok(hmac_sha256(pepper.bytes(), &[token.as_bytes()]))
    }

    /// Returns the keyed hash of `parts` under the current key. Bytes cannot be shifted between parts.
    pub fn mac(&self, purpose: MacPurpose, parts: &[&[u8]]) -> [u8; 32] {
        sign(&self.ring().mac(purpose), &[derive::framed(parts).as_slice()])
    }

    /// Returns the keyed hash of `parts` under the current key, and the id of that key.
    pub fn named_mac(&self, purpose: MacPurpose, parts: &[&[u8]]) -> (String, [u8; 32]) {
        // One ring for both: another key may become the current one at any moment.
        let ring = self.ring();
        let mac = sign(&ring.mac(purpose), &[derive::framed(parts).as_slice()]);
        (ring.current(purpose.source().0).id.clone(), mac)
    }

    /// Returns whether `mac` is the keyed hash of `parts` under any key.
    ///
    /// Whoever checks a stored hash asks this, so that it stays good when its key is rotated.
    pub fn mac_matches(&self, purpose: MacPurpose, parts: &[&[u8]], mac: &[u8]) -> bool {
        let framed = derive::framed(parts);
        let fits = |ring: &Ring| {
            let is_it =
                |key: Cow<'_, hmac::Key>| bool::from(sign(&key, &[framed.as_slice()]).as_slice().ct_eq(mac));
            ring.macs(purpose).any(is_it)
        };
        let ring = self.ring();
        if fits(&ring) {
            return true;
        }
        // Keys for requests never rotate.
        if purpose.source().0 == Purpose::Request {
            return false;
        }
        self.look();
        let now = self.ring();
        now.version != ring.version && fits(&now)
    }

    /// Returns the id of the key that [`Self::mac`] uses for a purpose at this moment.
    pub fn mac_key_id(&self, purpose: MacPurpose) -> String {
        self.ring().current(purpose.source().0).id.clone()
    }

    /// Returns the keyed hash of `parts` under a named key, if that key is here or in the folder.
    pub fn mac_under(&self, purpose: MacPurpose, key_id: &str, parts: &[&[u8]]) -> Option<[u8; 32]> {
        let number = self.find(purpose.source().0, key_id)?.number;
        let ring = self.ring();
        let key = ring.mac_of(purpose, number)?;
        Some(sign(&key, &[derive::framed(parts).as_slice()]))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ring = self.ring();
        let ids = ring.keys().iter().map(|key| &key.id);
        f.debug_list().entries(ids).finish()
    }
}

/// Makes the first key of a purpose that has none; says whether it did. The folder is locked.
fn add_first(
    dir: &Path,
    names: &[String],
    purpose: Purpose,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<bool> {
    let lead = format!("{}-", purpose.as_str());
    if names.iter().any(|name| name.starts_with(&lead)) {
        return Ok(false);
    }
    folder::add(dir, &Key::new(purpose, 1, now, entropy.seed()))?;
    Ok(true)
}

fn check_value(key: &Key) -> [u8; 32] {
    hmac_sha256(key.bytes(), &[CHECK, b"/", key.id.as_bytes()])
}

fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    sign(&hmac::Key::new(hmac::HMAC_SHA256, key), parts)
}

fn sign(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    let mut mac = [0; 32];
    mac.copy_from_slice(context.sign().as_ref());
    mac
}

/// Returns an error of the installation's set-up, whose sentence the operator sees at start-up.
fn setup(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Code::Internal, message)
}

#[cfg(test)]
pub(crate) mod tests;
