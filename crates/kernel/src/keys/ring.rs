//! The keys that a process has read, and which of each purpose makes new things.

use super::key::{Key, Purpose};
use super::{MacPurpose, derive};
use aws_lc_rs::hmac;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The sub-key of one keyed hash.
struct SubKey {
    purpose: MacPurpose,
    /// The number of the key that it comes from.
    number: u32,
    key: hmac::Key,
}

/// See the module's text. A ring never changes; what is read or adopted later makes another.
pub(super) struct Ring {
    /// Rises with each ring that takes the place of another.
    pub(super) version: u64,
    /// Sorted by purpose, then number.
    keys: Vec<Arc<Key>>,
    /// Made once for a ring: a request may need hundreds of hashes.
    macs: Vec<SubKey>,
    /// The number of the key of each purpose that makes new things.
    current: BTreeMap<Purpose, u32>,
}

impl Ring {
    /// Puts keys in order. The newest of a purpose that does not wait is its current one; where all wait, it is the oldest.
    pub(super) fn new(keys: Vec<Key>, pending: &BTreeSet<String>) -> Self {
        let mut current: BTreeMap<Purpose, u32> = BTreeMap::new();
        for purpose in Purpose::ALL {
            let of = || keys.iter().filter(|key| key.purpose == *purpose);
            let used = of()
                .filter(|key| !pending.contains(&key.id))
                .map(|key| key.number)
                .max();
            if let Some(number) = used.or_else(|| of().map(|key| key.number).min()) {
                current.insert(*purpose, number);
            }
        }
        Self::of(0, keys.into_iter().map(Arc::new).collect(), current)
    }

    fn of(version: u64, mut keys: Vec<Arc<Key>>, current: BTreeMap<Purpose, u32>) -> Self {
        keys.sort_by_key(|key| (key.purpose, key.number));
        let macs = MacPurpose::ALL.iter().flat_map(|purpose| {
            let (source, info) = purpose.source();
            let keys = keys.iter().filter(move |key| key.purpose == source);
            keys.map(move |key| SubKey {
                purpose: *purpose,
                number: key.number,
                key: sub_key(key, info),
            })
        });
        let macs = macs.collect();
        Self {
            version,
            keys,
            macs,
            current,
        }
    }

    /// Returns this ring with more keys, none of which makes anything new. One that waited gives way to another of its name.
    pub(super) fn with(&self, found: Vec<Key>) -> Self {
        let stays = |key: &&Arc<Key>| !found.iter().any(|other| other.id == key.id);
        let mut keys: Vec<Arc<Key>> = self.keys.iter().filter(stays).cloned().collect();
        keys.extend(found.into_iter().map(Arc::new));
        Self::of(self.version + 1, keys, self.current.clone())
    }

    /// Returns this ring with another current key of a purpose.
    pub(super) fn using(&self, purpose: Purpose, number: u32) -> Self {
        let mut current = self.current.clone();
        current.insert(purpose, number);
        Self::of(self.version + 1, self.keys.clone(), current)
    }

    /// Returns every key, in order.
    pub(super) fn keys(&self) -> &[Arc<Key>] {
        &self.keys
    }

    /// Returns every key of a purpose, the oldest first.
    pub(super) fn of_purpose(&self, purpose: Purpose) -> impl DoubleEndedIterator<Item = &Arc<Key>> {
        self.keys.iter().filter(move |key| key.purpose == purpose)
    }

    /// Returns the key of an id.
    pub(super) fn find(&self, purpose: Purpose, id: &str) -> Option<&Arc<Key>> {
        self.of_purpose(purpose).find(|key| key.id == id)
    }

    /// Says whether there is a key of every purpose; else which has none.
    pub(super) fn lacks(&self) -> Option<Purpose> {
        let mut all = Purpose::ALL.iter().copied();
        all.find(|purpose| !self.current.contains_key(purpose))
    }

    /// Returns the key that makes new things.
    #[expect(
        clippy::expect_used,
        reason = "keys without one of each purpose are refused when they are read"
    )]
    pub(super) fn current(&self, purpose: Purpose) -> &Arc<Key> {
        let number = self.current.get(&purpose);
        self.of_purpose(purpose)
            .find(|key| Some(&key.number) == number)
            .expect("a key of every purpose")
    }

    /// Says whether a key waits: it checks, and makes nothing yet.
    pub(super) fn waits(&self, key: &Key) -> bool {
        self.current
            .get(&key.purpose)
            .is_some_and(|current| key.number > *current)
    }

    /// Returns the sub-key of a keyed hash under the current key.
    #[expect(clippy::expect_used, reason = "each key's sub-keys are made with the ring")]
    pub(super) fn mac(&self, purpose: MacPurpose) -> Cow<'_, hmac::Key> {
        let number = self.current(purpose.source().0).number;
        self.mac_of(purpose, number).expect("a sub-key of every key")
    }

    /// Returns the sub-key of a keyed hash under the key of a number. One of an area is made when it is asked for.
    pub(super) fn mac_of(&self, purpose: MacPurpose, number: u32) -> Option<Cow<'_, hmac::Key>> {
        if let MacPurpose::Own(_) = purpose {
            let (source, info) = purpose.source();
            let key = self.of_purpose(source).find(|key| key.number == number)?;
            return Some(Cow::Owned(sub_key(key, info)));
        }
        let mut macs = self.macs.iter();
        macs.find(|mac| mac.purpose == purpose && mac.number == number)
            .map(|mac| Cow::Borrowed(&mac.key))
    }

    /// Returns every sub-key of a keyed hash, the newest first.
    pub(super) fn macs(&self, purpose: MacPurpose) -> impl Iterator<Item = Cow<'_, hmac::Key>> {
        let keys = self.of_purpose(purpose.source().0).rev();
        keys.filter_map(move |key| self.mac_of(purpose, key.number))
    }
}

fn sub_key(key: &Key, info: &[u8]) -> hmac::Key {
    let bytes = derive::expand::<32>(key.bytes(), &[], info);
    hmac::Key::new(hmac::HMAC_SHA256, bytes.as_slice())
}
