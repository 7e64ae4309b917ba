//! Votes: whose count, and what comes of them.
//!
//! Keeps AP-3 and AP-19.

use super::{Approval, Choice, Effect, Party, Refusal, State, Vote};
use provost_kernel::Timestamp;
use provost_kernel::error::Result;
use std::collections::BTreeSet;

/// LIMIT: votes of one request.
const MOST_VOTES: usize = 50;

/// Says whether who says a vote may decide at this moment, and in whose name they say it.
pub type MayDecide<'a> = &'a mut dyn FnMut(&Vote) -> Result<bool>;
/// The ids of the users who stand behind who asked and whom it is for.
pub type Behind = BTreeSet<String>;

impl Approval {
    /// Says whether somebody who said yes stands behind the call: what they were let to say may be of another day.
    pub fn is_of_own(&self, behind: &Behind) -> bool {
        self.yes().any(|vote| self.is_vote_of_own(vote, behind))
    }

    fn yes(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|vote| vote.choice == Choice::Approve)
    }

    fn is_behind(&self, party: &Party, behind: &Behind) -> bool {
        self.concerns(party) || behind.contains(&party.id)
    }

    /// Says whether who says a vote, or in whose name they say it, stands behind the call.
    fn is_vote_of_own(&self, vote: &Vote, behind: &Behind) -> bool {
        self.is_behind(&vote.by, behind) || self.is_behind(&vote.holder(), behind)
    }

    /// Says whether enough people say yes who may say it now: each person once, and each of those in whose name they say it once.
    ///
    /// Keeps AP-19. Errors: those of asking who may decide.
    pub fn has_quorum(&self, behind: &Behind, may_decide: MayDecide<'_>) -> Result<bool> {
        let (mut people, mut holders) = (BTreeSet::new(), BTreeSet::new());
        for vote in self.yes() {
            if !self.is_vote_of_own(vote, behind) && vote.by.is_person() && may_decide(vote)? {
                people.insert(vote.by.id.as_str());
                holders.insert(vote.holder().id);
            }
        }
        let count = i64::try_from(people.len().min(holders.len())).unwrap_or_default();
        Ok(count >= self.quorum)
    }

    /// Says whether somebody is who asked, or for whom it is.
    pub fn concerns(&self, party: &Party) -> bool {
        self.asker == *party || self.subject == *party
    }

    /// Takes a vote, in place of an earlier one of the same voter, and decides when there are enough.
    ///
    /// Keeps AP-3. Errors: a [`Refusal`]; those of asking who may decide.
    pub fn vote(
        &mut self,
        vote: Vote,
        now: Timestamp,
        behind: &Behind,
        may_decide: MayDecide<'_>,
    ) -> Result<std::result::Result<Effect, Refusal>> {
        let state = self.state_at(now);
        if self.is_vote_of_own(&vote, behind) {
            return Ok(Err(Refusal::Own));
        }
        // Nobody can say who has the token of an account. A no gives nothing to anybody.
        if vote.choice == Choice::Approve && !vote.by.is_person() {
            return Ok(Err(Refusal::NotAPerson));
        }
        if !may_decide(&vote)? {
            return Ok(Err(Refusal::MayNotDecide));
        }
        let earlier = self.votes.iter().find(|earlier| earlier.by == vote.by);
        let is_same = earlier
            .is_some_and(|earlier| earlier.choice == vote.choice && earlier.in_name_of == vote.in_name_of);
        // The same word again changes nothing, before the decision and after it (F0.2).
        let stands = match vote.choice {
            Choice::Approve => matches!(state, State::Pending | State::Approved | State::Used),
            Choice::Deny => matches!(state, State::Pending | State::Denied),
        };
        if is_same && stands && state != State::Pending {
            return Ok(Ok(Effect::Nothing));
        }
        if state != State::Pending {
            return Ok(Err(Refusal::Stands(state)));
        }
        self.votes.retain(|earlier| earlier.by != vote.by);
        if self.votes.len() >= MOST_VOTES {
            return Ok(Err(Refusal::TooMany));
        }
        let choice = vote.choice;
        self.votes.push(vote);
        if choice == Choice::Deny {
            self.decided_at = Some(now);
            self.end(State::Denied, now, None);
            return Ok(Ok(Effect::Changed));
        }
        if self.has_quorum(behind, may_decide)? {
            self.state = State::Approved;
            self.decided_at = Some(now);
            self.grant_until = Some(now.plus_secs(self.kind.grant_secs()));
            return Ok(Ok(Effect::Changed));
        }
        // A vote that is there already may still have been the one that was missing: somebody else's right came back.
        Ok(Ok(if is_same { Effect::Nothing } else { Effect::Changed }))
    }

    /// Takes a voter's word back, while nothing is decided.
    pub fn abstain(&mut self, party: &Party, now: Timestamp) -> std::result::Result<Effect, Refusal> {
        let state = self.state_at(now);
        let had = self.votes.iter().any(|vote| vote.by == *party);
        if !had {
            return Ok(Effect::Nothing);
        }
        if state != State::Pending {
            return Err(Refusal::Stands(state));
        }
        self.votes.retain(|vote| vote.by != *party);
        Ok(Effect::Changed)
    }
}
