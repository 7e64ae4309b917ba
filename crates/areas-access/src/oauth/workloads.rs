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
/// LIMIT: trusts of which the log was told something.
const MAX_TOLD: usize = 10_000;
/// Between two lines of the log about one trust. Units: seconds.
const TOLD_SECS: i64 = 60;

/// One for each server.
#[derive(Default)]
pub struct Workloads {
    issuers: Mutex<HashMap<String, Arc<IssuerTrust>>>,
    told: Mutex<HashMap<String, i64>>,
}

impl Workloads {
    /// Returns an issuer that a trust names, with what is known of its keys.
    pub fn issuer(&self, url: &str) -> Arc<IssuerTrust> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if !issuers.contains_key(url) && issuers.len() >= MAX_ISSUERS {
            issuers.clear();
        }
        let known = issuers.entry(url.to_owned()).or_insert_with(|| {
            Arc::new(IssuerTrust::new(TrustedIssuer {
                url: url.to_owned(),
                organizations: Vec::new(),
                algorithms: Algorithm::ALL.to_vec(),
                keys: KeySource::Discovered,
                introspection: None,
                authoritative_for: None,
                audiences: Vec::new(),
            }))
        });
        known.clone()
    }

    /// Tells the log why a token was refused, once in a minute for each trust; says whether it did. Whoever sent the token
    /// learns no more than that it is not accepted.
    pub fn note_refusal(&self, trust: &str, claim: &str, sentence: &str, now: i64) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back does not silence the log.
        let is_recent = |at: &i64| (0..TOLD_SECS).contains(&now.saturating_sub(*at));
        if told.get(trust).is_some_and(is_recent) {
            return false;
        }
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        told.insert(trust.to_owned(), now);
        tracing::warn!(trust, claim, "a workload's token is refused: {sentence}");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_once_in_a_minute_of_each_trust() {
        let workloads = Workloads::default();
        let told = |trust, now| workloads.note_refusal(trust, "sub", "it is another", now);
        assert!(told("wtr_1", 100) && !told("wtr_1", 159) && told("wtr_2", 159));
        assert!(told("wtr_1", 160) && told("wtr_1", 100), "the clock was set back");
    }

    #[test]
    fn an_issuer_is_remembered_and_many_make_room() {
        let workloads = Workloads::default();
        let first = workloads.issuer("https://a.example");
        assert!(Arc::ptr_eq(&first, &workloads.issuer("https://a.example")));
        for nth in 0..MAX_ISSUERS {
            workloads.issuer(&format!("https://{nth}.example"));
        }
        assert!(workloads.issuers.lock().unwrap().len() <= MAX_ISSUERS);
    }
}
