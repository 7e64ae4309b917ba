//! What is known of the issuers of workloads' tokens, and what the log was told of refusals.
//!
//! An issuer is here because an admin trusts it: a stranger who names another makes nothing be remembered or fetched.

use super::issuers::IssuerTrust;
use super::settings::{KeySource, TrustedIssuer};
use provost_oauth::Algorithm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: issuers whose keys are remembered; those of more are fetched anew.
const MAX_ISSUERS: usize = 1000;
/// LIMIT: claims of trusts of which the log was told something.
const MAX_TOLD: usize = 10_000;
/// Between two lines of the log about one claim of one trust. Units: seconds.
const TOLD_SECS: i64 = 60;

#[derive(Default)]
struct Issuers {
    /// By their URL, with the place in the order in which they came.
    known: HashMap<String, (u64, Arc<IssuerTrust>)>,
    next: u64,
}

impl Issuers {
    /// Forgets one issuer: the oldest of those without keys, or else the oldest.
    fn make_room(&mut self) {
        let least = self.known.iter();
        let least = least.min_by_key(|(_, (place, issuer))| (issuer.has_keys(), *place));
        if let Some(url) = least.map(|(url, _)| url.clone()) {
            self.known.remove(&url);
        }
    }
}

/// One for each server.
#[derive(Default)]
pub struct Workloads {
    issuers: Mutex<Issuers>,
    /// When the log was last told of a trust and a claim, which are the trust's own or few.
    told: Mutex<HashMap<(String, String), i64>>,
}

impl Workloads {
    /// Returns an issuer that a trust names, with what is known of its keys.
    pub fn issuer(&self, url: &str) -> Arc<IssuerTrust> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = issuers.known.get(url) {
            return known.clone();
        }
        if issuers.known.len() >= MAX_ISSUERS {
            issuers.make_room();
        }
        let fresh = Arc::new(IssuerTrust::new(TrustedIssuer {
            url: url.to_owned(),
            organizations: Vec::new(),
            algorithms: Algorithm::ALL.to_vec(),
            keys: KeySource::Discovered,
            introspection: None,
            authoritative_for: None,
            audiences: Vec::new(),
        }));
        let place = issuers.next;
        issuers.next += 1;
        issuers.known.insert(url.to_owned(), (place, fresh.clone()));
        fresh
    }

    /// Tells the log why a token was refused, once in a minute for each claim of a trust; says whether it did. Whoever sent the token
    /// learns no more than that it is not accepted.
    pub fn note_refusal(&self, trust: &str, claim: &str, sentence: &str, now: i64) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back does not silence the log.
        let is_recent = |at: &i64| (0..TOLD_SECS).contains(&now.saturating_sub(*at));
        let about = (trust.to_owned(), claim.to_owned());
        if told.get(&about).is_some_and(is_recent) {
            return false;
        }
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        told.insert(about, now);
        tracing::warn!(trust, claim, "a workload's token is refused: {sentence}");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_once_in_a_minute_of_each_claim_of_a_trust() {
        let workloads = Workloads::default();
        let told = |trust, now| workloads.note_refusal(trust, "sub", "it is another", now);
        assert!(told("wtr_1", 100) && !told("wtr_1", 159) && told("wtr_2", 159));
        assert!(told("wtr_1", 160) && told("wtr_1", 100), "the clock was set back");
        let other = |claim| workloads.note_refusal("wtr_1", claim, "it is another", 101);
        assert!(
            other("ref") && !other("ref") && !other("sub"),
            "one claim hides no other"
        );
    }

    #[test]
    fn an_issuer_is_remembered_and_many_make_room_one_by_one() {
        let workloads = Workloads::default();
        let first = workloads.issuer("https://a.example");
        assert!(Arc::ptr_eq(&first, &workloads.issuer("https://a.example")));
        for nth in 0..MAX_ISSUERS {
            workloads.issuer(&format!("https://{nth}.example"));
        }
        assert_eq!(workloads.issuers.lock().unwrap().known.len(), MAX_ISSUERS);
        // The first made room, and nobody else did.
        let second = workloads.issuer("https://0.example");
        assert!(Arc::ptr_eq(&second, &workloads.issuer("https://0.example")));
        assert_eq!(workloads.issuers.lock().unwrap().known["https://0.example"].0, 1);
        assert!(!Arc::ptr_eq(&first, &workloads.issuer("https://a.example")));
        // Whose keys are known stays, though it came first.
        let kept = workloads.issuer("https://1.example");
        kept.hold_keys();
        workloads.issuer("https://b.example");
        assert!(Arc::ptr_eq(&kept, &workloads.issuer("https://1.example")));
        let known = |url: &str| workloads.issuers.lock().unwrap().known.contains_key(url);
        assert!(!known("https://2.example") && known("https://3.example"));
    }
}
