//! How many proofs one token may have remembered at a time: no machine fills the memory that all others need.

use provost_oauth::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How long proofs are counted together. Units: seconds. A proof is remembered for as long at most.
const WINDOW_SECS: i64 = 120;
/// LIMIT: proofs of one token in that time: twice what its rate allows.
const MOST: u32 = 2_600;

/// The counts of the present window.
#[derive(Default)]
pub(super) struct ProofShares(Mutex<Window>);

#[derive(Default)]
struct Window {
    number: i64,
    counts: HashMap<String, u32>,
}

impl ProofShares {
    /// Counts one more proof of a token.
    ///
    /// Errors: `Busy` when it had its share.
    pub fn take(&self, owner: &str, now_secs: i64) -> Result<(), Refusal> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_secs.div_euclid(WINDOW_SECS);
        if window.number != number {
            *window = Window {
                number,
                counts: HashMap::new(),
            };
        }
        let count = window.counts.entry(owner.to_owned()).or_default();
        if *count >= MOST {
            return Err(Refusal::Busy);
        }
        *count += 1;
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
            shares.take("one", 1_200).unwrap();
        }
        assert!(matches!(shares.take("one", 1_319), Err(Refusal::Busy)));
        shares.take("other", 1_319).unwrap();
        shares.take("one", 1_320).unwrap();
    }
}
