//! What was found out a moment ago, by a keyed hash of the secret that it is about: bounded, and never past its time.

use aws_lc_rs::hmac;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values that hold until an instant. Units: seconds since the Unix epoch.
pub struct Recent<T> {
    capacity: usize,
    key: hmac::Key,
    known: Mutex<HashMap<[u8; 32], (T, i64)>>,
}

impl<T: Clone> Recent<T> {
    /// Makes a memory for `capacity` values. Nobody who does not have the key can say where a secret lies in it.
    pub fn new(capacity: usize, key: &hmac::Key) -> Self {
        Self {
            capacity,
            key: key.clone(),
            known: Mutex::default(),
        }
    }

    /// Returns the value of a secret, while it holds.
    pub fn get(&self, secret: &str, now: i64) -> Option<T> {
        let known = self.lock();
        let (value, until) = known.get(&self.place(secret))?;
        (now < *until).then(|| value.clone())
    }

    /// Remembers a value; what has run out makes room first, then everything does.
    pub fn put(&self, secret: &str, value: T, now: i64, until: i64) {
        let mut known = self.lock();
        if known.len() >= self.capacity {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() >= self.capacity {
            known.clear();
        }
        known.insert(self.place(secret), (value, until));
    }

    fn place(&self, secret: &str) -> [u8; 32] {
        let mut place = [0; 32];
        place.copy_from_slice(hmac::sign(&self.key, secret.as_bytes()).as_ref());
        place
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (T, i64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_ends_at_its_time_and_makes_room() {
        let recent = Recent::new(2, &hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]));
        recent.put("a", 1, 0, 10);
        assert_eq!((recent.get("a", 9), recent.get("a", 10)), (Some(1), None));
        recent.put("b", 2, 0, 100);
        recent.put("c", 3, 50, 100);
        assert_eq!((recent.get("b", 50), recent.get("c", 50)), (Some(2), Some(3)));
        recent.put("d", 4, 50, 100);
        assert_eq!((recent.get("b", 50), recent.get("d", 50)), (None, Some(4)));
    }
}
