//! Which tokens were valid a moment ago, by a keyed hash of the header that held them.
//!
//! It decides who gets a place where places are few, and whether a body is waited for a moment before its caller is looked at. It
//! decides nothing else: every request is authenticated by itself.

use crate::time::Clock;
use aws_lc_rs::hmac;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// LIMIT: how long a caller is known.
const KNOWN: Duration = Duration::from_mins(10);
/// A newer use than the noted one by less than this is not noted.
const PRECISION: Duration = Duration::from_secs(30);
/// LIMIT: callers that are known; 40 bytes each.
const MOST: usize = 65_536;

/// The keyed hash of a header. Of 2^128, so that nobody is taken for another.
pub(super) type HeaderHash = [u8; 16];

/// See the module's text.
pub(super) struct Callers {
    key: hmac::Key,
    clock: Arc<dyn Clock>,
    known: RwLock<HashMap<HeaderHash, Duration>>,
}

impl Callers {
    /// Returns a memory that knows nobody. The key is this process's own and leaves it never.
    pub(super) fn new(key: &[u8; 32], clock: Arc<dyn Clock>) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            clock,
            known: RwLock::default(),
        }
    }

    /// Returns the mark of a request that says who it is, in one header.
    pub(super) fn mark(&self, headers: &HeaderMap) -> Option<HeaderHash> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        let tag = hmac::sign(&self.key, value.as_bytes());
        let mut mark = [0; 16];
        mark.copy_from_slice(tag.as_ref().get(..16)?);
        Some(mark)
    }

    /// Says whether a caller was recognized within the last minutes.
    pub(super) fn knows(&self, mark: &HeaderHash) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(mark).is_some_and(|at| self.since(*at) < KNOWN)
    }

    /// Notes that a caller was recognized.
    pub(super) fn note(&self, mark: &HeaderHash) {
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.get(mark).is_some_and(|at| self.since(*at) < PRECISION) {
                return;
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, at| self.since(*at) < KNOWN);
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(*mark, self.clock.monotonic());
    }

    /// Forgets a caller whose token is not valid any more.
    pub(super) fn forget(&self, mark: &HeaderHash) {
        let is_known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.contains_key(mark)
        };
        if is_known {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            known.remove(mark);
        }
    }

    fn since(&self, at: Duration) -> Duration {
        self.clock.monotonic().saturating_sub(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::time::ManualClock;
    use http::HeaderValue;

    fn headers(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_caller_is_known_for_ten_minutes_or_until_it_is_refused() {
        let clock = Arc::new(ManualClock::new(Timestamp::EPOCH));
        let callers = Callers::new(&[7; 32], clock.clone());
        let [one, other] =
            ["Bearer one", "Bearer other"].map(|value| callers.mark(&headers(&[value])).unwrap());
        assert!(!callers.knows(&one));
        callers.note(&one);
        assert!(callers.knows(&one) && !callers.knows(&other));
        clock.advance(Duration::from_millis(599_999));
        assert!(callers.knows(&one));
        clock.advance(Duration::from_millis(1));
        assert!(!callers.knows(&one));
        callers.note(&one);
        callers.note(&other);
        callers.forget(&one);
        assert!(!callers.knows(&one) && callers.knows(&other));
    }

    #[test]
    fn who_says_nothing_or_two_things_has_no_mark() {
        let clock = Arc::new(ManualClock::new(Timestamp::EPOCH));
        let callers = Callers::new(&[7; 32], clock.clone());
        assert_eq!(callers.mark(&headers(&[])), None);
        assert_eq!(callers.mark(&headers(&["Bearer a", "Bearer b"])), None);
        let mark = callers.mark(&headers(&["Bearer a"]));
        assert!(mark.is_some());
        let of_another_process = Callers::new(&[8; 32], clock);
        assert_ne!(of_another_process.mark(&headers(&["Bearer a"])), mark);
    }
}
