//! How many proofs one token, and one organization, may have counted at a time: no machine takes what the others of its organization
//! need. What organizations take from each other, the memory itself bounds ([`provost_oauth::dpop::ReplayCache::admit_of`]).
//!
//! Few machines that call without end have half of what their organization has; behind it the others call as often as they have to.

use provost_oauth::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How long proofs are counted together. Units: seconds. A proof is remembered for as long at most.
const WINDOW_SECS: i64 = 120;
/// LIMIT: proofs of one token in that time: its burst and its rate.
const MOST: u32 = 1_300;
/// LIMIT: proofs of one token in that time where half of its organization's are counted: a machine calls every five minutes, renews its
/// token and repeats what was lost.
const MOST_BEHIND_HALF: u32 = 8;
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
        // The clock may have been read before another's, or be set back: the counts stay then.
        let is_later = number > window.number || number < window.number - 1;
        if is_later {
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
        let is_behind_half = of_organization >= MOST_OF_ORGANIZATION / 2;
        let most = if is_behind_half { MOST_BEHIND_HALF } else { MOST };
        if of_token >= most || of_organization >= MOST_OF_ORGANIZATION {
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
            let token = (number / MOST_BEHIND_HALF).to_string();
            shares.take("acme", &token, 1_200).unwrap();
        }
        assert!(matches!(shares.take("acme", "fresh", 1_319), Err(Refusal::Busy)));
        shares.take("globex", "fresh", 1_319).unwrap();
        shares.take("acme", "fresh", 1_320).unwrap();
    }

    #[test]
    fn few_machines_without_end_leave_the_others_their_calls() {
        let shares = ProofShares::default();
        for token in 0..100 {
            for _ in 0..MOST {
                shares.take("acme", &token.to_string(), 1_200).ok();
            }
        }
        for _ in 0..MOST_BEHIND_HALF {
            shares.take("acme", "quiet", 1_319).unwrap();
        }
        assert!(matches!(shares.take("acme", "quiet", 1_319), Err(Refusal::Busy)));
    }

    #[test]
    fn a_clock_that_goes_back_a_little_forgets_no_count() {
        let shares = ProofShares::default();
        for _ in 0..MOST {
            shares.take("acme", "one", 1_320).unwrap();
        }
        assert!(matches!(shares.take("acme", "one", 1_319), Err(Refusal::Busy)));
        assert!(matches!(shares.take("acme", "one", 1_320), Err(Refusal::Busy)));
        shares.take("acme", "one", 120).unwrap();
    }
}
