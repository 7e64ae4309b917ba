//! How many proofs one token, and one organization, may have remembered at a time: no machine fills the memory that the others of
//! its organization need, and no organization the one that all of them need.
//!
//! A proof is remembered for two windows at most, at whose border an organization has its share twice: the memory holds that and half
//! as much again.

use provost_oauth::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How long proofs are counted together. Units: seconds. A proof is remembered for as long at most.
const WINDOW_SECS: i64 = 120;
/// LIMIT: proofs of one token in that time: twice what its rate allows.
const MOST: u32 = 2_600;
/// LIMIT: proofs of one organization in that time: 100 000 devices that call every five minutes make 40 000.
const MOST_OF_ORGANIZATION: u32 = 50_000;

/// The counts of the present window.
#[derive(Default)]
pub(super) struct ProofShares(Mutex<Window>);

#[derive(Default)]
struct Window {
    number: i64,
    tokens: HashMap<String, u32>,
    organizations: HashMap<String, u32>,
}

impl ProofShares {
    /// Counts one more proof of a token of an organization.
    ///
    /// Errors: `Busy` when either had its share.
    pub fn take(&self, organization: &str, token: &str, now_secs: i64) -> Result<(), Refusal> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_secs.div_euclid(WINDOW_SECS);
        if window.number != number {
            *window = Window {
                number,
                ..Window::default()
            };
        }
        let of_token = window.tokens.get(token).copied().unwrap_or_default();
        let of_organization = window
            .organizations
            .get(organization)
            .copied()
            .unwrap_or_default();
        if of_token >= MOST || of_organization >= MOST_OF_ORGANIZATION {
            return Err(Refusal::Busy);
        }
        window.tokens.insert(token.to_owned(), of_token + 1);
        window
            .organizations
            .insert(organization.to_owned(), of_organization + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_share_and_takes_nobody_elses() {
        let shares = ProofShares::default();
        for _ in 0..MOST {
            shares.take("acme", "one", 1_200).unwrap();
        }
        assert!(matches!(shares.take("acme", "one", 1_319), Err(Refusal::Busy)));
        shares.take("acme", "other", 1_319).unwrap();
        shares.take("acme", "one", 1_320).unwrap();
    }

    #[test]
    fn an_organization_has_its_share_and_takes_nobody_elses() {
        let shares = ProofShares::default();
        for number in 0..MOST_OF_ORGANIZATION {
            shares.take("acme", &(number / MOST).to_string(), 1_200).unwrap();
        }
        assert!(matches!(shares.take("acme", "fresh", 1_319), Err(Refusal::Busy)));
        shares.take("globex", "fresh", 1_319).unwrap();
        shares.take("acme", "fresh", 1_320).unwrap();
    }
}
